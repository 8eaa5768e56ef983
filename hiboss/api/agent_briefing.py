"""The briefing of an agent or a person: who they are, who else is here, and what waits for them."""

from __future__ import annotations

import json
from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from ..agents import briefing_text
from ..core import clock
from ..core.errors import BadAddress, BossOnly, UnknownAddress
from ..core.shortening import shorten
from ..store import agents, ask_answers, boss, briefings
from ..store.connection import Connection, Row
from . import agent_states
from .addresses import acting_for
from .agent_states import Live
from .auth import Caller
from .context import Context
from .operation import Level, Params, Timezone, operation

TEAM, GROUPS, NEWEST, ASKS, SCHEDULES = 20, 20, 5, 20, 5  # named, at most
PREVIEW = 120  # characters of a text


class Brief(Params):
    name: str | None = Field(None, description="whose (only for the boss): an agent or a person")


class Teammate(TypedDict):
    name: Annotated[str, Field(description="without agent:")]
    role: Annotated[str | None, Field(description="like reviewer; null: none")]
    module: Annotated[str | None, Field(description="what it works on; null: nothing named")]
    description: Annotated[str | None, Field(description="what it is for; null: nobody said")]
    state: Annotated[str, Field(description="as in agent.status, like idle")]


class MyGroup(TypedDict):
    name: Annotated[str, Field(description="without group:")]
    role: Annotated[str, Field(description="your role there: owner, admin or member")]
    unread: Annotated[int, Field(description="how much of it you have not read")]


class UnreadLine(TypedDict):
    id: Annotated[str, Field(description="the envelope, like e81")]
    sender: Annotated[str, Field(description="from whom it is, or where it was written")]
    preview: Annotated[str, Field(description="its subject, or how its text begins")]
    created_at: Annotated[str, Field(description="when it was sent")]


class AskLine(TypedDict):
    id: Annotated[str, Field(description="like q2")]
    address: Annotated[str, Field(description="who asked, or who is asked")]
    question: Annotated[str, Field(description="how it begins")]


class ScheduleLine(TypedDict):
    id: Annotated[str, Field(description="like s3")]
    name: Annotated[str | None, Field(description="as given; null: it has none")]
    next_at: Annotated[str, Field(description="when it fires next")]
    to: Annotated[list[str], Field(description="to whom it sends")]
    preview: Annotated[str, Field(description="how its text begins")]


class Briefing(TypedDict):
    address: Annotated[str, Field(description="who you are, like agent:nex")]
    role: Annotated[str | None, Field(description="null: none, or you are a person")]
    module: Annotated[str | None, Field(description="what you work on; null: nothing named")]
    description: Annotated[str | None, Field(description="what you are for; null: nobody said")]
    level: Annotated[str, Field(description="what you may do: restricted, standard, privileged or boss")]
    mode: Annotated[str | None, Field(description="of an agent: run or pull; null: you are a person")]
    boss: Annotated[str, Field(description="the name of the boss, who is user:boss")]
    now: Annotated[str, Field(description="the time of this answer")]
    team: Annotated[list[Teammate], Field(description="other agents, those registered first; at most 20")]
    more_team: Annotated[int, Field(description="how many more agents there are")]
    groups: Annotated[list[MyGroup], Field(description="that you are in, at most 20")]
    more_groups: Annotated[bool, Field(description="true: you are in more of them")]
    unread: Annotated[int, Field(description="how much of your inbox is unread, counted up to 1000")]
    unread_capped: Annotated[bool, Field(description="true: there is more than was counted")]
    newest: Annotated[list[UnreadLine], Field(description="the newest of that, at most 5")]
    asked: Annotated[
        list[AskLine], Field(description="asks that wait for your answer, newest first, at most 20")
    ]
    asking: Annotated[list[AskLine], Field(description="asks of yours that wait, newest first, at most 20")]
    schedules: Annotated[list[ScheduleLine], Field(description="your schedules that fire next, at most 5")]
    more_schedules: Annotated[bool, Field(description="true: you have more of them")]
    text: Annotated[str, Field(description="all of this in short, at most 4 KiB")]
    timezone: Timezone


