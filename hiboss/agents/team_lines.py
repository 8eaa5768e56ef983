"""The lines about other agents, for instructions and briefings. What somebody chose is in quotes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..core.escaping import quote

ABOUT = ("role", "module", "description")


def about(agent: Mapping[str, Any] | Any, limit: int) -> list[str]:
    """Return what an agent is for, like role "writer"; of each value at most `limit` characters."""
    return [f"{key} {quote(agent[key], limit)}" for key in ABOUT if agent[key]]


def lines(agents: Iterable[Any], limit: int, states: Mapping[str, str] | None = None) -> list[str]:
    """Return one line for each agent, by name. `states`: of each by its name; None: they are not told."""
    return sorted((_line(one, limit, states or {}) for one in agents), key=str.lower)


def _line(agent: Any, limit: int, states: Mapping[str, str]) -> str:
    known = [states[agent["name"]]] if agent["name"] in states else []
    known += about(agent, limit)
    return f"- agent:{agent['name']}" + (f": {', '.join(known)}" if known else "")
