"""Uploads: take in the bytes of a file from a caller at a door, and keep them until a message uses them.

The bytes are in `media/.uploads/`, under a name that nobody can guess: whoever knows the path of a file in
`media/` may attach it. They are on disk before the row is stored, and the row is stored before the caller
gets an answer. A file that no row names is deleted at the next start (`clean_up`).
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import mimetypes
import os
import re
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO

from ..core import clock
from ..core.contracts.inbound import ReceivedFile, file_name
from ..core.crashpoint import UPLOAD_WRITTEN, crashpoint
from ..core.errors import InvalidParams, TooLarge
from ..core.escaping import plain
from ..core.paths import Home, sync_directory, unusable
from ..core.settings import Settings
from ..store import uploads
from ..store.group_commit import Tx
from ..store.store import Store
from ..store.uploads import Held, Upload

log = logging.getLogger(__name__)
NAME_CHARACTERS = 1_000  # of a name as it is given; it is cut to what file systems take
_GATHERED = 1024 * 1024  # bytes that are written at once: a thread for each packet would cost more
_REMOVED_AT_ONCE = 500
_WORD = r"[A-Za-z0-9][A-Za-z0-9!#$&^_.+-]{0,126}"
_MIME = re.compile(rf"{_WORD}/{_WORD}")
_ANY = "application/octet-stream"
_SAYS_NOTHING = (_ANY, "application/x-www-form-urlencoded")  # the latter: curl, when it is told nothing


class Uploads:
    """The directory of uploads."""

    def __init__(self, store: Store, home: Home, settings: Settings) -> None:
        self._store = store
        self._home = home
        self._settings = settings
        self._directory = os.path.join(home.media, ".uploads")
        self._coming: dict[int, list[_Incoming]] = {}  # under way, by holder

    async def keep(
        self, holder: int, name: str, mime: str, chunks: AsyncIterator[bytes], check: Callable[[Tx], None]
    ) -> Upload:
        """Store a file that somebody uploads; when this returns it is on disk.

        `check` may still refuse, inside the transaction. Whatever ends this early, nothing is left.
        """
        name = _safe_name(name)
        own = self._coming.setdefault(holder, [])
        before = self._store.read(lambda c: uploads.held(c, holder))
        uploads.check_room(self._settings, Held(before.number + len(own) + 1, before.size))
        incoming = _Incoming(os.path.join(self._directory, os.urandom(16).hex()), self._home.path)
        own.append(incoming)
        try:
            await self._receive(incoming, name, chunks, before, own)
            crashpoint(UPLOAD_WRITTEN)
            now = clock.now()
            expires_at = now + round(self._settings.keep_seconds * 1000)
            facts = (name, _type(name, mime), incoming.size, incoming.digest, now, expires_at)

            def write(tx: Tx) -> Upload:
                check(tx)
                return uploads.insert(tx, holder, Upload(0, os.path.basename(incoming.path), *facts))

            stored = await self._store.write(write)
            incoming.is_kept = True
            return stored
        finally:
            own.remove(incoming)
            if not own:
                self._coming.pop(holder, None)
            await asyncio.to_thread(incoming.end)

    async def _receive(
        self,
        incoming: _Incoming,
        name: str,
        chunks: AsyncIterator[bytes],
        before: Held,
        own: list[_Incoming],
    ) -> None:
        """Write what comes to disk, off the event loop; raise TooLarge as soon as it is too much."""
        gathered: list[bytes] = []
        waiting, most = 0, self._settings.attachment_bytes
        await asyncio.to_thread(incoming.begin)
        async for chunk in chunks:
            incoming.size += len(chunk)
            if incoming.size > most:
                size, limit = f"more than {most} bytes", f"{most} bytes"
                raise TooLarge(what=f"the file {name}", size=size, limit=limit, advice="")
            uploads.check_room(self._settings, Held(0, before.size + sum(one.size for one in own)))
            gathered.append(chunk)
            waiting += len(chunk)
            if waiting >= _GATHERED:
                await asyncio.to_thread(incoming.write, b"".join(gathered))
                gathered, waiting = [], 0
        await asyncio.to_thread(incoming.finish, b"".join(gathered))

    # --- using and removing them -----------------------------------------------------

    def received(self, upload: Upload) -> ReceivedFile:
        """Return an upload as a file to attach."""
        return ReceivedFile(os.path.join(self._directory, upload.file), upload.name)

    async def delete_files(self, files: Iterable[str]) -> None:
        """Delete the files of uploads whose rows are gone."""
        paths = [os.path.join(self._directory, one) for one in files]
        if paths:
            await asyncio.to_thread(_delete, paths)

    async def remove_expired(self) -> None:
        """Remove what nobody has used in time. Each heartbeat calls it, and most often there is nothing."""
        while True:
            now, nearest = clock.now(), self._store.read(uploads.next_expiry)
            if nearest is None or nearest > now:
                return
            found = await self._store.write(lambda tx: uploads.remove_expired(tx, now, _REMOVED_AT_ONCE))  # noqa: B023 - awaited here
            await self.delete_files(found)

    def clean_up(self) -> None:
        """Delete the files that a crash left without a row. Call it at start."""
        if not os.path.isdir(self._directory):
            return
        left = [
            os.path.join(self._directory, name)
            for name in os.listdir(self._directory)
            if not self._store.read(lambda c: uploads.is_stored(c, name))  # noqa: B023 - called here
        ]
        _delete(left)


class _Incoming:
    """A file that is being written, in threads of its own; `end` deletes it unless it is kept."""

    def __init__(self, path: str, home: str) -> None:
        self.path = path
        self.size = 0
        self.digest = ""
        self.is_kept = False
        self._home = home
        self._hash = hashlib.sha256()
        self._file: BinaryIO | None = None

    def begin(self) -> None:
        with self._usable():
            os.makedirs(os.path.dirname(self.path), mode=0o700, exist_ok=True)
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            self._file = open(os.open(self.path, flags, 0o600), "wb")  # noqa: SIM115 - `end` closes it

    def write(self, data: bytes) -> None:
        assert self._file is not None
        self._hash.update(data)
        with self._usable():
            self._file.write(data)

    def finish(self, data: bytes) -> None:
        """Write the rest, and sync the file and its directory."""
        self.write(data)
        assert self._file is not None
        with self._usable():
            self._file.flush()
            os.fsync(self._file.fileno())
            sync_directory(os.path.dirname(self.path))
        self.digest = self._hash.hexdigest()

    def end(self) -> None:
        """Close the file. A write in another thread ends first: both take the lock of the file."""
        if self._file is None:
            return
        with suppress(OSError):  # what is buffered could not be written; it is deleted anyway
            self._file.close()
        if not self.is_kept:
            _delete([self.path])

    @contextmanager
    def _usable(self) -> Iterator[None]:
        """Raise StoreFull or HomeUnusable if the file cannot be written."""
        try:
            yield
        except OSError as error:
            raise unusable(error, self._home, self.path) from error


def _safe_name(name: str) -> str:
    """Return a name that can be shown and stored; raise if there is none, or if it has no end."""
    if not name.strip():
        raise InvalidParams(detail="the name of the file is missing")
    if len(name) > NAME_CHARACTERS:
        size, limit = f"{len(name)} characters", str(NAME_CHARACTERS)
        raise TooLarge(what="the name of the file", size=size, limit=limit, advice="")
    return plain(file_name(name))


def _type(name: str, given: str) -> str:
    """Return the media type that was given; one that says nothing, or is none, is guessed from the name."""
    said = given.partition(";")[0].strip().lower()
    if said not in _SAYS_NOTHING and _MIME.fullmatch(said):
        return said
    return mimetypes.guess_type(name)[0] or _ANY


def _delete(paths: Iterable[str]) -> None:
    for path in paths:
        try:
            os.unlink(path)
        except FileNotFoundError:
            pass
        except OSError as error:
            log.warning("%s could not be deleted: %s", path, error.strerror, extra={"action": "upload"})
