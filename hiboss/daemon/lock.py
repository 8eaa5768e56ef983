"""One daemon per home: a lock on the file daemon.pid, which contains the pid of its holder."""

from __future__ import annotations

import fcntl
import os
import time

from .. import __version__
from ..core.errors import DaemonRunning
from ..core.paths import Home, unusable


class Lock:
    """Held until the process ends; the kernel releases it also after kill -9."""

    def __init__(self, home: Home) -> None:
        self._path = home.pid_file
        try:
            self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise unusable(error, str(home), self._path) from error
        if not self._acquire():
            pid = os.read(self._file, 100).split()[:1]
            os.close(self._file)
            raise DaemonRunning(pid=pid[0].decode() if pid else "unknown", home=str(home))
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, f"{os.getpid()} {__version__}\n".encode(), 0)

    def _acquire(self) -> bool:
        """Try for 0.2 seconds: a command that checks who holds the lock takes it for a moment."""
        for _ in range(20):
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return True
            except OSError:
                time.sleep(0.01)
        return False

    def release(self) -> None:
        # The file stays, empty. If it were deleted, two daemons could lock two files of the same name.
        os.ftruncate(self._file, 0)
        os.close(self._file)
