"""Named places where a test can make the daemon die as by kill -9.

`HIBOSS_CRASH_AT=store.after_commit:3` ends the process the third time that place is
passed. Without the variable a crash point costs one comparison.
"""

from __future__ import annotations

import os
import signal

BEFORE_WRITE = "store.before_write"
IN_GROUP = "store.in_group"
AFTER_COMMIT = "store.after_commit"
CLAIMED = "delivery.claimed"
POSTED = "delivery.posted"  # confirmed by the platform, not noted yet
SETTLED = "delivery.settled"
ARRIVING = "scheduler.arriving"
ARRIVED = "scheduler.arrived"
FOLDER_TAKEN = "folder.taken"
FOLDER_RECEIVED = "folder.received"
RUN_BEGUN = "runner.begun"
RUN_STARTED = "runner.started"  # its process runs, and nobody noted its pid yet
RUN_ANSWERED = "runner.answered"  # it has answered, and nothing is settled yet
RUN_SETTLED = "runner.settled"
SETUP_PROFILES = "setup.profiles_written"

_armed, _, _count = os.environ.get("HIBOSS_CRASH_AT", "").partition(":")
_passes_left = int(_count or 1)


def crashpoint(name: str) -> None:
    if name != _armed:
        return
    global _passes_left
    _passes_left -= 1
    if _passes_left <= 0:
        os.kill(os.getpid(), signal.SIGKILL)