@operation(
    "agent.briefing",
    level=Level.RESTRICTED,
    effect="read",
    params=Brief,
    result=Briefing,
    errors=(UnknownAddress, BadAddress, BossOnly),
)
async def briefing(context: Context, caller: Caller, params: Brief) -> Briefing:
    """Show who you are, the team and its states, and what waits for you: mail, asks, schedules."""
    owner = acting_for(context.store, caller, params.name)
    now, live = clock.now(), agent_states.live_of(context)

    def read(connection: Connection) -> Briefing:
        found = of_address(connection, owner, now, live)
        if found is None:
            raise UnknownAddress(address=str(params.name), hint=" (no agent or person has this name now)")
        return found

    return await context.store.read_in_thread(read)


def of_address(connection: Connection, address: int, now: int, live: Live) -> Briefing | None:
    """Return the briefing of an agent or a person, by address id; None if it was deleted, or is neither."""
    agent, chief = agents.by_id(connection, address), boss.find_boss(connection)
    who = briefings.living(connection, address)
    if who is None or chief is None:
        return None
    unread = briefings.unread(connection, address, NEWEST)
    groups = briefings.groups(connection, address, GROUPS)
    schedules = briefings.next_schedules(connection, address, SCHEDULES)
    waiting = ask_answers.listed(connection, ask_answers.Query(address, limit=2 * ASKS))
    team = agents.others(connection, address, TEAM)
    timezone = boss.boss_timezone(connection)
    found: Briefing = {
        "address": who,
        "role": None if agent is None else agent["role"],
        "module": None if agent is None else agent["module"],
        "description": None if agent is None else agent["description"],
        "level": "boss" if address == chief["address"] else "standard" if agent is None else agent["level"],
        "mode": None if agent is None else agent["mode"],
        "boss": chief["name"],
        "now": clock.iso(now),
        "team": [_teammate(connection, row, live) for row in team],
        "more_team": briefings.number_of_others(connection, address) - len(team),
        "groups": [_group(row) for row in groups[:GROUPS]],
        "more_groups": len(groups) > GROUPS,
        "unread": unread.number,
        "unread_capped": unread.capped,
        "newest": [_unread(row) for row in unread.newest],
        "asked": [_ask(row, "asker") for row in waiting if row["asker"] != address][:ASKS],
        "asking": [_ask(row, "asked") for row in waiting if row["asker"] == address][:ASKS],
        "schedules": [_schedule(row) for row in schedules[:SCHEDULES]],
        "more_schedules": len(schedules) > SCHEDULES,
        "text": "",
        "timezone": timezone,
    }
    found["text"] = briefing_text.text(found, clock.zone(timezone))
    return found


def _teammate(connection: Connection, row: Row, live: Live) -> Teammate:
    state, _ = agent_states.state_and_presence(connection, row["id"], live)
    return {
        "name": row["name"],
        "role": row["role"],
        "module": row["module"],
        "description": row["description"],
        "state": state or "deleted",
    }


def _group(row: Row) -> MyGroup:
    return {"name": row["name"], "role": row["role"], "unread": row["unread"]}


def _unread(row: Row) -> UnreadLine:
    return {
        "id": f"e{row['id']}",
        "sender": row["sender"],
        "preview": shorten(row["subject"] or row["text"], PREVIEW),
        "created_at": clock.iso(row["created_at"]),
    }


def _ask(row: Row, other: str) -> AskLine:
    question = "" if row["question_deleted"] is not None else row["question"]
    return {
        "id": f"q{row['id']}",
        "address": row[f"{other}_address"],
        "question": shorten(question, PREVIEW),
    }


def _schedule(row: Row) -> ScheduleLine:
    return {
        "id": f"s{row['id']}",
        "name": row["name"],
        "next_at": clock.iso(row["next_at"]),
        "to": list(json.loads(row["recipients"] or "[]")),
        "preview": shorten(row["text"] or "", PREVIEW),
    }
