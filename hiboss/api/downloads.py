"""The files of messages, for callers who cannot read them by their path: a door streams what this opens."""

from __future__ import annotations

import asyncio
import os
import re
from typing import BinaryIO, NamedTuple

from ..core import ids
from ..core.envelope import Attachment
from ..core.errors import AttachmentLost, InvalidParams, NotFound
from ..core.file_guard import FileGuard
from ..core.paths import Home
from ..store import media_files, message_rows
from ..store.connection import Connection
from .auth import Caller, check_level
from .context import Context

SEEING = "message.get"  # the right to see a message, with its files
_SHA256 = re.compile(r"[0-9a-f]{64}")
_IN_MEDIA = re.compile(r"[0-9a-f]{2}/[0-9a-f]{64}(\.[a-z0-9]{1,10})?")


class OpenedFile(NamedTuple):
    """A file of a message, open at its beginning. Who gets it closes it."""

    file: BinaryIO
    name: str  # as it was sent
    mime: str  # as its sender said it, or guessed: a door decides what it tells a browser
    size: int  # bytes
    sha256: str


async def open_attachment(context: Context, caller: Caller, message: str, which: int | str) -> OpenedFile:
    """Open a file of a message that the caller may see (m57, or an envelope of it, like e81).

    `which`: its place among the attachments, from 1, or its sha256. It raises NotFound, also for a deleted
    message; BadId, InvalidParams; AttachmentLost if the file is damaged or gone; NoToken, Forbidden and
    BadToken.
    """
    check_level(caller, context.policy.needs(SEEING))
    context.auth.recheck(caller)
    given, place = ids.parse(message, "message", "envelope"), _which(which)

    def read(connection: Connection) -> tuple[int, list[Attachment]]:
        number = message_rows.visible(connection, given, caller.sees)
        return number, media_files.of_message(connection, number)

    number, files = context.store.read(read)
    found = _chosen(files, place)
    if found is None:
        raise NotFound(
            what="attachment", value=f"{which} of m{number}", where=f"hiboss message get m{number}"
        )
    return await asyncio.to_thread(_open, context.home, number, found)


def _which(given: int | str) -> int | str:
    """Return a place or a sha256; raise InvalidParams for anything else."""
    text = str(given).lower()
    if _SHA256.fullmatch(text):
        return text
    if text.isascii() and text.isdigit() and len(text) < 10:
        return int(text)
    raise InvalidParams(detail="an attachment is named by its place, from 1, or by its sha256")


def _chosen(files: list[Attachment], which: int | str) -> Attachment | None:
    if isinstance(which, str):
        return next((one for one in files if one.sha256 == which), None)
    return files[which - 1] if 1 <= which <= len(files) else None


def _open(home: Home, message: int, found: Attachment) -> OpenedFile:
    if not _IN_MEDIA.fullmatch(found.file):
        raise AttachmentLost(name=found.name, message_id=f"m{message}", why="it is not in media/")
    # Links are resolved up to media/, which may be on another disk; the guard follows none below it.
    path = os.path.join(os.path.realpath(home.media), found.file)
    try:
        file = FileGuard(home).open_file(path)
    except OSError as error:
        why = error.strerror or "it cannot be opened"
        raise AttachmentLost(name=found.name, message_id=f"m{message}", why=why) from error
    if os.fstat(file.fileno()).st_size != found.size:
        file.close()
        raise AttachmentLost(name=found.name, message_id=f"m{message}", why="its size has changed")
    return OpenedFile(file, found.name, found.mime, found.size, found.sha256)
