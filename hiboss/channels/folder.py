"""The folder adapter: what is posted becomes a file in `out/`, and a file in `in/` becomes a message.

`channel:folder:<name>` is the folder called <name>. In `in/`, a `.txt` or `.md` file is the text of
a message, a `.json` file describes a message (text, subject, author, group, reply_to) or is a command
(command, arguments), and any other file becomes an attachment (hiboss/channels/folder_inbox.py).
"""

from __future__ import annotations

import asyncio
import io
import os
import re
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, TypeVar

from pydantic import Field

from ..core.contracts.adapter import Account, AdapterSettings, Chat, Checked, File, Letter, Take
from ..core.contracts.failures import AccountError, EnvelopeError, LaneError, Refused
from ..core.contracts.inbound import Digested, Update
from ..core.crashpoint import FOLDER_RECEIVED, crashpoint
from ..core.errors import HibossError
from ..core.file_guard import HomeFile, NotAFile
from .blocking_calls import run_blocking
from .folder_directory import FolderDirectory, exists, explained, shortened, write_file
from .folder_inbox import FolderInbox, as_text

T = TypeVar("T")
POLL_SECONDS = 0.3
_ENDINGS = {"text": ".txt", "markdown": ".md", "json": ".json", "html": ".html", "event": ".txt"}
_POST = re.compile(r"[er][0-9]+\.[a-z]+")  # a text: of an envelope, or of a run whose answer grows
_UNFINISHED_POST = re.compile(r"\.[er][0-9]+[.-].*\.part")
_NAME = re.compile(r"[^\s/:\x00-\x1f\x7f]{1,128}")


class FolderSettings(AdapterSettings):
    """What a binding to a folder needs."""

    path: Path = Field(description="the directory; it is created if it does not exist")


