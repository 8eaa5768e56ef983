"""Permission prompts of open sessions as asks: whoever answers first, here or in the terminal, counts."""

from __future__ import annotations

import asyncio
import json
from typing import Annotated, Any, Literal

from pydantic import Field
from typing_extensions import TypedDict

from ..agents.providers.claude.permissions import ALLOW, ASK_TOOL, permission
from ..core import clock, errors
from ..core.quoting import redact, storable
from ..store import asks, run_asks
from ..store.asks import NewAsk
from ..store.connection import Row
from ..store.group_commit import Tx
from .attached import own_session
from .auth import Caller
from .context import Context
from .operation import Level, Params, operation
from .param_sizes import Line, Text

QUESTION_CHARACTERS = 10_000
# Codex shows no dialog of its own while its hook waits: the person there must not wait for long.
CODEX_SECONDS = 60.0


class Permit(Params):
    tool: Line = Field(description="the tool that the session wants to use, like Bash")
    input: Text = Field("{}", description="its input, as JSON")


class Permitted(TypedDict):
    decision: Annotated[
        Literal["allow", "deny"] | None,
        Field(
            description="null: nobody answered here, or somebody did in the terminal; the harness asks there"
        ),
    ]
    message: Annotated[str, Field(description="why it is denied, for the model")]


UNDECIDED: Permitted = {"decision": None, "message": ""}


@operation(
    "attached.permit",
    level=Level.STANDARD,
    effect="change",
    waits=True,
    params=Permit,
    result=Permitted,
    errors=(errors.NotAttached, errors.TooLarge, errors.Stopping),
)
async def permit(context: Context, caller: Caller, params: Permit) -> Permitted:
    """Ask the boss whether an open session may use a tool, and wait for a limited time."""
    session = context.runner.attached.registry.one(own_session(caller))
    given = _input(params.input)
    if (
        params.tool == ASK_TOOL
    ):  # a question of the model, with options of its own: it is asked in the terminal
        return UNDECIDED
    seconds = context.settings.attached_ask_seconds
    if session.client == "codex":
        seconds = min(seconds, CODEX_SECONDS)
    number = await context.write(
        caller, lambda tx: _ask(tx, caller, params.tool, given, session.directory, seconds)
    )
    if number is None:
        return UNDECIDED
    try:
        with session.permitting(params.tool) as decided:
            row = await _until_answered(context, caller, number, seconds, decided)
    finally:
        await context.store.write_until_done(lambda tx: run_asks.withdraw(tx, number, clock.now()))
    return _permitted(row)


def _input(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        return {"input": text}
    return found if isinstance(found, dict) else {"input": text}


def _ask(
    tx: Tx, caller: Caller, tool: str, given: dict[str, Any], directory: str, seconds: float
) -> int | None:
    """Store the question; None if there is no boss to ask."""
    boss = tx.cache.reach().boss
    if boss is None:
        return None
    now, asked = clock.now(), permission(tool, given, "", directory)
    text = f"{asked.text}\n\n{asked.detail}"
    new = NewAsk(
        asker=caller.id,
        asked=boss,
        question=storable(redact(text), QUESTION_CHARACTERS),
        options=asked.options,
        kind="permission",
        expires_at=now + int(seconds * 1000) + 5_000,  # the call ends it before
        run=caller.run,
        tool=asked.tool,
        in_turn=True,
    )
    return asks.create(tx, new, now).id


async def _until_answered(
    context: Context, caller: Caller, number: int, seconds: float, decided: asyncio.Event
) -> Row:
    """Wait for the answer, for the time limit, or until the tool is used: somebody there has decided."""
    loop = asyncio.get_running_loop()
    end = loop.time() + seconds
    with context.waiters.waiting(caller.id) as bell:
        there = asyncio.create_task(_ring(decided, bell))
        try:
            while True:
                row = context.store.read(lambda c: asks.need(c, number))
                if row["state"] != "open" or loop.time() >= end or decided.is_set():
                    return row
                if not await context.waiters.wait(bell, end - loop.time()):
                    return context.store.read(lambda c: asks.need(c, number))
        finally:
            there.cancel()


async def _ring(decided: asyncio.Event, bell: asyncio.Event) -> None:
    await decided.wait()
    bell.set()


def _permitted(row: Row) -> Permitted:
    if row["state"] != "answered":
        return UNDECIDED
    if row["answer"] == ALLOW:
        return {"decision": "allow", "message": ""}
    said = row["comment"] or ""
    return {"decision": "deny", "message": "The boss does not allow this" + (f": {said}" if said else ".")}
