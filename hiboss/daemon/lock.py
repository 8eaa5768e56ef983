"""One daemon per home: a lock on daemon.pid, whose first word is the holder's pid."""

from __future__ import annotations

import fcntl
import os
import time

from .. import __version__
from ..core.errors import DaemonRunning, HomeUnusable
from ..core.paths import Home


class Lock:
    """Held as long as the process lives; the kernel releases it even after kill -9."""

    def __init__(self, home: Home) -> None:
        self._path = home.pid_file
        try:
            self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise HomeUnusable(home=str(home), why=f"{error.strerror} ({self._path})") from error
        if not self._acquire():
            word = os.read(self._file, 100).split()[:1]
            os.close(self._file)
            raise DaemonRunning(pid=word[0].decode() if word else "unknown", home=str(home))
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, f"{os.getpid()} {__version__}\n".encode(), 0)

    def _acquire(self) -> bool:
        """Tried for a moment: a command that asks who holds the lock takes it for an instant."""
        for _ in range(20):
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return True
            except OSError:
                time.sleep(0.01)
        return False

    def release(self) -> None:
        # The file stays (empty): unlinking it would let two daemons lock two files of one name.
        os.ftruncate(self._file, 0)
        os.close(self._file)
