"""Reading: everything at once, up to an envelope, by messages; who has read what in which session, and how much is unread."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from hiboss.testing.running_daemon import RunningDaemon
from tests.support.daemons import daemon_with, started
from tests.support.followers import following
from tests.support.parties import Party, agent, agents, at_once, boss, person
from tests.support.python_agents import QUIET, Boss, Team, wait_until_idle
from tests.support.waits import wait_until


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


def test_reading_all_marks_what_is_unread_in_the_inbox_and_shows_nothing(ada: Party, bob: Party) -> None:
    numbers = [ada.tell(bob, text=f"{i}") for i in range(3)]
    bob.call("envelope.read", ids=numbers[:1])
    first = bob.get(numbers[0])["read_at"]
    assert read_all(bob) == 2 and read_all(bob) == 0
    assert unread(bob) == [] and bob.get(numbers[0])["read_at"] == first
    assert {bob.get(one)["status"] for one in numbers} == {"pending"}


def test_up_to_marks_that_envelope_and_what_arrived_before_it(ada: Party, bob: Party) -> None:
    numbers = [ada.tell(bob, text=f"{i}") for i in range(5)]
    assert read_all(bob, up_to=numbers[2]) == 3 and unread(bob) == ["3", "4"]
    assert read_all(bob, up_to=numbers[0]) == 0
    assert read_all(bob, up_to=numbers[4]) == 2


def test_up_to_goes_by_arrival_and_not_by_id(ada: Party, bob: Party) -> None:
    later = ada.tell(bob, text="put off")
    bob.call("envelope.snooze", ids=[later], until="+1h")
    early = ada.tell(bob, text="early")
    bob.call("envelope.unsnooze", ids=[later])  # it arrives again, after the other one
    last = ada.tell(bob, text="last")
    assert read_all(bob, up_to=early) == 1 and unread(bob) == ["put off", "last"]
    assert read_all(bob, up_to=later) == 1 and unread(bob) == ["last"]
    assert read_all(bob, up_to=last) == 1


def test_up_to_the_envelope_of_another_one_or_one_that_has_not_arrived_is_not_found(
    ada: Party, bob: Party, eve: Party
) -> None:
    own, foreign, sent = ada.tell(bob), ada.tell(eve), bob.tell(ada)
    for number in (foreign, sent, bob.tell(bob, deliver_at="+1h"), "e999999"):
        assert bob.refusal("envelope.read", all=True, up_to=number) == "not_found"
    assert bob.get(own)["read_at"] is None and eve.get(foreign)["read_at"] is None


def test_reading_all_leaves_alone_what_is_snoozed_read_along_put_away_or_of_others(
    ada: Party, bob: Party, eve: Party
) -> None:
    ada.call("conversation.create", name=f"club-of-{bob.name}", participants=[bob.address, eve.address])
    ada.send(f"group:club-of-{bob.name}", text="to nobody of you")
    along = bob.list(page_size=1)[0]
    assert along["context"]
    snoozed, archived, own = (ada.tell(bob, text=text) for text in ("snoozed", "archived", "own"))
    foreign = ada.tell(eve)
    bob.call("envelope.snooze", ids=[snoozed], until="+1h")
    bob.call("envelope.archive", ids=[archived])
    assert read_all(bob) == 1 and bob.get(own)["read_at"] is not None
    for number in (along["id"], snoozed, archived):
        assert (bob.get(number)["read_at"], bob.get(number)["read_by"]) == (None, [])
    assert eve.get(foreign)["read_at"] is None


@pytest.mark.slow
def test_what_arrives_while_all_is_marked_stays_unread(daemon: RunningDaemon, ada: Party, bob: Party) -> None:
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
    assert counted(bob) == read_all(bob) == total - changed


def test_two_who_mark_all_at_once_count_each_envelope_once(ada: Party, bob: Party) -> None:
    ada.flood(bob, 500)
    answers = at_once([lambda: read_all(bob, session="one"), lambda: read_all(bob, session="two")])
    assert sum(answers) == 500 and unread(bob) == []


def test_each_mark_is_told(ada: Party, bob: Party) -> None:
    numbers = [ada.tell(bob) for _ in range(3)]
    with following(ada.daemon) as follower:
        follower.subscribe(bob.token, topics=["envelope.read"])
        read_all(bob)
        assert [follower.next("envelope.read")["envelope"] for _ in numbers] == numbers


# --- who has read it, and where ------------------------------------------------------------------


def test_who_read_it_in_which_session_is_known_and_the_first_time_stays(ada: Party, bob: Party) -> None:
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


def test_reading_all_notes_the_session(ada: Party, bob: Party) -> None:
    number = ada.tell(bob)
    read_all(bob, session="desk")
    assert readers(bob, number) == [(bob.address, "desk")]


def test_the_boss_who_reads_in_the_place_of_an_agent_is_noted_as_the_reader(
    ada: Party, bob: Party, chief: Party
) -> None:
    one, other, third = (ada.tell(bob) for _ in range(3))
    chief.call("envelope.read", ids=[one], address=bob.address)
    assert read_all(chief, address=bob.address, up_to=other) == read_all(chief, address=bob.name) == 1
    for number in (one, other, third):
        assert readers(bob, number) == [("user:boss", None)] and bob.get(number)["read_at"]
    assert bob.refusal("envelope.read", all=True, address=ada.address) == "boss_only"


def test_nobodys_reading_marks_anothers(ada: Party, bob: Party, eve: Party) -> None:
    for_bob, for_eve = ada.send(bob, eve)["ids"]
    bob.call("envelope.read", ids=[for_bob])
    read_all(bob)
    read_all(ada)
    assert eve.get(for_eve)["read_at"] is None and readers(eve, for_eve) == [] and unread(eve) == ["hello"]


def test_a_poll_notes_who_was_shown_it_and_leaves_it_unread(ada: Party, bob: Party) -> None:
    number = ada.tell(bob)
    bob.call("envelope.poll", session="1")  # those of one millisecond come in the order of their names
    shown = bob.get(number)
    assert readers(bob, number) == [(bob.address, "1")] and shown["read_at"] is None
    assert unread(bob) == ["hello"]
    bob.call("envelope.poll", session="2")
    read_all(bob, session="3")
    got = bob.get(number)
    assert [session for _, session in readers(bob, number)] == ["1", "2", "3"]
    assert [one["read"] for one in got["read_by"]] == [False, False, True]
    assert got["read_at"] == got["read_by"][2]["at"]  # to be shown something is not to read it


def test_waiting_listing_showing_and_claiming_note_nobody(ada: Party, bob: Party) -> None:
    number = ada.tell(bob)
    bob.call("envelope.wait", timeout="30s")
    bob.list()
    bob.get(number)
    bob.call("envelope.claim")
    assert readers(bob, number) == [] and bob.get(number)["read_at"] is None


def test_what_a_run_has_read_is_read_in_the_session_of_that_run(team: Team, chief: Boss) -> None:
    kai = team.hire(QUIET)
    number = chief.say_and_wait(kai)["ids"][0]
    [run] = kai.runs()
    assert readers(kai, number) == [(kai.address, run["id"])]


def test_a_mark_by_the_token_of_a_run_is_in_its_session(team: Team, chief: Boss) -> None:
    other = agent(chief.daemon)
    kai = team.hire('call("envelope.read", all=True); call("envelope.poll"); print("NO_REPLY")')
    chief.call("agent.pause", name=kai.name)
    first = other.tell(kai, text="a note")
    kai.call("envelope.snooze", ids=[first], until="+1h")
    chief.call("agent.resume", name=kai.name)
    chief.say_and_wait(kai)
    kai.call("envelope.unsnooze", ids=[first])
    wait_until(lambda: len(kai.runs()) == 2)
    wait_until_idle(chief.daemon)
    assert readers(kai, first) == [(kai.address, kai.runs()[1]["id"])]


def test_acknowledging_notes_the_session_too(ada: Party, bob: Party) -> None:
    first, second = ada.tell(bob), ada.tell(bob)
    bob.call("envelope.ack", ids=[first], session="desk")
    bob.call("envelope.ack", all=True, session="door")
    assert readers(bob, first) == [(bob.address, "desk")] and readers(bob, second) == [(bob.address, "door")]


# --- by messages -------------------------------------------------------------------


def marked(party: Party, *given: Any, **params: Any) -> dict[str, Any]:
    found: dict[str, Any] = party.call("message.markRead", message_ids=list(given), **params)
    return found


def is_read(party: Party, given: str) -> bool:
    return bool(party.call("message.get", message_id=given)["message"]["is_read"])


def test_it_marks_ones_own_envelopes_and_says_how_many_were_unread(
    ada: Party, bob: Party, eve: Party
) -> None:
    first, second = ada.send(bob, eve), ada.send(bob)
    assert marked(bob, first["message"], second["ids"][0]) == {"marked_count": 2}
    assert marked(bob, first["message"]) == {"marked_count": 0}
    assert is_read(bob, first["message"]) and not is_read(eve, first["message"])
    assert eve.get(first["ids"][1])["read_at"] is None


def test_who_else_has_read_it_is_told_by_message_with_the_ids_of_authors(
    daemon: RunningDaemon, ada: Party, bob: Party, eve: Party
) -> None:
    first, second = ada.send(bob, eve), ada.send(bob, eve)
    marked(eve, first["message"])
    found = marked(bob, first["message"], second["message"])
    assert found == {"marked_count": 2, "also_read_by": {first["message"]: [eve.name]}}
    (readers,) = marked(ada, first["message"])["also_read_by"].values()
    assert sorted(readers) == sorted([eve.name, bob.name])  # perhaps in the same millisecond
    to_boss = ada.send(bob, boss(daemon))
    marked(boss(daemon), to_boss["message"])
    assert marked(bob, to_boss["message"])["also_read_by"] == {to_boss["message"]: ["user:boss"]}


def test_what_one_sees_and_did_not_get_counts_nothing(ada: Party, bob: Party) -> None:
    sent = ada.send(bob)
    assert marked(ada, sent["message"]) == marked(boss(ada.daemon), sent["message"]) == {"marked_count": 0}
    assert not is_read(bob, sent["message"])


@pytest.mark.parametrize("wrong", ["m999999", "foreign", "deferred"])
def test_with_one_unknown_or_foreign_id_nothing_is_marked(
    ada: Party, bob: Party, eve: Party, wrong: str
) -> None:
    own = ada.send(bob)
    given = {
        "foreign": ada.send(eve)["message"],
        "deferred": ada.send(bob, deliver_at="+2h")["message"],
    }.get(wrong, wrong)
    assert bob.refusal("message.markRead", message_ids=[own["message"], given]) == "not_found"
    assert not is_read(bob, own["message"])


def test_a_hundred_are_marked_at_once_and_a_repeated_id_counts_once(ada: Party, bob: Party) -> None:
    ada.flood(bob, 100)
    found = [one["message_id"] for one in bob.call("message.list", page_size=100)["messages"]]
    assert marked(bob, *[found[0]] * 100) == {"marked_count": 1}
    assert marked(bob, *found) == {"marked_count": 99} and bob.call("message.list")["unread"] == 0


def test_the_session_is_kept_with_who_read_it(ada: Party, bob: Party) -> None:
    sent = ada.send(bob)
    marked(bob, sent["message"], session="desk")
    marked(bob, sent["message"], session="phone")
    assert [(one["address"], one["session"]) for one in ada.get(sent["ids"][0])["read_by"]] == [
        (bob.address, "desk"),
        (bob.address, "phone"),
    ]


def test_mail_that_arrives_meanwhile_stays_unread(ada: Party, bob: Party) -> None:
    sent = [ada.send(bob)["message"] for _ in range(20)]
    at_once([lambda: marked(bob, *sent), *[lambda: ada.send(bob) for _ in range(5)]])
    assert bob.call("message.list")["unread"] == 5


def test_two_sessions_that_mark_the_same_at_once_count_it_once(ada: Party, bob: Party) -> None:
    sent = ada.send(bob)["message"]
    found = at_once([lambda: marked(bob, sent, session="a"), lambda: marked(bob, sent, session="b")])
    assert sum(one["marked_count"] for one in found) == 1


# --- how much is unread ------------------------------------------------------------


def number_unread(party: Party, **params: str) -> int:
    found = party.call("envelope.unread", **params)
    assert found["unread_capped"] is False
    return int(found["unread"])


def test_it_counts_what_is_unread_in_the_inbox_and_marks_nothing(ada: Party, bob: Party) -> None:
    sent = [ada.send(bob)["ids"][0] for _ in range(5)]
    ada.send(bob, deliver_at="+2h")
    assert number_unread(bob) == number_unread(bob) == bob.call("message.list")["unread"] == 5
    bob.call("envelope.read", ids=sent[:1])
    bob.call("envelope.archive", ids=sent[1:2])
    bob.call("envelope.snooze", ids=sent[2:3], until="+1h")
    ada.call("envelope.cancel", ids=sent[3:4])
    assert number_unread(bob) == 1
    bob.call("envelope.unsnooze", ids=sent[2:3])
    assert number_unread(bob) == 2 and number_unread(ada) == 0


def test_only_the_boss_may_ask_for_that_of_others(ada: Party, bob: Party, chief: Party) -> None:
    ada.send(bob)
    assert number_unread(chief, address=bob.address) == number_unread(chief, address=bob.name) == 1
    assert number_unread(chief) == chief.call("message.list")["unread"]
    assert number_unread(bob, address=bob.address) == 1
    assert ada.refusal("envelope.unread", address=bob.address) == "boss_only"
    assert chief.refusal("envelope.unread", address="agent:nobody") == "unknown_address"


def test_a_person_and_a_deleted_agent_have_a_number_too(
    daemon: RunningDaemon, ada: Party, bob: Party, chief: Party
) -> None:
    ann = person(daemon)
    ada.send(ann, bob)
    assert number_unread(ann) == 1
    chief.call("agent.delete", name=bob.name)
    assert number_unread(chief, address=bob.address) == 1
    later = Party(daemon, bob.address, chief.call("agent.register", name=bob.name)["token"])
    assert number_unread(later) == 0


def test_a_run_asks_for_that_of_its_agent(team: Team) -> None:
    worker = team.hire('note(call("envelope.unread"))\nprint("NO_REPLY")')
    boss(team.daemon).send(worker)
    wait_until_idle(team.daemon)
    [found] = worker.program.notes()
    assert set(found) == {"unread", "unread_capped"}


def test_it_is_counted_up_to_a_limit(tmp_path: Path) -> None:
    with daemon_with(tmp_path, count_exact_to=3) as running:
        ada, bob = agents(running, 2)
        for number in range(1, 6):
            ada.send(bob)
            capped = {"unread": min(number, 3), "unread_capped": number > 3}
            assert bob.call("envelope.unread") == capped


@pytest.mark.slow
def test_it_holds_over_a_restart_and_while_others_write(tmp_path: Path) -> None:
    with started(tmp_path) as running:
        ada, bob = agents(running, 2)
        found = at_once([lambda: ada.send(bob), lambda: number_unread(bob)] * 5)
        assert all(0 <= one <= 5 for one in found[1::2])
        running.kill()
        running.start()
        assert number_unread(bob) == 5
