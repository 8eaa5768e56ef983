"""The tools of the MCP door: one table. Each translates its arguments into a call of an operation.

Descriptions are short: every client pays for the whole list, in each of its conversations. A parameter that
is not listed here goes to the operation as it is, which refuses what it does not know.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from ..core.errors import InvalidParams, MethodNotFound
from ..core.quoting import nearest
from .caller import Caller

Arguments = dict[str, Any]
Run = Callable[[Caller, Arguments], Awaitable[dict[str, Any]]]
EFFECTS = ("read", "idempotent", "change", "destructive")  # the mildest first


@dataclass(frozen=True, kw_only=True, slots=True)
class Tool:
    name: str
    description: str
    operations: tuple[str, ...]  # that it may call; the strongest of their effects is its own
    run: Run
    params: Mapping[str, Any]  # name → JSON schema, or in short its description: then it is a text
    required: tuple[str, ...] = ()
    dotted: str | None = None  # the name that the seed gave it; several clients refuse dots

    @property
    def schema(self) -> dict[str, Any]:
        shown = {name: _schema(one) for name, one in self.params.items()}
        found: dict[str, Any] = {"type": "object", "properties": shown}
        return {**found, "required": list(self.required)} if self.required else found

    def hints(self, effects: Mapping[str, str]) -> dict[str, bool]:
        """Return what a client should know before it calls: from the effects of the operations."""
        effect = max((effects[name] for name in self.operations), key=EFFECTS.index)
        if effect == "read":
            return {"readOnlyHint": True}
        hints = {"destructiveHint": effect == "destructive"}
        return {**hints, "idempotentHint": True} if effect == "idempotent" else hints


def _schema(given: Any) -> dict[str, Any]:
    return {"type": "string", "description": given} if isinstance(given, str) else dict(given)


@cache
def table() -> dict[str, Tool]:
    """Return every tool by its name, in the order in which they are listed."""
    from . import asking, chat_tools, mail_tools  # they import what is above

    return {one.name: one for one in (*chat_tools.TOOLS, *mail_tools.TOOLS, *asking.TOOLS)}


def find(name: str) -> Tool:
    """Return the tool of this name, also of a dotted one; raises MethodNotFound."""
    known = table()
    if name in known:
        return known[name]
    dotted = {one.dotted: one for one in known.values() if one.dotted}
    if name in dotted:
        return dotted[name]
    raise MethodNotFound(method=name[:100], hint=nearest(name, list(known)))


async def run(caller: Caller, name: str, arguments: Arguments | None) -> dict[str, Any]:
    """Call a tool and return its result; raises a HibossError."""
    tool, given = find(name), dict(arguments or {})
    missing = [one for one in tool.required if given.get(one) is None]
    if missing:
        raise InvalidParams(detail=f"{tool.name} needs {', '.join(missing)}")
    return await tool.run(caller, given)
