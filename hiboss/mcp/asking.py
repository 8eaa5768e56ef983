"""The tool `ask`: a question with options that waits for a person. Its id is a durable handle.

An answer may take days, and a tool call a minute at most. So a call that gets none in time returns the id,
and the next call with this id goes on waiting. Clients with the tasks extension get a task instead: the ask
is the task, so it also outlives this process.
"""

from __future__ import annotations

from typing import Any

from ..core.errors import InvalidParams
from .caller import Caller
from .mail_tools import TEXTS, wait_text
from .tool import Arguments, Tool

SHOWN = (
    "id",
    "state",
    "question",
    "options",
    "answer",
    "comment",
    "answered_by",
    "answered_at",
    "expires_at",
)
NEW = ("question", "options", "to", "timeout", "default")


def shown(one: dict[str, Any]) -> dict[str, Any]:
    """Return what a client needs of an ask."""
    found = {name: one[name] for name in SHOWN if one.get(name) is not None}
    if one["state"] == "open":
        found["next"] = f"no answer yet: call ask again with id {one['id']}"
    return found


async def create(caller: Caller, given: Arguments) -> dict[str, Any]:
    """Ask, or find what was asked before, and return the ask as it is now."""
    new = {name: given.pop(name) for name in NEW if name in given}
    number = given.pop("id", None)
    if given:
        raise InvalidParams(detail=f"ask takes no {', '.join(sorted(given))[:100]}")
    if (number is None) == (new.get("question") is None):
        raise InvalidParams(detail="ask: give a question, or the id of an ask that you wait for")
    if number is not None and new:
        raise InvalidParams(detail="ask: an ask that has an id was asked already; give its id alone")
    found = (
        await caller.call("ask.get", id=number)
        if number is not None
        else await caller.call("ask.create", **new)
    )
    one: dict[str, Any] = found["ask"]
    return one


async def _ask(caller: Caller, given: Arguments) -> dict[str, Any]:
    seconds = wait_text(given.pop("wait", None))
    one = await create(caller, given)
    if one["state"] == "open":
        one = (await caller.wait("ask.wait", id=one["id"], timeout=seconds))["ask"]
    return shown(one)


TOOLS = (
    Tool(
        name="ask",
        description="Ask a person, with options, and wait for the answer, at most 50 s. It is kept: "
        "with its id you wait on.",
        operations=("ask.create", "ask.get", "ask.wait"),
        run=_ask,
        params={
            "question": "what is asked",
            "options": {**TEXTS, "description": "default yes, no"},
            "to": "default user:boss",
            "timeout": "when it expires, like 1h",
            "default": "the option that counts then",
            "id": "of an ask you wait for, like q2",
            "wait": "how long now, like 30s",
        },
    ),
)
