"""What lists and their marks do at their edges: with two filters, what came back, what has not arrived."""

from __future__ import annotations

from typing import Any

from hiboss.core.errors import BadCursor
from hiboss.store import conversation_reading
from hiboss.testing.running_daemon import RunningDaemon
from tests.support.in_process_daemon import InProcessDaemon, frozen
from tests.support.parties import Party, agents

Two = tuple[Party, Party]


def texts(who: Party, **params: Any) -> list[str]:
    """Return the texts of a list of messages, oldest first; its total agrees."""
    page = who.call("message.list", **params, sort_order="asc", page_size=100)
    assert page["total"] == len(page["messages"])
    return [one["body"]["content"] for one in page["messages"]]


# --- filters -------------------------------------------------------------------------


def test_unread_and_snoozed_together_list_what_was_put_off_unread(two: Two) -> None:
    ada, bob = two
    scope = {"scope": {"type": "module", "value": f"of-{bob.name}"}}
    numbers = {text: ada.tell(bob, text=text, scopes=[scope["scope"]]) for text in ("seen", "put off", "new")}
    bob.call("envelope.read", ids=[numbers["seen"]])
    bob.call("envelope.snooze", ids=[numbers["seen"], numbers["put off"]], until="+1h")
    assert texts(bob, snoozed=True) == ["seen", "put off"]
    assert texts(bob, unread=True, snoozed=True) == ["put off"]
    assert texts(bob, unread=True, snoozed=True, **scope) == ["put off"]
    assert texts(bob, unread=True) == ["new"]


def test_what_has_not_arrived_is_in_no_list_of_a_conversation(two: Two) -> None:
    ada, bob = two
    scope = {"type": "module", "value": f"of-{ada.name}"}
    first = ada.send(bob, text="now", scopes=[scope])
    later = {"scopes": [scope], "deliver_at": "+1h"}
    ada.send(bob, text="later", reply_to=first["message"], **later)
    in_it = {"conversation_id": first["conversation"]}
    for beside in ({}, {"scope": scope}, {"thread_id": first["thread"]}, {"author_id": ada.address}):
        assert texts(ada, **in_it, **beside) == ["now"]
    assert texts(ada, scope=scope) == texts(ada, thread_id=first["thread"]) == ["now", "later"]
    assert texts(ada, author_id=ada.address) == ["now", "later"]
    assert texts(bob, scope=scope) == ["now"]


def test_what_was_routed_out_of_a_group_is_listed_by_its_conversation(daemon: RunningDaemon) -> None:
    ada, bob, eve = agents(daemon, 3)
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


def test_a_cursor_goes_on_only_with_its_own_kind_of_list(two: Two) -> None:
    ada, bob = two
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
        for other in (*cursors[:place], *cursors[place + 1 :]):
            assert bob.refusal(name, **params, page_size=1, **{word: other}) == "bad_cursor"


# --- what came back ------------------------------------------------------------------


def test_reading_all_up_to_an_envelope_leaves_what_came_back_after_it(two: Two) -> None:
    ada, bob = two
    old, first, last = (ada.tell(bob, text=text) for text in ("old", "first", "last"))
    bob.call("envelope.archive", ids=[old])
    bob.call("envelope.restore", ids=[old])
    assert bob.ids(unread=True, oldest_first=True) == [first, last, old]
    assert bob.call("envelope.read", all=True, up_to=first)["changed"] == 1
    assert bob.ids(unread=True, oldest_first=True) == [last, old]
    assert bob.call("envelope.read", all=True, up_to=old)["changed"] == 2


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


def test_a_thread_counts_what_one_who_joined_later_may_see(daemon: RunningDaemon) -> None:
    ada, bob, eve = agents(daemon, 3)
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


def test_a_cursor_without_the_kind_of_its_list_is_refused(two: Two) -> None:
    ada, bob = two
    for _ in range(2):
        ada.send(bob)
    whole = bob.call("envelope.list", page_size=1)["next"]
    assert bob.refusal("envelope.list", after=whole.partition("~")[0]) == BadCursor.code


def test_a_wait_goes_on_where_a_list_of_the_inbox_or_of_unread_mail_ended(two: Two) -> None:
    ada, bob = two
    for text in ("one", "two"):
        ada.send(bob, text=text)
    for only in ({"unread": True}, {}):
        after = bob.call("envelope.list", **only, oldest_first=True, page_size=1)["next"]
        found = bob.call("envelope.wait", after=after)
        assert [one["text"] for one in found["envelopes"]] == ["two"]
    other = bob.call("message.list", unread=True, page_size=1)["next"]
    assert bob.refusal("envelope.wait", after=other) == "bad_cursor"
