"""What becomes of mail that an open session has: when it is cancelled, paused, detached, closed, changed, moved."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hiboss.testing.running_daemon import Answered, RunningDaemon
from tests.support.attached_sessions import Room, Session, answered, asked, receipt, room, taken
from tests.support.daemons import daemon_fixture, daemon_with
from tests.support.parties import agent
from tests.support.python_agents import Boss, Team, texts
from tests.support.raising import raised
from tests.support.waits import wait_until

ENDED = ("envelope.ack", "envelope.trash", "envelope.archive")


def statuses(session: Session) -> list[tuple[str, str | None]]:
    """Return how the runs of its agent ended, the oldest first."""
    return [(one["status"], one["error_kind"]) for one in session.runs()]


# --- the boss ------------------------------------------------------------------------------


def test_a_turn_that_is_cancelled_is_not_answered(ada: Boss, session: Session) -> None:
    envelope = taken(ada, session)
    ada.call("run.cancel", id=session.runs()[0]["id"])
    wait_until(lambda: receipt(ada, envelope) == "cancelled")
    assert session.stop("All is green.") == "" and ada.heard(session) == []
    asked(ada, session, "another question")
    assert "> another question" in session.takes()
    session.stop("another answer")
    assert texts(ada.heard(session)) == ["another answer"]


def test_a_paused_agent_finishes_what_its_session_has_and_gets_no_more(ada: Boss, session: Session) -> None:
    envelope = taken(ada, session)
    ada.call("agent.pause", name=session.name)
    later = asked(ada, session, "later")
    assert session.stop("All is green.") == "" and receipt(ada, envelope) == "done"
    session.arm()
    assert receipt(ada, later) == "arrived"
    ada.call("agent.resume", name=session.name)
    assert "> later" in session.takes()


def test_the_breaker_takes_mail_back_and_it_is_given_again_after_it(ada: Boss, session: Session) -> None:
    envelope = taken(ada, session)
    ada.call("breaker.pull")
    wait_until(lambda: receipt(ada, envelope) == "returned")
    assert session.stop("too late") == "" and ada.heard(session) == []
    ada.call("breaker.release")
    assert "> how is the build?" in session.takes()
    assert answered(ada, session) == ["All is green."]
    assert statuses(session) == [("interrupted", "stopped"), ("completed", None)]


def test_a_detached_session_gives_its_mail_back_and_its_token_ends(ada: Boss, session: Session) -> None:
    envelope = taken(ada, session)
    assert ada.call("agent.detach", name=session.name)["sessions"] == 1
    assert receipt(ada, envelope) == "returned" and ada.get(envelope)["status"] == "pending"
    assert session.refusal("attached.stop", event="late", text="too late") == "bad_token"
    assert session.stored_token == ""
    assert ada.call("agent.detach", name=session.name)["sessions"] == 0


def test_a_deleted_agent_ends_its_sessions(ada: Boss, session: Session) -> None:
    envelope = taken(ada, session)
    ada.call("agent.delete", name=session.name)
    assert receipt(ada, envelope) == "failed"
    assert session.refusal("attached.stop", event="late", text="too late") == "bad_token"
    assert raised(Answered, session.start).stable_code == "unknown_agent"
    assert session.session not in [one["session"] for one in ada.call("attached.list")["sessions"]]


def test_revoked_tokens_end_a_session_and_it_gets_no_new_one(ada: Boss, session: Session) -> None:
    envelope = taken(ada, session)
    ada.call("agent.token.revoke", name=session.name)
    wait_until(lambda: receipt(ada, envelope) == "returned")
    assert session.refusal("attached.stop", event="late", text="too late") == "bad_token"
    caught = raised(Answered, session.start)
    assert caught.stable_code == "cannot_attach" and ada.heard(session) == []


def test_a_session_gets_another_token_after_they_were_rotated(ada: Boss, session: Session) -> None:
    taken(ada, session)
    ada.call("agent.token.rotate", name=session.name)
    assert session.refusal("attached.stop", event="first", text="All is green.") == "bad_token"
    session.start()  # as its hook does then
    assert answered(ada, session) == ["All is green."]


def test_critical_mail_does_not_set_the_turn_of_a_session_aside(ada: Boss, session: Session) -> None:
    taken(ada, session)
    asked(ada, session, "now!", priority="critical")
    assert "> now!" in session.stop("All is green.")
    session.stop("at once", active=True)
    assert texts(ada.heard(session)) == ["All is green.", "at once"]
    assert statuses(session) == [("completed", None)] * 2


# --- the mail ------------------------------------------------------------------------------


def test_a_message_that_is_changed_is_given_again(ada: Boss, session: Session) -> None:
    ada.call("message.edit", id=ada.get(taken(ada, session))["message"], text="how is the other build?")
    assert "how is the other build?" in session.stop("All is green.")
    session.stop("That too.", active=True)
    assert texts(ada.heard(session)) == ["All is green.", "That too."]


def test_a_deleted_message_that_a_session_has_is_still_answered(ada: Boss, session: Session) -> None:
    envelope = taken(ada, session)
    assert ada.call("message.delete", id=ada.get(envelope)["message"])["in_hand"] == 1
    assert session.stop("All is green.") == ""
    assert receipt(ada, envelope) == "done"


@pytest.mark.parametrize("operation", ENDED)
def test_mail_that_is_put_away_during_the_turn_is_done_once(
    ada: Boss, session: Session, operation: str
) -> None:
    envelope = taken(ada, session)
    assert session.call(operation, ids=[envelope])["changed"] == 1
    assert receipt(ada, envelope) == ("acknowledged" if operation == "envelope.ack" else "done")
    assert session.stop("All is green.") == "" and texts(ada.heard(session)) == ["All is green."]
    assert statuses(session) == [("completed", None)]


def test_mail_that_is_released_during_the_turn_is_worked_on_once(ada: Boss, session: Session) -> None:
    envelope = taken(ada, session)
    for who in (session, ada):
        try:
            who.call(
                "envelope.release", ids=[envelope], **({"address": session.address} if who is ada else {})
            )
        except Answered as error:
            assert error.stable_code == "too_late"
    assert session.stop("All is green.") == ""
    assert statuses(session) == [("completed", None)] and receipt(ada, envelope) == "done"
    assert texts(ada.heard(session)) == ["All is green."]


def test_what_a_session_has_is_not_routed_and_what_waits_is(
    daemon: RunningDaemon, ada: Boss, session: Session
) -> None:
    kai, zoe = agent(daemon), agent(daemon)
    envelope = taken(ada, session)
    waits = zoe.tell(session, text="who takes this?")

    def route(number: str) -> Any:
        return ada.call("control.send", event="stream.route", to=kai.address, envelope=number)["outcome"]

    assert (route(envelope), route(waits)) == ("too-late", "applied")
    assert session.stop("All is green.") == ""
    assert kai.ids() == [waits] and texts(ada.heard(session)) == ["All is green."]


# --- the end of a session ------------------------------------------------------------------


def close_it(session: Session) -> None:
    session.end()


def kill_it(session: Session) -> None:
    session.kill()


@pytest.mark.parametrize("ends", [close_it, kill_it])
@pytest.mark.parametrize("seen", [True, False])
def test_a_run_takes_over_when_the_session_has_ended(
    ada: Boss, team: Team, opens: Room, ends: Any, seen: bool
) -> None:
    worker = team.hire('print("answered by a run")', mode="run")
    session = opens(worker.name)
    envelope = asked(ada, session)
    session.takes() if seen else session.woken()
    assert worker.turns() == []
    ends(session)
    wait_until(lambda: ada.get(envelope)["status"] == "done")
    assert texts(ada.heard(session)) == ["answered by a run"] and len(worker.turns()) == 1
    assert [one[0] for one in statuses(session)] == ["interrupted", "completed"]
    assert receipt(ada, envelope) == "done"


def test_mail_in_the_box_waits_for_the_next_session(tmp_path: Path) -> None:
    with daemon_with(tmp_path, attached_fallback="box") as daemon, room(daemon) as opens:
        ada, team = Boss(daemon), Team(daemon, tmp_path)
        worker = team.hire('print("answered by a run")', mode="run")
        first = opens(worker.name)
        envelope = asked(ada, first)
        first.takes()
        first.end()
        assert receipt(ada, envelope) == "returned"
        second = opens(worker.name)
        assert "> how is the build?" in second.takes()
        second.stop("All is green.")
        assert texts(ada.heard(second)) == ["All is green."] and worker.turns() == []
        other = asked(ada, second, "for a run")
        second.takes()
        ada.call("agent.detach", name=worker.name)  # the boss agrees
        wait_until(lambda: ada.get(other)["status"] == "done")
        assert texts(ada.heard(second)) == ["All is green.", "answered by a run"]
        daemon.check()


# --- in between ----------------------------------------------------------------------------


between = daemon_fixture(attached_when_busy="between", hops=3)


def test_a_busy_session_gets_mail_after_the_tool_that_it_uses(between: RunningDaemon) -> None:
    ada = Boss(between)
    with room(between) as opens:
        session = opens()
        session.prompt("a word of the person")
        envelope = asked(ada, session)
        given = session.step()
        assert "> how is the build?" in given and f"hiboss reply {envelope}" in given
        assert session.step() == "" and receipt(ada, envelope) == "seen"
        assert envelope in session.stop("for the person")
        assert session.stop("All is green.", active=True) == ""
        assert texts(ada.heard(session)) == ["All is green."]


def test_sessions_that_write_to_each_other_without_end_are_stopped(between: RunningDaemon) -> None:
    ada = Boss(between)
    with room(between) as opens:
        here, there = opens(), opens()
        number = asked(ada, here, "begin")
        for _ in range(3):
            here.takes()
            number = here.tell(there, text="and you?")
            here.stop("NO_REPLY")
            here, there = there, here
        here.arm()
        wait_until(lambda: ada.told_of(here) or ada.told_of(there) or receipt(ada, number) != "arrived")
        assert receipt(ada, number) == "arrived"
