"""Open SQLite with the settings hiboss needs, and translate its errors."""

from __future__ import annotations

import os
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..core.errors import HibossError, HomeUnusable, StoreDamaged, StoreError, StoreFull, StoreLocked
from ..core.paths import Home, unusable

Connection = sqlite3.Connection
Row = sqlite3.Row

MINIMUM = (3, 37, 0)  # STRICT tables
KEPT = 100  # answers, of at most
KEPT_BYTES = 65_536  # bytes each


class Reader(sqlite3.Connection):
    """A connection that only reads. It keeps answers that were made of rows, until the database changes."""

    _version: int | None = None
    _kept: dict[Any, Any]

    def kept(self) -> dict[Any, Any]:
        """Return what is kept, empty after any change. Call it inside the transaction that reads the rows."""
        version: int = self.execute("PRAGMA data_version").fetchone()[0]
        if version != self._version or len(self._kept) > KEPT:
            self._version, self._kept = version, {}
        return self._kept


def connect(home: Home, *, wait_seconds: float, read_only: bool = False) -> Connection:
    """Open a connection in autocommit mode: BEGIN and COMMIT are explicit."""
    if sqlite3.sqlite_version_info < MINIMUM:
        detail = f"SQLite {sqlite3.sqlite_version} is too old, {'.'.join(map(str, MINIMUM))} is needed"
        raise StoreError(path=home.database, detail=detail)
    _create_private(home)
    try:
        connection = sqlite3.connect(
            home.database,
            timeout=wait_seconds,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=256,
            factory=Reader if read_only else sqlite3.Connection,
        )
    except sqlite3.Error as error:
        raise translate(error, home) from error
    connection.row_factory = sqlite3.Row
    try:
        _configure(connection, read_only=read_only)
    except sqlite3.Error as error:
        connection.close()
        raise translate(error, home) from error
    return connection


@contextmanager
def reading(home: Home, *, wait_seconds: float) -> Iterator[Connection]:
    """Open a connection that only reads, beside a daemon or without one; close it at the end."""
    connection = connect(home, wait_seconds=wait_seconds, read_only=True)
    try:
        yield connection
    except sqlite3.Error as error:
        raise translate(error, home) from error
    finally:
        connection.close()


def _create_private(home: Home) -> None:
    """Create the database file, if it is missing, with mode 0600.

    SQLite itself would create it readable for others, if only briefly.

    DANGER: never open an existing database here. To close any descriptor of a file drops all
    POSIX locks that this process has on it; another program would then believe that it is
    the last user, and delete the WAL which this process still writes to.
    """
    try:
        os.close(os.open(home.database, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    except FileExistsError:
        pass
    except OSError as error:
        raise unusable(error, str(home), home.database) from error


def _configure(connection: Connection, *, read_only: bool) -> None:
    if not read_only:
        connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA wal_autocheckpoint = 8000")
    connection.execute("PRAGMA cache_size = -16000")
    connection.execute("PRAGMA temp_store = MEMORY")
    if sys.platform == "darwin":
        connection.execute("PRAGMA fullfsync = ON")
    if read_only:
        connection.execute("PRAGMA query_only = ON")


# The codes of errors about one statement and its values. Python raises OperationalError for a missing
# table as for a full disk. Without a code (0), Python's own module refused a value.
_STATEMENT_CODES = frozenset(
    {
        0,
        sqlite3.SQLITE_ERROR,
        sqlite3.SQLITE_TOOBIG,
        sqlite3.SQLITE_CONSTRAINT,
        sqlite3.SQLITE_MISMATCH,
        sqlite3.SQLITE_MISUSE,
        sqlite3.SQLITE_RANGE,
    }
)


def about_a_statement(error: sqlite3.Error) -> bool:
    """Tell whether an error is about one statement, so a defect of ours; all others are about the file."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in _STATEMENT_CODES


def translate(error: sqlite3.Error, home: Home) -> HibossError:
    """Return the HibossError for an error of SQLite; the caller's operation was rolled back."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    path = home.database
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return StoreLocked(path=path)
    if code == sqlite3.SQLITE_FULL or (code == sqlite3.SQLITE_IOERR and _is_full(home)):
        return StoreFull(path=path)
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return StoreDamaged(path=path, detail=str(error), backups=home.backups)
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM):
        return HomeUnusable(home=str(home), why=f"{error} ({path})")
    return StoreError(path=path, detail=str(error))


def _is_full(home: Home) -> bool:
    # A full disk can also cause an I/O error (when the WAL's shared memory cannot grow).
    try:
        disk = os.statvfs(home.path)
    except OSError:
        return False
    return disk.f_bavail * disk.f_frsize < 1024 * 1024
