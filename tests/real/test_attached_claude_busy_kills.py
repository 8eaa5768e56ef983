"""kill -9 while mail waits for the real Claude Code, which works on something else: all is answered once."""

from __future__ import annotations

from pathlib import Path

import pytest

from hiboss.core.crashpoint import AFTER_COMMIT, ATTACHED_SUBMITTED, RUN_ANSWERED, RUN_BEGUN, RUN_SETTLED
from hiboss.testing.model_server import Request, Say
from tests.real.attached_desk import Desk, last_input, when_busy
from tests.support.waits import wait_until

QUESTION, ANSWER, OWN = "How is the build?", "All is green.", "The herons are counted."


pytestmark = when_busy()


def wants_answer(request: Request) -> bool:
    """Tell whether the final text of this request is Ada's answer."""
    given = last_input(request)
    if "are you well" in given:
        return False
    return "Before you stop" in given or (
        "Your final text of this turn" in given and "tool ended" not in given
    )


def busy(desk: Desk, own: Say | None = None) -> str:
    """Let the session be in a tool of its person, while mail waits; return the envelope."""
    desk.server.when(wants_answer, *[Say(ANSWER)] * 5)
    desk.server.script(desk.long_tool(), own or Say(OWN))
    desk.claude.enter("count the herons")
    desk.wait_tool()
    return desk.asks(QUESTION)


def answered_once(desk: Desk, envelope: str) -> None:
    desk.answered_once(envelope, ANSWER)
    assert desk.count(OWN) == 0


@pytest.mark.parametrize(
    ("point", "passes"),
    [
        (RUN_BEGUN, 1),
        (ATTACHED_SUBMITTED, 1),
        (RUN_ANSWERED, 1),
        (RUN_SETTLED, 1),
        *((AFTER_COMMIT, passes) for passes in (1, 2, 3, 4, 6)),
    ],
)
def test_a_daemon_that_dies_while_the_session_is_busy_answers_once(
    desk: Desk, tmp_path: Path, point: str, passes: int
) -> None:
    armed = tmp_path / "armed"
    desk.office.daemon.stop()
    desk.office.start(HIBOSS_CRASH_AT=f"{point}:{passes}@{armed}")
    desk.wait_idle()
    envelope = busy(desk)
    armed.touch()
    desk.finish_tool()
    assert desk.office.daemon.wait_for_death() == -9
    desk.office.start()
    answered_once(desk, envelope)


@pytest.mark.parametrize("then", ["before", "after"])
def test_a_busy_session_that_is_killed_leaves_its_mail_to_the_next_one(desk: Desk, then: str) -> None:
    envelope = busy(desk, Say(OWN, hold=True))
    if then == "after":  # the tool; with `between` it has the mail then
        desk.finish_tool()
        desk.server.wait_held()
    desk.claude.kill()
    wait_until(lambda: not desk.attached(), 30)
    with desk.session():
        answered_once(desk, envelope)


def test_the_answers_of_a_busy_session_wait_for_a_daemon_that_is_away(desk: Desk) -> None:
    envelope = busy(desk)
    desk.office.daemon.kill()
    desk.finish_tool()
    desk.claude.wait_for(OWN)
    desk.claude.wait_status("idle")
    desk.office.start()
    answered_once(desk, envelope)
