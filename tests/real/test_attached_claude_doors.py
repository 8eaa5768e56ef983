"""The real Claude Code when something is missing: no daemon, a daemon that hangs, no waiter, no model."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from hiboss.testing.model_server import Fail, ModelServer, Say
from tests.real.attached_desk import Desk, last_input, opened, told_once
from tests.real.programs import Programs
from tests.support.cli import HIBOSS
from tests.support.sweeps import sweep
from tests.support.telegram_bots import TelegramDaemon

QUESTION, ANSWER = "How is the build?", "All is green."
EVENTS = ("SessionStart", "UserPromptSubmit", "PostToolUse", "Stop", "StopFailure", "SessionEnd")
HELD = "Held message from another session"


def cycle(desk: Desk, number: int) -> None:
    """Let a person have a turn with a tool."""
    desk.server.script(desk.tool(f"echo tool {number}"), Say(f"turn {number} is over"))
    desk.claude.enter(f"do {number}")
    desk.claude.wait_for(f"turn {number} is over")
    desk.claude.wait_status("idle")


def shows_nothing(desk: Desk) -> None:
    """Check that the screen has nothing about hooks, once Claude Code does not say itself that it waits for them."""
    desk.claude.until(lambda: "to interrupt" not in desk.claude.screen(), "end of its turn")
    screen = desk.claude.screen().lower()
    for word in ("hook", "error", "hiboss", "daemon", "timed out"):
        assert word not in screen.replace(str(desk.directory).lower(), ""), desk.claude.screen()


# --- no daemon -----------------------------------------------------------------------


def test_without_a_daemon_the_screen_shows_nothing_and_the_next_one_finds_the_session(desk: Desk) -> None:
    desk.office.daemon.stop()
    for number in range(2):
        cycle(desk, number)
    shows_nothing(desk)
    desk.office.start()
    desk.wait_idle()
    desk.says(QUESTION, ANSWER)
    desk.check_done(desk.asks(QUESTION))
    assert desk.count("turn") == 0


def test_a_session_that_is_opened_without_a_daemon_is_attached_by_its_first_prompt_after_it(
    office: TelegramDaemon, tmp_path: Path, programs: Programs, server: ModelServer
) -> None:
    desk = Desk(office, tmp_path, programs, server)
    office.daemon.stop()
    with desk.claude:
        cycle(desk, 1)
        shows_nothing(desk)
        office.start()
        cycle(desk, 2)
        desk.wait_idle()
        desk.says(QUESTION, ANSWER)
        desk.check_done(desk.asks(QUESTION))


def test_a_daemon_that_hangs_costs_time_and_nothing_else(desk: Desk) -> None:
    os.kill(desk.office.daemon.pid, signal.SIGSTOP)
    try:
        desk.claude.enter("hello")
        desk.claude.wait_for("You said: hello")
        desk.claude.wait_status("idle")
        shows_nothing(desk)
    finally:
        os.kill(desk.office.daemon.pid, signal.SIGCONT)
    desk.wait_idle()
    desk.says(QUESTION, ANSWER)
    desk.check_done(desk.asks(QUESTION))
    assert desk.count("hello") == 0


def test_a_hook_without_a_daemon_says_nothing(office: TelegramDaemon, tmp_path: Path) -> None:
    office.daemon.stop()
    nowhere = tmp_path / "nowhere"
    with sweep() as row:
        for home, event in itertools.product((office.daemon.home.path, str(nowhere)), EVENTS):
            with row((home, event)):
                env = {"HIBOSS_HOME": home, "CLAUDE_CODE_ENTRYPOINT": "cli", "CLAUDE_PID": str(os.getpid())}
                given = {"hook_event_name": event, "session_id": "s-1", "cwd": "/tmp", "prompt": "x"}
                done = subprocess.run(
                    [HIBOSS, "hook", "claude"], input=json.dumps(given).encode(), env=env, capture_output=True
                )
                assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
                assert not nowhere.exists()
    office.start()


# --- no waiter: the socket of the session --------------------------------------------


def end_waiter(desk: Desk) -> None:
    """Kill the waiter of an idle session: nothing arms another one before the next turn."""
    for one in desk.waiters():
        one.kill()
    desk.wait_idle(waiter=False)


def test_without_a_waiter_mail_comes_by_the_socket_of_the_session(desk: Desk) -> None:
    end_waiter(desk)
    desk.says(QUESTION, ANSWER)
    envelope = desk.asks(QUESTION)
    desk.wait_answer(ANSWER)
    desk.check_done(envelope)
    desk.wait_idle()
    assert desk.count(ANSWER) == 1


def decide(desk: Desk, *, deliver: bool) -> None:
    """Answer the dialog about a message that is held. It takes no key in its first moments."""
    while deliver and "❯ Deliver" not in desk.claude.screen():
        desk.claude.press("down")
    while HELD in desk.claude.screen():
        desk.claude.press("enter")


# The harness says that it holds a message back, but on a busy machine it needs longer for that.
@pytest.mark.parametrize(
    "office", [{"more": {"agents.attached.claude_doors.HELD_SECONDS": 60.0}}], indirect=True
)
@pytest.mark.parametrize("then", ["delivered", "denied"])
def test_what_the_harness_holds_back_is_held_until_a_person_decides(
    office: TelegramDaemon, tmp_path: Path, programs: Programs, server: ModelServer, then: str
) -> None:
    made = Desk(office, tmp_path, programs, server, mode="bypassPermissions")
    with opened(made) as desk:
        end_waiter(desk)
        desk.says(QUESTION, ANSWER)
        envelope = desk.asks(QUESTION)
        desk.wait_receipt(envelope, "held")
        desk.claude.wait_for(HELD)
        assert not server.turns
        assert QUESTION not in desk.claude.screen()  # the door carries ids, and no words of anybody
        desk.wait_answer("does not take its mail")  # it asks in its terminal: the boss is told, not it again
        assert desk.claude.screen().count(HELD) == 1
        decide(desk, deliver=then == "delivered")
        if then == "denied":
            desk.claude.enter("what is it?")  # its hook arms a waiter: the second telling comes by that
        desk.wait_answer(ANSWER)
        desk.check_done(envelope)
        assert desk.count(ANSWER) == 1


@pytest.mark.parametrize("mode", ["bypassPermissions", "plan", "acceptEdits"])
def test_with_a_waiter_nothing_is_held_back_in_any_mode(
    office: TelegramDaemon, tmp_path: Path, programs: Programs, server: ModelServer, mode: str
) -> None:
    with opened(Desk(office, tmp_path, programs, server, mode=mode)) as desk:
        desk.says(QUESTION, ANSWER)
        desk.check_done(desk.asks(QUESTION))
        desk.wait_answer(ANSWER)
        assert desk.count(ANSWER) == 1


# --- no model ------------------------------------------------------------------------


def test_mail_that_the_model_failed_at_is_told_again_and_answered_once(desk: Desk) -> None:
    desk.says(QUESTION, ANSWER)
    desk.server.unplug()
    envelope = desk.asks(QUESTION)
    desk.claude.wait_for("API Error")
    assert desk.receipt(envelope)["state"] == "seen"
    desk.server.plug()
    desk.wait_answer(ANSWER)
    desk.check_done(envelope)
    assert desk.count(ANSWER) == 1
    assert desk.count("Error") == 0
    assert len(desk.runs()) == 1


@told_once  # the turn of the person comes first
@pytest.mark.parametrize("status", [400, 500])
def test_mail_that_the_model_failed_at_is_answered_after_the_next_turn_of_the_person(
    desk: Desk, status: int
) -> None:
    desk.answers(QUESTION, Fail(status, message="no model today"))
    envelope = desk.asks(QUESTION)
    desk.claude.wait_for("no model today" if status == 400 else "API Error")
    desk.server.when(lambda one: "not answered yet" in last_input(one), Say(ANSWER))
    desk.server.script(Say("I am here again."))
    desk.claude.enter("are you there?")
    desk.wait_answer(ANSWER)
    desk.claude.wait_for("I am here again.")
    desk.check_done(envelope)
    assert desk.count(ANSWER) == 1
    assert desk.count("no model") == desk.count("again") == 0
    assert len(desk.runs()) == 1
