"""Which harness runs this hook: its process, its session, and whether a person sits there."""

from __future__ import annotations

import json
import os
from typing import Any, NamedTuple

MOST_ANCESTORS = 1_000
MOST_LINE = 1 << 20


class Process(NamedTuple):
    """A process, and when it started: pids are used again."""

    pid: int
    started: str


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
    """Return the process of the harness that runs this hook: the one that it names, else the nearest above."""
    own = os.environ.get("CLAUDE_PID", "") if client == "claude" else ""
    if own.isdecimal() and own.isascii() and len(own) < 10 and (stat := stat_of(int(own))) is not None:
        return Process(int(own), stat.started)
    for pid, stat in ancestors(os.getppid()):
        if stat.name == client or _program(pid) == client:
            return Process(pid, stat.started)
    return None


def _program(pid: int) -> str:
    try:
        return os.path.basename(os.readlink(f"/proc/{pid}/exe"))
    except OSError:
        return ""


def is_open_session(client: str, event: dict[str, Any]) -> bool:
    """Tell whether a person has this harness open; not `claude -p`, not `codex exec`, not a run of hiboss."""
    if os.environ.get("HIBOSS_RUN"):
        return False
    if client == "claude":
        return os.environ.get("CLAUDE_CODE_ENTRYPOINT") == "cli"
    return _originator(str(event.get("transcript_path") or "")) == "codex-tui"


def may_be_open(client: str, process: Process) -> bool:
    """Tell whether a person may have this harness open, before it says so itself (`is_open_session`)."""
    if client == "claude":
        return os.environ.get("CLAUDE_CODE_ENTRYPOINT") == "cli"
    words = _command(process.pid).split(b"\0")
    if b"app-server" in words:  # of the terminals, or of a program that speaks to it
        return b"--managed-daemon" in words
    return b"exec" not in words


def variable_of(process: Process, name: str) -> str:
    """Return a variable of a process as it was started; empty: it has none, or this is no Linux."""
    try:
        with open(f"/proc/{process.pid}/environ", "rb") as file:
            known = file.read().split(b"\0")
    except OSError:
        return ""
    start = os.fsencode(f"{name}=")
    return next((os.fsdecode(one[len(start) :]) for one in known if one.startswith(start)), "")


def _originator(transcript: str) -> str:
    """Return which program began a thread of Codex, by the first line of its file."""
    try:
        with open(transcript, "rb") as file:
            return str(json.loads(file.readline(MOST_LINE))["payload"]["originator"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def details(client: str, event: dict[str, Any], process: Process) -> dict[str, str | bool | int]:
    """Return how the doors of this session are found."""
    found: dict[str, str | bool | int] = {"transcript": str(event.get("transcript_path") or "")}
    if client == "claude":
        found["config"] = os.environ.get("CLAUDE_CONFIG_DIR") or os.path.expanduser("~/.claude")
        found["socket"] = os.environ.get("CLAUDE_CODE_MESSAGING_SOCKET") or ""
        return found
    found["codex_home"] = os.environ.get("CODEX_HOME") or os.path.expanduser("~/.codex")
    found["shared_process"] = b"app-server" in _command(process.pid)
    if found["shared_process"]:
        found["terminals"] = _terminals(str(event.get("cwd") or ""), process.pid)
    return found


def _terminals(directory: str, daemon: int) -> int:
    """Count the Codexes that are open in a directory. Its daemon keeps the threads of those that were closed."""
    found = 0
    for name in filter(str.isdigit, os.listdir("/proc")):
        stat = stat_of(int(name))
        if stat is None or stat.name != "codex" or not stat.terminal or int(name) == daemon:
            continue
        try:
            found += os.readlink(f"/proc/{name}/cwd") == os.path.realpath(directory)
        except OSError:
            pass
    return found


def _command(pid: int) -> bytes:
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read()
    except OSError:
        return b""
