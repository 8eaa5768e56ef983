"""What an agent has told about the tools that it uses now. A request for a permission need not repeat it."""

from __future__ import annotations

from ...json_lines import Line

KEPT = ("title", "kind", "content", "rawInput", "locations")


class ToolCalls:
    """What is known of each tool call that has not ended."""

    def __init__(self) -> None:
        self._known: dict[str, Line] = {}

    def take(self, given: Line) -> None:
        """Take a `tool_call` or a `tool_call_update`: what it names replaces what was known."""
        number = given.get("toolCallId")
        if not isinstance(number, str):
            return
        if given.get("status") in ("completed", "failed"):
            self._known.pop(number, None)
        else:
            self._known[number] = {**self._known.get(number, {}), **_told(given)}

    def whole(self, call: Line) -> Line:
        """Return a tool call of a request with all that is known of it."""
        number = call.get("toolCallId")
        known = self._known.get(number, {}) if isinstance(number, str) else {}
        return {**call, **known, **_told(call)}


def _told(given: Line) -> Line:
    return {name: given[name] for name in KEPT if given.get(name)}
