"""The sessions of an agent, its provider's own memory: whose they are, when they end, and ending them."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field
from typing_extensions import TypedDict

from ..core import clock, ids
from ..core.errors import BadId, BossOnly, NotFound, UnknownAgent
from ..store import agents, provider_sessions, session_scopes
from ..store.connection import Connection, Row
from ..store.group_commit import Tx
from ..store.session_policy import why_not_resumed
from .auth import Caller
from .context import Context
from .operation import ByName, Id, Level, Timezone, operation

MOST = 100  # sessions that are shown: the last used
LONGEST_IDLE_MS = 365 * 24 * 3_600_000


class Refresh(ByName):
    conversation: Id | None = Field(
        None, description="only the session of this one, like c4; by default all sessions of the agent"
    )


class Refreshed(TypedDict):
    name: Annotated[str, Field(description="as given when it was registered")]
    ended: Annotated[int, Field(description="how many sessions are not resumed any more")]


class Session(TypedDict):
    scope: Annotated[
        str, Field(description="whose it is: a person like user:boss, a conversation like c4, or all")
    ]
    provider: Annotated[str, Field(description="whose memory it is, like claude")]
    session: Annotated[str, Field(description="the id that the provider knows it by")]
    begun_at: Annotated[
        str | None, Field(description="when it was first known to exist; null: no turn has confirmed it")
    ]
    used_at: Annotated[str, Field(description="when its last turn began or ended")]
    context: Annotated[int | None, Field(description="tokens that its last model call read; null: unknown")]
    resumed: Annotated[bool, Field(description="whether the next turn would resume it, if it began now")]
    why: Annotated[
        str | None,
        Field(description="why not: lost, refreshed, reset, idle, full, changed, provider (it has another)"),
    ]


class Sessions(TypedDict):
    sessions: Annotated[list[Session], Field(description=f"the last used first, at most {MOST}")]
    more: Annotated[bool, Field(description="whether there are others")]
    timezone: Timezone


@operation(
    "agent.refresh",
    level=Level.BOSS,
    effect="destructive",
    params=Refresh,
    result=Refreshed,
    errors=(UnknownAgent, BadId, NotFound),
    changes="agent",
)
async def refresh(context: Context, caller: Caller, params: Refresh) -> Refreshed:
    """Let the next turns of an agent begin new sessions. A run under way goes on in its session."""
    now = clock.now()

    def write(tx: Tx) -> Refreshed:
        row = agents.get(tx, params.name)
        number = None
        if params.conversation is not None:
            number = ids.number(params.conversation, "conversation")
            if not session_scopes.takes_part(tx, number, row["id"]):
                raise NotFound(what="conversation", value=str(params.conversation)[:40])
        return {"name": row["name"], "ended": provider_sessions.refresh(tx, row, number, now)}

    return await context.write(caller, write)


@operation(
    "agent.sessions",
    level=Level.RESTRICTED,
    params=ByName,
    result=Sessions,
    errors=(UnknownAgent, BossOnly),
)
def sessions(context: Context, caller: Caller, params: ByName) -> Sessions:
    """List the sessions of an agent, and why some are not resumed; the agent itself and the boss may."""
    now = clock.now()

    def read(connection: Connection) -> Sessions:
        agent = agents.get(connection, params.name)
        if not caller.is_boss and agent["id"] != caller.id:
            raise BossOnly(what="listing the sessions of another agent (name)", caller=caller.name)
        rows = provider_sessions.listed(connection, agent["id"], MOST + 1)
        found = [_to_json(row, _why(context, connection, row, agent, now)) for row in rows[:MOST]]
        return {"sessions": found, "more": len(rows) > MOST, "timezone": context.timezone}

    return context.store.read(read)


def _why(context: Context, connection: Connection, row: Row, agent: Row, now: int) -> str | None:
    """Return why the next turn would not resume a session; None: it would."""
    if row["provider"] != agent["provider"]:
        return row["stale_why"] if row["stale_at"] is not None else "provider"
    kind = context.runner.providers.session_kinds().get(row["provider"], provider_sessions.SessionKind())
    settings = provider_sessions.session_settings(agent["provider_config"], kind)
    return why_not_resumed(connection, row, agent, settings, now)


def _to_json(row: Row, why: str | None) -> Session:
    return {
        "scope": row["person"] or row["scope"],
        "provider": row["provider"],
        "session": row["session"],
        "begun_at": clock.iso_or_none(row["begun_at"]),
        "used_at": clock.iso(row["used_at"]),
        "context": row["context"],
        "resumed": why is None,
        "why": why,
    }


# --- settings of an agent ------------------------------------------------------------


def columns(scope: str | None, reset: str | None, idle: str | None, context: int | None) -> dict[str, Any]:
    """Return the columns of those settings that were given; an empty text, or 0, removes one."""
    found: dict[str, Any] = {}
    if scope is not None:
        found["session_scope"] = scope
    if reset is not None:
        found["session_reset"] = clock.time_of_day(reset) if reset.strip() else None
    if idle is not None:
        length = clock.duration(idle, most=LONGEST_IDLE_MS) if idle.strip() else 0
        found["session_idle"] = -(-length // 1000) or None
    if context is not None:
        found["session_context"] = context or None
    return found


def shown_idle(row: Row) -> str | None:
    return None if row["session_idle"] is None else clock.length(row["session_idle"])
