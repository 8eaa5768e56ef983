"""Listing: filters, counts, boxes and threads, and whose box may be looked into."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from hiboss.testing.running_daemon import RunningDaemon
from tests.support.cli import Shell
from tests.support.parties import Envelope, Party, agent, agents, boss, flat

# --- filters -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def office(daemon: RunningDaemon) -> tuple[Party, Party, Party, list[Envelope]]:
    """bob's inbox with mail of every status, from two, in several threads, some of it read."""
    ada, eve, bob = agents(daemon, 3)
    root = ""  # the envelope replied to
    for n in range(24):
        sender = ada if n % 2 else eve
        number = sender.tell(bob, text=f"{n}", **({"reply_to": root} if n % 4 == 3 else {}))
        if n % 4 == 1:
            root = number
        if n % 3 == 0:
            bob.call("envelope.read", ids=[number])
        if n % 5 == 0:
            bob.call("envelope.ack", ids=[number])
        if n % 7 == 6 and n % 5:
            sender.call("envelope.cancel", ids=[number])
    return ada, eve, bob, bob.list(page_size=100)


@pytest.mark.slow
def test_each_filter_alone_and_with_each_other_shows_what_matches(
    office: tuple[Party, Party, Party, list[Envelope]],
) -> None:
    ada, eve, bob, everything = office
    middle, thread = everything[12], next(one["thread"] for one in everything if one["reply_to"])
    filters: list[tuple[dict[str, Any], Any]] = [
        ({"status": "pending"}, lambda one: one["status"] == "pending"),
        ({"status": "done"}, lambda one: one["status"] == "done"),
        ({"status": "cancelled"}, lambda one: one["status"] == "cancelled"),
        ({"status": "failed"}, lambda one: False),
        ({"from_": ada.address}, lambda one: one["from"] == ada.address),
        ({"from_": eve.address.upper().replace("AGENT", "agent")}, lambda one: one["from"] == eve.address),
        ({"to": bob.address}, lambda one: True),
        ({"to": ada.address}, lambda one: False),
        ({"box": "inbox", "thread": thread}, lambda one: one["thread"] == thread),
        ({"created_after": middle["created_at"]}, lambda one: one["created_at"] > middle["created_at"]),
        ({"created_before": middle["created_at"]}, lambda one: one["created_at"] < middle["created_at"]),
        ({"created_after": "-1h", "created_before": "+1h"}, lambda one: True),
    ]
    for (first, matches), (second, also) in itertools.product(filters, repeat=2):
        if first.keys() & second.keys() and first is not second:
            continue
        page = bob.call("envelope.list", **{**first, **second}, page_size=100, count=True)
        expected = [one for one in everything if matches(one) and also(one)]
        assert page["envelopes"] == expected, (first, second)
        assert page["total"] == len(expected)


def test_unread_shows_what_is_neither_read_nor_taken_back(
    office: tuple[Party, Party, Party, list[Envelope]],
) -> None:
    ada, _, bob, everything = office
    unread = [one for one in everything if one["read_at"] is None and one["status"] != "cancelled"]
    assert 0 < len(unread) < len([one for one in everything if one["read_at"] is None])
    assert bob.list(unread=True, page_size=100) == unread
    assert flat(bob.walk(unread=True, page_size=3)) == [one["id"] for one in unread]
    assert flat(bob.walk(unread=True, page_size=3, oldest_first=True)) == [
        one["id"] for one in reversed(unread)
    ]
    assert bob.call("envelope.list", unread=True, count=True)["total"] == len(unread)
    for status in ("pending", "done"):
        assert bob.list(unread=True, status=status, page_size=100) == [
            one for one in unread if one["status"] == status
        ]
    from_ada = [one for one in unread if one["from"] == ada.address]
    assert bob.list(unread=True, from_=ada.address, page_size=100) == from_ada
    assert bob.list(unread=True, to=ada.address) == []


@pytest.mark.parametrize("page_size", [1, 3, 100])
def test_filtered_pages_follow_each_other(
    office: tuple[Party, Party, Party, list[Envelope]], page_size: int
) -> None:
    ada, _, bob, everything = office
    expected = [one["id"] for one in everything if one["from"] == ada.address and one["status"] == "pending"]
    assert flat(bob.walk(from_=ada.address, status="pending", page_size=page_size)) == expected
    assert flat(ada.walk(box="outbox", to=bob.address, status="pending", page_size=page_size)) == expected


