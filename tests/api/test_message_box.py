"""`message.list` with a box: what is in it, with which filters beside it, page by page, and what is too broad."""

from __future__ import annotations

from typing import Any

import pytest

from hiboss.testing.running_daemon import Answered, RunningDaemon
from tests.support.cli import Shell
from tests.support.parties import Party, agents, boss
from tests.support.python_agents import Team, wait_until_idle

BOXES = ("inbox", "archived", "trash", "snoozed")
AUTH = {"type": "module", "value": "auth"}


def ids(party: Party, **params: Any) -> list[str]:
    found = party.call("message.list", **{"page_size": 100, **params})
    assert found["total"] == len(found["messages"])
    return [one["message_id"] for one in found["messages"]]


def walked(party: Party, **params: Any) -> list[str]:
    """Return the ids of all pages, by cursor."""
    found, cursor = [], None
    while True:
        page = party.call("message.list", **params, **({"cursor": cursor} if cursor else {}))
        found += [one["message_id"] for one in page["messages"]]
        if (cursor := page["next"]) is None:
            return found


def in_each_box(ada: Party, bob: Party, **params: Any) -> dict[str, str]:
    """Send bob one message for each box; return them by box."""
    sent = {box: ada.send(bob, **params)["message"] for box in BOXES}
    bob.call("envelope.archive", ids=[sent["archived"]])
    bob.call("envelope.trash", ids=[sent["trash"]])
    bob.call("envelope.snooze", ids=[sent["snoozed"]], until="+1h")
    return sent


def test_each_box_lists_what_is_in_it(two: tuple[Party, Party]) -> None:
    ada, bob = two
    sent = in_each_box(ada, bob)
    for box in BOXES:
        assert ids(bob, box=box) == [sent[box]]
    assert ids(bob, box="inbox") == ids(bob) and ids(bob, box="snoozed") == ids(bob, snoozed=True)
    assert ids(bob, box="outbox") == ids(ada, box="inbox") == []


def test_the_outbox_lists_what_one_sent_once_for_all_recipients_also_what_is_deferred(
    daemon: RunningDaemon,
) -> None:
    ada, bob, eve = agents(daemon, 3)
    first, second = ada.send(bob, eve)["message"], ada.send(bob, deliver_at="+9h")["message"]
    bob.send(ada)
    assert ids(ada, box="outbox") == [second, first]
    assert ids(ada, box="outbox", sort_order="asc") == [first, second]
    name = f"of-{ada.name}"
    ada.call("conversation.create", name=name, participants=[bob.address, eve.address])
    third = ada.send(f"group:{name}")["message"]
    assert ids(ada, box="outbox") == [third, second, first]


@pytest.mark.parametrize("box", [*BOXES, "outbox"])
def test_with_another_filter_only_what_is_in_the_box_is_left(daemon: RunningDaemon, box: str) -> None:
    ada, bob = agents(daemon, 2)
    in_each_box(ada, bob)  # without the tag, in other threads
    first = ada.send(bob, scopes=[AUTH], text="first")
    parts = {"reply_to": first["message"], "scopes": [AUTH], "text": f"for @{bob.name}"}
    sent = in_each_box(ada, bob, **parts)
    bob.call("envelope.archive", ids=[first["message"]])
    sent["outbox"] = bob.send(reply_to=first["message"], scopes=[AUTH], text=f"of @{bob.name}")["message"]
    wanted = [sent[box]]
    assert ids(bob, box=box, thread_id=first["thread"], mentions=True) == wanted
    assert ids(bob, box=box, scope=AUTH, mentions=True) == wanted
    assert ids(bob, box=box, scope=AUTH, thread_id=first["thread"], sort_order="asc")[-1:] == wanted
    assert wanted[0] in ids(bob, box=box, conversation_id=first["conversation"])
    changed = {"sort_by": "updated_at", "thread_id": first["thread"], "mentions": True}
    assert ids(bob, box=box, **changed) == wanted


def test_without_a_box_a_thread_still_lists_what_is_in_any(two: tuple[Party, Party]) -> None:
    ada, bob = two
    first = ada.send(bob)
    sent = in_each_box(ada, bob, reply_to=first["message"])
    assert ids(bob, thread_id=first["thread"], sort_order="asc") == [first["message"], *sent.values()]
    assert ids(bob, thread_id=first["thread"], box="inbox") == [sent["inbox"], first["message"]]


def test_unread_in_a_box(two: tuple[Party, Party]) -> None:
    ada, bob = two
    sent = in_each_box(ada, bob)
    number = ada.send(bob)["conversation"]
    assert sent["inbox"] in ids(bob, box="inbox", unread=True)
    assert ids(bob, box="snoozed", unread=True) == [sent["snoozed"]]
    assert ids(bob, box="trash", unread=True, conversation_id=number) == [sent["trash"]]
    bob.call("envelope.read", ids=[sent["trash"]])
    assert ids(bob, box="trash", unread=True, conversation_id=number) == []


@pytest.mark.parametrize("box", [*BOXES, "outbox"])
def test_pages_of_a_box_skip_nothing_and_repeat_nothing(daemon: RunningDaemon, box: str) -> None:
    ada, bob = agents(daemon, 2)
    everything = [in_each_box(ada, bob) | {"outbox": bob.send(ada)["message"]} for _ in range(7)]
    wanted = [one[box] for one in everything]
    assert walked(bob, box=box, page_size=2, sort_order="asc") == wanted
    assert walked(bob, box=box, page_size=3) == wanted[::-1]
    second = bob.call("message.list", box=box, page=2, page_size=2)
    assert [one["message_id"] for one in second["messages"]] == wanted[::-1][2:4]
    assert (second["total"], second["total_pages"]) == (7, 4)


