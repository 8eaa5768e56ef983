"""Operations about rules: the answers to permissions that hold for more than once."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from ..core import clock, errors
from ..core.errors import NotFound
from ..core.ids import LARGEST
from ..store import agents, ask_rules
from ..store.connection import Connection, Row
from ..store.group_commit import Tx
from .auth import Caller
from .context import Context
from .operation import Level, Params, Timezone, operation
from .request_limits import page_size

WHERE = "hiboss ask rules"


class ListRules(Params):
    agent: str | None = Field(None, description="only rules of this agent, by its name")
    page_size: int | None = Field(None, description="how many at most, 1 to 100; default 10")
    after: int | None = Field(None, ge=1, le=LARGEST, description="the `next` of the previous page")


class RemoveRule(Params):
    number: int = Field(ge=1, le=LARGEST, description="of the rule, as ask.rules shows it")


class Rule(TypedDict):
    number: Annotated[int, Field(description="of the rule, like 3")]
    agent: Annotated[str, Field(description="whose permission it is about")]
    tool: Annotated[str, Field(description="the tool that would be used, like Bash")]
    subject: Annotated[str, Field(description="exactly what it is about, like a command line")]
    answer: Annotated[str, Field(description="what the agent is told at once")]
    session: Annotated[
        str | None,
        Field(description="the provider's session that it holds for, and ends with; null: for all"),
    ]
    ask: Annotated[str, Field(description="whose answer it is, like q2")]
    created_by: Annotated[str, Field(description="who answered")]
    created_at: Annotated[str, Field(description="when")]


class RuleList(TypedDict):
    rules: Annotated[list[Rule], Field(description="those in effect, newest first")]
    next: Annotated[
        int | None, Field(description="to be given as `after` for the next page; null: this is the last")
    ]
    timezone: Timezone


class RemovedRule(TypedDict):
    rule: Annotated[Rule, Field(description="that was taken back: from now on people are asked again")]
    changed: Annotated[bool, Field(description="false: it had ended before")]


@operation(
    "ask.rules",
    level=Level.RESTRICTED,
    effect="read",
    params=ListRules,
    result=RuleList,
    errors=(errors.UnknownAgent, errors.BossOnly, errors.InvalidParams),
)
async def listed(context: Context, caller: Caller, params: ListRules) -> RuleList:
    """List the answers to permissions that are remembered. An agent sees its own, the boss sees all."""
    limit = page_size(context, params.page_size)

    def read(connection: Connection) -> RuleList:
        agent = _whose(connection, caller, params.agent)
        rows = ask_rules.listed(connection, agent, params.after, limit + 1)
        shown = [_to_json(row) for row in rows[:limit]]
        return {
            "rules": shown,
            "next": shown[-1]["number"] if len(rows) > limit else None,
            "timezone": context.timezone,
        }

    return await context.store.read_in_thread(read)


def _whose(connection: Connection, caller: Caller, name: str | None) -> int | None:
    """Return the id of the agent whose rules are listed; None: everybody's."""
    if name is None:
        return None if caller.is_boss else caller.id
    found = int(agents.get(connection, name)["id"])
    if not caller.is_boss and found != caller.id:
        raise errors.BossOnly(what="listing another agent's rules (agent)", caller=caller.name)
    return found


@operation(
    "ask.rule.remove",
    level=Level.BOSS,
    effect="idempotent",
    fixed=True,
    params=RemoveRule,
    result=RemovedRule,
    errors=(NotFound,),
)
async def remove(context: Context, caller: Caller, params: RemoveRule) -> RemovedRule:
    """Take a rule back: from now on the boss is asked again. What it has answered stays answered."""
    now = clock.now()

    def write(tx: Tx) -> RemovedRule:
        row = ask_rules.remove(tx, params.number, now)
        if row is None:
            raise NotFound(what="rule", value=str(params.number), where=WHERE)
        return {"rule": _to_json(row), "changed": row["removed_at"] is None}

    return await context.write(caller, write)


def _to_json(row: Row) -> Rule:
    return {
        "number": row["id"],
        "agent": row["agent_name"],
        "tool": row["tool"],
        "subject": row["subject"],
        "answer": row["answer"],
        "session": row["session"],
        "ask": f"q{row['ask']}",
        "created_by": row["by_address"],
        "created_at": clock.iso(row["created_at"]),
    }
