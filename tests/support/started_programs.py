"""Programs started as a run starts them, without a daemon."""

from __future__ import annotations

import asyncio
import os

from hiboss.agents import process_control
from hiboss.agents.child_process import Process, ProcessResult
from hiboss.agents.process_control import MARK
from tests.support.shell_agents import Program

SECONDS = 30.0  # a limit for what must end; not an assertion about speed


class Hand:
    """A program that was started, and its output."""

    def __init__(self, program: Program, given: bytes = b"a turn\n", room: int = 100_000) -> None:
        env = {"PATH": os.environ["PATH"], MARK: mark_of(program)}
        self.program = program
        self.process = Process([str(program.path)], str(program.directory), env, room)
        self.heard: list[bytes] = []
        self.pid = 0
        self._given = given

    async def begin(self) -> asyncio.Task[ProcessResult]:
        self.pid = await self.process.start()
        under_way = asyncio.create_task(self.process.run_to_end(self._given, self._hear))
        await asyncio.sleep(0)  # a task that is cancelled before its first step never begins
        return under_way

    async def ends(self) -> ProcessResult:
        async with asyncio.timeout(SECONDS):
            return await (await self.begin())

    async def _hear(self, part: bytes) -> None:
        self.heard.append(part)

    @property
    def output(self) -> bytes:
        return b"".join(self.heard)


async def begun(program: Program) -> tuple[Hand, asyncio.Task[ProcessResult]]:
    """Start a program; return it, and the task that gives it its turn."""
    hand = Hand(program)
    return hand, await hand.begin()


async def cancelled(under_way: asyncio.Task[ProcessResult]) -> None:
    """Cancel a program, and wait until it has ended."""
    under_way.cancel()
    await asyncio.wait([under_way])


def carriers(program: Program) -> list[int]:
    """Return the processes that carry the mark of a program."""
    return process_control.marked(frozenset({mark_of(program)}))


def mark_of(program: Program) -> str:
    return f"mark of {program.directory}"


def lines(program: Program, name: str) -> list[str]:
    file = program.directory / name
    return file.read_text().splitlines() if file.exists() else []
