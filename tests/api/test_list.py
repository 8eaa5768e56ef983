"""Listing envelopes: pages, cursors, their order, and corners that were found."""

from __future__ import annotations

from typing import Any

import pytest

from hiboss.core.errors import BadCursor
from hiboss.store import conversation_reading
from hiboss.testing.running_daemon import RunningDaemon
from tests.support.in_process_daemon import InProcessDaemon, frozen
from tests.support.parties import Party, agents, boss, flat
from tests.support.sweeps import sweep


def newest_first(ids: list[str]) -> list[str]:
    return list(reversed(ids))


# --- pages ---------------------------------------------------------------------------


def test_an_empty_box_is_one_empty_page(two: tuple[Party, Party]) -> None:
    page = two[0].call("envelope.list", count=True)
    assert page == {"envelopes": [], "next": None, "total": 0, "total_capped": False, "timezone": "UTC"}


def test_the_newest_comes_first_ten_at_a_time(ada: Party, bob: Party) -> None:
    sent = [ada.tell(bob) for _ in range(11)]
    page = bob.call("envelope.list")
    assert [one["id"] for one in page["envelopes"]] == newest_first(sent)[:10]
    rest = bob.call("envelope.list", after=page["next"])
    assert [one["id"] for one in rest["envelopes"]] == sent[:1] and rest["next"] is None


@pytest.mark.parametrize("size", [1, 3, 100])
def test_the_boss_lists_all_envelopes_of_everybody_once_whatever_box_they_are_in(
    ada: Party, bob: Party, size: int, chief: Party
) -> None:
    sent = [ada.tell(bob), bob.tell(ada), ada.tell(chief), ada.tell(bob, deliver_at="+1h"), ada.tell(ada)]
    bob.call("envelope.archive", ids=sent[:1])
    ada.call("envelope.trash", ids=sent[1:2])
    ada.call("envelope.cancel", ids=sent[4:])
    with ada.daemon.database() as database:
        stored = [row[0] for row in database.execute("SELECT 'e' || id FROM envelope ORDER BY id")]
    assert set(sent) <= set(stored)
    assert flat(chief.walk(box="all", page_size=size, oldest_first=True)) == stored
    assert flat(chief.walk(box="all", page_size=size)) == newest_first(stored)
    assert chief.ids(box="all", status="cancelled", **{"from": ada.address}) == sent[4:]
    arrived = chief.ids(box="all", arrived=True, page_size=100)
    assert sent[3] not in arrived and {*sent[:3], sent[4]} <= {*arrived}


