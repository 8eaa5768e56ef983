"""kill -9 of the real Claude Code, of the daemon, and of both, while mail is on its way: all is answered once."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from hiboss.core.crashpoint import (
    AFTER_COMMIT,
    ATTACHED_SEEN,
    ATTACHED_SUBMITTED,
    RUN_ANSWERED,
    RUN_BEGUN,
    RUN_SETTLED,
)
from hiboss.testing.model_server import Say
from tests.real.attached_desk import Desk
from tests.support.waits import wait_until

QUESTION, ANSWER = "How is the build?", "All is green."
MOMENTS = ["nudged", "thinking", "in a tool"]
moments = pytest.mark.parametrize("moment", MOMENTS)


def begin(desk: Desk, moment: str) -> str:
    """Ask, and return the envelope when the session has come so far with it."""
    if moment == "thinking":
        desk.answers(QUESTION, Say(ANSWER, hold=True))
    if moment == "in a tool":
        desk.answers(QUESTION, desk.long_tool())
        desk.server.when(lambda one: "tool ended" in one.everything, Say(ANSWER))
    desk.says(QUESTION, ANSWER)
    if moment == "nudged":
        os.kill(desk.claude.pid, signal.SIGSTOP)  # the nudge stays on its way
    envelope = desk.asks(QUESTION)
    if moment == "nudged":
        desk.wait_receipt(envelope, "submitted")
    elif moment == "thinking":
        desk.server.wait_held()
    else:
        desk.wait_tool()
    return envelope


def talked_with(desk: Desk) -> str:
    """Let a person have a turn: without one there is nothing to resume. Return the session."""
    desk.claude.enter("hello")
    desk.claude.wait_for("You said: hello")
    desk.wait_idle()
    wait_until(lambda: "You said: hello" in str(desk.claude.transcript()), 30)  # it is written a bit later
    return desk.claude.session_id


def go_on(desk: Desk, moment: str) -> None:
    """Let the session go on with the mail."""
    if moment == "nudged":
        os.kill(desk.claude.pid, signal.SIGCONT)
    elif moment == "thinking":
        desk.server.go_on()
    else:
        desk.finish_tool()


@moments
@pytest.mark.parametrize("again", ["resumed", "new"])
def test_a_killed_session_leaves_its_mail_to_the_next_one(desk: Desk, moment: str, again: str) -> None:
    session = talked_with(desk)
    envelope = begin(desk, moment)
    desk.claude.kill()
    wait_until(lambda: not desk.attached(), 30)
    assert desk.count(ANSWER) == 0
    with desk.session(*(["--resume", session] if again == "resumed" else [])):
        desk.answered_once(envelope, ANSWER)


@moments
def test_a_killed_daemon_finds_the_session_still_at_work(desk: Desk, moment: str) -> None:
    envelope = begin(desk, moment)
    desk.office.daemon.kill()
    desk.office.start()
    wait_until(lambda: [one["state"] for one in desk.attached()], 30)
    go_on(desk, moment)
    desk.answered_once(envelope, ANSWER)


@moments
def test_what_a_session_ends_while_the_daemon_is_away_is_answered_by_the_next_daemon(
    desk: Desk, moment: str
) -> None:
    envelope = begin(desk, moment)
    desk.office.daemon.kill()
    go_on(desk, moment)
    wait_until(lambda: '"stop"' in late_reports(desk), 30)
    desk.office.start()
    desk.answered_once(envelope, ANSWER)
    assert desk.count("You said") == 0  # what it said to a nudge whose text it did not get


def late_reports(desk: Desk) -> str:
    place = Path(desk.office.daemon.home.path, "sessions")
    return "".join(one.read_text() for one in place.glob("*.late"))


@pytest.mark.parametrize("end", ["kill", "close"])
def test_what_a_session_ended_before_it_went_is_answered_without_it(desk: Desk, end: str) -> None:
    envelope = begin(desk, "thinking")
    desk.office.daemon.kill()
    go_on(desk, "thinking")
    wait_until(lambda: '"stop"' in late_reports(desk), 30)
    desk.claude.wait_status("idle")
    desk.claude.kill() if end == "kill" else desk.claude.close()
    desk.office.start()
    desk.wait_answer(ANSWER)
    desk.wait_idle(0)
    desk.check_done(envelope)
    assert desk.count(ANSWER) == 1


@moments
def test_a_daemon_that_is_stopped_and_started_gets_the_answer(desk: Desk, moment: str) -> None:
    envelope = begin(desk, moment)
    desk.office.daemon.stop()
    desk.office.start()
    go_on(desk, moment)
    desk.answered_once(envelope, ANSWER)


@moments
@pytest.mark.parametrize("first", ["daemon", "session"])
def test_after_a_kill_of_both_the_next_session_answers(desk: Desk, moment: str, first: str) -> None:
    envelope = begin(desk, moment)
    if first == "daemon":
        desk.office.daemon.kill()
        desk.claude.kill()
    else:
        desk.claude.kill()
        desk.office.daemon.kill()
    desk.office.start()
    with desk.session():
        desk.answered_once(envelope, ANSWER)


@moments
def test_a_session_that_is_killed_while_no_daemon_runs_and_resumed_before_one_does(
    desk: Desk, moment: str
) -> None:
    session = talked_with(desk)
    envelope = begin(desk, moment)
    desk.office.daemon.kill()
    desk.claude.kill()
    with desk.session("--resume", session) as again:
        wait_until(lambda: desk.last_hook() == ("SessionStart", "failed"), 30)  # its screen is there before
        desk.office.start()
        again.enter("go on")  # the start hook found no daemon: the next prompt attaches it
        desk.answered_once(envelope, ANSWER)


POINTS = [
    *((point, 1) for point in (ATTACHED_SUBMITTED, ATTACHED_SEEN, RUN_BEGUN, RUN_ANSWERED, RUN_SETTLED)),
    *((AFTER_COMMIT, passes) for passes in (1, 2, 3, 4, 5)),
]


@pytest.mark.parametrize(("point", "passes"), POINTS)
def test_a_daemon_that_dies_on_the_way_answers_once(
    desk: Desk, tmp_path: Path, point: str, passes: int
) -> None:
    armed = tmp_path / "armed"
    desk.office.daemon.stop()
    desk.office.start(HIBOSS_CRASH_AT=f"{point}:{passes}@{armed}")
    desk.wait_idle()
    desk.says(QUESTION, ANSWER)
    armed.touch()
    desk.ada.says(desk.chat, QUESTION)
    assert desk.office.daemon.wait_for_death() == -9
    desk.office.start()
    row = desk.office.wait_for_stored(desk.chat, QUESTION)
    [envelope] = desk.office.rows("SELECT id FROM envelope WHERE message = ?", row["id"])
    desk.answered_once(f"e{envelope['id']}", ANSWER)