# --- counts --------------------------------------------------------------------------


def totals(party: Party, **params: Any) -> tuple[int, bool]:
    page = party.call("envelope.list", count=True, page_size=1, **params)
    return page["total"], page["total_capped"]


def test_totals_are_exact_to_1000_and_then_capped(ada: Party, bob: Party) -> None:
    ada.flood(bob, 1000)
    assert totals(bob) == totals(ada, box="outbox") == (1000, False)
    ada.tell(bob)
    assert totals(bob) == totals(bob, status="pending") == totals(ada, box="outbox") == (1000, True)
    assert totals(bob, status="done") == (0, False)
    assert not {"total", "total_capped"} & set(bob.call("envelope.list"))


def test_the_command_line_shows_a_capped_total_with_a_plus(ada: Party, bob: Party) -> None:
    ada.flood(bob, 1001)
    shown = Shell(ada.daemon.home.path)(
        "envelope", "list", "--count", "-n", "1", env={"HIBOSS_TOKEN": bob.token}
    )
    assert "total: 1000+" in shown.stdout


def test_a_total_is_of_the_whole_list_on_every_page(ada: Party, bob: Party) -> None:
    for _ in range(5):
        ada.tell(bob)
    page = bob.call("envelope.list", count=True, page_size=2)
    rest = bob.call("envelope.list", count=True, page_size=2, after=page["next"])
    assert page["total"] == rest["total"] == 5


# --- boxes and threads ---------------------------------------------------------------


def test_each_box_shows_its_own(ada: Party, bob: Party) -> None:
    kept, archived, trashed = (ada.tell(bob) for _ in range(3))
    bob.call("envelope.archive", ids=[archived])
    bob.call("envelope.trash", ids=[trashed])
    assert bob.ids() == bob.ids(box="inbox") == [kept]
    assert bob.ids(box="archived") == [archived] and bob.ids(box="trash") == [trashed]
    assert bob.ids(box="outbox") == [] and ada.ids(box="outbox") == [trashed, archived, kept]
    assert [one["box"] for one in ada.list(box="outbox")] == ["trash", "archived", "inbox"]


@pytest.mark.parametrize("box", ["inbox", "archived", "trash", "outbox"])
def test_unread_can_be_asked_of_every_box(ada: Party, bob: Party, box: str) -> None:
    unread, seen = ada.tell(bob), ada.tell(bob)
    if box in ("archived", "trash"):
        bob.call("envelope.archive" if box == "archived" else "envelope.trash", ids=[unread, seen])
    bob.call("envelope.read", ids=[seen])
    assert (ada if box == "outbox" else bob).ids(box=box, unread=True) == [unread]


def test_looking_changes_nothing(ada: Party, bob: Party) -> None:
    number = ada.tell(bob)
    assert bob.list() == bob.list() and bob.get(number) == bob.get(number)
    assert bob.get(number)["read_at"] is None and bob.get(number)["status"] == "pending"


@pytest.mark.parametrize("box", [None, "inbox", "outbox"])
def test_a_thread_shows_only_what_the_caller_sent_or_received(daemon: RunningDaemon, box: str | None) -> None:
    ada, bob, eve, dan = agents(daemon, 4)
    first = ada.send(bob)
    second = bob.tell(ada, reply_to=first["ids"][0])
    aside = bob.tell(eve, reply_to=first["ids"][0])
    back = eve.tell(bob, reply_to=aside)
    ada.tell(bob, reply_to=second, deliver_at="+2h")
    where = {"thread": first["thread"], "oldest_first": True, **({"box": box} if box else {})}
    received = {bob: [first["ids"][0], back], eve: [aside], dan: []}
    written = {bob: [second, aside], eve: [back], dan: []}
    for owner in (bob, eve, dan):
        parts = {"inbox": received[owner], "outbox": written[owner]}
        expected = (
            parts[box] if box else sorted(parts["inbox"] + parts["outbox"], key=lambda one: int(one[1:]))
        )
        assert owner.ids(**where) == expected