class FolderAdapter:
    """A directory: posts are files in out/, and files put into in/ are messages."""

    type: ClassVar[str] = "folder"
    capabilities: ClassVar[frozenset[str]] = frozenset({"edit", "delete", "files"})
    open_to_all: ClassVar[bool] = True  # whoever can write files there may write
    Settings = FolderSettings

    def __init__(self, account: Account) -> None:
        self._place = account.name
        self._root = str(account.settings.path)
        self._directory = FolderDirectory(self._root, account.home, account.binding)
        self._inbox = FolderInbox(self._directory, account.name)
        self._handed_over: set[str] = set()  # taken files that are being digested
        self._finishing: set[str] = set()  # digested, and being moved or deleted
        self._unfinished: dict[str, str | None] = {}  # digested, but the file could not be moved or deleted
        # In the names of unfinished files. A daemon that stops can leave a write behind, which goes on for
        # a moment beside the next daemon: the two must not take each other's file for their own.
        self._own = os.urandom(4).hex()

    @classmethod
    async def check(cls, given: FolderSettings, home: str) -> Checked:
        """Return what a binding stores; make the directories."""
        if not given.path.is_absolute() or not str(given.path).isprintable():
            raise Refused("a folder needs the absolute path of a directory (--path DIR)")
        return await run_blocking(str(given.path), cls._check, str(given.path), home)

    @classmethod
    def _check(cls, path: str, home: str) -> Checked:
        root, home = os.path.realpath(path), os.path.realpath(home)
        if os.path.commonpath([root, home]) in (root, home):
            raise Refused(f"{root} is inside the hiboss home, or contains it; choose another directory")
        name = os.path.basename(root)
        if not _NAME.fullmatch(name):
            raise Refused(
                f"{name or root} cannot be an address; the last part of the path must have no space or colon"
            )
        try:
            os.makedirs(root, mode=0o700, exist_ok=True)
            directory = FolderDirectory(root, home)
            with directory.guard.open_directory(root) as folder:
                directory.prepare(folder)
        except OSError as error:
            raise Refused(f"{root} cannot be used: {explained(error, root)}") from None
        return Checked(account=name, settings=FolderSettings(path=Path(root)), chats=[Chat(name)])

    async def start(self) -> None:
        self._directory.serve()
        await self._blocking(self._start)

    def _start(self) -> None:
        with self._directory.open_root() as root:  # never created here: it may be unplugged or moved
            self._directory.prepare(root)
            with self._directory.open_in("out", root) as out:
                for name in os.listdir(out):
                    if _UNFINISHED_POST.fullmatch(name):  # of a daemon that was killed
                        os.unlink(name, dir_fd=out)

    async def stop(self) -> None:
        self._directory.leave()

    async def _blocking(self, function: Callable[..., T], *arguments: Any) -> T:
        """Call a function in a thread. Raises LaneError if the folder cannot be used."""
        try:
            return await run_blocking(self._root, function, *arguments)
        except OSError as error:
            raise LaneError("folder_unusable", explained(error, self._root)) from error

    # --- out -------------------------------------------------------------------------

    def chunks(self, letter: Letter) -> list[str]:
        return [letter.text]

    async def post(self, letter: Letter, number: int, chunk: str) -> str:
        return await self._blocking(self._write, letter, chunk)

    def _write(self, letter: Letter, chunk: str) -> str:
        """Write the attachments first and the text last: a reader of the text finds its attachments."""
        with ExitStack() as opened:
            root = opened.enter_context(self._directory.open_root())
            out = opened.enter_context(self._directory.open_out(root))
            for number, (file, name) in enumerate(zip(letter.files, _names(letter), strict=True)):
                with self._open_attachment(file) as source:
                    write_file(out, f".{letter.id}-{number}.{self._own}.part", name, source)
            named_json = letter.type == "json" and letter.front  # with a name in front it is none any more
            name = letter.id + _ENDINGS["text" if named_json else letter.type]
            write_file(out, f".{name}.{self._own}.part", name, io.BytesIO(chunk.encode()))
            os.fsync(out)
        return name

    async def edit(self, place: str, platform_id: str, chunk: str, key: str) -> None:
        await self._blocking(self._edit, platform_id, chunk)

    def _edit(self, name: str, chunk: str) -> None:
        with self._directory.open_root() as root, self._directory.open_out(root) as out:
            if not _is_post(name, out):
                raise EnvelopeError("not_found", f"{name} is not there any more")
            write_file(out, f".{name}.{self._own}.part", name, io.BytesIO(chunk.encode()))
            os.fsync(out)

    async def delete(self, place: str, platform_id: str) -> None:
        await self._blocking(self._delete, platform_id)

    def _delete(self, name: str) -> None:
        with self._directory.open_root() as root, self._directory.open_out(root) as out:
            if _is_post(name, out):
                os.unlink(name, dir_fd=out)
                os.fsync(out)

    def _open_attachment(self, file: File) -> BinaryIO:
        try:
            return self._directory.guard.open_file(os.path.realpath(file.path))
        except FileNotFoundError as error:
            raise EnvelopeError("file_missing", f"{file.path} does not exist any more") from error
        except (HomeFile, NotAFile) as error:
            raise EnvelopeError("file_forbidden", f"{file.path}: {error.strerror}") from error

    # --- in --------------------------------------------------------------------------

    async def listen(self, take: Take) -> None:
        while True:
            for update, problem in list(self._unfinished.items()):
                await self._finish(update, problem)
            if new := await self._blocking(self._inbox.take, self._handed_over):
                await self._hand_over(new, take)
            await asyncio.sleep(POLL_SECONDS)

    async def _hand_over(self, new: list[str], take: Take) -> None:
        """Give taken files to the intake; finish those that were digested before a crash."""
        named = [(update, await self._blocking(self._inbox.name_of, update)) for update in new]
        acts = {update: await self._blocking(self._inbox.command, update, name) for update, name in named}
        updates = [
            Update(
                id=update,
                chat=self._place,
                message=as_text(name),
                raw={"name": as_text(name)},
                act=acts[update],
            )
            for update, name in named
            if name is not None
        ]
        try:
            taken = await take(updates)
        except HibossError as error:  # they stay in `.taken/` and are given again later
            raise LaneError(error.code, error.message) from error
        self._handed_over |= {*new}
        for update, problem in taken.digested.items():
            await self._finish(update, problem)
        for update, name in named:
            if name is None:
                await self._blocking(self._inbox.remove, update)

    async def digest(
        self, updates: Sequence[Update], downloads: str, *, waited: bool, last_try: bool
    ) -> Digested:
        update = updates[0]
        try:
            name = await self._blocking(self._inbox.name_of, update.id)
            if name is None:
                raise Refused("the file was removed")
            return Digested(await self._blocking(self._inbox.read, update.id, name))
        except LaneError as error:  # the folder is gone for now: that says nothing about this file
            raise AccountError(error.kind, error.text) from error

    async def digested(self, update: Update, problem: str | None) -> None:
        crashpoint(FOLDER_RECEIVED)
        try:
            await self._finish(update.id, problem)
        except LaneError:
            self._unfinished[update.id] = problem  # `listen` tries it again, and says why it fails

    async def _finish(self, update: str, problem: str | None) -> None:
        """Delete a file that has become a message; or move it to `broken/`.

        After a start it can be known twice: it is digested while `listen` hands it over again.
        """
        if update in self._finishing:
            return
        self._finishing.add(update)
        try:
            name = await self._blocking(self._inbox.name_of, update)
            if problem is not None and name is not None:
                await self._blocking(self._inbox.move_to_broken, update, name, problem)
            else:
                await self._blocking(self._inbox.remove, update)
        finally:
            self._finishing.discard(update)
        self._handed_over.discard(update)
        self._unfinished.pop(update, None)


def _names(letter: Letter) -> list[str]:
    """Return the name in `out/` of each attachment, with a number where another one has that name."""
    names: dict[str, str] = {}  # by what they are where large and small letters are the same
    for number, file in enumerate(letter.files):
        own = os.path.basename(file.name)
        name = shortened(f"{letter.id}-{own}")
        while name.casefold() in names:
            name = shortened(f"{letter.id}-{number}-{own}")
            number += 1
        names[name.casefold()] = name
    return list(names.values())


def _is_post(name: str, out: int) -> bool:
    """Tell whether there is a text that was posted under this name."""
    return bool(_POST.fullmatch(name)) and exists(name, out)
