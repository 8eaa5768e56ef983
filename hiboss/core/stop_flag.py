"""The flag of the breaker: a file in the home, which says that somebody stopped everything.

The command line leaves it when the daemon does not answer (hiboss/daemon/end_runs.py), and the daemon obeys
it (hiboss/agents/breaker.py). A spare file lies beside it, which becomes the flag by a new name: that works
on a full disk too.
"""

from __future__ import annotations

import json
import os
import stat
from typing import NamedTuple

from .paths import Home, replacing, sync_directory, unusable


class Flag(NamedTuple):
    """What the flag says."""

    pull: str  # identifies this flag among all that were and will be
    reason: str | None


class StopFlag:
    """The flag in one home. Only a regular file counts."""

    def __init__(self, home: Home) -> None:
        self._home = home.path
        self._path = os.path.join(home.path, "stop-all")
        self._spare = f"{self._path}.spare"

    def leave(self, reason: str | None) -> None:
        """Leave it for the daemon; it is on the disk when this returns. Raise StoreFull or HomeUnusable."""
        try:
            with replacing(self._path) as temporary:
                _write(temporary, {"reason": reason})
        except OSError as error:
            if self.is_there():  # from before: everything stays stopped
                return
            try:
                os.replace(self._spare, self._path)
                sync_directory(self._home)
            except OSError:
                raise unusable(error, self._home, self._path) from error

    def is_there(self) -> bool:
        try:
            return stat.S_ISREG(os.lstat(self._path).st_mode)
        except OSError:
            return False

    def read(self) -> Flag | None:
        """Return what it says; None if there is none. One that cannot be read counts too."""
        try:
            found = os.lstat(self._path)
        except OSError:
            return None
        if not stat.S_ISREG(found.st_mode):
            return None
        # Each is a file of its own. So also what a person put there is told from the one before.
        return Flag(f"{found.st_ino:x}.{found.st_mtime_ns:x}", _reason(self._path))

    def take(self) -> None:
        """Delete it, durably."""
        try:
            os.unlink(self._path)
            sync_directory(self._home)
        except FileNotFoundError:
            pass
        except OSError as error:
            raise unusable(error, self._home, self._path) from error
        self.keep_spare()

    def keep_spare(self) -> None:
        """Make the spare file if it is missing and there is space."""
        try:
            if not os.path.exists(self._spare):
                with replacing(self._spare) as temporary:
                    _write(temporary, {"reason": None})
        except OSError:
            pass  # it is made at the next start


def _write(path: str, words: dict[str, str | None]) -> None:
    with open(path, "w", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
        json.dump(words, file)
        file.flush()
        os.fsync(file.fileno())


def _reason(path: str) -> str | None:
    try:
        with open(path, encoding="utf-8") as file:
            found = json.load(file)
    except (OSError, ValueError):
        return None
    reason = found.get("reason") if isinstance(found, dict) else None
    return reason if isinstance(reason, str) else None
