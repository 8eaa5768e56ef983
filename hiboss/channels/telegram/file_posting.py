"""Posts the files of one chunk: one file, or an album, by the ids that Telegram knows or as uploads.

What cannot go in one way goes in the next: by id, then as an upload, then as documents. A refusal (400) means
that nothing was posted, so nothing is ever doubled. A file that cannot go at all is named, with the reason.
"""

from __future__ import annotations

import asyncio
import errno
import os
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

from ...core.contracts.adapter import File, Letter
from ...core.contracts.failures import LaneError
from ...core.file_guard import FileGuard, HomeFile, NotAFile, PrivateFile
from . import file_kinds
from .api_errors import ApiRefusal
from .chunk_form import CAPTION_UNITS, Chunk, Entity, units

if TYPE_CHECKING:
    from .bot_client import BotClient

# The system calls of `_open` that say these will say them again.
_LASTING = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EACCES, errno.EPERM, errno.ENAMETOOLONG)
_WAYS = ("by id", "uploaded", "as documents")


class Outcome(NamedTuple):
    """What became of the files of a chunk."""

    messages: list[Any]  # as Telegram answered, one for each that was posted; none: nothing was posted
    files: dict[int, str]  # how Telegram knows them now, by their number
    problems: list[str]  # a sentence for each that was not posted


class _Ready(NamedTuple):
    """A file as it is posted in one way."""

    number: int
    name: str
    kind: str
    source: str | BinaryIO  # the id that Telegram knows, or the open file


class FileSending:
    """One try to post the files of a chunk. `where` are the parameters that every sending method has."""

    def __init__(
        self, client: BotClient, guard: FileGuard, letter: Letter, chunk: Chunk, where: dict[str, Any]
    ) -> None:
        self._client = client
        self._guard = guard
        self._files = letter.files
        self._chunk = chunk
        self._where = where
        self._opened: dict[int, tuple[BinaryIO, int]] = {}  # with its size
        self._problems: dict[int, str] = {}

    async def send(self) -> Outcome:
        """Post them. Raises CallFailed if nothing can be posted there, and LaneError."""
        with ExitStack() as opened:
            return await self._first_that_is_taken(opened)

    async def _first_that_is_taken(self, opened: ExitStack) -> Outcome:
        tried: list[list[_Ready]] = []
        refusal: ApiRefusal | None = None
        for way in _WAYS:
            ready = [one for number in self._chunk.files if (one := await self._ready(number, way, opened))]
            if not ready:
                break
            if ready in tried or not file_kinds.can_be_together([one.kind for one in ready]):
                continue
            tried.append(ready)
            try:
                return self._outcome(ready, await self._call(ready))
            except ApiRefusal as error:
                if not (error.is_about_content or error.kind == "no_rights" or error.code == 413):
                    raise
                refusal = error
                if error.code == 413:
                    break  # it is as big in every other way
        for one in ready:
            self._note(one.number, one.name, str(refusal))
        return Outcome([], {}, list(self._problems.values()))

    def _outcome(self, ready: list[_Ready], answer: Any) -> Outcome:
        messages = answer if isinstance(answer, list) else [answer]
        files = {
            one.number: known
            for one, message in zip(ready, messages, strict=False)
            if (known := file_kinds.known_by(message)) is not None
        }
        return Outcome(messages, files, list(self._problems.values()))

    # --- one way ---------------------------------------------------------------------------

    async def _ready(self, number: int, way: str, opened: ExitStack) -> _Ready | None:
        """Return a file as it goes in this way; None: it cannot be posted, which is noted."""
        if number in self._problems:
            return None
        if number >= len(self._files):
            self._note(number, f"file {number + 1}", "it is no longer part of the message")
            return None
        file = self._files[number]
        known = file_kinds.known(file)
        if way == "by id" and known is not None:
            return _Ready(number, file.name, known.kind, known.id)
        if number not in self._opened:
            try:
                self._opened[number] = await asyncio.to_thread(self._open, file)
            except _CannotGo as problem:
                self._note(number, file.name, str(problem))
                return None
            opened.enter_context(self._opened[number][0])
        source, size = self._opened[number]
        kind = file_kinds.fitting_kind(file_kinds.kind_of(file), size)
        return _Ready(number, file.name, "document" if way == "as documents" else kind, source)

    def _note(self, number: int, name: str, why: str) -> None:
        self._problems[number] = file_kinds.not_posted(name, why)

    def _open(self, file: File) -> tuple[BinaryIO, int]:
        try:
            opened = self._guard.open_file(os.path.realpath(file.path))
        except FileNotFoundError:
            raise _CannotGo("it does not exist any more") from None
        except (HomeFile, PrivateFile, NotAFile) as error:
            raise _CannotGo(str(error.strerror)) from None
        except OSError as error:
            if error.errno in _LASTING:
                raise _CannotGo(f"it cannot be read ({error.strerror})") from None
            raise LaneError("file_unreadable", f"{file.path}: {error.strerror}") from None
        size = os.fstat(opened.fileno()).st_size
        if why := file_kinds.too_big(size) or ("" if size else "it is empty"):
            opened.close()
            raise _CannotGo(why)
        return opened, size

    # --- the call --------------------------------------------------------------------------

    async def _call(self, ready: list[_Ready]) -> Any:
        """Post them in one call; with plain words if the server does not take the markup of the caption."""
        try:
            return await self._call_with(ready, self._chunk.entities)
        except ApiRefusal as error:
            if error.kind != "markup" or not self._chunk.entities:
                raise
        return await self._call_with(ready, ())

    async def _call_with(self, ready: list[_Ready], entities: tuple[Entity, ...]) -> Any:
        caption: dict[str, Any] = {}
        if words := self._caption():
            caption = {"caption": words, **({"caption_entities": list(entities)} if entities else {})}
        if len(ready) > 1:
            return await self._call_for_album(ready, caption)
        (one,) = ready
        method, given = file_kinds.METHODS[one.kind], {**self._where, **caption}
        if isinstance(one.source, str):
            return await self._client.call(method, **{**given, one.kind: one.source})
        return await self._client.upload(
            method, {one.kind: (one.source, file_kinds.sent_name(one.name))}, **given
        )

    async def _call_for_album(self, ready: list[_Ready], caption: dict[str, Any]) -> Any:
        media: list[dict[str, Any]] = []
        uploads: dict[str, tuple[BinaryIO, str]] = {}
        for one in ready:
            if isinstance(one.source, str):
                media.append({"type": one.kind, "media": one.source})
            else:
                field = f"file{one.number}"
                uploads[field] = (one.source, file_kinds.sent_name(one.name))
                media.append({"type": one.kind, "media": f"attach://{field}"})
        media[0] |= caption
        return await self._client.upload("sendMediaGroup", uploads, media=media, **self._where)

    def _caption(self) -> str:
        """Return the text of the chunk, with what is said of parts that are left out, if that fits."""
        whole = "\n\n".join(filter(None, (self._chunk.text, *self._problems.values())))
        return whole if units(whole) <= CAPTION_UNITS else self._chunk.text


class _CannotGo(Exception):
    """A file can never be posted; the text says why."""
