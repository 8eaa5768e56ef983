"""Providers for the tests of controls, which name this module in `providers.modules`.

What one does is the first word of the last message: hang, ask, fail; any other one is answered.
"""

from __future__ import annotations

import asyncio
import os
import signal
from typing import ClassVar

from hiboss.agents.providers.demo import Demo
from hiboss.core.contracts.failures import LaneError
from hiboss.core.contracts.provider import (
    ASK,
    INTERRUPT,
    SESSION,
    STEER,
    Answer,
    LiveRun,
    Progress,
    Provider,
    Question,
    TurnInput,
)


def word(turn: TurnInput) -> str:
    """What is wanted: only the daemon's own words are left out."""
    said = [one["text"] for one in turn.envelopes if not one["auto"]]
    return (said[-1].split() or [""])[0] if said else ""


def note(turn: TurnInput, what: str) -> None:
    """Write something down for the test, in the workspace."""
    with open(os.path.join(turn.workspace, "notes"), "a") as file:
        file.write(f"{what}\n")


async def file_there(turn: TurnInput, name: str) -> None:
    while not os.path.exists(os.path.join(turn.workspace, name)):
        await asyncio.sleep(0.005)


class Scripted(Provider):
    """Has a session, takes words, asks, and ends in an orderly way; it has no program."""

    name: ClassVar[str] = "scripted"
    capabilities = frozenset({SESSION, STEER, INTERRUPT, ASK})

    def __init__(self, settings: object) -> None:
        super().__init__(settings)
        self._turn: TurnInput | None = None
        self._ended = asyncio.Event()
        self._stubborn = False

    async def take_turn(self, turn: TurnInput, run: LiveRun) -> Answer:
        self._turn = turn
        wanted = word(turn)
        note(turn, f"turn {turn.session or '-'}")
        await run.session(turn.session or "one")
        if wanted == "fail":
            raise LaneError("usage_limit", "the account has reached its limit", 3_600)
        if wanted == "ask":
            await run.ask(Question("May I?"))
        self._stubborn = wanted == "stubborn"
        if wanted in ("hang", "ask", "stubborn"):
            run.progress(Progress("delta", "well "))
            await self._ended.wait()
            return Answer(text="never sent")
        return Answer(text="done")

    async def steer(self, text: str) -> bool:
        return True

    async def interrupt(self) -> None:
        assert self._turn is not None
        note(self._turn, "interrupted")
        if not self._stubborn:
            self._ended.set()


class Programmed(Provider):
    """Its program starts when the file `start` is in the workspace: before, a run has no process yet."""

    name: ClassVar[str] = "programmed"
    starts_program: ClassVar[bool] = True

    async def take_turn(self, turn: TurnInput, run: LiveRun) -> Answer:
        await file_there(turn, "start")
        process = await asyncio.create_subprocess_exec(
            *("sh", "-c", "echo $$ > pid.new; mv pid.new pid; while [ ! -e go ]; do sleep 0.02; done"),
            cwd=turn.workspace,
            env=dict(turn.environment),
            start_new_session=True,
        )
        try:
            await run.started(process.pid)
            await process.wait()
        except BaseException:  # whatever it is, nothing stays behind: neither a child of the shell
            os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
            raise
        return Answer(text="done")


class HeldDemo(Demo):
    """The demo provider, which has nothing to control it by. For `hang` it waits; a turn of the real one is over soon."""

    name: ClassVar[str] = "held-demo"

    async def take_turn(self, turn: TurnInput, run: LiveRun) -> Answer:
        if word(turn) == "hang":
            await file_there(turn, "go")
        return await super().take_turn(turn, run)


PROVIDERS = (Scripted, Programmed, HeldDemo)
