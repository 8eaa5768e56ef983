"""Files that accounts have posted: each can be posted again by the platform's id of it.

What takes a Tx runs inside the writer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .connection import Connection
from .group_commit import Tx

LONGEST_ID = 500  # characters


def known(
    connection: Connection | Tx, binding: int | None, files: Sequence[Mapping[str, Any]]
) -> list[str | None]:
    """Return the platform's id of each of these attachments, for the account that posts them now."""
    return [_known(connection, binding, one) for one in files]


def _known(connection: Connection | Tx, binding: int | None, file: Mapping[str, Any]) -> str | None:
    row = connection.execute(
        "SELECT platform_id FROM posted_file WHERE binding = ? AND sha256 = ? AND name = ? AND mime = ?",
        (binding, file["sha256"], file["name"], file["mime"]),
    ).fetchone()
    if row is not None:
        return str(row["platform_id"])
    adapter = connection.execute("SELECT adapter FROM binding WHERE id = ?", (binding,)).fetchone()
    came_there = adapter is not None and file.get("source") == adapter["adapter"]
    return file.get(f"{file.get('source')}_file_id") if came_there else None


def note(
    tx: Tx, binding: int | None, files: Sequence[Mapping[str, Any]], given: Mapping[int, str], now: int
) -> None:
    """Store the ids that a platform gave to files, by their number among these attachments."""
    for number, platform_id in given.items():
        if not 0 <= number < len(files) or not platform_id or len(platform_id) > LONGEST_ID:
            continue  # an odd one must not make the recording of the post fail
        file = files[number]
        tx.execute(
            """
            INSERT INTO posted_file (binding, sha256, name, mime, platform_id, posted_at)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6)
            ON CONFLICT (binding, sha256, name, mime) DO UPDATE SET platform_id = ?5, posted_at = ?6
            """,
            (binding, file["sha256"], file["name"], file["mime"], platform_id, now),
        )
