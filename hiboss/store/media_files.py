"""Which files in `media/` the messages and the schedules refer to."""

from __future__ import annotations

import json
import os

from ..core.envelope import Attachment
from .connection import Connection


def last_message(connection: Connection) -> int:
    """Return the largest id of a message; every later message gets a larger one."""
    return int(connection.execute("SELECT ifnull(max(id), 0) FROM message").fetchone()[0])


def of_message(connection: Connection, message: int) -> list[Attachment]:
    """Return the files of a message, in their order; none if it was deleted."""
    row = connection.execute(
        "SELECT attachments FROM message WHERE id = ? AND deleted_at IS NULL", (message,)
    ).fetchone()
    stored = None if row is None else row["attachments"]
    return [] if stored is None else [Attachment.of(one) for one in json.loads(stored)]


def is_used(connection: Connection, file: str, after: int) -> bool:
    """Return whether a message with an id larger than `after`, or any schedule, refers to a file."""
    row = connection.execute(
        """
        SELECT 1 FROM message WHERE id > ?1 AND attachments IS NOT NULL AND instr(attachments, ?2)
        UNION ALL
        SELECT 1 FROM schedule WHERE instr(draft, ?2)
        LIMIT 1
        """,
        (after, json.dumps(file)),
    ).fetchone()
    return row is not None


def missing(connection: Connection, media: str) -> list[str]:
    """Return a sentence for each message or schedule that refers to a file which is not in media/."""
    rows = connection.execute(
        """
        SELECT 'm' || m.id, json_extract(f.value, '$.file')
        FROM message m, json_each(m.attachments) f
        UNION ALL
        SELECT 's' || s.id, json_extract(f.value, '$.file')
        FROM schedule s, json_each(iif(json_valid(s.draft), s.draft, '{}'), '$.attachments') f
        """
    ).fetchall()
    return [
        f"broken: every file that a message refers to exists ({row[0]} refers to {row[1]})"
        for row in rows
        if not os.path.isfile(os.path.join(media, row[1]))
    ]
