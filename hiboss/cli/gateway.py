"""The HTTP door as commands see it: what the daemon says of it, once that is known."""

from __future__ import annotations

import time
from typing import Any

from ..core.paths import Home
from . import client, output

SECONDS = 10.0  # for the door to open: it is loaded after the daemon answers
POLL_SECONDS = 0.05


def settled() -> dict[str, Any]:
    """Return how the HTTP door is doing; while it starts, wait for some seconds."""
    home, end = Home(), time.monotonic() + SECONDS
    with output.ProgressBar("waiting for HTTP") as waiting:
        while True:
            found: dict[str, Any] = client.call(home, "daemon.status", {}, waiting=waiting)["web"]
            if found["state"] != "starting" or time.monotonic() > end:
                return found
            waiting()
            time.sleep(POLL_SECONDS)
