"""Attachments: copy files into `media/` under the hash of their content, for the message that refers to them.

A copy is on disk before its message is stored, so no message refers to a missing file. Until that is
known, a mark beside it (`.unstored-…`) says that the copy is new. If the message is refused, the copy
is deleted, unless another message uses the same content. After a crash the next start decides by the
marks (`clean_up`). A file without a mark is never deleted here.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import mimetypes
import os
import re
import threading
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import BinaryIO, NamedTuple, TypeVar

from ..core.contracts.failures import Refused
from ..core.contracts.inbound import ReceivedFile, file_name
from ..core.crashpoint import MEDIA_COPIED, MEDIA_PLACED, crashpoint
from ..core.envelope import Attachment, check_text
from ..core.errors import (
    AttachmentForbidden,
    AttachmentMissing,
    AttachmentOutside,
    AttachmentPrivate,
    AttachmentUnreadable,
    HibossError,
    HomeUnusable,
    StoreError,
    StoreLocked,
    TooLarge,
)
from ..core.escaping import plain
from ..core.file_guard import FileGuard, HomeFile, OutsideRoots, PrivateFile
from ..core.paths import Home, is_disk_full, sync_directory, unusable
from ..core.settings import Settings

log = logging.getLogger(__name__)
T = TypeVar("T")
_CHUNK = 1024 * 1024
_PATH_BYTES = (
    4096  # no system opens a longer path, and the time to resolve one grows with the square of its length
)
_ENDING = re.compile(r"\.[A-Za-z0-9]{1,10}")
_PARTIAL = ".incoming-"
_MARK = re.compile(r"\.unstored-(\d+)-(([0-9a-f]{2})[0-9a-f]{62}(?:\.[a-z0-9]{1,10})?)")


class NamedFiles(NamedTuple):
    """Files that a request names by their paths."""

    paths: Sequence[str] = ()
    roots: Sequence[str] | None = (
        None  # where its caller may read, besides attachments.roots; None: everywhere
    )


@dataclass(slots=True)
class _Copy:
    """A copy that messages under way use. It is deleted with its last user if none was stored."""

    mark: str | None = None  # the path of its mark; None: the file was there before
    users: int = 0
    unsure: bool = False  # nobody knows whether a message was stored: the next start decides


class Media:
    """The directory of copies. `last_message` returns the largest id of a message."""

    def __init__(self, home: Home, settings: Settings, last_message: Callable[[], int]) -> None:
        self._home = home
        self._settings = settings
        self._last_message = last_message
        self._guard = FileGuard(home)
        self._copies: dict[str, _Copy] = {}  # under way, by file
        self._lock = threading.Lock()  # a copy is not deleted while it gets another user

    async def keep(
        self,
        given: Sequence[str | ReceivedFile],
        *,
        source: str | None = None,
        roots: Sequence[str] | None = None,
    ) -> tuple[Attachment, ...]:
        """Copy files into media/. Then call `settle`, whatever happens.

        `source`: the type of the adapter that received them; links in their paths are not followed then.
        `roots`: as in NamedFiles.
        """
        after = self._last_message()
        files: list[Attachment] = []
        try:
            for one in given:
                file = one if isinstance(one, ReceivedFile) else ReceivedFile(one)
                kept = await asyncio.to_thread(self._keep, file, after, roots, follow_links=source is None)
                files.append(_received(kept, one, source))
        except HibossError:
            await asyncio.to_thread(self._release, files)
            raise
        return tuple(files)

    async def settle(
        self,
        files: Sequence[Attachment],
        writing: Awaitable[T],
        is_stored: Callable[[T], bool] = lambda result: True,
    ) -> T:
        """Await what stores a message with these files; delete new copies if it does not store one."""
        stored, unsure = False, True
        try:
            result = await writing
            stored, unsure = is_stored(result), False
            return result
        except (HibossError, Refused) as error:
            # After other errors of the store, SQLite may still find the message on disk at the next start.
            unsure = isinstance(error, (StoreError, HomeUnusable)) and not isinstance(error, StoreLocked)
            raise
        finally:
            if files:
                await asyncio.to_thread(self._release, files, stored=stored, unsure=unsure)

    def clean_up(self, is_used: Callable[[str, int], bool]) -> None:
        """Delete what a crash left behind. Call it at start.

        `is_used` returns whether a message after the given id, or a schedule, refers to a file.
        """
        for name in os.listdir(self._home.media):
            found = _MARK.fullmatch(name)
            if found and not is_used(file := os.path.join(found[3], found[2]), int(found[1])):
                _delete(os.path.join(self._home.media, file))
            if found or name.startswith(_PARTIAL):
                _delete(os.path.join(self._home.media, name))

    def _keep(
        self, file: ReceivedFile, after: int, roots: Sequence[str] | None, *, follow_links: bool
    ) -> Attachment:
        """Copy one file into media/ and return it as an attachment."""
        path = file.path
        check_text(path, "attachment path")
        if len(os.fsencode(path)) > _PATH_BYTES:
            raise AttachmentUnreadable(path=_shown(path), why="the path is too long")
        if not os.path.isabs(path):
            raise AttachmentUnreadable(path=path, why="over the socket a path must be absolute")
        if os.path.basename(path) in ("", ".", ".."):
            raise AttachmentUnreadable(path=path, why="it is a directory")
        self._check_media()
        with self._open(path, roots, follow_links=follow_links) as source:
            _refuse_larger(path, os.fstat(source.fileno()).st_size, self._settings.attachment_bytes)
            try:
                name = plain(file_name(file.name)) if file.name else os.path.basename(path)
                return self._copy(source, name, after)
            except OSError as error:
                if is_disk_full(error):
                    raise unusable(error, self._home.path, self._home.media) from error
                raise AttachmentUnreadable(path=path, why=error.strerror or str(error)) from error

    def _open(self, path: str, roots: Sequence[str] | None, *, follow_links: bool) -> BinaryIO:
        allowed = None if roots is None else (*roots, *self._settings.attachment_roots)
        try:
            real = os.path.realpath(path) if follow_links else os.path.normpath(path)
            return self._guard.open_file(real, self._settings.forbidden_paths, allowed)
        except FileNotFoundError:
            raise AttachmentMissing(path=_shown(path)) from None
        except HomeFile:
            raise AttachmentForbidden(path=_shown(path), media=self._home.media) from None
        except OutsideRoots:
            shown = ", ".join(allowed or ()) or "none"
            raise AttachmentOutside(path=_shown(path), roots=_shown(shown)) from None
        except PrivateFile as error:
            raise AttachmentPrivate(path=_shown(path), place=error.place) from None
        except OSError as error:
            raise AttachmentUnreadable(path=_shown(path), why=error.strerror or str(error)) from error

    def _check_media(self) -> None:
        """Refuse a media/ that is a link to another place of the home; a link to another disk is fine."""
        if os.path.islink(self._home.media):
            try:
                with self._guard.open_directory(self._home.media):
                    pass
            except OSError as error:
                raise unusable(error, self._home.path, self._home.media) from error

    def _copy(self, source: BinaryIO, name: str, after: int) -> Attachment:
        partial = os.path.join(self._home.media, f"{_PARTIAL}{os.urandom(8).hex()}")
        try:
            digest, size = _write(source, partial, name, self._settings.attachment_bytes)
            crashpoint(MEDIA_COPIED)
            ending = _ENDING.fullmatch(os.path.splitext(name)[1])
            file = os.path.join(digest[:2], digest + (ending[0].lower() if ending else ""))
            self._place(partial, file, after)
        finally:
            if os.path.exists(partial):
                os.unlink(partial)
        mime = mimetypes.guess_type(name)[0] or "application/octet-stream"
        attachment = Attachment(name=name, sha256=digest, size=size, mime=mime, file=file)
        try:
            sync_directory(os.path.join(self._home.media, digest[:2]))
            sync_directory(self._home.media)
        except OSError:
            self._release([attachment])
            raise
        crashpoint(MEDIA_PLACED)
        return attachment

    def _place(self, partial: str, file: str, after: int) -> None:
        """Give a complete copy its final name. A new one is marked before."""
        final = os.path.join(self._home.media, file)
        os.makedirs(os.path.dirname(final), mode=0o700, exist_ok=True)
        with self._lock:
            copy = self._copies.get(file) or _Copy()
            if copy.users == 0 and not os.path.lexists(final):
                copy.mark = os.path.join(self._home.media, f".unstored-{after}-{os.path.basename(file)}")
                os.close(os.open(copy.mark, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
            try:
                os.replace(partial, final)
            except OSError:
                if copy.users == 0 and copy.mark is not None:
                    os.unlink(copy.mark)
                raise
            copy.users += 1
            self._copies[file] = copy

    def _release(self, files: Sequence[Attachment], *, stored: bool = False, unsure: bool = False) -> None:
        """End the use of copies; delete those that are new and that no message refers to."""
        for attachment in files:
            with self._lock:
                copy = self._copies[attachment.file]
                copy.users -= 1
                copy.unsure = copy.unsure or unsure
                if stored and copy.mark is not None:
                    _delete(copy.mark)
                    copy.mark = None
                if copy.users == 0:
                    del self._copies[attachment.file]
                    if copy.mark is not None and not copy.unsure:
                        _delete(os.path.join(self._home.media, attachment.file))
                        _delete(copy.mark)


def _received(kept: Attachment, given: str | ReceivedFile, source: str | None) -> Attachment:
    """Return an attachment with what its platform says of it; a plain path says nothing."""
    if source is None or not isinstance(given, ReceivedFile):
        return kept
    return replace(kept, source=source, filename=given.name, platform_id=given.platform_id)


def _delete(path: str) -> None:
    """Delete a file that nobody needs; what cannot be deleted is no reason to fail."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass
    except OSError as error:
        log.warning("%s could not be deleted: %s", path, error.strerror, extra={"action": "attach"})


def _shown(path: str) -> str:
    """Return a path as an error shows it."""
    return path if len(path) <= 500 else f"{path[:100]}…"


def _refuse_larger(path: str, size: int, limit: int) -> None:
    if size > limit:
        raise TooLarge(what=f"the file {path}", size=f"{size} bytes", limit=str(limit), advice="")


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
