"""Attachments: copy a file into `media/` under the hash of its content, and sync it to disk.

Also here: which files may be attached at all.
"""

from __future__ import annotations

import errno
import hashlib
import mimetypes
import os
import re
import stat
from collections.abc import Sequence
from typing import BinaryIO

from ..core.envelope import Attachment, check_text
from ..core.errors import (
    AttachmentForbidden,
    AttachmentMissing,
    AttachmentPrivate,
    AttachmentUnreadable,
    StoreFull,
    TooLarge,
)
from ..core.paths import Home, sync_directory
from ..core.settings import Settings

_CHUNK = 1024 * 1024
_PATH_BYTES = (
    4096  # no system opens a longer path, and the time to resolve one grows with the square of its length
)
_ENDING = re.compile(r"\.[A-Za-z0-9]{1,10}")


def keep(home: Home, path: str, settings: Settings) -> Attachment:
    """Copy one file into media/ and return it as an attachment. It blocks: call it in a thread."""
    check_text(path, "attachment path")
    if len(os.fsencode(path)) > _PATH_BYTES:
        raise AttachmentUnreadable(path=f"{path[:100]}…", why="the path is too long")
    if not os.path.isabs(path):
        raise AttachmentUnreadable(path=path, why="over the socket a path must be absolute")
    if os.path.basename(path) in ("", ".", ".."):
        raise AttachmentUnreadable(path=path, why="it is a directory")
    real = os.path.realpath(path)
    limit = settings.attachment_bytes
    _refuse_forbidden(path, real, settings.forbidden_paths)
    _refuse_home(home, path, real)
    with open(_open(path, real), "rb") as source:
        size = os.fstat(source.fileno()).st_size
        _refuse_larger(path, size, limit)
        try:
            return _copy(home, source, os.path.basename(path), limit)
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
                raise StoreFull(path=home.media) from error
            raise AttachmentUnreadable(path=path, why=error.strerror or str(error)) from error


def _refuse_forbidden(path: str, real: str, forbidden: Sequence[str]) -> None:
    for place in forbidden:
        root = os.path.realpath(os.path.expanduser(place))
        if os.path.commonpath([real, root]) == root:
            raise AttachmentPrivate(path=path, place=place)


def _refuse_home(home: Home, path: str, real: str) -> None:
    """Refuse every file of the home except those in media/: tokens and the database are there."""
    root, media = os.path.realpath(home.path), os.path.realpath(home.media)
    if os.path.commonpath([real, root]) == root and os.path.commonpath([real, media]) != media:
        raise AttachmentForbidden(path=path, media=home.media)
    # Also hard links. DANGER: if the daemon opens and closes its own database, SQLite's locks are lost.
    try:
        found = os.stat(real)
    except OSError:
        return
    if found.st_nlink > 1:
        for directory, _, names in os.walk(root):
            if directory == media or directory.startswith(media + os.sep):
                continue
            if any(os.path.samestat(found, os.lstat(os.path.join(directory, name))) for name in names):
                raise AttachmentForbidden(path=path, media=home.media)


def _refuse_larger(path: str, size: int, limit: int) -> None:
    if size > limit:
        raise TooLarge(what=f"the file {path}", size=f"{size} bytes", limit=str(limit), advice="")


def _open(path: str, real: str) -> int:
    try:
        # NONBLOCK: opening a named pipe must not wait for a writer.
        source = os.open(real, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        raise AttachmentMissing(path=path) from None
    except OSError as error:
        raise AttachmentUnreadable(path=path, why=error.strerror or str(error)) from error
    if not stat.S_ISREG(os.fstat(source).st_mode):
        os.close(source)
        raise AttachmentUnreadable(path=path, why="it is not a regular file")
    return source


def _copy(home: Home, source: BinaryIO, name: str, limit: int) -> Attachment:
    temporary = os.path.join(home.media, f".incoming-{os.urandom(8).hex()}")
    try:
        digest, size = _write(source, temporary, name, limit)
        ending = _ENDING.fullmatch(os.path.splitext(name)[1])
        file = os.path.join(digest[:2], digest + (ending[0].lower() if ending else ""))
        final = os.path.join(home.media, file)
        os.makedirs(os.path.dirname(final), mode=0o700, exist_ok=True)
        os.replace(temporary, final)
    finally:
        if os.path.exists(temporary):
            os.unlink(temporary)
    sync_directory(os.path.dirname(final))
    sync_directory(home.media)
    mime = mimetypes.guess_type(name)[0] or "application/octet-stream"
    return Attachment(name=name, sha256=digest, size=size, mime=mime, file=file)


def _write(source: BinaryIO, path: str, name: str, limit: int) -> tuple[str, int]:
    """Copy, hash and sync; return the hash and the size of what was read."""
    hash_, size = hashlib.sha256(), 0
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as copy:
        while chunk := source.read(_CHUNK):
            size += len(chunk)
            _refuse_larger(name, size, limit)  # it may have grown since its size was checked
            hash_.update(chunk)
            copy.write(chunk)
        copy.flush()
        os.fsync(copy.fileno())
    return hash_.hexdigest(), size
