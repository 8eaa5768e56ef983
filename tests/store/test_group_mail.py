"""Mail of groups in the store: what turns of agents show, deferred messages that nobody gets, and whom facts concern."""

from __future__ import annotations

from hiboss.core.events import ControlSent, RunProgress, TypingChanged
from hiboss.store import agents, fact_parties, groups, overdue, session_scopes
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
    assert "before it went" in shown and "after it came back" in shown and "while it was away" not in shown
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


# --- deferred messages --------------------------------------------------------------


def later(house: House, sender: int, text: str = "later") -> int:
    """Send something to the group that arrives in an hour; return the message."""
    return house.send(sender, CORE, text=text, deliver_at=house.now + HOUR)


def hour_later(house: House) -> None:
    house.now += HOUR
    house.write(lambda tx: overdue.wake(tx, house.now))


def state(house: House, message: int) -> list[tuple[str, int, str | None]]:
    query = """
        SELECT a.name, e.status, e.error_kind FROM envelope e JOIN address a ON a.id = e.recipient
        WHERE e.message = ? ORDER BY e.id
    """
    return [(row["name"], row["status"], row["error_kind"]) for row in house.execute(query, message)]


def notices(house: House, who: int) -> list[str]:
    query = """
        SELECT m.text FROM envelope e JOIN message m ON m.id = e.message JOIN address s ON s.id = m.sender
        WHERE e.recipient = ? AND s.name = 'system' AND e.forwards IS NULL ORDER BY e.id
    """
    return [row["text"] for row in house.execute(query, who)]


def test_a_deferred_message_that_nobody_is_there_to_get_fails_and_its_sender_is_told(house: House) -> None:
    house.create(NEX, "core", KAI)
    message = later(house, NEX)
    house.remove(NEX, KAI)
    hour_later(house)
    assert state(house, message) == [("core", 2, "empty_group")]
    (told,) = notices(house, NEX)
    assert "to group:core" in told and "nobody but its sender was in the group" in told
    assert house.execute("SELECT seq, arrived_at FROM message WHERE id = ?", message) == [
        {"seq": None, "arrived_at": None}
    ]


def test_a_deferred_message_whose_sender_left_fails_and_that_one_is_told(house: House) -> None:
    house.create(NEX, "core", KAI, house.ann)
    message = later(house, house.ann)
    house.remove(NEX, house.ann)
    hour_later(house)
    assert state(house, message) == [("core", 2, "not_member")]
    (told,) = notices(house, house.ann)
    assert "its sender is not in the group any more" in told
    assert notices(house, BOSS_ID) == []


def test_a_deferred_message_whose_sender_was_deleted_fails_and_the_boss_is_told(house: House) -> None:
    house.create(NEX, "core", KAI, house.max)
    message = later(house, KAI, "what I found")
    house.do(agents.delete, "kai")
    hour_later(house)
    assert state(house, message) == [("core", 2, "not_member")]
    (told,) = notices(house, BOSS_ID)
    assert "agent:kai, who was deleted, to group:core" in told and "what I found" in told


def test_a_deferred_message_that_is_not_posted_to_a_channel_of_its_group_is_told_to_its_sender(
    house: House,
) -> None:
    house.create(NEX, "core")
    house.add(NEX, house.execute("SELECT id FROM address WHERE name = 'folder:7'")[0]["id"])
    message = later(house, NEX)
    house.execute("UPDATE contact SET state = 'blocked'")
    hour_later(house)
    assert state(house, message) == [("core", 1, None), ("folder:7", 2, "unbound")]
    (told,) = notices(house, NEX)
    assert "to channel:folder:7" in told and "no account may post there" in told


def test_a_deferred_message_still_arrives_in_a_group_that_was_archived_meanwhile(house: House) -> None:
    house.create(NEX, "core", house.ann)
    message = later(house, NEX)
    house.do(groups.archive, "core", house.actor(NEX), True)
    hour_later(house)
    assert state(house, message) == [("core", 1, None), ("ann", 1, None)]


# --- facts --------------------------------------------------------------------------


def progress(house: House, group: int) -> RunProgress:
    """Let nex say a part of an answer, a moment later than what was before."""
    house.now += 1_000
    return RunProgress(house.now, 1, NEX, group, 1, "text", "secret")


def test_who_joins_a_group_later_is_not_concerned_by_the_runs_from_before(house: House) -> None:
    group = house.create(NEX, "core", KAI)
    house.send(KAI, CORE)
    early = progress(house, group)
    house.add(NEX, house.ann)
    late = progress(house, group)
    assert set(fact_parties.concerned(house.connection, early).parties) == {NEX, KAI}
    assert set(fact_parties.concerned(house.connection, late).parties) == {NEX, KAI, house.ann}


def test_who_left_a_group_is_concerned_by_what_was_while_it_was_there(house: House) -> None:
    group = house.create(NEX, "core", KAI, house.ann)
    first = progress(house, group)
    house.remove(NEX, KAI)
    house.send(NEX, CORE)
    away = progress(house, group)
    house.add(NEX, KAI)
    back = progress(house, group)
    house.do(groups.delete, "core", house.actor(NEX), None)
    deleted = progress(house, group)
    seen = [KAI in fact_parties.concerned(house.connection, one).parties for one in (first, away, back)]
    assert seen == [True, False, True]
    assert fact_parties.concerned(house.connection, deleted).parties == (NEX,)


def test_typing_and_controls_of_a_group_concern_those_who_were_there(house: House) -> None:
    group = house.create(NEX, "core", KAI)
    message = house.send(NEX, CORE)
    typing = TypingChanged(house.now, NEX, group, True)
    control = ControlSent(house.now, 1, "pause", "applied", NEX, NEX, None, None, message)
    house.add(NEX, house.ann)
    assert fact_parties.concerned(house.connection, typing).parties == (KAI,)
    assert house.ann not in fact_parties.concerned(house.connection, control).parties


def test_who_gets_the_mail_of_a_member_is_concerned_from_then_on(house: House) -> None:
    group = house.create(NEX, "core", KAI)
    house.send(NEX, CORE)
    before = progress(house, group)
    house.order("handoff", house.max, actor=BOSS_ID, agent=KAI, conversation=group)
    after = progress(house, group)
    assert house.max not in fact_parties.concerned(house.connection, before).parties
    assert {KAI, house.max} <= set(fact_parties.concerned(house.connection, after).parties)


def test_the_parties_of_any_other_conversation_are_those_of_now(house: House) -> None:
    house.send(NEX, house.address(KAI))
    number = house.execute("SELECT max(conversation) AS c FROM message")[0]["c"]
    fact = RunProgress(0, 1, NEX, number, 1, "text", "hello")
    assert set(fact_parties.concerned(house.connection, fact).parties) == {NEX, KAI}