def test_a_cursor_goes_on_only_with_its_box(two: tuple[Party, Party]) -> None:
    ada, bob = two
    for _ in range(2):
        in_each_box(ada, bob)
        bob.send(ada)
    cursors = {box: bob.call("message.list", box=box, page_size=1)["next"] for box in (*BOXES, "outbox")}
    for of, cursor in cursors.items():
        for box in (*BOXES, "outbox"):
            if box == of:
                assert len(bob.call("message.list", box=box, cursor=cursor)["messages"]) == 1
            else:
                assert bob.refusal("message.list", box=box, cursor=cursor) == "bad_cursor"
    assert bob.refusal("message.list", author_id=bob.name, cursor=cursors["outbox"]) == "bad_cursor"


@pytest.mark.parametrize(
    "broad",
    [
        {"box": "inbox", "type": "text"},
        {"box": "archived", "created_after": "-1h"},
        {"box": "trash", "meta": {"a": 1}},
        {"box": "archived", "unread": True},
        {"box": "trash", "unread": True, "type": "text"},
        {"box": "archived", "author_id": "boss"},
    ],
    ids=repr,
)
def test_what_no_index_has_is_too_broad_and_a_flat_filter_beside_it_helps(
    two: tuple[Party, Party], broad: dict[str, Any]
) -> None:
    ada, bob = two
    with pytest.raises(Answered, match=f"in the box {broad['box']} alone") as caught:
        ada.call("message.list", **broad)
    assert caught.value.stable_code == "too_broad" and "thread_id" in str(caught.value)
    assert not ("unread" in broad and "unread" in str(caught.value).partition("add one of")[2])
    ada.call("message.list", **broad, thread_id=bob.send(ada)["thread"])


def test_the_outbox_and_what_is_snoozed_take_any_filter(two: tuple[Party, Party]) -> None:
    ada, bob = two
    sent = in_each_box(ada, bob)
    plain, document = bob.send(ada)["message"], bob.send(ada, text="{}", type="json")["message"]
    assert ids(bob, box="outbox", type="json") == [document]
    assert ids(bob, box="outbox", created_after="-1h") == [document, plain]
    assert ids(bob, box="snoozed", type="text") == [sent["snoozed"]]


@pytest.mark.parametrize(
    "params",
    [
        {"box": "all"},
        {"box": ""},
        {"box": "archived", "snoozed": True},
        {"box": "outbox", "unread": True},
    ],
    ids=repr,
)
def test_boxes_that_do_not_fit_are_refused(two: tuple[Party, Party], params: dict[str, Any]) -> None:
    assert two[0].refusal("message.list", **params) == "invalid_params"


def test_the_boss_looks_into_his_own_box_or_into_that_of_another_one(daemon: RunningDaemon) -> None:
    ada, bob = agents(daemon, 2)
    chief, sent = boss(daemon), in_each_box(ada, bob)
    own = ada.send(chief)["message"]
    chief.call("envelope.trash", ids=[own])
    assert own in ids(chief, box="trash") and sent["trash"] not in ids(chief, box="trash")
    for box in BOXES:
        assert ids(chief, box=box, address=bob.address) == [sent[box]]
    assert ids(chief, box="outbox", address=ada.address)[-1] == sent["inbox"]
    assert ada.refusal("message.list", box="trash", address=bob.address) == "boss_only"
    assert bob.call("message.get", message_id=sent["inbox"])["message"]["is_read"] is False


def test_a_person_and_a_deleted_agent_have_boxes_too(daemon: RunningDaemon) -> None:
    ada, bob = agents(daemon, 2)
    token = boss(daemon).call("user.register", name=f"of-{ada.name}")["token"]
    person = Party(daemon, f"user:of-{ada.name}", token)
    sent = in_each_box(ada, person)
    assert [ids(person, box=box) for box in BOXES] == [[sent[box]] for box in BOXES]
    of_bob = in_each_box(ada, bob)
    boss(daemon).call("agent.delete", name=bob.name)
    assert ids(boss(daemon), box="archived", address=bob.address) == [of_bob["archived"]]


def test_a_deleted_message_stays_in_its_box_without_its_text(two: tuple[Party, Party]) -> None:
    ada, bob = two
    sent = in_each_box(ada, bob, text="a secret")
    ada.call("message.delete", id=sent["archived"])
    [found] = bob.call("message.list", box="archived")["messages"]
    assert found["message_id"] == sent["archived"] and "a secret" not in str(found)


def test_a_run_sees_the_boxes_of_its_agent(team: Team) -> None:
    worker = team.hire('note(call("message.list", box="archived"))\nprint("NO_REPLY")')
    chief = boss(team.daemon)
    first = chief.send(worker, text="one")["message"]
    wait_until_idle(team.daemon)
    worker.call("envelope.archive", ids=[first])
    chief.send(worker, text="two")
    wait_until_idle(team.daemon)
    before, after = worker.program.notes()
    assert before["messages"] == [] and [one["message_id"] for one in after["messages"]] == [first]


def test_the_command_line_lists_a_box(two: tuple[Party, Party]) -> None:
    ada, bob = two
    sent = in_each_box(ada, bob)
    done = Shell(ada.daemon.home.path)("message", "list", "--box", "trash", env={"HIBOSS_TOKEN": bob.token})
    assert sent["trash"] in done.stdout and sent["inbox"] not in done.stdout
