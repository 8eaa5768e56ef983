"""What a tool of the MCP door is. Each translates its arguments into calls of operations.

Descriptions are short: every client pays for the whole list, in each of its conversations. A parameter that
is not listed goes to the operation as it is, which refuses what it does not know.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

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
