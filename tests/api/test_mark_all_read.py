"""Reading: everything at once, up to an envelope, and who has read what in which session."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from hiboss.testing.running_daemon import RunningDaemon
from tests.support.daemons import wait_until
from tests.support.followers import following
from tests.support.parties import Party, agent, agents, at_once, boss
from tests.support.python_agents import QUIET, Boss, Team, wait_until_idle


def read_all(who: Party, **params: Any) -> int:
    answer = who.call("envelope.read", all=True, **params)
    assert answer["envelopes"] == []
    return int(answer["changed"])


def unread(who: Party) -> list[str]:
    """Return the texts of what is unread, oldest first; the table that counts it agrees."""
    found = who.list(unread=True, oldest_first=True, page_size=100)
    assert counted(who) == len(found)
    return [one["text"] for one in found]


def counted(who: Party) -> int:
    with who.daemon.database() as database:
        query = """
            SELECT ifnull(sum(u.number), 0) FROM unread u JOIN address a ON a.id = u.address
            WHERE a.fold = ? AND a.retired_at IS NULL
        """
        return int(database.execute(query, (who.address.lower(),)).fetchone()[0])


def readers(who: Party, number: str) -> list[tuple[str, str | None]]:
    return [(one["address"], one["session"]) for one in who.get(number)["read_by"]]


# --- all, and up to ---------------------------------------------------------------------------


def test_reading_all_marks_what_is_unread_in_the_inbox_and_shows_nothing(two: tuple[Party, Party]) -> None:
    ada, bob = two
    numbers = [ada.tell(bob, text=f"{i}") for i in range(3)]
    bob.call("envelope.read", ids=numbers[:1])
    first = bob.get(numbers[0])["read_at"]
    assert read_all(bob) == 2 and read_all(bob) == 0
    assert unread(bob) == []
    assert bob.get(numbers[0])["read_at"] == first
    assert {bob.get(one)["status"] for one in numbers} == {"pending"}


def test_up_to_marks_that_envelope_and_what_arrived_before_it(two: tuple[Party, Party]) -> None:
    ada, bob = two
    numbers = [ada.tell(bob, text=f"{i}") for i in range(5)]
    assert read_all(bob, up_to=numbers[2]) == 3
    assert unread(bob) == ["3", "4"]
    assert read_all(bob, up_to=numbers[0]) == 0
    assert read_all(bob, up_to=numbers[4]) == 2


def test_up_to_goes_by_arrival_and_not_by_id(two: tuple[Party, Party]) -> None:
    ada, bob = two
    later = ada.tell(bob, text="put off")
    bob.call("envelope.snooze", ids=[later], until="+1h")
    early = ada.tell(bob, text="early")
    bob.call("envelope.unsnooze", ids=[later])  # it arrives again, after the other one
    last = ada.tell(bob, text="last")
    assert read_all(bob, up_to=early) == 1 and unread(bob) == ["put off", "last"]
    assert read_all(bob, up_to=later) == 1 and unread(bob) == ["last"]
    assert read_all(bob, up_to=last) == 1


def test_up_to_the_envelope_of_another_one_or_one_that_has_not_arrived_is_not_found(
    daemon: RunningDaemon,
) -> None:
    ada, bob, eve = agents(daemon, 3)
    own, foreign, sent = ada.tell(bob), ada.tell(eve), bob.tell(ada)
    deferred = bob.tell(bob, deliver_at="+1h")
    for number in (foreign, sent, deferred, "e999999"):
        assert bob.refusal("envelope.read", all=True, up_to=number) == "not_found"
    assert bob.get(own)["read_at"] is None and eve.get(foreign)["read_at"] is None


@pytest.mark.parametrize(
    "params", [{}, {"ids": []}, {"all": True, "ids": ["e1"]}, {"up_to": "e1"}, {"ids": ["e1"], "up_to": "e1"}]
)
def test_either_ids_or_all_and_up_to_only_with_all(two: tuple[Party, Party], params: dict[str, Any]) -> None:
    assert two[1].refusal("envelope.read", **params) == "invalid_params"


def test_reading_all_leaves_alone_what_is_snoozed_read_along_put_away_or_of_others(
    daemon: RunningDaemon,
) -> None:
    ada, bob, eve = agents(daemon, 3)
    ada.call("conversation.create", name=f"club-of-{bob.name}", participants=[bob.address, eve.address])
    ada.send(f"group:club-of-{bob.name}", text="to nobody of you")
    along = bob.list(page_size=1)[0]
    assert along["context"]
    snoozed, archived, own = (ada.tell(bob, text=text) for text in ("snoozed", "archived", "own"))
    foreign = ada.tell(eve)
    bob.call("envelope.snooze", ids=[snoozed], until="+1h")
    bob.call("envelope.archive", ids=[archived])
    assert read_all(bob) == 1
    assert bob.get(own)["read_at"] is not None
    for number in (along["id"], snoozed, archived):
        assert (bob.get(number)["read_at"], bob.get(number)["read_by"]) == (None, [])
    assert eve.get(foreign)["read_at"] is None


def test_what_arrives_while_all_is_marked_stays_unread(daemon: RunningDaemon) -> None:
    ada, bob = agents(daemon, 2)
    ada.flood(bob, 12_000)
    sent: list[str] = []
    stop = threading.Event()

    def send() -> None:
        while not stop.is_set():
            sent.append(ada.tell(bob, text="meanwhile"))

    sender = threading.Thread(target=send)
    sender.start()
    wait_until(lambda: len(sent) > 2)
    with daemon.database() as database:
        query = "SELECT count(*) FROM envelope e JOIN address a ON a.id = e.recipient WHERE a.fold = ?"
        before = database.execute(query, (bob.address,)).fetchone()[0]
    changed = read_all(bob)
    stop.set()
    sender.join(60)
    assert changed >= before >= 12_000
    total = 12_000 + len(sent)
    # Exactly those that arrived before it are read, and every later one is unread.
    with daemon.database() as database:
        query = """
            SELECT e.read_at IS NOT NULL AS seen FROM envelope e JOIN address a ON a.id = e.recipient
            WHERE a.fold = ? ORDER BY e.arrived
        """
        seen = [row["seen"] for row in database.execute(query, (bob.address,))]
    assert seen == [1] * changed + [0] * (total - changed)
    assert counted(bob) == total - changed
    assert read_all(bob) == total - changed


def test_two_who_mark_all_at_once_count_each_envelope_once(daemon: RunningDaemon) -> None:
    ada, bob = agents(daemon, 2)
    ada.flood(bob, 500)
    answers = at_once([lambda: read_all(bob, session="one"), lambda: read_all(bob, session="two")])
    assert sum(answers) == 500 and unread(bob) == []


def test_each_mark_is_told(two: tuple[Party, Party]) -> None:
    ada, bob = two
    numbers = [ada.tell(bob) for _ in range(3)]
    with following(ada.daemon) as follower:
        follower.subscribe(bob.token, topics=["envelope.read"])
        read_all(bob)
        assert [follower.next("envelope.read")["envelope"] for _ in numbers] == numbers


# --- who has read it, and where ------------------------------------------------------------------


def test_who_read_it_in_which_session_is_known_and_the_first_time_stays(two: tuple[Party, Party]) -> None:
    ada, bob = two
    number = ada.tell(bob)
    assert readers(bob, number) == []
    bob.call("envelope.read", ids=[number], session="left")
    first = bob.get(number)["read_at"]
    assert read_all(bob, session="right") == 0
    bob.call("envelope.read", ids=[number], session="right")
    bob.call("envelope.read", ids=[number])
    # Those of one millisecond come in the order of their names.
    assert set(readers(bob, number)) == {(bob.address, "left"), (bob.address, "right"), (bob.address, None)}
    assert bob.get(number)["read_at"] == first == bob.get(number)["read_by"][0]["at"]
    assert readers(ada, number) == readers(bob, number)


def test_reading_all_notes_the_session(two: tuple[Party, Party]) -> None:
    ada, bob = two
    number = ada.tell(bob)
    read_all(bob, session="desk")
    assert readers(bob, number) == [(bob.address, "desk")]


def test_the_boss_who_reads_in_the_place_of_an_agent_is_noted_as_the_reader(two: tuple[Party, Party]) -> None:
    ada, bob = two
    one, other, third = (ada.tell(bob) for _ in range(3))
    chief = boss(ada.daemon)
    chief.call("envelope.read", ids=[one], address=bob.address)
    assert read_all(chief, address=bob.address, up_to=other) == 1
    assert read_all(chief, address=bob.name) == 1
    for number in (one, other, third):
        assert readers(bob, number) == [("user:boss", None)] and bob.get(number)["read_at"]
    assert bob.refusal("envelope.read", all=True, address=ada.address) == "boss_only"


def test_nobodys_reading_marks_anothers(daemon: RunningDaemon) -> None:
    ada, bob, eve = agents(daemon, 3)
    for_bob, for_eve = ada.send(bob, eve)["ids"]
    bob.call("envelope.read", ids=[for_bob])
    read_all(bob)
    read_all(ada)
    assert eve.get(for_eve)["read_at"] is None and readers(eve, for_eve) == []
    assert unread(eve) == ["hello"]


def test_a_poll_notes_who_was_shown_it_and_leaves_it_unread(two: tuple[Party, Party]) -> None:
    ada, bob = two
    number = ada.tell(bob)
    bob.call("envelope.poll", session="one")
    shown = bob.get(number)
    assert readers(bob, number) == [(bob.address, "one")] and shown["read_at"] is None
    assert unread(bob) == ["hello"]
    bob.call("envelope.poll", session="two")
    read_all(bob, session="three")
    got = bob.get(number)
    assert [session for _, session in readers(bob, number)] == ["one", "two", "three"]
    assert [one["read"] for one in got["read_by"]] == [False, False, True]
    assert got["read_at"] == got["read_by"][2]["at"]  # to be shown something is not to read it


def test_waiting_listing_showing_and_claiming_note_nobody(two: tuple[Party, Party]) -> None:
    ada, bob = two
    number = ada.tell(bob)
    bob.call("envelope.wait", timeout="1s")
    bob.list()
    bob.get(number)
    bob.call("envelope.claim")
    assert readers(bob, number) == [] and bob.get(number)["read_at"] is None


def test_what_a_run_has_read_is_read_in_the_session_of_that_run(team: Team, ada: Boss) -> None:
    kai = team.hire(QUIET)
    number = ada.say(kai)["ids"][0]
    wait_until_idle(ada.daemon)
    [run] = kai.runs()
    assert readers(kai, number) == [(kai.address, run["id"])]


def test_a_mark_by_the_token_of_a_run_is_in_its_session(team: Team, ada: Boss) -> None:
    other = agent(ada.daemon)
    kai = team.hire('call("envelope.read", all=True); call("envelope.poll"); print("NO_REPLY")')
    ada.call("agent.pause", name=kai.name)
    first = other.tell(kai, text="a note")
    kai.call("envelope.snooze", ids=[first], until="+1h")
    ada.call("agent.resume", name=kai.name)
    ada.say(kai)
    wait_until_idle(ada.daemon)
    kai.call("envelope.unsnooze", ids=[first])
    wait_until(lambda: len(kai.runs()) == 2)
    wait_until_idle(ada.daemon)
    assert readers(kai, first) == [(kai.address, kai.runs()[1]["id"])]


def test_acknowledging_notes_the_session_too(two: tuple[Party, Party]) -> None:
    ada, bob = two
    first, second = ada.tell(bob), ada.tell(bob)
    bob.call("envelope.ack", ids=[first], session="desk")
    bob.call("envelope.ack", all=True, session="door")
    assert readers(bob, first) == [(bob.address, "desk")] and readers(bob, second) == [(bob.address, "door")]


def test_a_session_that_is_no_word_is_refused(two: tuple[Party, Party]) -> None:
    ada, bob = two
    number = ada.tell(bob)
    assert bob.refusal("envelope.read", all=True, session="x" * 5_000) == "too_large"
    assert bob.refusal("envelope.read", ids=[number], session="a\x00b") == "bad_text"
    assert bob.get(number)["read_at"] is None
