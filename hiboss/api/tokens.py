"""Operations about the tokens of agents: rotate and revoke."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import nullcontext
from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from ..core import clock
from ..core.errors import UnknownAgent
from ..store import agent_pauses, agents, tokens
from ..store.connection import Row
from ..store.group_commit import Tx
from .auth import Caller
from .context import Context
from .operation import ByName, Level, operation

# Two rotations of one token at once could leave the profile with the older one.
ROTATING = asyncio.Lock()

REVOKED = "its tokens were revoked; hiboss agent token rotate NAME gives it a new one"


class Rotate(ByName):
    profile: bool | None = Field(
        None, description="keep the token in the home for --as NAME; default: if one was kept before"
    )


class RotatedToken(TypedDict):
    name: Annotated[str, Field(description="whose token it is")]
    token: Annotated[str, Field(description="shown only here")]
    profile: Annotated[str | None, Field(description="the file that holds it for --as NAME")]
    revoked: Annotated[int, Field(description="how many tokens ended")]


class RevokedTokens(TypedDict):
    name: Annotated[str, Field(description="whose tokens ended")]
    revoked: Annotated[int, Field(description="how many tokens ended")]


@operation(
    "agent.token.rotate",
    level=Level.BOSS,
    effect="destructive",
    params=Rotate,
    result=RotatedToken,
    errors=(UnknownAgent,),
    changes="agent",
)
async def rotate(context: Context, caller: Caller, params: Rotate) -> RotatedToken:
    """Give an agent a new token, shown only in this answer; its old ones end at the same moment."""
    name = context.store.read(lambda c: agents.get(c, params.name))["name"]

    def holder(tx: Tx) -> int:
        return int(agents.get(tx, name)["id"])

    return await give_new_token(context, caller, "agent", name, holder, params.profile)


async def give_new_token(
    context: Context,
    caller: Caller,
    kind: str,
    name: str,
    holder: Callable[[Tx], int],
    profile: bool | None,
) -> RotatedToken:
    """Replace the tokens of this kind that somebody has by a new one. `profile` None: as before."""
    async with ROTATING:
        keeps = context.home.has_profile(name) if profile is None else profile
        token, now = tokens.new(kind), clock.now()

        def write(tx: Tx) -> tuple[int, int]:
            number = holder(tx)
            context.auth.recheck_holder(number)
            revoked = tokens.revoke(tx, number, now, kinds=(kind,))
            tokens.end_browsers(tx, number, now)  # who found the old token may have logged in with it
            tokens.insert(tx, token, kind, number, now)
            _resume_if_revoked(context, tx, number, now)
            return number, revoked

        with context.home.keeping(name, token) if keeps else nullcontext() as path:
            number, revoked = await context.write(caller, write)
        context.login_codes.forget(number)  # of links that were made with the old one
        context.auth.forget()
        if not keeps:
            context.home.forget_profile(name)
    return {"name": name, "token": token, "profile": path, "revoked": revoked}


@operation(
    "agent.token.revoke",
    level=Level.BOSS,
    effect="destructive",
    params=ByName,
    result=RevokedTokens,
    errors=(UnknownAgent,),
    changes="agent",
)
async def revoke(context: Context, caller: Caller, params: ByName) -> RevokedTokens:
    """Revoke all tokens of an agent. It is paused and keeps its mail until it gets a new token."""
    now = clock.now()

    def write(tx: Tx) -> tuple[Row, int]:
        row = agents.get(tx, params.name)
        context.auth.recheck_holder(row["id"])
        agent_pauses.pause(tx, row["id"], "tokens", REVOKED, now)
        return row, tokens.revoke(tx, row["id"], now)

    async with ROTATING:
        row, revoked = await context.write(caller, write)
        name = str(row["name"])
        context.runner.end_runs(row["id"], REVOKED)
        await context.runner.attached.end_of_agent(row["id"], "closed")
        context.auth.forget()
        context.home.forget_profile(name)
    return {"name": name, "revoked": revoked}


def _resume_if_revoked(context: Context, tx: Tx, holder: int, now: int) -> None:
    """Resume an agent that was paused because it had no token."""
    row = agents.with_provider(tx, holder, any_mode=True)
    if row is not None and row["paused_kind"] == "tokens":
        agent_pauses.resume(tx, row, context.runner.bounds(), now)
