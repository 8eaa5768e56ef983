"""Conversations over the socket: begin, list, show, change, read piece by piece, and mark as read."""

from __future__ import annotations

from typing import Any

from hiboss.testing.running_daemon import RunningDaemon
from tests.support.parties import Party, agents, boss


def begin(party: Party, *others: Party | str, **params: Any) -> Any:
    named = [one.address if isinstance(one, Party) else one for one in others]
    return party.call("conversation.create", type="private", participants=named, **params)


def page(party: Party, conversation: str, **params: Any) -> tuple[list[str], bool]:
    found = party.call("conversation.messages", conversation=conversation, **params)
    return [one["text"] for one in found["envelopes"]], found["more"]


def record(party: Party, conversation: str, **params: Any) -> Any:
    return party.call("conversation.get", conversation=conversation, **params)["conversation"]


# --- private -------------------------------------------------------------------------


def test_private_means_exactly_two(ada: Party, bob: Party, eve: Party) -> None:
    for others in ((), (ada,), (bob, eve), (ada, bob, eve)):
        named = [one.address for one in others]
        assert ada.refusal("conversation.create", type="private", participants=named) == "not_two"
    for wrong, code in (
        ("group:all", "cannot_be_member"),
        ("agent:system", "cannot_be_member"),
        ("agent:nobody-here", "unknown_address"),
        ("channel:folder:nowhere", "not_bound"),
    ):
        assert ada.refusal("conversation.create", type="private", participants=[wrong]) == code
    assert begin(ada, ada, bob, bob)["conversation"]["participants"] == 2


def test_a_private_conversation_is_begun_once_and_mail_goes_there(ada: Party, bob: Party) -> None:
    first = begin(ada, bob, metadata={"ticket": 7}, description="a question")
    assert first["changed"] and first["conversation"]["created_by"] == ada.address
    again = begin(bob, ada)
    assert not again["changed"] and again["conversation"]["id"] == first["conversation"]["id"]
    assert again["conversation"]["metadata"] == {"ticket": 7}
    sent = bob.send(ada)
    assert sent["conversation"] == first["conversation"]["id"]
    shown = record(ada, sent["conversation"])
    assert (shown["type"], shown["others"], shown["address"]) == ("private", [bob.address], None)
    assert shown["joined_at"] and shown["last_at"] and shown["unread"] == 1


def test_unread_mail_is_counted_for_each_conversation_and_what_is_snoozed_is_not(
    ada: Party, bob: Party, eve: Party
) -> None:
    private = [ada.send(bob) for _ in range(3)]
    shared = ada.send(bob, eve)

    def unread(party: Party) -> dict[str, int]:
        found = party.call("conversation.list")["conversations"]
        assert all(record(party, one["id"])["unread"] == one["unread"] for one in found)
        return {one["id"]: one["unread"] for one in found}

    both = private[0]["conversation"], shared["conversation"]
    assert unread(bob) == dict(zip(both, (3, 1), strict=True))
    bob.call("envelope.snooze", ids=private[0]["ids"], until="+1h")
    bob.call("envelope.read", ids=private[1]["ids"])
    assert unread(bob) == dict(zip(both, (1, 1), strict=True))
    bob.call("envelope.unsnooze", ids=private[0]["ids"])
    bob.call("message.markRead", message_ids=[shared["message"]])
    assert unread(bob) == dict(zip(both, (2, 0), strict=True)) and unread(eve) == {both[1]: 1}


def test_only_parties_see_and_change_a_conversation(
    daemon: RunningDaemon, ada: Party, bob: Party, eve: Party
) -> None:
    number = ada.send(bob)["conversation"]
    changed = bob.call("conversation.set", conversation=number, name="our talk", metadata={"a": 1})
    assert changed["conversation"]["name"] == "our talk"
    assert record(ada, number)["metadata"] == {"a": 1}
    for method, params in (
        ("conversation.get", {}),
        ("conversation.messages", {}),
        ("conversation.markRead", {}),
        ("conversation.set", {"name": "x"}),
        ("conversation.archive", {}),
        ("conversation.delete", {}),
        ("participant.add", {"address": eve.address}),
    ):
        assert eve.refusal(method, conversation=number, **params) == "not_found", method
    assert {
        ada.refusal(method, conversation=number) for method in ("conversation.archive", "conversation.delete")
    } == {"boss_only"}
    assert ada.refusal("participant.add", conversation=number, address=eve.address) == "no_group"
    assert ada.refusal("conversation.set", conversation=number, open=True) == "invalid_params"
    assert ada.refusal("conversation.set", conversation=number) == "invalid_params"
    assert record(boss(daemon), number)["others"] == [ada.address, bob.address]
    emptied = ada.call("conversation.set", conversation=number, name="", metadata={})["conversation"]
    assert (emptied["name"], emptied["metadata"]) == (None, None)


