"""Providers with a memory, for the tests of sessions, which name this module in `providers.modules`.

What they are told they keep in a file of their workspace for each session, as a harness does; the answer is all
that the session knows. The last text can be an order: hang (until the file `go` is there), deaf (the same, and
it ignores its cancellation), forget (its session is lost), fail.
"""

from __future__ import annotations

import asyncio
import os
from typing import ClassVar

from pydantic import Field

from hiboss.core.contracts.failures import SessionLost, TurnError
from hiboss.core.contracts.provider import SESSION, Answer, LiveRun, Provider, TurnInput
from hiboss.core.option_models import Options

REAL_SECONDS = 60.0


class WorldSettings(Options):
    world: str = Field("this", description="where its sessions are")
    color: str = Field("red", description="changes nothing")


class Remembering(Provider):
    """Its sessions have ids that hiboss made."""

    name: ClassVar[str] = "remembering"
    Settings = WorldSettings
    session_settings = frozenset({"world"})
    capabilities = frozenset({SESSION})
    takes_instructions: ClassVar[bool] = True
    own_session_ids: ClassVar[bool] = True

    async def take_turn(self, turn: TurnInput, run: LiveRun) -> Answer:
        said = turn.envelopes[-1]["text"]
        session = turn.session or self._begun(turn)
        path = os.path.join(turn.workspace, f"session-{session}")
        if not os.path.exists(path) and turn.session is not None and not turn.session_is_new:
            raise SessionLost(f"no conversation {session} was found")
        with open(os.path.join(turn.workspace, "turn"), "w") as file:
            file.write(turn.text)
        with open(path, "a") as file:
            file.write(f"{said}\n")
        if said != "early":  # killed before anything is confirmed
            await run.session(session)
        await self._obey(said, turn, path)
        with open(path) as file:
            known = file.read().split()
        return Answer(text=f"I know: {' '.join(known)}", context=len(known) * 1000)

    def _begun(self, turn: TurnInput) -> str:
        return f"own-{turn.run}"

    async def _obey(self, said: str, turn: TurnInput, path: str) -> None:
        if said == "forget":
            os.unlink(path)
            raise SessionLost("it has forgotten everything")
        if said == "fail":
            raise TurnError("failed", "it failed")
        clock = asyncio.get_running_loop().time  # also while the clock stands still
        until = clock() + REAL_SECONDS
        while said in ("hang", "deaf", "early") and not os.path.exists(os.path.join(turn.workspace, "go")):
            try:
                await asyncio.sleep(0.005)
            except asyncio.CancelledError:
                if said != "deaf":
                    raise
            assert clock() < until


class Reporting(Remembering):
    """It makes the ids of its sessions itself."""

    name: ClassVar[str] = "reporting"
    own_session_ids: ClassVar[bool] = False


PROVIDERS = (Remembering, Reporting)
