"""The processes that a test has started, however they left it: they have a variable of it in their environment."""

from __future__ import annotations

from collections.abc import Collection

import psutil


def processes_with(name: str, values: Collection[str]) -> list[psutil.Process]:
    """Return the processes that live and have one of these values in a variable of their environment."""
    return [one for one in psutil.process_iter() if _variable_of(one, name) in values]


def words_of(process: psutil.Process) -> list[str]:
    """Return the command line of a process; nothing if it ended just now."""
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def _variable_of(process: psutil.Process, name: str) -> str | None:
    try:
        return None if process.status() == psutil.STATUS_ZOMBIE else process.environ().get(name)
    except psutil.Error:
        return None  # it ended just now, or belongs to somebody else
