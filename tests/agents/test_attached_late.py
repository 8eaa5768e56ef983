"""Sessions that the daemon learns of late: in the middle of a turn, or before it knows that their last process ended."""

from __future__ import annotations

import asyncio
import subprocess
from contextlib import closing
from unittest import mock

from hiboss.agents import process_exit
from hiboss.agents.attached import sessions
from hiboss.cli.hook.harness import stat_of
from tests.support.attached_sessions import Room, asked, new_event, receipt
from tests.support.in_process_daemon import InProcessDaemon, frozen
from tests.support.python_agents import Boss, texts

QUESTION, ANSWER = "how is the build?", "All is green."


def test_a_session_that_is_attached_in_a_turn_of_its_person_gets_mail_at_the_end_of_that(
    ada: Boss, opens: Room
) -> None:
    session = opens()
    session.end()
    envelope = asked(ada, session, QUESTION)
    session.start(again=True)  # by the hook for prompts, before it reports the prompt
    assert session.listed()["state"] == "busy"
    waiter = session.arm()  # by the waiter that was started with that hook
    assert envelope in session.prompt("a word of the person")
    assert f"> {QUESTION}" in session.stop("for the person at the terminal")
    assert not waiter.has_answer()
    session.stop(ANSWER, active=True)
    assert receipt(ada, envelope) == "done" and texts(ada.heard(session)) == [ANSWER]


class Desk:
    """A session that is resumed in one process after another, of a daemon in this process."""

    def __init__(self, daemon: InProcessDaemon) -> None:
        self.daemon = daemon
        self.process: subprocess.Popen[bytes]

    async def open(self) -> None:
        """Start the process, and attach the session in it."""
        self.process = subprocess.Popen(["sleep", "1000"])
        stat = stat_of(self.process.pid)
        assert stat is not None
        await self.daemon.call(
            "attached.start",
            client="claude",
            session="session-1",
            pid=self.process.pid,
            pid_started=stat.started,
            directory="/work/desk",
            agent="nex",
        )

    async def report(self, method: str, **params: str) -> dict[str, str]:
        token = str(self.daemon.home.known_session("claude", "session-1")["token"])
        return dict(await self.daemon.call(f"attached.{method}", token=token, **params))

    async def takes(self) -> str:
        """Wait until it is woken, and return the mail."""
        nudge = (await self.report("wait"))["nudge"]
        return (await self.report("prompt", event=new_event(), prompt=nudge))["context"]

    def close(self) -> None:
        self.process.kill()
        self.process.wait()


# As on a system without pidfds, and before the next look.
@mock.patch.object(process_exit, "watch", lambda pid, on_exit: process_exit.not_watched)
@mock.patch.object(sessions, "LOOK_SECONDS", 600.0)
@frozen(at=None, quiet=False)
async def test_a_session_that_is_resumed_before_the_end_of_its_process_is_noticed_gets_its_mail_again(
    daemon: InProcessDaemon,
) -> None:
    await daemon.ask("agent.set", name="nex", mode="pull")
    with closing(Desk(daemon)) as desk:
        await desk.open()
        await daemon.ask("envelope.send", to=["agent:nex"], text=QUESTION)
        assert f"> {QUESTION}" in await desk.takes()
        desk.close()
        await desk.open()
        runs = "SELECT status, final_text FROM run ORDER BY id"
        assert [tuple(row) for row in daemon.rows(runs)] == [("interrupted", None)]
        async with asyncio.timeout(30):
            assert f"> {QUESTION}" in await desk.takes()
        await desk.report("stop", event=new_event(), text=ANSWER)
        assert [tuple(row) for row in daemon.rows(runs)] == [("interrupted", None), ("completed", ANSWER)]
