"""What hooks reported while no daemon answered: a line of JSON for each report, in a file for each session.

The hook writes it (hiboss/cli/hook), the next daemon takes it.
"""

from __future__ import annotations

import json
import logging
import os
from typing import Any

from ...core.paths import Home

log = logging.getLogger(__name__)
MOST_BYTES = 16 * 1024 * 1024


def take(home: Home, client: str, session: str) -> list[dict[str, Any]]:
    """Return the reports of a session, in their order. They come again until `done` is called."""
    path = home.late_reports(client, session)
    taken = f"{path}.taken"
    try:
        if not os.path.exists(taken):  # else a daemon died before it had finished with it
            os.rename(path, taken)
        with open(taken, "rb") as file:
            lines = file.read(MOST_BYTES).splitlines()
    except FileNotFoundError:
        return []
    except OSError as error:
        log.error("Late reports cannot be read: %s", error, extra={"action": "attached"})
        return []
    return [one for line in lines if (one := _report(line)) is not None]


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
    try:
        found = json.loads(line)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None
