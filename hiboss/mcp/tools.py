"""Every tool of the MCP door: one table, and how a tool is called."""

from __future__ import annotations

from typing import Any

from ..core.errors import InvalidParams, UnknownTool
from ..core.quoting import nearest
from . import asking, chat_tools, mail_tools
from .caller import Caller
from .tool import Arguments, Tool

# In the order in which they are listed.
TABLE = {one.name: one for one in (*chat_tools.TOOLS, *mail_tools.TOOLS, *asking.TOOLS)}
DOTTED = {one.dotted: one for one in TABLE.values() if one.dotted}


def find(name: str) -> Tool:
    """Return the tool of this name, also of a dotted one; raises UnknownTool."""
    found = TABLE.get(name) or DOTTED.get(name)
    if found is None:
        raise UnknownTool(name=name[:100], hint=nearest(name, list(TABLE)))
    return found


async def run(caller: Caller, name: str, arguments: Arguments | None) -> dict[str, Any]:
    """Call a tool and return its result; raises a HibossError."""
    tool, given = find(name), dict(arguments or {})
    missing = [one for one in tool.required if given.get(one) is None]
    if missing:
        raise InvalidParams(detail=f"{tool.name} needs {', '.join(missing)}")
    return await tool.run(caller, given)
