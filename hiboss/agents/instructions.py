"""The instructions of an agent: who it is and how it works here, for the system prompt of its harness.

The same state of the store gives the same text, whatever the time: model servers cache a prompt that stays
the same. Everything that somebody chose, like a description, is in quotes (core/escaping.py). The wording is
in instructions.md.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from string import Template
from typing import NamedTuple

from ..core.escaping import name, quote, visible
from ..core.paths import Home
from ..store import agents, bindings
from ..store.boss import find_boss
from ..store.connection import Connection, Row
from . import team_lines
from .memory_files import MEMORY, NOTES, SOUL

TEAM = 50  # other agents that are named
BINDINGS = 20  # accounts that are named
QUOTED = 200  # characters of a description

_AUTO = """\
Your final text is your answer. hiboss sends it, as Markdown, to the conversation of the turn. Do not send it
yourself as well.

- To say something while you still work, like progress: `hiboss reply e81 "I have begun."`, with the
  `envelope-id` of the mail.
- To write to somebody else: `hiboss send NAME "..."`. The answer comes as mail in a later turn, and your
  final text of that turn goes to whoever waits for you. So do not wait for it: end your turn.
- If there is nothing to say, your final text is `NO_REPLY` and nothing else."""
_EXPLICIT = """\
Your final text is sent to nobody; it is only kept with the run. Send each answer yourself, once.

- `hiboss reply e81 "..."` answers the mail with this `envelope-id`. Report progress in the same way.
- `hiboss send NAME "..."` writes to somebody else. The answer comes as mail in a later turn. So do not wait
  for it: end your turn.
- If there is nothing to say, send nothing."""
_REMINDER = "Your final text of that turn goes to whoever asked for it."


class Facts(NamedTuple):
    """What the instructions of an agent are made of."""

    agent: Row
    boss: str
    timezone: str
    bindings: Sequence[Row]
    team: Sequence[Row]


def facts(connection: Connection, agent: int) -> Facts | None:
    """Read what the instructions of an agent are made of; None if it was deleted."""
    row, boss = agents.by_id(connection, agent), find_boss(connection)
    if row is None or boss is None:
        return None
    return Facts(
        row,
        boss["name"],
        boss["timezone"] or "UTC",
        bindings.of_agent(connection, agent, BINDINGS + 1),
        agents.others(connection, agent, TEAM + 1),
    )


def text(found: Facts, home: Home, workspace: str, reply: str) -> str:
    """Write the instructions. `reply`: auto or explicit, as the turn has it."""
    auto = reply == "auto"
    return _template().substitute(
        name=found.agent["name"],
        you=_you(found.agent, workspace),
        boss=name(found.boss, QUOTED),
        timezone=found.timezone,
        reached=_reached(found),
        team=_team(found),
        answers=_AUTO if auto else _EXPLICIT,
        reminder=_REMINDER if auto else "",
        files=_files(home, workspace),
    )


@cache
def _template() -> Template:
    return Template(files(__package__).joinpath("instructions.md").read_text(encoding="utf-8").strip())


def _you(agent: Row, workspace: str) -> str:
    known = [
        ("address", f"agent:{agent['name']}"),
        *((key, _quoted(agent[key])) for key in ("role", "module", "description")),
        ("the name that people see", _quoted(agent["display"])),
        ("workspace", visible(workspace)),
    ]
    return "\n".join(f"- {key}: {value}" for key, value in known if value)


def _quoted(given: str | None) -> str | None:
    return quote(given, QUOTED) if given else None


def _reached(found: Facts) -> str:
    lines = [f"- in the terminal: `hiboss chat {found.agent['name']}`"]
    for one in found.bindings[:BINDINGS]:
        lines.append(f"- {visible(one['adapter'])}: {quote(one['name'] or one['account'], QUOTED)}")
    if len(found.bindings) > BINDINGS:
        lines.append("- and more: `hiboss agent bindings` lists all")
    return "\n".join(lines)


def _team(found: Facts) -> str:
    if not found.team:
        return "There are no other agents yet."
    lines = team_lines.lines(found.team[:TEAM], QUOTED)
    if len(found.team) > TEAM:
        lines.append("- and more: `hiboss agent list` lists all")
    return "\n".join([*lines, "", "`hiboss team` shows what each of them does now."])


def _files(home: Home, workspace: str) -> str:
    known = (
        (home.boss_file, "what your boss tells all agents. Do not change it."),
        (os.path.join(workspace, SOUL), "who you are. Change it only if your boss wants it."),
        (os.path.join(workspace, MEMORY), "what is worth keeping. Write it yourself, and keep it short."),
        (os.path.join(workspace, NOTES, "YYYY-MM-DD.md"), "the notes of a day. Write them yourself."),
    )
    return "\n".join(f"- {visible(path)}: {what}" for path, what in known)
