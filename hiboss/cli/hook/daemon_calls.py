"""Calls of the daemon by hooks: with the token of the session, for a short time, and never with an error.

A report that the daemon could not take is kept in a file of the session, and the next daemon takes it.
"""

from __future__ import annotations

import json
import os
from typing import Any

from ...core.errors import HibossError
from ...core.paths import Home
from .. import client

SECONDS = 8.0  # for an answer: below the time limits that the harness has for its hooks
MOST_LATE_BYTES = 8 * 1024 * 1024


class NoAnswer(Exception):
    """The daemon is away, or refuses; `code` says why."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


def call(home: Home, method: str, params: dict[str, Any], seconds: float = SECONDS) -> dict[str, Any]:
    """Call an operation; raise NoAnswer for every error."""
    try:
        result = client.call(home, method, params, timeout=seconds)
    except client.Answered as error:
        raise NoAnswer(error.stable_code) from None
    except (HibossError, OSError, ValueError) as error:
        raise NoAnswer(getattr(error, "code", "unreachable")) from None
    return result if isinstance(result, dict) else {}


def keep(home: Home, client_name: str, session: str, report: dict[str, Any]) -> None:
    """Keep a report for the next daemon, if this session is attached."""
    if not home.known_session(client_name, session):
        return
    path = home.late_reports(client_name, session)
    line = json.dumps(report).encode() + b"\n"
    try:
        if os.path.exists(path) and os.path.getsize(path) > MOST_LATE_BYTES:
            return
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK
        descriptor = os.open(path, flags, 0o600)
        try:
            before = os.fstat(descriptor).st_size
            if os.write(descriptor, line) < len(line):
                os.ftruncate(descriptor, before)  # the disk is full: no half a line
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError:
        pass


def note_last(home: Home, client_name: str, facts: dict[str, Any]) -> None:
    """Note what a hook last did, for `hiboss hooks status`."""
    path = os.path.join(home.path, "sessions", f"last-hook-{client_name}.json")
    temporary = f"{path}.{os.getpid()}"
    try:
        with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            json.dump(facts, file)
        os.replace(temporary, path)
    except OSError:
        if os.path.exists(temporary):
            os.unlink(temporary)