@pytest.mark.parametrize("oldest_first", [False, True])
@pytest.mark.parametrize("box", ["inbox", "outbox"])
def test_pages_end_exactly_where_the_list_ends(ada: Party, bob: Party, box: str, oldest_first: bool) -> None:
    owner = bob if box == "inbox" else ada
    for number in range(1, 7):
        ada.tell(bob)
        pages = owner.walk(box=box, page_size=3, oldest_first=oldest_first)
        assert [len(page) for page in pages] == ([3] * (number // 3) + [number % 3])[: -(-number // 3)]


@pytest.mark.parametrize("size", [1, 4, 7, 100])
def test_envelopes_of_every_status_lie_in_the_order_of_arrival(ada: Party, bob: Party, size: int) -> None:
    sent = [ada.tell(bob) for _ in range(28)]
    bob.call("envelope.ack", ids=sent[::3])
    ada.call("envelope.cancel", ids=[number for number in sent[::5] if number not in sent[::3]])
    assert flat(bob.walk(page_size=size)) == newest_first(sent)
    assert flat(bob.walk(page_size=size, oldest_first=True)) == sent
    assert flat(ada.walk(box="outbox", page_size=size)) == newest_first(sent)


def test_what_arrives_between_two_pages_is_neither_doubled_nor_in_the_way(ada: Party, bob: Party) -> None:
    sent = [ada.tell(bob) for _ in range(9)]
    for owner, box in ((bob, "inbox"), (ada, "outbox")):
        seen, after = [], {}
        while after is not None:
            page = owner.call("envelope.list", box=box, page_size=2, **after)
            seen += [one["id"] for one in page["envelopes"]]
            ada.tell(bob, text="meanwhile")
            after = {"after": page["next"]} if page["next"] else None
        assert [number for number in seen if number in sent] == newest_first(sent)
        assert len(seen) == len(set(seen))


def test_whoever_reads_on_from_the_oldest_meets_what_arrived_meanwhile(ada: Party, bob: Party) -> None:
    sent = [ada.tell(bob) for _ in range(4)]
    page = bob.call("envelope.list", page_size=3, oldest_first=True)
    sent += [ada.tell(bob) for _ in range(2)]
    rest = bob.call("envelope.list", page_size=3, oldest_first=True, after=page["next"])
    assert [one["id"] for one in page["envelopes"] + rest["envelopes"]] == sent and rest["next"] is None


def test_settling_a_page_before_asking_for_the_next_skips_nothing(ada: Party, bob: Party) -> None:
    sent = [ada.tell(bob) for _ in range(10)]
    seen: list[str] = []
    page = bob.call("envelope.list", status="pending", page_size=3)
    while True:
        ids = [one["id"] for one in page["envelopes"]]
        seen += ids
        bob.call("envelope.ack", ids=ids)
        if page["next"] is None:
            break
        page = bob.call("envelope.list", status="pending", page_size=3, after=page["next"])
    assert seen == newest_first(sent)


@pytest.mark.parametrize("oldest_first", [False, True])
@pytest.mark.parametrize("size", [1, 2, 3, 5, 8])
def test_an_outbox_page_may_end_between_two_recipients(
    daemon: RunningDaemon, size: int, oldest_first: bool
) -> None:
    ada, *others = agents(daemon, 4)
    sent = flat([ada.send(*others[: n % 3 + 1])["ids"] for n in range(4)])
    pages = ada.walk(box="outbox", page_size=size, oldest_first=oldest_first)
    assert flat(pages) == (sent if oldest_first else newest_first(sent))
    assert all(len(page) == size for page in pages[:-1])


@pytest.mark.parametrize("oldest_first", [False, True])
@pytest.mark.parametrize("size", [1, 2, 3, 4, 6, 7, 10])
def test_the_boss_pages_from_deferred_into_arrived_mail_without_loss(
    ada: Party, bob: Party, size: int, oldest_first: bool
) -> None:
    deferred, arrived = [], []
    for _ in range(3):
        deferred.append(ada.tell(bob, deliver_at="+2h"))
        arrived.append(ada.tell(bob))
    bob.call("envelope.ack", ids=arrived[1:2])
    ada.call("envelope.cancel", ids=deferred[1:2])
    order = arrived + deferred  # what has not arrived is newer than all that has
    pages = boss(ada.daemon).walk(address=bob.address, page_size=size, oldest_first=oldest_first)
    assert flat(pages) == (order if oldest_first else newest_first(order))
    assert [len(page) for page in pages[:-1]] == [size] * (len(pages) - 1)
    assert boss(ada.daemon).call("envelope.list", address=bob.address, count=True)["total"] == 6
    assert flat(bob.walk(page_size=size)) == newest_first(arrived)


# --- cursors -------------------------------------------------------------------------


def test_what_is_no_cursor_is_refused(ada: Party, bob: Party) -> None:
    mark = epoch(ada, bob)
    ends = (
        "",
        "a",
        "x5",
        "a-5",
        "a5.5",
        "o5",
        "o5.",
        "o.5",
        "d",
        "a5 ",
        "a²",
        f"a{'9' * 20}",
        f"o5.{'9' * 20}",
    )
    with sweep() as refused:
        for wrong in ("", "5", "a5", "e5", "-", mark, *(f"{mark}-{end}" for end in ends)):
            with refused(wrong):
                assert bob.refusal("envelope.list", after=wrong) == "bad_cursor"


def epoch(ada: Party, bob: Party) -> str:
    """The mark of this store that its cursors carry."""
    ada.tell(bob)
    ada.tell(bob)
    return str(bob.call("envelope.list", page_size=1)["next"]).partition("-")[0]


def test_a_cursor_of_another_store_is_answered_with_gap(ada: Party, bob: Party) -> None:
    for _ in range(2):
        ada.tell(bob)
    for owner, box in ((bob, "inbox"), (ada, "outbox")):
        _, _, place = owner.call("envelope.list", box=box, page_size=1)["next"].partition("-")
        assert owner.refusal("envelope.list", box=box, after=f"00000000-{place}") == "gap"


def test_a_cursor_of_another_kind_of_list_is_refused(ada: Party, bob: Party) -> None:
    for _ in range(2):
        ada.tell(bob)
        ada.tell(bob, deliver_at="+2h")
    inbox = bob.call("envelope.list", page_size=1)["next"]
    outbox = ada.call("envelope.list", box="outbox", page_size=1)["next"]
    with_deferred = boss(ada.daemon).call("envelope.list", address=bob.address, page_size=1)["next"]
    assert bob.refusal("envelope.list", after=outbox) == "bad_cursor"
    assert ada.refusal("envelope.list", box="outbox", after=inbox) == "bad_cursor"
    assert bob.refusal("envelope.list", after=with_deferred) == "bad_cursor"


# --- corners -----------------------------------------------------------------------


Two = tuple[Party, Party]


def texts(who: Party, **params: Any) -> list[str]:
    """Return the texts of a list of messages, oldest first; its total agrees."""
    page = who.call("message.list", **params, sort_order="asc", page_size=100)
    assert page["total"] == len(page["messages"])
    return [one["body"]["content"] for one in page["messages"]]


# --- filters -------------------------------------------------------------------------


def test_unread_and_snoozed_together_list_what_was_put_off_unread(ada: Party, bob: Party) -> None:
    scope = {"scope": {"type": "module", "value": f"of-{bob.name}"}}
    numbers = {text: ada.tell(bob, text=text, scopes=[scope["scope"]]) for text in ("seen", "put off", "new")}
    bob.call("envelope.read", ids=[numbers["seen"]])
    bob.call("envelope.snooze", ids=[numbers["seen"], numbers["put off"]], until="+1h")
    assert texts(bob, snoozed=True) == ["seen", "put off"]
    assert texts(bob, unread=True, snoozed=True) == ["put off"]
    assert texts(bob, unread=True, snoozed=True, **scope) == ["put off"]
    assert texts(bob, unread=True) == ["new"]


def test_what_has_not_arrived_is_in_no_list_of_a_conversation(ada: Party, bob: Party) -> None:
    scope = {"type": "module", "value": f"of-{ada.name}"}
    first = ada.send(bob, text="now", scopes=[scope])
    ada.send(bob, text="later", reply_to=first["message"], scopes=[scope], deliver_at="+1h")
    in_it = {"conversation_id": first["conversation"]}
    for beside in ({}, {"scope": scope}, {"thread_id": first["thread"]}, {"author_id": ada.address}):
        assert texts(ada, **in_it, **beside) == ["now"]
    assert texts(ada, scope=scope) == texts(ada, thread_id=first["thread"]) == ["now", "later"]
    assert texts(ada, author_id=ada.address) == ["now", "later"] and texts(bob, scope=scope) == ["now"]


def test_what_was_routed_out_of_a_group_is_listed_by_its_conversation(
    daemon: RunningDaemon, ada: Party, bob: Party, eve: Party
) -> None:
    boss = Party(daemon, "user:boss", daemon.token("boss"))
    made = ada.call("conversation.create", type="group", name=f"g-{ada.name}", participants=[bob.address])
    group = made["conversation"]
    for text in ("before", f"@{bob.name} who?"):
        ada.send(f"group:g-{ada.name}", text=text)
    number = bob.list()[0]["id"]
    boss.call("control.send", event="stream.route", envelope=number, to=eve.address)
    ada.send(f"group:g-{ada.name}", text="after")
    eve.send(reply_to=number, text="me")
    assert texts(eve, conversation_id=group["id"]) == [f"@{bob.name} who?", "me"]
    page = eve.call("conversation.messages", conversation=group["id"])
    assert [one["text"] for one in page["envelopes"]] == [f"@{bob.name} who?", "me"]


# --- cursors -------------------------------------------------------------------------


def test_a_cursor_goes_on_only_with_its_own_kind_of_list(ada: Party, bob: Party) -> None:
    scope = {"type": "module", "value": f"of-{bob.name}"}
    for _ in range(2):
        first = ada.send(bob, scopes=[scope])
        for _ in range(2):
            ada.send(bob, reply_to=first["message"])
    lists: list[tuple[str, dict[str, Any], str]] = [
        ("message.list", {}, "cursor"),
        ("message.list", {"unread": True}, "cursor"),
        ("message.list", {"thread_id": first["thread"]}, "cursor"),
        ("message.list", {"scope": scope}, "cursor"),
        ("message.list", {"conversation_id": first["conversation"]}, "cursor"),
        ("thread.list", {}, "cursor"),
        ("envelope.list", {}, "after"),
        ("envelope.list", {"unread": True}, "after"),
        ("envelope.list", {"thread": first["thread"]}, "after"),
    ]
    cursors = [bob.call(name, **params, page_size=1)["next"] for name, params, _ in lists]
    assert len(set(cursors)) == len(cursors) and None not in cursors
    for place, (name, params, word) in enumerate(lists):
        assert bob.call(name, **params, page_size=1, **{word: cursors[place]})
        assert {
            bob.refusal(name, **params, page_size=1, **{word: other})
            for other in (*cursors[:place], *cursors[place + 1 :])
        } == {"bad_cursor"}


# --- what came back ------------------------------------------------------------------


@pytest.mark.slow
@frozen()
async def test_marking_a_conversation_reads_what_woke_behind_newer_mail_of_others(
    daemon: InProcessDaemon,
) -> None:
    await daemon.register("ada", "bob")
    first = await daemon.ask("envelope.send", "ada", to=["agent:nex"], text="old")
    await daemon.ask("conversation.markRead", "nex", conversation=first["conversation"])
    await daemon.ask("envelope.snooze", "nex", ids=first["ids"], until="+1m")
    await daemon.move(minutes=2)
    for _ in range(conversation_reading.AT_ONCE // 500 + 1):
        await daemon.flood(["+1s"] * 500, "agent:nex", who="bob")
    await daemon.move(minutes=1)
    marked = await daemon.ask("conversation.markRead", "nex", conversation=first["conversation"])
    assert (marked["changed"], marked["unread"]) == (1, 0)


# --- threads -------------------------------------------------------------------------


def test_a_thread_counts_what_one_who_joined_later_may_see(ada: Party, bob: Party, eve: Party) -> None:
    name = f"g-{ada.name}"
    ada.call("conversation.create", type="group", name=name, participants=[bob.address])
    first = ada.send(f"group:{name}", text="first")
    for text in ("one", "two"):
        bob.send(reply_to=first["message"], text=text)
    ada.call("participant.add", conversation=name, address=eve.address)
    bob.send(reply_to=first["message"], text="three")
    for who, number in ((ada, 4), (bob, 4), (eve, 1)):
        [thread] = who.call("thread.list")["threads"]
        assert thread["message_count"] == number
        shown = who.call("thread.get", thread_id=first["thread"])
        assert (shown["thread"]["message_count"], shown["total"]) == (number, number)


def test_a_cursor_without_the_kind_of_its_list_is_refused(ada: Party, bob: Party) -> None:
    for _ in range(2):
        ada.send(bob)
    whole = bob.call("envelope.list", page_size=1)["next"]
    assert bob.refusal("envelope.list", after=whole.partition("~")[0]) == BadCursor.code


def test_a_wait_goes_on_where_a_list_of_the_inbox_or_of_unread_mail_ended(ada: Party, bob: Party) -> None:
    for text in ("one", "two"):
        ada.send(bob, text=text)
    for only in ({"unread": True}, {}):
        after = bob.call("envelope.list", **only, oldest_first=True, page_size=1)["next"]
        assert [one["text"] for one in bob.call("envelope.wait", after=after)["envelopes"]] == ["two"]
    other = bob.call("message.list", unread=True, page_size=1)["next"]
    assert bob.refusal("envelope.wait", after=other) == "bad_cursor"
