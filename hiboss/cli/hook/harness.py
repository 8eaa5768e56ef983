"""Which harness runs this hook: its process, its session, and whether a person sits there."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

PROGRAMS = {"claude": ("claude",), "codex": ("codex",)}
MOST_ANCESTORS = 12


class Process(NamedTuple):
    """A process, and when it started: pids are used again."""

    pid: int
    started: str
    terminal: int  # the number of its terminal; 0: it has none


class Stat(NamedTuple):
    """What /proc says of a process."""

    name: str
    parent: int
    terminal: int
    started: str


def stat_of(pid: int) -> Stat | None:
    """Return what /proc says of a process; None if there is none."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            line = file.read().decode(errors="replace")
    except OSError:
        return None
    name, _, rest = line.partition("(")[2].rpartition(")")
    words = rest.split()
    return Stat(name, int(words[1]), int(words[4]), words[19])


def ancestors(pid: int) -> list[tuple[int, Stat]]:
    """Return a process and those above it, the nearest first."""
    found: list[tuple[int, Stat]] = []
    while pid > 1 and len(found) < MOST_ANCESTORS and (stat := stat_of(pid)) is not None:
        found.append((pid, stat))
        pid = stat.parent
    return found


def process(client: str) -> Process | None:
    """Return the process of the harness that runs this hook: the nearest of its name above us."""
    above = ancestors(os.getppid())
    for pid, stat in above:
        if stat.name in PROGRAMS[client] or _program(pid) in PROGRAMS[client]:
            return Process(pid, stat.started, stat.terminal)
    return None


def _program(pid: int) -> str:
    try:
        return os.path.basename(os.readlink(f"/proc/{pid}/exe"))
    except OSError:
        return ""


def is_open_session(client: str, event: dict[str, Any]) -> bool:
    """Tell whether a person has this harness open; not `claude -p`, not a run of hiboss itself."""
    if os.environ.get("HIBOSS_RUN"):
        return False
    if client == "claude":
        return os.environ.get("CLAUDE_CODE_ENTRYPOINT", "cli") == "cli"
    return True


def details(client: str, event: dict[str, Any]) -> dict[str, str | bool]:
    """Return how the doors of this session are found."""
    found: dict[str, str | bool] = {"transcript": str(event.get("transcript_path") or "")}
    if client == "claude":
        found["config"] = os.environ.get("CLAUDE_CONFIG_DIR") or os.path.expanduser("~/.claude")
    else:
        found["codex_home"] = os.environ.get("CODEX_HOME") or os.path.expanduser("~/.codex")
    return found