def test_a_thread_is_found_by_any_id_in_it(ada: Party, bob: Party) -> None:
    first = ada.send(bob)
    second = bob.send(reply_to=first["ids"][0])
    both = [*first["ids"], *second["ids"]]
    for by in (first["thread"], first["message"], second["message"], *both):
        assert ada.ids(thread=by, oldest_first=True) == both
    assert flat(ada.walk(thread=first["thread"], page_size=1)) == [both[1], both[0]]


def test_the_boss_sees_the_whole_thread(daemon: RunningDaemon, ada: Party, bob: Party, eve: Party) -> None:
    first = ada.send(bob)
    rest = [
        bob.tell(eve, reply_to=first["message"]),
        ada.tell(bob, reply_to=first["message"], deliver_at="+2h"),
    ]
    assert boss(daemon).ids(thread=first["thread"], oldest_first=True) == [*first["ids"], *rest]
    assert boss(daemon).ids(thread=first["thread"], address=eve.address) == rest[:1]


# --- whose box -----------------------------------------------------------------------


def test_the_boss_may_look_into_any_box(ada: Party, bob: Party, chief: Party) -> None:
    number = ada.tell(bob)
    assert chief.ids(address=bob.address) == [number] == chief.ids(address=ada.address, box="outbox")
    assert number not in chief.ids()
    assert chief.refusal("envelope.list", address="agent:nobody-here") == "unknown_address"


def test_an_agent_may_look_into_its_own_box_only(ada: Party, bob: Party) -> None:
    number = ada.tell(bob)
    assert bob.ids(address=bob.address) == [number]
    assert {
        bob.refusal("envelope.list", address=foreign)
        for foreign in (ada.address, "user:boss", "agent:nobody-here")
    } == {"boss_only"}


def test_mail_of_a_deleted_agent_is_still_found(ada: Party, bob: Party, chief: Party) -> None:
    from_ada, to_ada = ada.tell(bob), bob.tell(ada)
    chief.call("agent.delete", name=ada.name)
    assert bob.ids(from_=ada.address) == [from_ada] and bob.ids(box="outbox", to=ada.address) == [to_ada]
    assert chief.ids(address=ada.address) == [to_ada] and chief.ids(address=ada.address, box="outbox") == [
        from_ada
    ]
    namesake = agent(ada.daemon, ada.name)
    by_namesake = namesake.tell(bob)
    assert bob.ids(from_=ada.address) == [by_namesake, from_ada]
    assert namesake.ids() == [] and namesake.ids(box="outbox") == [by_namesake]


# --- tags ----------------------------------------------------------------------------


@pytest.mark.parametrize("box", ["inbox", "outbox", "archived", None])
def test_envelopes_are_found_by_tags_and_conversations_in_every_box(
    ada: Party, bob: Party, eve: Party, box: str | None
) -> None:
    auth, issue = {"type": "module", "value": "auth"}, {"type": "issue", "value": "42"}
    first = ada.send(bob, text=f"@{bob.name}", scopes=[auth], refs=[issue])
    second = ada.send(bob, reply_to=first["message"], text=f"@{ada.name}", scopes=[auth])
    ada.send(eve, scopes=[auth])
    ada.send(bob)
    if box == "archived":
        bob.call("envelope.archive", ids=[*first["ids"], *second["ids"]])
    owner = ada if box == "outbox" else bob
    where: dict[str, Any] = {"box": box, "to": bob.address} if box else {"thread": first["thread"]}
    both = [second["ids"][0], first["ids"][0]]
    for words, expected in (
        ({"scope": auth}, both),
        ({"scope": auth, "ref": issue}, both[1:]),
        ({"ref": {"type": "mention", "value": bob.name}}, both[1:]),
        ({"mentions": True}, both[:1] if owner is ada else both[1:]),
        ({"mention_role": "nobody"}, []),
        ({"scope": {"type": "module", "value": "web"}}, []),
        ({"scope": auth, "conversation": first["conversation"]}, both),
        ({"scope": auth, "conversation": "c999999"}, []),
        ({"scope": auth, "unread": True}, both),
        ({"scope": auth, "status": "failed"}, []),
    ):
        assert flat(owner.walk(**where, **words, page_size=1)) == expected, words
        assert totals(owner, **where, **words) == (len(expected), False)
