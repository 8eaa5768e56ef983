"""The tools about mail: send, look, claim, acknowledge, reply, wait; the team; schedules."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..core import clock
from ..core.errors import HibossError, InvalidParams
from ..core.ids import LARGEST
from .caller import Caller
from .tool import Arguments, Tool

LONGEST_WAIT_MS = 50_000  # Codex gives a tool about 60 s
# What a client needs of an envelope; the rest is for programs (message.get, /api/messages).
SHOWN = (
    *("id", "message", "conversation", "thread", "from", "from_name", "to", "group", "reply_to", "quote"),
    *("subject", "text", "type", "priority", "created_at", "ack_by", "attachments", "redelivered", "status"),
)
TEAM_SHOWN = ("name", "role", "module", "description", "mode", "state", "presence", "due")
TEXT = {"type": "string"}
TEXTS = {"type": "array", "items": TEXT}


def wait_text(given: Any) -> str:
    """Return how long to wait, as the daemon takes it: at most 50 s, whatever was asked for."""
    if given is None:
        return f"{LONGEST_WAIT_MS // 1000}s"
    text = f"{given}s" if isinstance(given, (int, float)) and not isinstance(given, bool) else str(given)
    return f"{min(clock.duration(text, most=LARGEST), LONGEST_WAIT_MS) / 1000:g}s"


def envelope(one: dict[str, Any]) -> dict[str, Any]:
    """Return what is shown of an envelope: what it has of the fields that matter."""
    return {name: one[name] for name in SHOWN if one.get(name) not in (None, "", [], False)}


def envelopes(found: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    return [envelope(one) for one in found]


async def _send(caller: Caller, given: Arguments) -> dict[str, Any]:
    sent: dict[str, Any] = await caller.call("envelope.send", **given)
    return sent


async def _inbox(caller: Caller, given: Arguments) -> dict[str, Any]:
    asked = {"unread": True, **given}
    if "limit" in asked:
        asked["page_size"] = asked.pop("limit")
    found = await caller.call("envelope.list", box="inbox", **asked)
    return {
        "envelopes": envelopes(found["envelopes"]),
        "next": found.get("next"),
        "total": found.get("total"),
    }


async def _claim(caller: Caller, given: Arguments) -> dict[str, Any]:
    found = await caller.call("envelope.claim", **given)
    return {"envelopes": envelopes(found["envelopes"]), "claim": found["claim"], "until": found["until"]}


async def _ack(caller: Caller, given: Arguments) -> dict[str, Any]:
    found: dict[str, Any] = await caller.call("envelope.ack", **given)
    return found


async def _reply(caller: Caller, given: Arguments) -> dict[str, Any]:
    answered = given.pop("id")
    sent: dict[str, Any] = await caller.call("envelope.send", **{**given, "reply_to": answered})
    try:
        await caller.call("envelope.read", ids=[answered])
    except HibossError:
        pass  # it is in nobody's box whom this client may act for; the reply is sent
    return sent


async def _wait(caller: Caller, given: Arguments) -> dict[str, Any]:
    asked = {**given, "timeout": wait_text(given.get("timeout"))}
    found = await caller.wait("envelope.wait", **asked)
    shown = envelopes(found["envelopes"])
    return {"envelopes": shown, "next": found["next"], "timed_out": found["timed_out"]}


async def _team(caller: Caller, given: Arguments) -> dict[str, Any]:
    known = {one["name"]: one for one in (await caller.call("agent.list", **given))["agents"]}
    found = []
    for one in (await caller.call("agent.team"))["team"]:
        if one["name"] in known:
            both = {**known[one["name"]], **one}
            found.append({name: both[name] for name in TEAM_SHOWN if both.get(name)})
    return {"team": found}


async def _schedule(caller: Caller, given: Arguments) -> dict[str, Any]:
    found: dict[str, Any]
    if (ended := given.pop("delete", None)) is not None:
        if given:
            raise InvalidParams(detail="schedule: give delete alone, or what to send and when")
        found = await caller.call("cron.delete", id=ended)
    elif given:
        found = await caller.call("cron.create", **given)
    else:
        found = await caller.call("cron.list")
    return found


TOOLS = (
    Tool(
        name="send",
        description="Send durable mail to agents, people or groups, now or later.",
        operations=("envelope.send",),
        run=_send,
        params={
            "to": {**TEXTS, "description": "like agent:nex, user:boss, group:core"},
            "text": TEXT,
            "subject": TEXT,
            "type": {"type": "string", "enum": ["text", "markdown", "json", "html"]},
            "priority": {"type": "string", "enum": ["critical", "high", "normal", "low"]},
            "deliver_at": "like +2h, or an ISO time",
            "key": "a repeated call with the same key sends nothing",
        },
        required=("to", "text"),
    ),
    Tool(
        name="inbox",
        description="Show your unread mail. It marks nothing.",
        operations=("envelope.list",),
        run=_inbox,
        params={
            "unread": {"type": "boolean", "description": "false: read mail too"},
            "limit": {"type": "integer"},
            "after": "the next of the page before",
        },
    ),
    Tool(
        name="claim",
        description="Take the next due mail for a while; ack it when done, else it comes back.",
        operations=("envelope.claim",),
        run=_claim,
        params={"limit": {"type": "integer"}, "lease": "like 10m"},
    ),
    Tool(
        name="ack",
        description="Acknowledge mail: it is done.",
        operations=("envelope.ack",),
        run=_ack,
        params={"ids": {**TEXTS, "description": "like e81"}, "claim": "of claim, like k7"},
        required=("ids",),
    ),
    Tool(
        name="reply",
        description="Answer mail, to all in its thread; it goes where the mail came from.",
        operations=("envelope.send", "envelope.read"),
        run=_reply,
        params={
            "id": "what you answer, like e81",
            "text": TEXT,
            "type": {"type": "string", "enum": ["text", "markdown"]},
            "to_sender": {"type": "boolean", "description": "only to its sender"},
            "key": "as in send",
        },
        required=("id", "text"),
    ),
    Tool(
        name="wait",
        description="Wait until there is unread mail, at most 50 s. It marks nothing.",
        operations=("envelope.wait",),
        run=_wait,
        params={"timeout": "like 30s", "after": "the next of the last answer"},
    ),
    Tool(
        name="team",
        description="Show the agents and what they do now.",
        operations=("agent.list", "agent.team"),
        run=_team,
        params={},
    ),
    Tool(
        name="schedule",
        description="Send mail at a time or again and again (cron, every or at). Without arguments: list; "
        "with delete: end one.",
        operations=("cron.create", "cron.list", "cron.delete"),
        run=_schedule,
        params={
            "cron": "five fields",
            "every": "like 2h",
            "at": "like +2h",
            "to": TEXTS,
            "text": TEXT,
            "name": TEXT,
            "delete": "like s3",
        },
    ),
)
