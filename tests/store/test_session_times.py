"""Sessions in the store, by time: a daily reset on odd days, a pause, a full one, a clock that is set."""

from __future__ import annotations

import pytest

from hiboss.core import clock
from hiboss.core.contracts.provider import Usage
from hiboss.store import (
    clock_steps,
    run_settlement,
)
from tests.store.chat_scene import BOSS_ID, HOUR
from tests.store.session_office import NEX_ADDRESS, THEIRS, Office


def at(text: str) -> int:
    return clock.parse(text, now=0, zone=clock.zone("UTC"))


@pytest.mark.parametrize(
    ("begun", "now", "fresh"),
    [
        ("2026-01-10T02:59:00Z", "2026-01-10T03:00:30Z", True),  # 04:00 in Berlin
        ("2026-01-10T03:00:00Z", "2026-01-10T03:01:00Z", False),
        ("2026-01-10T03:00:00Z", "2026-01-11T02:59:00Z", False),
        ("2026-01-10T03:00:00Z", "2026-01-13T02:59:00Z", True),
        ("2026-01-12T03:00:00Z", "2026-01-10T03:00:00Z", False),  # the clock was set back
    ],
)
def test_a_daily_reset_is_at_a_time_of_the_boss(office: Office, begun: str, now: str, fresh: bool) -> None:
    assert _resets(office, "04:00", begun, now) == ("reset" if fresh else None)


@pytest.mark.parametrize(
    ("begun", "now", "fresh"),
    [
        # 29 March 2026: 02:30 does not exist in Berlin, and the clock goes on with 03:00 (01:00 UTC).
        ("2026-03-29T00:10:00Z", "2026-03-29T00:59:30Z", False),
        ("2026-03-29T00:10:00Z", "2026-03-29T01:00:30Z", True),
        # 25 October 2026: 02:30 is at 00:30 and again at 01:30 UTC; only the first one counts.
        ("2026-10-25T00:10:00Z", "2026-10-25T00:30:30Z", True),
        ("2026-10-25T00:40:00Z", "2026-10-25T01:40:00Z", False),
        ("2026-10-25T00:40:00Z", "2026-10-26T01:29:00Z", False),
        ("2026-10-25T00:40:00Z", "2026-10-26T01:30:30Z", True),
    ],
)
def test_the_reset_comes_once_on_days_with_another_number_of_hours(
    office: Office, begun: str, now: str, fresh: bool
) -> None:
    assert _resets(office, "02:30", begun, now) == ("reset" if fresh else None)


def _resets(office: Office, reset: str, begun: str, now: str) -> str | None:
    office.execute("UPDATE user SET timezone = 'Europe/Berlin' WHERE boss = 1")
    office.set(session_reset=reset)
    office.now = at(begun) - 2_000  # two steps of the scene
    office.asked()
    assert office.execute("SELECT begun_at FROM provider_session") == [{"begun_at": at(begun)}]
    office.send(BOSS_ID, NEX_ADDRESS)
    office.now = at(now) - 1_000
    return office.begin().session_why_new


def test_a_session_that_was_not_used_for_long_is_not_resumed(office: Office) -> None:
    office.set(session_idle=3600)
    first = office.asked()
    office.now += HOUR - 2_000  # the next turn begins exactly an hour after the end of this one
    assert office.asked() == first
    turn = office.waits()
    office.now += 3 * HOUR  # a long turn is no pause
    office.ends(turn)
    assert office.asked() == first
    office.now += HOUR
    assert office.waits().session_why_new == "idle"


def test_a_session_is_full_by_its_last_model_call(office: Office) -> None:
    office.set(session_context=1000)
    first = office.asked()

    def uses(context: int | None) -> str | None:
        """Take a turn; the sum of its tokens is not what counts."""
        turn = office.waits()
        office.notes(turn)
        usage = Usage(90_000, 10, None, context)
        office.write(lambda tx: run_settlement.note_usage(tx, turn, usage, has_answer=True))
        office.ends(turn)
        return turn.session

    assert [uses(1000), uses(1001)] == [first, first]
    second = uses(900)
    assert second != first
    assert [uses(None), uses(1001)] == [second, second]
    assert office.waits().session_why_new == "full"


def test_a_turn_that_was_interrupted_goes_on_in_its_session_whatever_the_policy_says(office: Office) -> None:
    office.set(session_idle=60)
    first = office.asked()
    turn = office.waits()
    office.crash()
    office.now += HOUR
    again = office.begin()
    assert (again.session, again.session_why_new) == (first, None)
    office.ends(again)
    office.now += HOUR
    assert office.asked() != first  # the next one is not of that turn
    assert turn.session == first


def test_a_turn_that_was_interrupted_does_not_bring_a_refreshed_session_back(office: Office) -> None:
    first = office.asked()
    office.waits()
    office.crash()
    office.refresh()
    assert office.begin().session != first


def test_a_clock_that_was_set_back_ends_nothing_and_the_next_reset_counts(office: Office) -> None:
    office.set(session_reset="04:00", session_idle=3600)
    office.now = at("2031-01-10T12:00:00Z")  # a year too late
    first = office.asked()
    office.now = at("2030-01-10T12:00:00Z")
    assert office.asked() == first
    office.now += HOUR // 2
    assert office.asked() == first
    office.set(session_idle=None)
    office.now = at("2030-01-11T12:00:00Z")
    assert office.waits().session_why_new == "reset"


@pytest.mark.parametrize("step", [-5 * HOUR, 5 * HOUR])
def test_a_clock_that_is_set_makes_no_session_idle(office: Office, step: int) -> None:
    office.set(session_idle=3600)
    first = office.asked()
    office.write(lambda tx: clock_steps.move_waits(tx, "boot", 0, step, office.now))
    office.now += step + HOUR - 10_000
    assert office.asked() == first
    office.now += HOUR
    assert office.asked() != first


def test_an_id_that_no_turn_has_confirmed_is_never_too_old(office: Office) -> None:
    office.set(session_idle=60, session_reset="04:00")
    turn = office.waits()
    office.fail(turn)  # before the provider began it
    office.now += 48 * HOUR
    again = office.begin()
    assert (again.session, again.session_is_new, again.session_why_new) == (turn.session, True, None)


def test_how_full_the_one_before_was_does_not_count_for_a_new_one(office: Office) -> None:
    office.kinds = THEIRS
    office.set(session_context=1000)
    for session, context in (("one", 2000), ("two", None)):
        turn = office.waits()
        assert turn.session is None
        office.notes(turn, session)
        usage = Usage(context=context)
        office.write(
            lambda tx, turn=turn, usage=usage: run_settlement.note_usage(tx, turn, usage, has_answer=True)
        )
        office.ends(turn)
    assert office.waits().session == "two"
