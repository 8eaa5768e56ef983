"""`message.markRead`: nobody's reading marks another's."""

from __future__ import annotations

from typing import Any

import pytest

from hiboss.testing.running_daemon import RunningDaemon
from tests.support.parties import Party, agents, at_once, boss


def marked(party: Party, *given: Any, **params: Any) -> dict[str, Any]:
    found: dict[str, Any] = party.call("message.markRead", message_ids=list(given), **params)
    return found


def is_read(party: Party, given: str) -> bool:
    return bool(party.call("message.get", message_id=given)["message"]["is_read"])


def test_it_marks_ones_own_envelopes_and_says_how_many_were_unread(daemon: RunningDaemon) -> None:
    ada, bob, eve = agents(daemon, 3)
    first, second = ada.send(bob, eve), ada.send(bob)
    assert marked(bob, first["message"], second["ids"][0]) == {"marked_count": 2}
    assert marked(bob, first["message"]) == {"marked_count": 0}
    assert is_read(bob, first["message"]) and not is_read(eve, first["message"])
    assert eve.get(first["ids"][1])["read_at"] is None


def test_who_else_has_read_it_is_told_by_message_with_the_ids_of_authors(daemon: RunningDaemon) -> None:
    ada, bob, eve = agents(daemon, 3)
    first, second = ada.send(bob, eve), ada.send(bob, eve)
    marked(eve, first["message"])
    found = marked(bob, first["message"], second["message"])
    assert found == {"marked_count": 2, "also_read_by": {first["message"]: [eve.name]}}
    (readers,) = marked(ada, first["message"])["also_read_by"].values()
    assert sorted(readers) == sorted([eve.name, bob.name])  # perhaps in the same millisecond
    to_boss = ada.send(bob, boss(daemon))
    marked(boss(daemon), to_boss["message"])
    assert marked(bob, to_boss["message"])["also_read_by"] == {to_boss["message"]: ["user:boss"]}


def test_what_one_sees_and_did_not_get_counts_nothing(two: tuple[Party, Party]) -> None:
    ada, bob = two
    sent = ada.send(bob)
    assert marked(ada, sent["message"]) == {"marked_count": 0}
    assert marked(boss(ada.daemon), sent["message"]) == {"marked_count": 0}
    assert not is_read(bob, sent["message"])


@pytest.mark.parametrize("wrong", ["m999999", "foreign", "deferred"])
def test_with_one_unknown_or_foreign_id_nothing_is_marked(daemon: RunningDaemon, wrong: str) -> None:
    ada, bob, eve = agents(daemon, 3)
    own = ada.send(bob)
    given = {
        "foreign": ada.send(eve)["message"],
        "deferred": ada.send(bob, deliver_at="+2h")["message"],
    }.get(wrong, wrong)
    assert bob.refusal("message.markRead", message_ids=[own["message"], given]) == "not_found"
    assert not is_read(bob, own["message"])


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        ([], "invalid_params"),
        (["x"], "bad_id"),
        (["t1"], "bad_id"),
        ([f"m{n}" for n in range(1, 102)], "invalid_params"),
    ],
    ids=["none", "no id", "a thread", "101"],
)
def test_ids_written_wrongly_are_refused(two: tuple[Party, Party], wrong: list[str], code: str) -> None:
    assert two[0].refusal("message.markRead", message_ids=wrong) == code


def test_a_hundred_are_marked_at_once_and_a_repeated_id_counts_once(two: tuple[Party, Party]) -> None:
    ada, bob = two
    ada.flood(bob, 100)
    found = [one["message_id"] for one in bob.call("message.list", page_size=100)["messages"]]
    assert marked(bob, *[found[0]] * 100) == {"marked_count": 1}
    assert marked(bob, *found) == {"marked_count": 99}
    assert bob.call("message.list")["unread"] == 0


def test_the_session_is_kept_with_who_read_it(two: tuple[Party, Party]) -> None:
    ada, bob = two
    sent = ada.send(bob)
    marked(bob, sent["message"], session="desk")
    marked(bob, sent["message"], session="phone")
    readers = ada.get(sent["ids"][0])["read_by"]
    assert [(one["address"], one["session"]) for one in readers] == [
        (bob.address, "desk"),
        (bob.address, "phone"),
    ]


def test_mail_that_arrives_meanwhile_stays_unread(two: tuple[Party, Party]) -> None:
    ada, bob = two
    sent = [ada.send(bob)["message"] for _ in range(20)]
    at_once([lambda: marked(bob, *sent), *[lambda: ada.send(bob) for _ in range(5)]])
    assert bob.call("message.list")["unread"] == 5


def test_two_sessions_that_mark_the_same_at_once_count_it_once(two: tuple[Party, Party]) -> None:
    ada, bob = two
    sent = ada.send(bob)["message"]
    found = at_once([lambda: marked(bob, sent, session="a"), lambda: marked(bob, sent, session="b")])
    assert sum(one["marked_count"] for one in found) == 1
