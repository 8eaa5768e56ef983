"""The files that the program keeps of its sessions: whether one is saved, and whether somebody has it open.

A session is `projects/<directory>/<id>.jsonl` in its configuration directory. A running claude notes its
session in `sessions/<pid>.json` there. Nothing is written here.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

from ... import process_control, process_table

PROC = Path("/proc")
NOTE_BYTES = 100_000


def directory(environment: Mapping[str, str]) -> Path:
    """Return the configuration directory of the program."""
    named = environment.get("CLAUDE_CONFIG_DIR")
    if named:
        return Path(named)
    return Path(environment.get("HOME") or os.path.expanduser("~"), ".claude")


def saved_bytes(environment: Mapping[str, str], session: str) -> int | None:
    """Return the size of what is saved of a session; None if nothing is."""
    found = None
    try:
        for project in os.scandir(directory(environment) / "projects"):
            try:
                size = os.stat(os.path.join(project.path, f"{session}.jsonl")).st_size
            except OSError:
                continue
            found = max(found or 0, size)
    except OSError:
        return None
    return found


def holder(environment: Mapping[str, str], session: str) -> str:
    """Return which process has a session open, like `claude (pid 1234)`; an empty text if none has."""
    pid = _noted(directory(environment) / "sessions", session) or _named(session)
    return f"claude (pid {pid})" if pid else ""


def _noted(notes: Path, session: str) -> int | None:
    """Return the running process that notes this session as its own."""
    try:
        files = [one for one in notes.iterdir() if one.suffix == ".json" and one.stem.isdigit()]
    except OSError:
        return None
    for file in files:
        try:
            noted = json.loads(file.read_bytes()[:NOTE_BYTES])
        except (OSError, ValueError):
            continue
        if isinstance(noted, dict) and noted.get("sessionId") == session and _runs(int(file.stem), noted):
            return int(file.stem)
    return None


def _runs(pid: int, noted: Mapping[str, object]) -> bool:
    """Tell whether the process of a note still runs: a number can be given to another one later."""
    if pid == os.getpid() or _is_dead(pid):
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:  # of another user
        pass
    started = process_control.started_at(pid)
    return started is None or noted.get("procStart") in (None, started)


def _is_dead(pid: int) -> bool:
    """Tell whether a process has ended and only its parent has not noticed: it has nothing open any more."""
    stat = process_table.stat_of(pid)
    return stat is not None and stat.is_dead


def _named(session: str) -> int | None:
    """Return a running claude that has this session in its arguments."""
    try:
        pids = [int(one) for one in os.listdir(PROC) if one.isdigit()]
    except OSError:
        return None
    for pid in pids:
        try:
            words = (PROC / str(pid) / "cmdline").read_bytes().decode("utf-8", "replace").split("\0")
        except OSError:
            continue
        is_claude = any("claude" in os.path.basename(one) for one in words[:2])
        if session in words and is_claude and pid != os.getpid() and not _is_dead(pid):
            return pid
    return None
