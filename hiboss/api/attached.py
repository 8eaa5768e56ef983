"""Operations of open sessions: what the hooks of Claude Code and Codex report, and what they are answered.

`attached.start` needs no token: it gives the session one. The socket serves one uid only, and whoever has
that can read every token file anyway. All others need the token of the session.
"""

from __future__ import annotations

import os
import re
from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypedDict

from ..agents import briefing_text, instructions
from ..agents.attached import wording
from ..agents.attached.hook_reports import Reply
from ..core import clock, errors
from ..core.envelope import check_text
from ..routing.subscriptions import Reader
from ..store import agents, attached_sessions, attached_turns, tokens
from ..store.attached_sessions import Arrival
from ..store.connection import Connection
from . import agent_briefing, agent_states
from .auth import Caller
from .context import Context
from .operation import ByName, Level, Nothing, Params, Timezone, operation
from .param_sizes import Line, Text, Word

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
EVENT = "a name of this report that no other one has: repeated, it changes nothing"


class Start(Params):
    client: Literal["claude", "codex"] = Field(description="which harness it is")
    session: Word = Field(description="the harness's own id of the session")
    pid: int = Field(description="the process of the harness", gt=1, lt=2**31)
    pid_started: Word = Field(description="when that process started, as /proc says it")
    directory: Line = Field(description="where it was opened, an absolute path")
    agent: str | None = Field(None, description="which agent it is; default: one for this directory")
    details: dict[str, str | bool | int] = Field({}, description="how the doors of the harness are found")
    again: bool = Field(False, description="it did not start just now; refused if it was detached since")


class Started(TypedDict):
    agent: Annotated[str, Field(description="the name of the agent that this session is")]
    briefing: Annotated[str, Field(description="what the session is told about itself")]
    waiting: Annotated[int, Field(description="how much mail waits for it, at most ten are counted")]


class Prompt(Params):
    event: Word = Field(description=EVENT)
    prompt: Text = Field(description="what the model gets: a nudge of hiboss, or words of a person")


class Stop(Params):
    event: Word = Field(description=EVENT)
    text: Text = Field("", description="the last text of the model")
    active: bool = Field(False, description="it was kept from stopping before, by a hook")


class Step(Params):
    tool: Word = Field("", description="the tool that was used")


class Event(Params):
    event: Word = Field(description=EVENT)


class HookReply(TypedDict):
    context: Annotated[str, Field(description="for the model, beside what it has; empty: nothing")]
    block: Annotated[str, Field(description="why the session must not stop: mail; empty: it may")]


class Nudge(TypedDict):
    nudge: Annotated[str | None, Field(description="what wakes the session; null: another one waits for it")]


class Detached(TypedDict):
    name: Annotated[str, Field(description="the agent")]
    sessions: Annotated[int, Field(description="how many open sessions are not attached any more")]


class AttachedSession(TypedDict):
    agent: Annotated[str, Field(description="the name of the agent that it is")]
    client: Annotated[str, Field(description="claude or codex")]
    session: Annotated[str, Field(description="the harness's own id of the session")]
    state: Annotated[str, Field(description="idle or busy")]
    since: Annotated[str, Field(description="when it came into this state")]
    directory: Annotated[str, Field(description="where it was opened")]
    pid: Annotated[int, Field(description="the process of the harness")]
    waiter: Annotated[bool, Field(description="something waits to wake it")]
    started_at: Annotated[str, Field(description="when it was opened")]


class AttachedList(TypedDict):
    sessions: Annotated[list[AttachedSession], Field(description="those that are open, the oldest first")]
    timezone: Timezone


def own_session(caller: Caller) -> int:
    """Return the open session that a token is for; raise NotAttached if it is another kind of token."""
    if caller.attached is None:
        raise errors.NotAttached()
    return caller.attached


def refuse_unnamed(context: Context, reader: Reader | None, *, unnamed: object) -> None:
    """Raise where a tool of an open session names nobody (`unnamed`), and so would speak as the boss.

    In a sandbox with pids of its own a command does not see the harness above it; the daemon does.
    """
    pid = reader.peer_pid if unnamed and reader is not None else None
    if pid is not None and (harness := context.runner.attached.above(pid)) is not None:
        raise errors.AgentNotNamed(sign=f"a harness runs this: {harness}")


def _reply(reply: Reply) -> HookReply:
    return {"context": reply.context, "block": reply.block}


@operation(
    "attached.start",
    level=Level.OPEN,
    effect="idempotent",
    params=Start,
    result=Started,
    errors=(errors.UnknownAgent, errors.CannotAttach, errors.InvalidParams, errors.TooLarge, errors.BadText),
)
async def start(context: Context, caller: Caller, params: Start) -> Started:
    """Attach an open session to its agent; a new one is registered if there is none. It gets a token."""
    if _ID.fullmatch(params.session) is None:
        raise errors.InvalidParams(detail="session must be an id of letters, digits, dots and dashes")
    if not os.path.isabs(check_text(params.directory, "directory")):
        raise errors.InvalidParams(detail="directory must be an absolute path")
    arrival = Arrival(
        params.client,
        params.session,
        params.pid,
        check_text(params.pid_started, "pid_started"),
        params.directory,
        params.agent,
        dict(params.details),
        params.again,
    )
    known = context.home.known_session(params.client, params.session)
    given, token = str(known.get("token") or ""), tokens.new("agent")
    made = await context.runner.attached.arrived(arrival, token, given)
    context.home.keep_session(
        params.client,
        params.session,
        {
            "agent": made.name,
            "token": made.token or given,
            "client": params.client,
            "pid": params.pid,
            "pid_started": params.pid_started,
        },
    )

    moment, live = clock.now(), agent_states.live_of(context)

    def read(connection: Connection) -> Started:
        facts = instructions.facts(connection, made.agent)
        reply = "auto" if facts is None else facts.agent["reply"]
        text = "" if facts is None else instructions.text(facts, context.home, params.directory, reply)
        found = agent_briefing.of_address(connection, made.agent, moment, live)
        now = "" if found is None else briefing_text.now(found, clock.zone(found["timezone"]))
        waiting = attached_turns.waiting(connection, made.agent)
        told = wording.briefing(made.name, text, now)
        return {"agent": made.name, "briefing": told, "waiting": len(waiting)}

    return await context.store.read_in_thread(read)


