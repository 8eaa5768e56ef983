"""Turns of agents in groups: what they show, in which session they are, and answers to a group that is gone."""

from __future__ import annotations

from hiboss.store import agents, groups, overdue, session_scopes
from tests.store.chat_scene import BOSS_ID, KAI, NEX
from tests.store.group_house import CORE, House

HOUR = 3_600_000


def turn_shows(house: House) -> str:
    """Ask kai something in the group, let it take its turn, and return what that showed."""
    house.send(NEX, CORE, text="@kai now")
    turn = house.begin(KAI)
    shown = house.shown(turn)
    house.complete(turn)
    return shown


# --- answers -------------------------------------------------------------------------


def test_an_answer_to_a_group_that_was_deleted_meanwhile_is_told_to_the_boss(house: House) -> None:
    house.create(NEX, "core", KAI)
    house.send(NEX, CORE, text="@kai well?")
    turn = house.begin(KAI)
    house.do(groups.delete, "core", house.actor(NEX), None)
    assert house.complete(turn, "the answer") is None
    (told,) = [
        row["text"]
        for row in house.execute(
            """
            SELECT m.text FROM envelope e JOIN message m ON m.id = e.message
            WHERE e.recipient = ? AND e.forwards IS NULL
            """,
            BOSS_ID,
        )
    ]
    assert "group:core was deleted" in told and "the answer" in told
    [run] = house.execute("SELECT status, note FROM run WHERE id = ?", turn.run)
    assert (run["status"], run["note"]) == ("completed", "not sent: group:core was deleted")


def test_silence_in_a_group_that_was_deleted_meanwhile_is_told_to_nobody(house: House) -> None:
    house.create(NEX, "core", KAI)
    house.send(NEX, CORE, text="@kai well?")
    turn = house.begin(KAI)
    house.do(groups.delete, "core", house.actor(NEX), None)
    house.complete(turn)
    assert house.execute("SELECT 1 FROM envelope WHERE recipient = ?", BOSS_ID) == []


# --- sessions ------------------------------------------------------------------------


def test_a_group_of_two_has_a_session_apart_from_the_private_one_of_the_person(house: House) -> None:
    group = house.create(house.ann, "core", KAI)
    private = house.conversation(house.send(house.ann, house.address(KAI)))
    kai = agents.get(house.connection, "kai")
    assert session_scopes.key(house.connection, kai, private) == f"u{house.ann}"
    assert session_scopes.key(house.connection, kai, group) == f"c{group}"


# --- what was read along -------------------------------------------------------------


def test_who_was_removed_and_comes_back_is_shown_what_it_had_read_along_before(house: House) -> None:
    house.create(NEX, "core", KAI, house.ann)
    house.send(NEX, CORE, text="before it went")
    house.remove(NEX, KAI)
    house.send(NEX, CORE, text="while it was away")
    house.add(NEX, KAI)
    house.send(NEX, CORE, text="after it came back")
    shown = turn_shows(house)
    assert "before it went" in shown and "after it came back" in shown
    assert "while it was away" not in shown
    again = turn_shows(house)
    assert "before it went" not in again and "after it came back" not in again


def test_a_deferred_message_is_shown_though_a_later_one_was_shown_before_it_came(house: House) -> None:
    house.create(NEX, "core", KAI)
    house.send(NEX, CORE, text="deferred", deliver_at=house.now + HOUR)
    house.send(NEX, CORE, text="at once")
    assert "at once" in turn_shows(house)
    house.now += HOUR
    house.write(lambda tx: overdue.wake(tx, house.now))
    shown = turn_shows(house)
    assert "deferred" in shown and "at once" not in shown


def test_what_a_turn_left_out_of_what_was_read_along_is_not_shown_by_the_next(house: House) -> None:
    house.create(NEX, "core", KAI)
    for number in range(60):
        house.send(NEX, CORE, text=f"line {number:02}")
    shown = turn_shows(house)
    assert "line 10" in shown and "line 59" in shown and "line 09" not in shown
    assert "line" not in turn_shows(house)
