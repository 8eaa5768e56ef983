"""The life of an open session of the real Claude Code: Esc, /clear, resume, two of them, and its waiter."""

from __future__ import annotations

import time
from contextlib import ExitStack
from pathlib import Path

import psutil
import pytest

from hiboss.testing.model_server import ModelServer, Say
from tests.real.attached_desk import Desk
from tests.real.programs import Programs
from tests.support.telegram_bots import TelegramDaemon
from tests.support.waits import wait_until

QUESTION, ANSWER = "How is the build?", "All is green."
MOST_BYTES = 15 * 1024 * 1024
_SAID = """
SELECT m.text FROM message m JOIN address a ON a.id = m.sender WHERE a.kind = 'agent' AND a.name = ? ORDER BY m.id
"""


@pytest.fixture
def free(office: TelegramDaemon, tmp_path: Path, programs: Programs, server: ModelServer) -> Desk:
    """A desk whose hooks name no agent."""
    return Desk(office, tmp_path, programs, server, install=())


def send(desk: Desk, agent: str, text: str) -> str:
    return str(desk.office.boss.call("envelope.send", to=f"agent:{agent}", text=text)["ids"][0])


def said(desk: Desk, agent: str) -> list[str]:
    return [str(one["text"]) for one in desk.office.rows(_SAID, agent)]


# --- Esc and /clear ------------------------------------------------------------------


@pytest.mark.parametrize("moment", ["thinking", "in a tool"])
def test_mail_that_escape_broke_off_is_told_again_and_answered_once(desk: Desk, moment: str) -> None:
    desk.answers(QUESTION, Say("never said", hold=True) if moment == "thinking" else desk.long_tool())
    desk.says(QUESTION, ANSWER)
    envelope = desk.asks(QUESTION)
    desk.server.wait_held() if moment == "thinking" else desk.wait_tool()
    desk.claude.press("esc")
    desk.wait_answer(ANSWER)
    desk.check_done(envelope)
    assert desk.count(ANSWER) == 1
    assert desk.count("never") == 0
    assert len(desk.runs()) == 1


def test_mail_wakes_a_session_whose_turn_was_broken_off(desk: Desk, server: ModelServer) -> None:
    server.script(Say("never said", hold=True))
    desk.claude.enter("count the herons")
    server.wait_held()
    desk.claude.press("esc")
    desk.claude.wait_status("idle")
    desk.says(QUESTION, ANSWER)
    envelope = desk.asks(QUESTION)
    desk.wait_answer(ANSWER)
    desk.check_done(envelope)


def test_after_clear_it_is_the_same_agent_and_has_one_waiter(desk: Desk) -> None:
    first = desk.claude.session_id
    desk.says(QUESTION, ANSWER)
    envelopes = [desk.asks(QUESTION)]
    desk.wait_answer(ANSWER)
    desk.wait_idle()
    desk.claude.enter("/clear")
    desk.claude.until(lambda: desk.claude.record().get("sessionId") not in (None, first), "other session")
    wait_until(lambda: [one["session"] for one in desk.attached()] == [desk.claude.session_id], 30)
    desk.wait_idle()
    wait_until(lambda: len(desk.waiters()) == 1, 30)  # one that finds the lock taken ends at once
    desk.says("And now?", "Still so.")
    envelopes.append(desk.asks("And now?"))
    desk.wait_answer("Still so.")
    desk.check_done(*envelopes)
    desk.server.script(desk.tool("hiboss send boss 'two herons'"), Say("sent it"))
    desk.claude.enter("tell the boss")
    desk.wait_answer("two herons")


def test_mail_that_comes_while_clear_is_typed_is_not_lost(desk: Desk) -> None:
    desk.says(QUESTION, ANSWER)
    desk.claude.type("/clear")
    desk.claude.wait_for("/clear")
    envelope = desk.asks(QUESTION)
    desk.claude.press("enter")
    desk.wait_answer(ANSWER)
    desk.check_done(envelope)
    assert desk.count(ANSWER) == 1


def test_half_typed_words_stay_when_mail_comes(desk: Desk) -> None:
    desk.claude.type("tell me about the her")
    desk.claude.wait_for("about the her")
    desk.says(QUESTION, ANSWER)
    desk.asks(QUESTION)
    desk.wait_answer(ANSWER)
    desk.wait_idle()
    desk.claude.enter("ons")
    desk.claude.wait_for("You said: tell me about the herons")


