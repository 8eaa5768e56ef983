"""A provider that takes instructions, for tests that name this module in `providers.modules`.

What it does is the first word of the last message: fail, lose (its session), usage, wait; any other one is
answered. It writes down what it was given, one JSON line for each turn, in the file `given` of its workspace.
"""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any, ClassVar

from hiboss.core.contracts.failures import SessionLost, TurnError
from hiboss.core.contracts.provider import (
    SESSION,
    Answer,
    LiveRun,
    Progress,
    Provider,
    TurnInput,
    Usage,
)


class Instructed(Provider):
    """Has a session, and takes instructions."""

    name: ClassVar[str] = "instructed"
    capabilities = frozenset({SESSION})
    takes_instructions: ClassVar[bool] = True

    async def take_turn(self, turn: TurnInput, run: LiveRun) -> Answer:
        wanted = turn.envelopes[-1]["text"].split()[0]
        note = {"text": turn.text, "instructions": turn.instructions, "session": turn.session}
        if os.path.isdir(turn.workspace):
            with open(os.path.join(turn.workspace, "given"), "a") as file:
                file.write(json.dumps(note) + "\n")
        run.progress(Progress("model", "model-1"))
        if wanted == "lose" and turn.session is not None:
            raise SessionLost("nobody knows it")
        await run.session(turn.session or f"of-{turn.run}")
        if wanted == "usage":
            run.progress(Progress("usage", usage=Usage(1_200, 34, 0.5, 900)))
        if wanted in ("fail", "usage"):
            raise TurnError("failed", "as it was told", repeat=False)
        while wanted == "wait" and not os.path.exists(os.path.join(turn.workspace, "go")):
            await asyncio.sleep(0.005)
        return Answer(text=f"ok {turn.run}", tokens_in=10, tokens_out=5, cost=0.25, context=8)


def given(workspace: str | Path) -> list[dict[str, Any]]:
    """Return what it was given in a workspace, oldest first."""
    path = Path(workspace) / "given"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


PROVIDERS = (Instructed,)