def test_who_left_a_closed_group_is_not_told_how_it_went_on(ada: Party, bob: Party, eve: Party) -> None:
    made = ada.call("conversation.create", name=f"end-of-{ada.name}", participants=[bob.address, eve.address])
    group = made["conversation"]["id"]
    bob.call("participant.leave", conversation=group)
    ada.call("conversation.set", conversation=group, history=77)
    assert record(bob, group)["history"] == 0
    ada.call("conversation.delete", conversation=group, reason="private")
    gone, stayed = record(bob, group), record(eve, group)
    assert (gone["deleted_by"], gone["delete_reason"], gone["history"]) == (None, None, 0)
    assert (stayed["deleted_by"], stayed["delete_reason"], stayed["history"]) == (ada.address, "private", 77)


def test_a_deleted_conversation_stays_readable_and_the_next_mail_begins_another(
    ada: Party, bob: Party, chief: Party
) -> None:
    number = ada.send(bob, text="one")["conversation"]
    chief.call("conversation.archive", conversation=number)
    assert bob.refusal("envelope.send", to=ada.address, text="x") == "archived"
    chief.call("conversation.archive", conversation=number, archived=False)
    gone = chief.call("conversation.delete", conversation=number, reason="private data")["conversation"]
    assert gone["deleted_by"] == "user:boss" and gone["delete_reason"] == "private data"
    assert page(ada, number) == (["one"], False)
    new = ada.send(bob, text="two")["conversation"]
    assert new != number and page(bob, new) == (["two"], False)
    assert [one["id"] for one in ada.call("conversation.list")["conversations"]] == [new]
    assert [one["id"] for one in ada.call("conversation.list", past=True)["conversations"]] == [new, number]
    assert chief.refusal("conversation.delete", conversation=number) == "not_found"


# --- lists ---------------------------------------------------------------------------


def test_conversations_are_listed_newest_first_page_by_page(daemon: RunningDaemon) -> None:
    ada, *others = agents(daemon, 8)
    made = [ada.send(one)["conversation"] for one in others[:5]]
    made.append(ada.send(*others[5:])["conversation"])
    made.append(
        ada.call("conversation.create", name="listed", participants=[others[0].address])["conversation"]["id"]
    )
    found, after = [], None
    while True:
        answer = ada.call("conversation.list", page_size=3, count=True, **({"after": after} if after else {}))
        assert (answer["total"], answer["total_capped"]) == (7, False)
        found += [one["id"] for one in answer["conversations"]]
        after = answer["next"]
        if after is None:
            break
    assert found == made[::-1]
    for kind, expected in (("private", made[4::-1]), ("adhoc", [made[5]])):
        assert [one["id"] for one in ada.call("conversation.list", type=kind)["conversations"]] == expected
    [_, group] = ada.call("conversation.list", type="group")["conversations"]
    assert (group["id"], group["role"], group["participants"]) == (made[6], "owner", 2)
    assert ada.call("conversation.list", name="LISTED")["conversations"] == [group]
    [adhoc] = ada.call("conversation.list", type="adhoc")["conversations"]
    assert adhoc["others"] == [one.address for one in others[5:]]


def test_the_boss_lists_the_conversations_of_others_and_nobody_else_does(
    daemon: RunningDaemon, ada: Party, bob: Party
) -> None:
    number = ada.send(bob)["conversation"]
    [found] = boss(daemon).call("conversation.list", address=bob.address)["conversations"]
    assert (found["id"], found["unread"], found["role"]) == (number, 1, "member")
    assert ada.refusal("conversation.list", address=bob.address) == "boss_only"
    assert ada.refusal("conversation.get", conversation=number, address=bob.address) == "boss_only"


# --- messages ------------------------------------------------------------------------


