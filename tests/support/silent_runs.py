"""A run that says nothing until the test lets it, in a daemon inside the test; its silence is counted on a moved clock."""

from __future__ import annotations

import asyncio
from typing import Any

from hiboss.agents.run_execution import Execution
from tests.support.in_process_daemon import InProcessDaemon
from tests.support.present_people import EventClock
from tests.support.python_agents import Program, hire, status_of

HOLDS_ON = (
    'note(os.environ["HIBOSS_TOKEN"]); wait_for("first"); print("alive", flush=True); wait_for("second")'
)


class SilentRun:
    """A run of kai. What the program would call by itself is called with the token of the run."""

    def __init__(self, daemon: InProcessDaemon, program: Program, execution: Execution) -> None:
        self.daemon, self.program, self.execution = daemon, program, execution
        self.clock = EventClock(daemon)
        self.clock.times(execution)
        self.id = f"r{execution.turn.run}"
        self._token = str(program.notes()[0])

    @classmethod
    async def begin(cls, daemon: InProcessDaemon) -> SilentRun:
        program = await hire(daemon, "kai", HOLDS_ON)
        await daemon.send("agent:kai", who="boss")
        await daemon.until(program.notes)
        [row] = daemon.rows("SELECT id FROM run")
        execution = daemon.daemon.wiring.runner.execution(row["id"])
        assert execution is not None
        return cls(daemon, program, execution)

    async def call(self, method: str, **params: Any) -> Any:
        return await self.daemon.call(method, token=self._token, **params)

    async def asks(self) -> tuple[str, asyncio.Task[Any]]:
        """Let it ask, and wait for the answer; return the id of the ask, and the call that waits."""
        ask = (await self.call("ask.create", question="Deploy?"))["ask"]["id"]
        waits = asyncio.create_task(self.call("ask.wait", id=ask))
        await self.daemon.until(lambda: self.execution.silent_seconds is None)
        return ask, waits

    async def is_answered(self, ask: str, waits: asyncio.Task[Any]) -> None:
        await self.daemon.ask("ask.answer", id=ask, choice="yes")
        assert (await waits)["ask"]["answer"] == "yes"
        await self.call("ask.wait", id=ask, received=True)

    async def told(self) -> list[str]:
        """Return what the boss was told of it, when all that is told by now was stored."""
        await self.daemon.daemon.wiring.stuck_runs.close()
        return [text for text in await self.daemon.inbox("boss") if "agent:kai seems to be stuck" in text]

    async def presence(self) -> str:
        return str((await status_of(self.daemon, "kai"))["presence"])

    async def ended(self) -> str:
        """Wait until it has ended; return how."""
        query = "SELECT status FROM run WHERE status <> 'running'"
        await self.daemon.until(lambda: self.daemon.rows(query))
        return str(self.daemon.rows(query)[0]["status"])

    async def end(self) -> str:
        for name in ("first", "second"):
            self.program.path.with_name(name).touch()
        return await self.ended()
