"""Operations of the breaker: stop everything, and let it go on."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from ..core import clock, errors
from ..core.settings import Settings
from ..store import breaker, breaker_holds
from ..store.breaker_holds import Waits
from ..store.connection import Connection, Row
from .auth import Caller
from .context import Context
from .operation import Level, Nothing, Params, Timezone, operation
from .param_sizes import Word


class Pull(Params):
    reason: Word | None = Field(None, description="shown wherever the state of an agent is shown")


class Release(Params):
    pull: Word | None = Field(
        None,
        description="the pull that is meant, as breaker.status shows it (empty: it shows none); so a request"
        " that is carried out late does not undo a later one. By default whatever is pulled",
    )


class StoppedRun(TypedDict):
    id: Annotated[str, Field(description="of the run, like r9")]
    agent: Annotated[str, Field(description="whose run it is, like agent:nex")]
    ended: Annotated[bool, Field(description="false: its processes are still being ended")]


class HeldMail(TypedDict):
    agent: Annotated[str, Field(description="whom it waits for, like agent:nex")]
    due: Annotated[
        int | str, Field(description="how many envelopes; over the limit of exact counts, like 1000+")
    ]


class Held(TypedDict):
    mail: Annotated[list[HeldMail], Field(description="the agents for whom envelopes are due")]
    tasks: Annotated[int | str, Field(description="due for agent:background")]
    posts: Annotated[int | str, Field(description="of agents, to chats that are not the boss's")]
    schedules: Annotated[int, Field(description="whose time has come; they catch up when it is released")]


class BreakerState(TypedDict):
    pulled_at: Annotated[str, Field(description="when it was pulled")]
    pulled_by: Annotated[
        str | None,
        Field(description="who pulled it; null: the command line, while the daemon did not answer"),
    ]
    reason: Annotated[str | None, Field(description="why, if a reason was given")]


class BreakerStatus(TypedDict):
    breaker: Annotated[BreakerState | None, Field(description="null: it is not pulled, and nothing is held")]
    runs: Annotated[
        list[StoppedRun],
        Field(description="those that have ended since, or are ending; an agent sees only its own runs"),
    ]
    waits: Annotated[Held, Field(description="what waits until it is released")]
    pull: Annotated[
        str | None,
        Field(description="identifies the last pull, for breaker.release; also one that is not obeyed yet"),
    ]
    timezone: Timezone


class Pulled(BreakerStatus):
    changed: Annotated[bool, Field(description="false: it was pulled already; the first reason stays")]


class Released(TypedDict):
    changed: Annotated[bool, Field(description="false: it was not pulled")]
    waits: Annotated[Held, Field(description="what had waited, and goes on now")]


NOTHING_WAITS: Held = {"mail": [], "tasks": 0, "posts": 0, "schedules": 0}


@operation(
    "breaker.pull",
    level=Level.BOSS,
    effect="destructive",
    params=Pull,
    result=Pulled,
    errors=(errors.TooLarge, errors.BadText, errors.BreakerNotStored),
)
async def pull(context: Context, caller: Caller, params: Pull) -> Pulled:
    """Stop everything: end every run, give nobody a turn, hold schedules and what agents post.

    What agents post to the boss passes. It answers when this is stored; the runs end after that. If it cannot
    be stored, as on a full disk, they end all the same, and the error says so.
    """
    reason = checked_reason(params.reason, context.settings)
    changed = await context.breaker.pull(
        lambda change: context.write(caller, change), caller.id or None, reason
    )
    found = await context.store.read_in_thread(lambda c: _status(context, caller, c))
    return {"changed": changed, **found}


def checked_reason(reason: str | None, settings: Settings) -> str | None:
    """Return a reason as it is stored; raise TooLarge or BadText if it cannot be."""
    return settings.check_word("reason", reason or "").strip() or None


@operation(
    "breaker.release",
    level=Level.BOSS,
    effect="idempotent",
    params=Release,
    result=Released,
    errors=(errors.PulledAgain, errors.TooLarge),
    offline=True,
)
async def release(context: Context, caller: Caller, params: Release) -> Released:
    """Let everything go on that the breaker holds: turns, schedules, posts, and mail for agents."""
    waited = await context.store.read_in_thread(lambda c: _waits(context, c))
    changed = await context.breaker.release(
        lambda change: context.write(caller, change), caller.id or None, params.pull
    )
    return {"changed": changed, "waits": waited if changed else NOTHING_WAITS}


@operation("breaker.status", level=Level.RESTRICTED, effect="read", result=BreakerStatus)
async def status(context: Context, caller: Caller, params: Nothing) -> BreakerStatus:
    """Show whether the breaker is pulled, which runs it ended, and what waits."""
    return await context.store.read_in_thread(lambda c: _status(context, caller, c))


def _status(context: Context, caller: Caller, connection: Connection) -> BreakerStatus:
    row = breaker.get(connection)
    runs, waits = [], NOTHING_WAITS
    if row is not None:
        runs = [one for one in breaker.stopped_runs(connection, row["pulled_at"]) if _sees(caller, one)]
        waits = _waits(context, connection)
    return {
        "breaker": state_json(row),
        "runs": [
            {"id": f"r{one['id']}", "agent": f"agent:{one['name']}", "ended": one["status"] != "running"}
            for one in runs
        ],
        "waits": waits,
        "pull": context.breaker.latest(row),
        "timezone": context.timezone,
    }


def _waits(context: Context, connection: Connection) -> Held:
    exact_to = context.settings.count_exact_to
    return held_json(breaker_holds.waiting(connection, clock.now(), exact_to))


def _sees(caller: Caller, run: Row) -> bool:
    return caller.is_boss or caller.id == run["agent"]


def state_json(row: Row | None) -> BreakerState | None:
    """Return that the breaker is pulled as it is shown; None if it is not."""
    if row is None:
        return None
    return {
        "pulled_at": clock.iso(row["pulled_at"]),
        "pulled_by": row["address"],
        "reason": row["reason"],
    }


def held_json(found: Waits) -> Held:
    return {
        "mail": [{"agent": address, "due": number} for address, number in found.mail],
        "tasks": found.tasks,
        "posts": found.posts,
        "schedules": found.schedules,
    }