# --- which agent it is ---------------------------------------------------------------


def test_a_session_is_named_after_its_directory_and_stays_it_when_it_is_opened_again(free: Desk) -> None:
    free.says(QUESTION, ANSWER)
    with free.claude as claude:
        free.wait_idle()
        session = claude.session_id
        send(free, "workspace", QUESTION)
        wait_until(lambda: said(free, "workspace") == [ANSWER], 60)
        free.wait_idle()
        claude.close()
    free.wait_idle(0)
    free.says("And now?", "Still so.")
    send(free, "workspace", "And now?")
    for number, words in enumerate((["--resume", session], []), 1):
        with free.session(*words) as again:
            wait_until(lambda n=number: len(said(free, "workspace")) == 1 + n, 60)
            free.wait_idle()
            assert [one["agent"] for one in free.attached()] == ["workspace"]
            send(free, "workspace", "And now?") if number == 1 else None
            again.close() if number == 2 else again.kill()
        free.wait_idle(0)
    free.office.daemon.check()


def test_two_sessions_in_one_directory_are_two_agents(free: Desk) -> None:
    free.says("Who is first?", "I am the first.")
    free.says("Who is second?", "I am the second.")
    with ExitStack() as stack:
        stack.enter_context(free.claude)
        free.wait_idle()
        other = stack.enter_context(free.session())
        free.wait_idle(2)
        assert {one["agent"] for one in free.attached()} == {"workspace", "workspace-2"}
        send(free, "workspace-2", "Who is second?")
        send(free, "workspace", "Who is first?")
        wait_until(lambda: said(free, "workspace") == ["I am the first."], 60)
        wait_until(lambda: said(free, "workspace-2") == ["I am the second."], 60)
        free.wait_idle(2)
        wait_until(lambda: len(free.waiters()) == len(free.waiters(other)) == 1, 30)
        free.claude.wait_for("I am the first.")
        other.wait_for("I am the second.")


def test_two_sessions_of_one_named_agent_work_on_each_letter_once(desk: Desk) -> None:
    desk.says(QUESTION, ANSWER)
    with desk.session():
        desk.wait_idle(2)
        envelope = desk.asks(QUESTION)
        desk.wait_answer(ANSWER)
        desk.wait_idle(2)
        desk.check_done(envelope)
        assert desk.count(ANSWER) == 1


# --- the waiter ----------------------------------------------------------------------


def test_after_a_restart_of_the_daemon_an_idle_session_is_woken(desk: Desk) -> None:
    desk.says(QUESTION, ANSWER)
    before = [one.pid for one in desk.waiters()]
    for end in (desk.office.daemon.stop, desk.office.daemon.kill):
        end()
        desk.office.start()
        desk.wait_idle()
    assert [one.pid for one in desk.waiters()] == before
    envelope = desk.asks(QUESTION)
    desk.wait_answer(ANSWER)
    desk.check_done(envelope)


def rests(process: psutil.Process) -> bool:
    """Tell whether a process does nothing at all for some seconds."""
    before = process.cpu_times()[:2], process.num_ctx_switches().voluntary
    time.sleep(3)
    return before == (process.cpu_times()[:2], process.num_ctx_switches().voluntary)


def test_there_is_one_light_waiter_whatever_happens(desk: Desk, server: ModelServer) -> None:
    for number in range(3):
        desk.claude.enter(f"count {number}")
        desk.claude.wait_for(f"You said: count {number}")
        desk.wait_idle()
        wait_until(lambda: len(desk.waiters()) == 1, 30)
    [waiter] = desk.waiters()
    assert waiter.memory_info().rss <= MOST_BYTES, waiter.memory_info()
    wait_until(lambda: rests(waiter), 60)
    desk.claude.kill()
    waiter.wait(30)
    assert not desk.waiters()


def test_a_waiter_does_not_outlive_a_session_that_is_closed(desk: Desk) -> None:
    desk.claude.close()
    wait_until(lambda: not desk.waiters(), 30)
    desk.wait_idle(0)
