"""Agents that say they can resume a session, and cannot: gemini 0.61 is one.

A session may be lost for a good reason. But if every one is, each turn would begin with a failure and a note
about it. So after some failures in a row nothing is resumed any more, until the daemon starts anew: a newer
version of the agent may do better.
"""

from __future__ import annotations

MOST_FAILURES = 2

_failures: dict[str, int] = {}  # in a row, by command


def failed(command: str) -> bool:
    """Note that a session could not be resumed. Return whether that was once too often."""
    _failures[command] = _failures.get(command, 0) + 1
    return given_up(command)


def succeeded(command: str) -> None:
    _failures.pop(command, None)


def given_up(command: str) -> bool:
    return _failures.get(command, 0) >= MOST_FAILURES
