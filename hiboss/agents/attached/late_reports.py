"""What hooks reported while no daemon answered: a line of JSON for each report, in a file for each session.

The hook writes it (hiboss/cli/hook), the next daemon takes it.
"""

from __future__ import annotations

import errno
import json
import logging
import os
import re
import stat
from typing import Any

from ...core.paths import Home

log = logging.getLogger(__name__)
MOST_BYTES = 16 * 1024 * 1024
_EVENT = re.compile(r"[A-Za-z0-9-]{1,64}")


def take(home: Home, client: str, session: str) -> list[dict[str, Any]] | None:
    """Return the reports of a session, in their order; None: there are none. They come again until `done`."""
    path = home.late_reports(client, session)
    taken = f"{path}.taken"
    try:
        if not os.path.lexists(taken):  # else a daemon died before it had finished with it
            os.rename(path, taken)
        lines = _read(taken).splitlines()
    except FileNotFoundError:
        return None
    except OSError as error:
        log.error("Late reports cannot be read: %s", error, extra={"action": "attached"})
        return []
    return [one for line in lines if (one := _report(line)) is not None]


def _read(path: str) -> bytes:
    """Read a regular file, and nothing else: a pipe would hold the daemon."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with open(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "it is no regular file", path)
        return file.read(MOST_BYTES)


def done(home: Home, client: str, session: str) -> None:
    """Forget the reports that were taken: what they change is stored."""
    _unlink(f"{home.late_reports(client, session)}.taken")


def discard(home: Home, client: str, session: str) -> None:
    """Forget all reports of a session: it is over."""
    done(home, client, session)
    _unlink(home.late_reports(client, session))


def _unlink(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        pass


def _report(line: bytes) -> dict[str, Any] | None:
    """Return a report, if it has the form that a hook writes."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or found.get("kind") not in ("prompt", "stop"):
        return None
    event = found.get("event")
    return found if isinstance(event, str) and _EVENT.fullmatch(event) else None
