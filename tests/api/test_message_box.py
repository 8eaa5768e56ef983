"""Messages as a caller sees them: in each box, one alone, and those of groups."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hiboss.testing.running_daemon import Answered, RunningDaemon
from tests.api.test_message_list import walked
from tests.support.cli import Shell
from tests.support.followers import following
from tests.support.parties import Party, boss, person
from tests.support.python_agents import Team, wait_until_idle
from tests.support.raising import raised

BOXES = ("inbox", "archived", "trash", "snoozed")
AUTH = {"type": "module", "value": "auth"}


def ids(party: Party, **params: Any) -> list[str]:
    found = party.call("message.list", **{"page_size": 100, **params})
    assert found["total"] == len(found["messages"])
    return [one["message_id"] for one in found["messages"]]


def in_each_box(ada: Party, bob: Party, **params: Any) -> dict[str, str]:
    """Send bob one message for each box; return them by box."""
    sent = {box: ada.send(bob, **params)["message"] for box in BOXES}
    bob.call("envelope.archive", ids=[sent["archived"]])
    bob.call("envelope.trash", ids=[sent["trash"]])
    bob.call("envelope.snooze", ids=[sent["snoozed"]], until="+1h")
    return sent


def test_each_box_lists_what_is_in_it(ada: Party, bob: Party) -> None:
    sent = in_each_box(ada, bob)
    for box in BOXES:
        assert ids(bob, box=box) == [sent[box]]
    assert ids(bob, box="inbox") == ids(bob) and ids(bob, box="snoozed") == ids(bob, snoozed=True)
    assert ids(bob, box="outbox") == ids(ada, box="inbox") == []


def test_the_outbox_lists_what_one_sent_once_for_all_recipients_also_what_is_deferred(
    ada: Party, bob: Party, eve: Party
) -> None:
    first, second = ada.send(bob, eve)["message"], ada.send(bob, deliver_at="+9h")["message"]
    bob.send(ada)
    assert ids(ada, box="outbox") == [second, first]
    assert ids(ada, box="outbox", sort_order="asc") == [first, second]
    name = f"of-{ada.name}"
    ada.call("conversation.create", name=name, participants=[bob.address, eve.address])
    third = ada.send(f"group:{name}")["message"]
    assert ids(ada, box="outbox") == [third, second, first]


@pytest.mark.parametrize("box", [*BOXES, "outbox"])
def test_with_another_filter_only_what_is_in_the_box_is_left(ada: Party, bob: Party, box: str) -> None:
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


def test_without_a_box_a_thread_still_lists_what_is_in_any(ada: Party, bob: Party) -> None:
    first = ada.send(bob)
    sent = in_each_box(ada, bob, reply_to=first["message"])
    assert ids(bob, thread_id=first["thread"], sort_order="asc") == [first["message"], *sent.values()]
    assert ids(bob, thread_id=first["thread"], box="inbox") == [sent["inbox"], first["message"]]


def test_unread_in_a_box(ada: Party, bob: Party) -> None:
    sent = in_each_box(ada, bob)
    number = ada.send(bob)["conversation"]
    assert sent["inbox"] in ids(bob, box="inbox", unread=True)
    assert ids(bob, box="snoozed", unread=True) == [sent["snoozed"]]
    assert ids(bob, box="trash", unread=True, conversation_id=number) == [sent["trash"]]
    bob.call("envelope.read", ids=[sent["trash"]])
    assert ids(bob, box="trash", unread=True, conversation_id=number) == []


@pytest.mark.parametrize("box", [*BOXES, "outbox"])
def test_pages_of_a_box_skip_nothing_and_repeat_nothing(ada: Party, bob: Party, box: str) -> None:
    everything = [in_each_box(ada, bob) | {"outbox": bob.send(ada)["message"]} for _ in range(7)]
    wanted = [one[box] for one in everything]
    assert walked(bob, box=box, page_size=2, sort_order="asc") == wanted
    assert walked(bob, box=box, page_size=3) == wanted[::-1]
    second = bob.call("message.list", box=box, page=2, page_size=2)
    assert [one["message_id"] for one in second["messages"]] == wanted[::-1][2:4]
    assert (second["total"], second["total_pages"]) == (7, 4)


def test_a_cursor_goes_on_only_with_its_box(ada: Party, bob: Party) -> None:
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
    ada: Party, bob: Party, broad: dict[str, Any]
) -> None:
    with pytest.raises(Answered, match=f"in the box {broad['box']} alone") as caught:
        ada.call("message.list", **broad)
    assert caught.value.stable_code == "too_broad" and "thread_id" in str(caught.value)
    assert not ("unread" in broad and "unread" in str(caught.value).partition("add one of")[2])
    ada.call("message.list", **broad, thread_id=bob.send(ada)["thread"])


def test_the_outbox_and_what_is_snoozed_take_any_filter(ada: Party, bob: Party) -> None:
    sent = in_each_box(ada, bob)
    plain, document = bob.send(ada)["message"], bob.send(ada, text="{}", type="json")["message"]
    assert ids(bob, box="outbox", type="json") == [document]
    assert ids(bob, box="outbox", created_after="-1h") == [document, plain]
    assert ids(bob, box="snoozed", type="text") == [sent["snoozed"]]


def test_the_boss_looks_into_his_own_box_or_into_that_of_another_one(
    daemon: RunningDaemon, ada: Party, bob: Party
) -> None:
    chief, sent = boss(daemon), in_each_box(ada, bob)
    own = ada.send(chief)["message"]
    chief.call("envelope.trash", ids=[own])
    assert own in ids(chief, box="trash") and sent["trash"] not in ids(chief, box="trash")
    for box in BOXES:
        assert ids(chief, box=box, address=bob.address) == [sent[box]]
    assert ids(chief, box="outbox", address=ada.address)[-1] == sent["inbox"]
    assert ada.refusal("message.list", box="trash", address=bob.address) == "boss_only"
    assert bob.call("message.get", message_id=sent["inbox"])["message"]["is_read"] is False


def test_a_person_and_a_deleted_agent_have_boxes_too(daemon: RunningDaemon, ada: Party, bob: Party) -> None:
    ann = person(daemon)
    sent = in_each_box(ada, ann)
    assert [ids(ann, box=box) for box in BOXES] == [[sent[box]] for box in BOXES]
    of_bob = in_each_box(ada, bob)
    boss(daemon).call("agent.delete", name=bob.name)
    assert ids(boss(daemon), box="archived", address=bob.address) == [of_bob["archived"]]


def test_a_run_sees_the_boxes_of_its_agent(team: Team, chief: Party) -> None:
    worker = team.hire('note(call("message.list", box="archived"))\nprint("NO_REPLY")')
    first = chief.send(worker, text="one")["message"]
    wait_until_idle(team.daemon)
    worker.call("envelope.archive", ids=[first])
    chief.send(worker, text="two")
    wait_until_idle(team.daemon)
    before, after = worker.program.notes()
    assert before["messages"] == [] and [one["message_id"] for one in after["messages"]] == [first]


def test_the_command_line_lists_a_box(ada: Party, bob: Party) -> None:
    sent = in_each_box(ada, bob)
    done = Shell(ada.daemon.home.path)("message", "list", "--box", "trash", env={"HIBOSS_TOKEN": bob.token})
    assert sent["trash"] in done.stdout and sent["inbox"] not in done.stdout


# --- one alone ---------------------------------------------------------------------


def message(party: Party, given: str) -> dict[str, Any]:
    found: dict[str, Any] = party.call("message.get", message_id=given)["message"]
    return found


def test_a_message_is_shown_in_full_as_the_seed_nests_it(ada: Party, bob: Party, tmp_path: Path) -> None:
    file = tmp_path / "plan.txt"
    file.write_text("1. read")
    facts = {
        "subject": "the plan",
        "scopes": [{"type": "module", "value": "auth"}],
        "refs": [{"type": "issue", "value": "42"}],
        "metadata": {"own": [1]},
        "session": "desk",
        "attachments": [str(file)],
    }
    one = message(bob, ada.send(bob, text=f"for @{bob.name}", **facts)["message"])
    assert one["author"] == {"agent_id": ada.name, "session_id": "desk", "kind": "agent"}
    assert one["body"] == {"format": "text", "content": f"for @{bob.name}", "structured": ""}
    assert one["scopes"] == [{"type": "module", "value": "auth"}]
    assert {"type": "issue", "value": "42"} in one["refs"]
    assert {"type": "mention", "value": bob.name} in one["refs"]
    assert one["metadata"] == {"deleted_at": "", "delete_reason": ""} and one["meta"] == {"own": [1]}
    assert (one["updated_at"], one["deleted"], one["subject"]) == ("", False, "the plan")
    assert [file["name"] for file in one["attachments"]] == ["plan.txt"]
    assert one == bob.call("message.list")["messages"][0]


def test_a_message_is_found_by_its_id_and_by_that_of_an_envelope(ada: Party, bob: Party) -> None:
    sent = ada.send(bob)
    assert message(bob, sent["ids"][0]) == message(bob, sent["message"])
    assert message(bob, int(sent["message"][1:])) == message(bob, sent["message"])  # type: ignore[arg-type]


def test_what_was_edited_shows_its_latest_wording_and_when(ada: Party, bob: Party) -> None:
    sent = ada.send(bob, text="old")
    ada.call("message.edit", id=sent["message"], text="new")
    one = message(bob, sent["message"])
    assert one["body"]["content"] == "new" and one["updated_at"] >= one["created_at"]


def test_a_foreign_message_is_not_told_from_one_that_never_was(
    daemon: RunningDaemon, ada: Party, bob: Party, eve: Party
) -> None:
    sent = ada.send(bob)
    deferred = ada.send(bob, deliver_at="+2h")
    for party, given in ((eve, sent["message"]), (eve, sent["ids"][0]), (bob, deferred["message"])):
        with pytest.raises(Answered) as caught:
            message(party, given)
        error = raised(Answered, message, party, f"{given[0]}999999")
        assert str(caught.value).replace(given, "") == str(error).replace(f"{given[0]}999999", "")
    assert message(boss(daemon), sent["message"])["is_read"] is True
    assert message(ada, deferred["message"])["seq"] is None


def test_what_one_sent_oneself_counts_as_read(ada: Party, bob: Party) -> None:
    sent = ada.send(bob)
    assert message(ada, sent["message"])["is_read"] is True
    assert message(bob, sent["message"])["is_read"] is False


# --- restoring -----------------------------------------------------------------------


def test_what_its_author_deleted_he_can_restore_and_everybody_sees_it_again(ada: Party, bob: Party) -> None:
    sent = ada.send(bob, text="precious", subject="s", metadata={"a": 1})
    before = message(bob, sent["message"])
    ada.call("message.delete", id=sent["message"], reason="a mistake")
    assert message(bob, sent["message"])["deleted"]
    with following(ada.daemon) as follower:
        follower.subscribe(bob.token, topics=["message.restored"])
        restored = ada.call("message.restore", id=sent["ids"][0])
        told = [follower.next()]
    assert restored == {"message": sent["message"], "changed": True, "posts": 0}
    assert [(one["topic"], one["message"]) for one in told] == [("message.restored", sent["message"])]
    # The envelope that was cancelled with it need not be read any more.
    assert message(bob, sent["message"]) == {**before, "is_read": True}
    assert ada.call("message.restore", id=sent["message"])["changed"] is False


def test_what_was_cancelled_with_a_deletion_stays_so_and_can_be_retried(ada: Party, bob: Party) -> None:
    sent = ada.send(bob)
    ada.call("message.delete", id=sent["message"])
    ada.call("message.restore", id=sent["message"])
    assert bob.get(sent["ids"][0])["status"] == "cancelled"
    ada.call("envelope.retry", ids=sent["ids"])
    assert bob.get(sent["ids"][0])["status"] == "pending"


def test_only_its_author_or_the_boss_restores_a_message(
    daemon: RunningDaemon, ada: Party, bob: Party, eve: Party
) -> None:
    sent = ada.send(bob)
    ada.call("message.delete", id=sent["message"])
    assert bob.refusal("message.restore", id=sent["message"]) == "not_author"
    assert eve.refusal("message.restore", id=sent["message"]) == "not_found"
    assert boss(daemon).call("message.restore", id=sent["message"])["changed"] is True
    assert bob.refusal("message.restore", id=sent["message"]) == "not_author"


def test_a_restored_message_is_edited_and_answered_as_ever(ada: Party, bob: Party) -> None:
    sent = ada.send(bob, text="one")
    for _ in range(2):
        ada.call("message.delete", id=sent["message"])
        ada.call("message.restore", id=sent["message"])
    ada.call("message.edit", id=sent["message"], text="two")
    answer = bob.send(reply_to=sent["message"])
    assert message(bob, sent["message"])["body"]["content"] == "two"
    assert message(ada, answer["message"])["reply_to"] == sent["message"]


# --- of groups ---------------------------------------------------------------------


_names = iter(f"group-{n}" for n in range(1_000))


def group(owner: Party, *members: Party, **params: Any) -> tuple[str, str]:
    """A new group; its address and its conversation."""
    named = [one.address for one in members]
    made = owner.call("conversation.create", name=next(_names), participants=named, **params)["conversation"]
    return str(made["address"]), str(made["id"])


def texts(party: Party, **params: Any) -> list[str]:
    found = party.call("message.list", **{"sort_order": "asc", "page_size": 100, **params})["messages"]
    return [one["body"]["content"] for one in found if one["body"]["format"] != "event"]


def test_a_message_to_a_group_is_listed_once_and_its_recipient_is_the_group(
    daemon: RunningDaemon, ada: Party, bob: Party, eve: Party
) -> None:
    address, talk = group(ada, bob, eve)
    sent = ada.send(address, text="hello all")
    for party in (ada, bob, eve):
        found = party.call("message.list", conversation_id=talk)["messages"]
        (one,) = [one for one in found if one["message_id"] == sent["message"]]
        assert one["to"] == [address]
    assert texts(boss(daemon), conversation_id=talk) == ["hello all"]


def test_a_newcomer_and_a_removed_member_see_what_was_said_while_they_were_members(
    ada: Party, bob: Party, eve: Party
) -> None:
    address, talk = group(ada, bob)
    ada.send(address, text="1")
    ada.call("participant.add", conversation=talk, address=eve.address)
    ada.send(address, text="2")
    ada.call("participant.remove", conversation=talk, address=bob.address)
    ada.send(address, text="3")
    assert texts(ada, conversation_id=talk) == ["1", "2", "3"]
    assert texts(bob, conversation_id=talk) == ["1", "2"]
    assert texts(eve, conversation_id=talk) == ["2", "3"]


def test_with_history_a_newcomer_sees_the_last_messages_too(ada: Party, bob: Party, eve: Party) -> None:
    address, talk = group(ada, bob, history=2)
    for text in ("1", "2", "3"):
        ada.send(address, text=text)
    ada.call("participant.add", conversation=talk, address=eve.address)
    found = texts(eve, conversation_id=talk)
    assert found and "1" not in found and found[-1] == "3"
    message = eve.call("message.list", conversation_id=talk)["messages"][0]["message_id"]
    assert eve.call("message.markRead", message_ids=[message])["marked_count"] == 0


def test_a_stranger_to_a_group_is_not_told_of_it(ada: Party, bob: Party, eve: Party) -> None:
    address, talk = group(ada, bob)
    sent = ada.send(address)
    assert eve.refusal("message.list", conversation_id=talk) == "not_found"
    assert eve.refusal("message.get", message_id=sent["message"]) == "not_found"
    assert eve.refusal("thread.get", thread_id=sent["thread"]) == "not_found"


def test_threads_of_a_group_are_listed_for_its_members_only(ada: Party, bob: Party, eve: Party) -> None:
    address, talk = group(ada, bob)
    first = ada.send(address, text="question")
    bob.send(reply_to=first["message"], text="answer")

    def listed(party: Party) -> list[tuple[str, str]]:
        return [(one["thread_id"], one["preview"]) for one in party.call("thread.list")["threads"]]

    assert listed(ada) == listed(bob) == [(first["thread"], "answer")] and listed(eve) == []
    ada.call("participant.add", conversation=talk, address=eve.address)
    assert listed(eve) == []  # all of it was said before
    ada.send(reply_to=first["message"], text="later")
    assert listed(eve) == [(first["thread"], "later")]
    (seen,) = eve.call("thread.get", thread_id=first["thread"])["messages"]
    assert seen["body"]["content"] == "later"
    ada.call("participant.remove", conversation=talk, address=bob.address)
    assert listed(bob) == []  # he is not in it any more; what he saw he can still read
    assert bob.call("thread.get", thread_id=first["thread"])["total"] >= 2


@pytest.mark.parametrize("mentioned", [True, False])
def test_what_one_only_reads_along_in_a_group_is_not_counted_as_unread(
    ada: Party, bob: Party, mentioned: bool
) -> None:
    address, talk = group(ada, bob)
    ada.send(address, text=f"hello @{bob.name}" if mentioned else "hello")
    page = bob.call("message.list", conversation_id=talk)
    assert page["unread"] == int(mentioned)
    assert [one["is_read"] for one in page["messages"]][:1] == [not mentioned]