@operation(
    "attached.prompt",
    level=Level.RESTRICTED,
    effect="change",
    params=Prompt,
    result=HookReply,
    errors=(errors.NotAttached, errors.TooLarge),
)
async def prompt(context: Context, caller: Caller, params: Prompt) -> HookReply:
    """Report that a prompt goes to the model. A nudge is answered with its mail."""
    return _reply(
        await context.runner.attached.reports.prompted(own_session(caller), params.event, params.prompt)
    )


@operation(
    "attached.step",
    level=Level.RESTRICTED,
    effect="change",
    params=Step,
    result=HookReply,
    errors=(errors.NotAttached, errors.TooLarge),
)
async def step(context: Context, caller: Caller, params: Step) -> HookReply:
    """Report that the session has used a tool. It may get mail in between (attached.when_busy)."""
    return _reply(await context.runner.attached.reports.stepped(own_session(caller), params.tool))


@operation(
    "attached.stop",
    level=Level.RESTRICTED,
    effect="change",
    params=Stop,
    result=HookReply,
    errors=(errors.NotAttached, errors.TooLarge),
)
async def stop(context: Context, caller: Caller, params: Stop) -> HookReply:
    """Report that the session ends its turn. If it worked on mail, its last text is sent as the answer."""
    return _reply(
        await context.runner.attached.reports.stopped(
            own_session(caller), params.event, params.text, active=params.active
        )
    )


@operation(
    "attached.break",
    level=Level.RESTRICTED,
    effect="change",
    params=Event,
    result=HookReply,
    errors=(errors.NotAttached, errors.TooLarge),
)
async def break_(context: Context, caller: Caller, params: Event) -> HookReply:
    """Report that the turn of the session ended without a final text. Mail that it had is given again."""
    await context.runner.attached.reports.broke_off(own_session(caller), params.event)
    return {"context": "", "block": ""}


@operation(
    "attached.end",
    level=Level.RESTRICTED,
    effect="idempotent",
    params=Event,
    result=HookReply,
    errors=(errors.NotAttached, errors.TooLarge),
)
async def end(context: Context, caller: Caller, params: Event) -> HookReply:
    """Report that the session is closed. Its mail waits for the next one, or is worked on by a run."""
    await context.runner.attached.ended(own_session(caller), "closed")
    return {"context": "", "block": ""}


@operation(
    "attached.wait",
    level=Level.RESTRICTED,
    effect="change",
    waits=True,
    result=Nudge,
    errors=(errors.NotAttached, errors.Stopping),
)
async def wait(context: Context, caller: Caller, params: Nothing) -> Nudge:
    """Wait until the session is to be woken for mail. A second waiter of a session ends the first."""
    return {"nudge": await context.runner.attached.wait(own_session(caller))}


@operation("attached.list", level=Level.RESTRICTED, effect="read", result=AttachedList)
def list_(context: Context, caller: Caller, params: Nothing) -> AttachedList:
    """List the harnesses that are open in a terminal as an agent."""
    return {
        "sessions": context.store.read(
            lambda c: sessions_json(context, c, None if caller.is_boss else caller.id)
        ),
        "timezone": context.timezone,
    }


@operation(
    "agent.detach",
    level=Level.BOSS,
    effect="idempotent",
    params=ByName,
    result=Detached,
    errors=(errors.UnknownAgent,),
    changes="agent",
)
async def detach(context: Context, caller: Caller, params: ByName) -> Detached:
    """Give an agent's mail to its open sessions no more; what they have comes back. They stay open."""
    row = context.store.read(lambda c: agents.get(c, params.name))
    mine = context.store.read(lambda c: attached_sessions.open_ones(c, row["id"]))
    for one in mine:
        await context.runner.attached.ended(one["id"], "detached")
    if not mine:  # what waits for the next session waits no more
        await context.write(caller, lambda tx: attached_sessions.detach_last(tx, row["id"]))
    return {"name": row["name"], "sessions": len(mine)}


def sessions_json(context: Context, connection: Connection, agent: int | None) -> list[AttachedSession]:
    """Return the open sessions, of one agent or of all, as they are shown."""
    live = context.runner.attached.registry.open
    rows = attached_sessions.open_ones(connection, agent)
    return [
        {
            "agent": row["name"],
            "client": row["client"],
            "session": row["session"],
            "state": row["state"],
            "since": clock.iso(row["since"]),
            "directory": row["directory"],
            "pid": row["pid"],
            "waiter": row["id"] in live and live[row["id"]].has_waiter,
            "started_at": clock.iso(row["started_at"]),
        }
        for row in rows
    ]