def test_messages_are_read_forward_and_backward_without_gap_or_repetition(ada: Party, bob: Party) -> None:
    [number] = {ada.send(bob, text=str(one))["conversation"] for one in range(1, 11)}
    assert page(bob, number, page_size=4) == (["7", "8", "9", "10"], True)
    assert page(bob, number, page_size=4, before_seq=7) == (["3", "4", "5", "6"], True)
    assert page(bob, number, page_size=4, before_seq=3) == (["1", "2"], False)
    assert page(bob, number, page_size=4, after_seq=0) == (["1", "2", "3", "4"], True)
    assert page(bob, number, page_size=6, after_seq=4) == (["5", "6", "7", "8", "9", "10"], False)
    assert page(bob, number, after_seq=10) == ([], False)
    assert page(bob, number, after_seq=2, before_seq=5) == (["3", "4"], False)
    whole = bob.call("conversation.messages", conversation=number, after_seq=3)
    assert [one["seq"] for one in whole["envelopes"]] == [4, 5, 6, 7, 8, 9, 10]
    assert (whole["first_seq"], whole["last_seq"], whole["last"]) == (1, 10, 10)
    same = bob.call("conversation.messages", **{"with": ada.address, "before": 4})
    assert [one["text"] for one in same["envelopes"]] == ["1", "2", "3"]
    assert {
        bob.refusal("conversation.messages", **params)
        for params in ({}, {"conversation": number, "with": ada.address})
    } == {"invalid_params"}


def test_a_group_can_be_read_by_its_name_and_as_the_other_party(ada: Party, bob: Party) -> None:
    ada.call("conversation.create", name="by-name", participants=[bob.address])
    ada.send("group:by-name", text="hello")
    for params in (
        {"conversation": "by-name"},
        {"conversation": "group:BY-NAME"},
        {"with": "by-name"},
        {"with": "group:by-name"},
    ):
        [found] = bob.call("conversation.messages", **params)["envelopes"]
        assert (found["text"], found["to"]) == ("hello", bob.address)
        [own] = ada.call("conversation.messages", **params)["envelopes"]
        assert own["to"] == "group:by-name"


# --- reading -------------------------------------------------------------------------


def test_a_conversation_is_marked_as_read_up_to_a_number_and_never_back(
    ada: Party, bob: Party, eve: Party
) -> None:
    [number] = {ada.send(bob, text=str(one))["conversation"] for one in range(5)}
    other = eve.send(bob, text="elsewhere")["conversation"]
    found = bob.call("conversation.markRead", conversation=number, up_to_seq=3)
    assert found == {"changed": 3, "last_read_seq": 3, "unread": 2}
    assert bob.call("conversation.markRead", conversation=number, up_to_seq=2) == {
        "changed": 0,
        "last_read_seq": 3,
        "unread": 2,
    }
    assert record(bob, number)["last_read_seq"] == 3 and record(bob, other)["unread"] == 1
    assert [one["read_at"] is None for one in bob.list(oldest_first=True)][:5] == [False] * 3 + [True] * 2
    assert record(ada, number)["last_read_seq"] == 0  # nobody's reading marks another's
    rest = bob.call("conversation.markRead", conversation=number, up_to_seq=10**9)
    assert rest == {"changed": 2, "last_read_seq": 5, "unread": 0}
    ada.send(bob, text="later")
    assert record(bob, number)["unread"] == 1  # what comes later stays unread


def test_reading_a_conversation_records_who_and_in_which_session(
    daemon: RunningDaemon, ada: Party, bob: Party
) -> None:
    sent = ada.send(bob)
    boss(daemon).call("conversation.markRead", conversation=sent["conversation"], address=bob.address)
    ada.send(bob)
    bob.call("conversation.markRead", conversation=sent["conversation"], session="desk")
    with daemon.database() as database:
        rows = database.execute(
            """
            SELECT a.name, r.session FROM reading r JOIN address a ON a.id = r.reader
            JOIN envelope e ON e.id = r.envelope JOIN message m ON m.id = e.message
            WHERE m.conversation = ? ORDER BY r.envelope
            """,
            (int(sent["conversation"][1:]),),
        ).fetchall()
    assert [tuple(row) for row in rows] == [("boss", ""), (bob.name, "desk")]


def test_what_came_back_to_the_inbox_is_marked_too(ada: Party, bob: Party) -> None:
    sent = ada.send(bob)
    [number] = sent["ids"]
    bob.call("envelope.snooze", ids=[number], until="+1h")
    found = bob.call("conversation.markRead", conversation=sent["conversation"])
    assert (found["changed"], found["unread"]) == (0, 0)  # it is hidden, and comes back unread
    bob.call("envelope.unsnooze", ids=[number])
    assert record(bob, sent["conversation"])["unread"] == 1
    found = bob.call("conversation.markRead", conversation=sent["conversation"])
    assert (found["changed"], found["unread"], found["last_read_seq"]) == (1, 0, 1)


def test_a_large_conversation_is_marked_in_slices(ada: Party, bob: Party) -> None:
    ada.flood(bob, 1_050)
    number = ada.send(bob)["conversation"]
    assert record(bob, number)["unread"] == 1_051
    found = bob.call("conversation.markRead", conversation=number, up_to_seq=1_049)
    assert found == {"changed": 1_049, "last_read_seq": 1_049, "unread": 2}
