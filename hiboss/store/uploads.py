"""Uploads: files that a caller gave to a door, and that wait to be attached to a message of the same caller.

Their bytes are in `media/.uploads/` (hiboss/routing/uploads.py). The row of one goes in the transaction that
uses it, so it is used once. What takes a Tx runs inside the writer.
"""

from __future__ import annotations

from typing import NamedTuple

from ..core.errors import NotFound, TooLarge
from ..core.settings import Settings
from .connection import Connection, Row
from .group_commit import Tx

_COLUMNS = "id, file, name, mime, size, sha256, created_at, expires_at"


class Upload(NamedTuple):
    """A file that was uploaded."""

    id: int
    file: str  # its name in media/.uploads/
    name: str
    mime: str
    size: int
    sha256: str
    created_at: int
    expires_at: int


class Handed(NamedTuple):
    """The uploads that a request names, and who makes it."""

    holder: int  # address id
    numbers: tuple[int, ...] = ()


class Held(NamedTuple):
    """How much somebody has uploaded and not used."""

    number: int
    size: int  # bytes


def held(connection: Connection | Tx, holder: int) -> Held:
    """Return how much a holder has uploaded and not used."""
    row = connection.execute(
        "SELECT count(*), ifnull(sum(size), 0) FROM upload WHERE holder = ?", (holder,)
    ).fetchone()
    return Held(*row)


def check_room(settings: Settings, has: Held) -> None:
    """Raise TooLarge if somebody has more than the limits allow."""
    advice = "; send or delete some of them first, or wait until they expire"
    if has.number > settings.caller_uploads:
        size = f"{has.number} files"
        limit = f"{settings.caller_uploads} (uploads.caller_uploads)"
        raise TooLarge(what="what you uploaded and did not send", size=size, limit=limit, advice=advice)
    if has.size > settings.caller_bytes:
        size = f"{has.size} bytes"
        limit = f"{settings.caller_bytes} (uploads.caller_bytes)"
        raise TooLarge(what="what you uploaded and did not send", size=size, limit=limit, advice=advice)


def insert(tx: Tx, holder: int, upload: Upload) -> Upload:
    """Store an upload, whose `id` is given here; raise TooLarge if its holder has too much."""
    has = held(tx, holder)
    check_room(tx.settings, Held(has.number + 1, has.size + upload.size))
    row = tx.execute(
        """
        INSERT INTO upload (holder, file, name, mime, size, sha256, created_at, expires_at)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?) RETURNING id
        """,
        (holder, *upload[1:]),
    ).fetchone()
    return upload._replace(id=row["id"])


def find(tx: Tx, handed: Handed, now: int) -> list[Upload]:
    """Return the uploads that a request names; raise NotFound for a foreign or an expired one."""
    query = f"SELECT {_COLUMNS} FROM upload WHERE id = ? AND holder = ? AND expires_at > ?"
    found = []
    for number in handed.numbers:
        row = tx.execute(query, (number, handed.holder, now)).fetchone()
        if row is None:
            raise unknown(number)
        found.append(_upload(row))
    return found


def use(tx: Tx, handed: Handed) -> None:
    """Remove uploads because a message or a schedule has them now; raise NotFound if one is gone."""
    for number in handed.numbers:
        query = "DELETE FROM upload WHERE id = ? AND holder = ?"
        if not tx.execute(query, (number, handed.holder)).rowcount:
            raise unknown(number)


def unknown(number: int) -> NotFound:
    """Return the error for an upload that somebody does not have."""
    return NotFound(what="upload", value=f"u{number}", where="upload.list")


def delete(tx: Tx, handed: Handed, now: int) -> list[str]:
    """Delete uploads; return the names of their files. With one that is not there none is deleted."""
    files = [one.file for one in find(tx, handed, now)]
    use(tx, handed)
    return files


def listed(connection: Connection, holder: int, now: int) -> list[Upload]:
    """Return what somebody has uploaded and not used, oldest first. The limits bound how many there are."""
    rows = connection.execute(
        f"SELECT {_COLUMNS} FROM upload WHERE holder = ? AND expires_at > ? ORDER BY id", (holder, now)
    )
    return [_upload(row) for row in rows]


def next_expiry(connection: Connection) -> int | None:
    """Return when the next upload expires; None: there is none."""
    row = connection.execute("SELECT min(expires_at) FROM upload").fetchone()
    return None if row[0] is None else int(row[0])


def remove_expired(tx: Tx, now: int, limit: int) -> list[str]:
    """Remove uploads that have expired, at most so many; return the names of their files."""
    rows = tx.execute(
        """
        DELETE FROM upload WHERE id IN (
            SELECT id FROM upload WHERE expires_at <= ? ORDER BY expires_at LIMIT ?) RETURNING file
        """,
        (now, limit),
    ).fetchall()
    return [row["file"] for row in rows]


def is_stored(connection: Connection, file: str) -> bool:
    """Tell whether there is an upload with this file."""
    return connection.execute("SELECT 1 FROM upload WHERE file = ?", (file,)).fetchone() is not None


def _upload(row: Row) -> Upload:
    return Upload(*row)
