"""The daemon is killed while an open session has mail: the session goes on, and there is one answer."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hiboss.agents.attached.handing_over import HandingOver
from hiboss.agents.attached.hook_reports import HookReports
from hiboss.agents.runner import Runner
from hiboss.agents.turn_starts import TurnStart
from hiboss.core.crashpoint import (
    AFTER_COMMIT,
    ATTACHED_SEEN,
    ATTACHED_SUBMITTED,
    RUN_ANSWERED,
    RUN_BEGUN,
    RUN_SETTLED,
)
from hiboss.core.errors import HibossError
from hiboss.routing.router import Router
from hiboss.testing.running_daemon import Answered, RunningDaemon
from tests.support.attached_sessions import Room, Session, asked, receipt, taken
from tests.support.crash_groups import Submits, groups_of
from tests.support.daemons import set_up
from tests.support.parties import Party
from tests.support.python_agents import Boss, texts
from tests.support.waits import wait_until

pytestmark = pytest.mark.slow

POINTS = [ATTACHED_SUBMITTED, ATTACHED_SEEN, RUN_BEGUN, RUN_ANSWERED, RUN_SETTLED]
# What is written from the message to its answer. The start of a turn is also written when there is no mail.
WRITES: list[Submits] = [
    Router.plan,
    TurnStart.begin,
    HandingOver._tell_once,
    HookReports.prompted,
    Runner._write_outcome,
]
COMMITS = [pytest.param(AFTER_COMMIT, of, id=of.__qualname__) for of in WRITES]
QUESTION, ANSWER = "how is the build?", "All is green."
PERSON = "for the person at the terminal"


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[RunningDaemon]:
    """One that is not started yet. Its store is checked at the end, and each question has one answer."""
    made = RunningDaemon(set_up(tmp_path))
    try:
        yield made
        assert texts(Boss(made).heard(Party(made, "agent:nex", ""))) == [ANSWER]
        made.check()
    finally:
        made.kill()


@pytest.fixture
def session(daemon: RunningDaemon, opens: Room) -> Session:
    daemon.start()
    return opens("nex")


def works(session: Session, given: str) -> str:
    """What the model says at the end of a turn: an answer only if it was given the question."""
    return ANSWER if QUESTION in given or "is not answered yet" in given else "I see no mail."


def goes_on(session: Session, given: str) -> None:
    """End a turn, and those that the hook makes of it."""
    block = session.hooked_stop(works(session, given))
    while block:
        block = session.hooked_stop(works(session, block), active=True)


def turn_of_a_person(session: Session) -> None:
    session.hooked_prompt("a word of the person")
    block = session.hooked_stop(PERSON)
    while block:
        block = session.hooked_stop(works(session, block), active=True)


def is_dead(daemon: RunningDaemon) -> bool:
    return daemon.process is None or daemon.process.poll() is not None


@pytest.mark.parametrize(("point", "of"), [*[(point, None) for point in POINTS], *COMMITS])
def test_a_killed_daemon_costs_no_mail_and_no_second_answer(
    daemon: RunningDaemon, ada: Boss, opens: Room, tmp_path: Path, point: str, of: Submits | None
) -> None:
    armed = tmp_path / "armed"
    daemon.start(HIBOSS_CRASH_AT=f"{point}@{armed}", **(groups_of(of) if of else {}))
    session = opens("nex")
    waiter = session.arm()
    armed.touch()
    try:
        asked(ada, session, QUESTION)
    except (Answered, HibossError):
        pass  # it died before it could say that it has it
    nudge = waiter.answer().get("result", {}).get("nudge")
    if nudge:
        goes_on(session, session.hooked_prompt(nudge))
    wait_until(lambda: is_dead(daemon))
    daemon.kill()
    daemon.start()
    stored = [one["id"] for one in ada.list(box="outbox") if one["text"] == QUESTION]
    [envelope] = stored or [asked(ada, session, QUESTION)]  # it was refused: she asks again
    turn_of_a_person(session)
    assert receipt(ada, envelope) == "done"
    assert session.listed()["state"] == "idle"


def test_what_a_session_says_while_no_daemon_runs_is_sent_by_the_next_one(
    daemon: RunningDaemon, ada: Boss, session: Session
) -> None:
    envelope = taken(ada, session, QUESTION)
    daemon.kill()
    assert session.hooked_stop(ANSWER) == ""
    session.hooked_prompt("a word of the person")
    session.hooked_stop(PERSON)
    daemon.start()
    wait_until(lambda: receipt(ada, envelope) == "done")
    # What the hooks have left is taken one by one: it is away when all of it is.
    wait_until(lambda: not list(Path(daemon.home.path, "sessions").glob("*.late*")))
    assert session.listed()["state"] == "idle"


def test_a_person_who_writes_while_no_daemon_runs_does_not_answer_the_mail(
    daemon: RunningDaemon, ada: Boss, session: Session
) -> None:
    envelope = asked(ada, session, QUESTION)
    session.woken()
    daemon.kill()
    session.hooked_prompt("a word of the person")
    session.hooked_stop(PERSON)
    daemon.start()
    turn_of_a_person(session)
    assert receipt(ada, envelope) == "done"


def test_a_turn_goes_on_over_a_daemon_that_is_stopped_and_started(
    daemon: RunningDaemon, ada: Boss, session: Session
) -> None:
    envelope = taken(ada, session, QUESTION)
    assert daemon.stop() == 0
    daemon.start()
    assert receipt(ada, envelope) == "seen" and session.listed()["state"] == "busy"
    assert session.hooked_stop(ANSWER) == "" and len(session.runs()) == 1


@pytest.mark.parametrize("has_answered", [False, True])
def test_a_session_that_was_killed_with_the_daemon_has_answered_or_gives_its_mail_back(
    daemon: RunningDaemon, ada: Boss, session: Session, opens: Room, has_answered: bool
) -> None:
    envelope = taken(ada, session, QUESTION)
    daemon.kill()
    if has_answered:
        session.hooked_stop(ANSWER)
    session.kill()
    daemon.start()
    wait_until(lambda: receipt(ada, envelope) == ("done" if has_answered else "returned"))
    if not has_answered:
        assert ada.call("attached.list")["sessions"] == []
        again = opens("nex")
        again.takes()
        again.stop(ANSWER)


def test_an_idle_session_is_told_again_after_a_daemon_died_before_it_told(
    daemon: RunningDaemon, ada: Boss, opens: Room
) -> None:
    daemon.start(HIBOSS_CRASH_AT=ATTACHED_SUBMITTED)
    session = opens("nex")
    waiter = session.arm()
    asked(ada, session, QUESTION)
    assert waiter.answer() == {}
    daemon.wait_for_death()
    daemon.start()
    session.waiter = None
    assert QUESTION in session.takes()
    session.stop(ANSWER)


def test_a_session_that_was_to_get_mail_when_the_daemon_died_is_idle(
    daemon: RunningDaemon, ada: Boss, opens: Room
) -> None:
    daemon.start(HIBOSS_CRASH_AT=ATTACHED_SUBMITTED)
    session = opens("nex")
    session.hooked_prompt("a word of the person")
    asked(ada, session, QUESTION)
    assert session.hooked_stop(PERSON) == ""  # the hook has no answer, so the session stops
    daemon.wait_for_death()
    daemon.start()
    wait_until(lambda: session.listed()["state"] == "idle")
    turn_of_a_person(session)


@pytest.mark.parametrize("ends", ["kill", "stop"])
def test_what_a_session_got_by_its_stop_hook_is_not_given_again_after_a_restart(
    daemon: RunningDaemon, ada: Boss, session: Session, ends: str
) -> None:
    session.prompt("something of the person")
    envelope = asked(ada, session, QUESTION)
    assert f"> {QUESTION}" in session.stop(PERSON)
    getattr(daemon, ends)()
    daemon.start()
    assert session.hooked_stop(ANSWER, active=True) == ""
    assert receipt(ada, envelope) == "done"
