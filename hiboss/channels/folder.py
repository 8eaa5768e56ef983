"""The folder adapter: what is posted becomes a file in `out/`, and a file in `in/` becomes a message.

`channel:folder:<name>` is the folder called <name>. In `in/`, a `.txt` or `.md` file is the text of
a message, a `.json` file describes a message (text, subject, author, group, reply_to), and any other
file becomes an attachment.

A file is first moved into a directory of its own in `.taken/`. The name of that directory is the id
of the update and stays the same after a crash, so the file becomes a message exactly once. A file
that cannot become a message is moved to `broken/`, with the reason in a file next to it.

Others can write to the folder. So every directory and file is opened through the guard
(core/file_guard.py), and what is done there is done on the opened directory, not on its path.
"""

from __future__ import annotations

import asyncio
import errno
import io
import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any, BinaryIO, ClassVar, TypeVar

from ..core.contracts.adapter import Account, File, Inbound, Letter, Receive
from ..core.contracts.failures import EnvelopeError, LaneError, Refused
from ..core.crashpoint import FOLDER_RECEIVED, FOLDER_TAKEN, crashpoint
from ..core.errors import HibossError
from ..core.file_guard import FileGuard, HomeFile, Identity, NotAFile, create_file, identity
from ..core.paths import Home
from .blocking_calls import run_blocking
from .folder_messages import parse_message, read_text

T = TypeVar("T")
POLL_SECONDS = 0.3
_DIRECTORIES = ("in", "out", "broken", ".taken")
_ENDINGS = {"text": ".txt", "markdown": ".md", "json": ".json", "html": ".html", "event": ".txt"}
_UNFINISHED = (".part", ".tmp", ".crdownload", "~")  # somebody still writes to these
_UNFINISHED_POST = re.compile(r"\.e[0-9]+[.-].*\.part")
_NAME = re.compile(r"[^\s/:\x00-\x1f\x7f]{1,128}")
Listing = dict[str, tuple[int, int, int]]  # by name: inode, size, time of the last change


class FolderAdapter:
    """Posts to and reads from one directory."""

    type: ClassVar[str] = "folder"
    _running: ClassVar[set[FolderAdapter]] = set()

    def __init__(self, account: Account) -> None:
        self._binding = account.binding
        self._place = account.name
        self._root = str(account.settings["path"])
        self._guard = FileGuard(Home(account.home))
        self._last_listing: Listing = {}
        self._here: Identity | None = None  # the directory it serves
        # In the names of unfinished files. A daemon that stops can leave a write behind, which goes on for
        # a moment beside the next daemon: the two must not take each other's file for their own.
        self._own = os.urandom(4).hex()

    @classmethod
    def bind(cls, given: Mapping[str, Any]) -> tuple[str, dict[str, Any], list[str]]:
        """Return the account, its settings and the places it may post to."""
        path = given.get("path")
        if not path or not os.path.isabs(path):
            raise Refused("a folder needs the absolute path of a directory (--path DIR)")
        root = os.path.realpath(path)
        home = os.path.realpath(given["home"])
        if os.path.commonpath([root, home]) in (root, home):
            raise Refused(f"{root} is inside the hiboss home, or contains it; choose another directory")
        name = os.path.basename(root)
        if not _NAME.fullmatch(name):
            raise Refused(
                f"{name or root} cannot be an address; the last part of the path must have no space or colon"
            )
        try:
            os.makedirs(root, mode=0o700, exist_ok=True)
            guard = FileGuard(Home(home))
            with guard.open_directory(root) as folder:
                _prepare(guard, root, folder)
        except OSError as error:
            raise Refused(f"{root} cannot be used: {_explained(error, root)}") from None
        return name, {"path": root}, [name]

    @contextmanager
    def _open(self, *names: str) -> Iterator[list[int]]:
        """Open some of its directories. At each use, since anybody may have put a link in their place."""
        with ExitStack() as opened:
            root = opened.enter_context(self._guard.open_directory(self._root))
            yield [opened.enter_context(self._open_in(name, root)) for name in names]

    def _open_in(self, name: str, root: int) -> AbstractContextManager[int]:
        return self._guard.open_below(name, root, os.path.join(self._root, name))

    async def start(self) -> None:
        self._running.add(self)
        await self._blocking(self._start)

    def _start(self) -> None:
        with self._open_root() as root:  # never created here: it may be unplugged or moved
            _prepare(self._guard, self._root, root)
            with self._open_in("out", root) as out:
                for name in os.listdir(out):
                    if _UNFINISHED_POST.fullmatch(name):  # of a daemon that was killed
                        os.unlink(name, dir_fd=out)

    @contextmanager
    def _open_root(self) -> Iterator[int]:
        """Open the folder itself. Raises LaneError if another binding serves it under another name."""
        with self._guard.open_directory(self._root) as root:
            here = identity(root)
            for other in self._running - {self}:
                if other._here == here:
                    text = f"{self._root} is the same directory as that of another binding, b{other._binding}"
                    raise LaneError("folder_taken", text)
            self._here = here
            yield root

    async def stop(self) -> None:
        self._running.discard(self)

    async def _blocking(self, function: Callable[..., T], *arguments: Any) -> T:
        """Call a function in a thread. Raises LaneError if the folder cannot be used."""
        try:
            return await run_blocking(self._root, function, *arguments)
        except OSError as error:
            raise LaneError("folder_unusable", _explained(error, self._root)) from error

    # --- out -------------------------------------------------------------------------

    def chunks(self, letter: Letter) -> list[str]:
        return [letter.text]

    async def post(self, letter: Letter, number: int, chunk: str) -> str:
        return await self._blocking(self._write, letter, chunk)

    def _write(self, letter: Letter, chunk: str) -> str:
        """Write the attachments first and the text last: a reader of the text finds its attachments."""
        with ExitStack() as opened:
            root = opened.enter_context(self._open_root())
            _make_directory("out", root)  # it may have been deleted; but the folder itself is never made here
            out = opened.enter_context(self._open_in("out", root))
            for number, (file, name) in enumerate(zip(letter.files, _names(letter), strict=True)):
                with self._open_attachment(file) as source:
                    _write_file(out, f".{letter.id}-{number}.{self._own}.part", name, source)
            name = letter.id + _ENDINGS[letter.type]
            _write_file(out, f".{name}.{self._own}.part", name, io.BytesIO(chunk.encode()))
            os.fsync(out)
        return name

    def _open_attachment(self, file: File) -> BinaryIO:
        try:
            return self._guard.open_file(os.path.realpath(file.path))
        except FileNotFoundError as error:
            raise EnvelopeError("file_missing", f"{file.path} does not exist any more") from error
        except (HomeFile, NotAFile) as error:
            raise EnvelopeError("file_forbidden", f"{file.path}: {error.strerror}") from error

    # --- in --------------------------------------------------------------------------

    async def listen(self, receive: Receive) -> None:
        while True:
            await self._blocking(self._take_files)
            for update in await self._blocking(self._list_taken):
                await self._receive(update, receive)
            await asyncio.sleep(POLL_SECONDS)

    def _take_files(self) -> None:
        """Move every finished file into `.taken/`, each into a directory of its own."""
        with (
            self._open_root() as root,
            self._open_in("in", root) as inbox,
            self._open_in(".taken", root) as taken,
        ):
            ready = self._find_ready(inbox)
            for changed, name in sorted(ready):
                update = f"{changed:020d}-{os.urandom(6).hex()}"
                os.mkdir(update, 0o700, dir_fd=taken)
                with _open_below(update, taken) as own:
                    try:
                        os.rename(name, _as_utf8(name), src_dir_fd=inbox, dst_dir_fd=own)
                    except FileNotFoundError:  # somebody moved or deleted it
                        os.rmdir(update, dir_fd=taken)
                        continue
                    except OSError:
                        os.rmdir(update, dir_fd=taken)
                        raise
                    for directory in (own, taken, inbox):
                        # Before the COMMIT: a power cut must not undo the move but keep the message.
                        os.fsync(directory)
        if ready:
            crashpoint(FOLDER_TAKEN)

    def _find_ready(self, inbox: int) -> list[tuple[int, str]]:
        """Return the finished files: those that are unchanged since the last poll, with their times."""
        listing: Listing = {}
        ready = []
        with os.scandir(inbox) as entries:
            for entry in entries:
                if not entry.is_file(follow_symlinks=False) or _is_unfinished(entry.name):
                    continue
                stat = entry.stat(follow_symlinks=False)
                listing[entry.name] = (stat.st_ino, stat.st_size, stat.st_mtime_ns)
                if self._last_listing.get(entry.name) == listing[entry.name]:
                    ready.append((stat.st_mtime_ns, entry.name))
        self._last_listing = listing
        return ready

    def _list_taken(self) -> list[str]:
        """Return the directories in `.taken/`. Files there are not ours: file managers make some."""
        with self._open(".taken") as (taken,), os.scandir(taken) as entries:
            return sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))

    async def _receive(self, update: str, receive: Receive) -> None:
        """Make a message of one taken file, then delete it; or move it to `broken/`."""
        name = await self._blocking(self._name_of, update)
        if name is not None:
            try:
                await receive(await self._blocking(self._read, update, name))
                crashpoint(FOLDER_RECEIVED)
            except Refused as refusal:
                await self._blocking(self._move_to_broken, update, name, refusal.why)
                return
            except HibossError as error:  # it stays in `.taken/` and is tried again later
                raise LaneError(error.code, error.message) from error
        await self._blocking(self._remove, update)

    def _name_of(self, update: str) -> str | None:
        """Return the name of a taken file; None if it is gone."""
        with self._open("in", ".taken") as (inbox, taken), _open_below(update, taken) as own:
            names = [name for name in os.listdir(own) if not name.startswith(".")]
            for stray in names[1:]:  # somebody put another file here: it goes back to `in/`
                os.rename(stray, _shortened(f"{update}-{stray}"), src_dir_fd=own, dst_dir_fd=inbox)
        return names[0] if names else None

    def _read(self, update: str, name: str) -> Inbound:
        # Only the folder itself may be reached by links: what lies in `.taken/` is opened without any.
        path = os.path.join(os.path.realpath(os.path.join(self._root, ".taken")), update, name)
        ending = os.path.splitext(name)[1].lower()
        fields: dict[str, Any] = {}
        files: list[str] = []
        if ending in (".txt", ".md"):
            fields["text"] = read_text(self._guard, path)
        elif ending == ".json":
            fields = parse_message(read_text(self._guard, path))
        else:
            files = [path]
        message = os.fsencode(name).decode("utf-8", "replace")  # a file name may contain any bytes
        return Inbound(update=update, place=self._place, message=message, files=files, **fields)

    def _move_to_broken(self, update: str, name: str, why: str) -> None:
        with self._open("broken", ".taken") as (broken, taken):
            kept = _shortened(name)
            if _exists(kept, broken):
                kept = _shortened(f"{update}-{name}")
            with create_file(f"{kept}.reason.txt", broken) as reason:
                reason.write(f"{why}\n".encode("utf-8", "backslashreplace"))
            with _open_below(update, taken) as own:
                os.rename(name, kept, src_dir_fd=own, dst_dir_fd=broken)
            os.fsync(broken)
        self._remove(update)

    def _remove(self, update: str) -> None:
        with self._open(".taken") as (taken,):
            shutil.rmtree(update, dir_fd=taken)


def _explained(error: OSError, root: str) -> str:
    if isinstance(error, FileNotFoundError):
        return f"{error.filename or root} does not exist any more"
    return f"{error.filename or root}: {error.strerror or error}"


def _names(letter: Letter) -> list[str]:
    """Return the name in `out/` of each attachment, with a number where another one has that name."""
    names: dict[str, str] = {}  # by what they are where large and small letters are the same
    for number, file in enumerate(letter.files):
        own = os.path.basename(file.name)
        name = _shortened(f"{letter.id}-{own}")
        while name.casefold() in names:
            name = _shortened(f"{letter.id}-{number}-{own}")
            number += 1
        names[name.casefold()] = name
    return list(names.values())


def _as_utf8(name: str) -> str:
    """Return the name of a file as text: it may contain any bytes, and an attachment cannot."""
    text = os.fsencode(name).decode("utf-8", "replace")
    return name if text == name else _shortened(text)


def _shortened(name: str) -> str:
    """Shorten a file name so that `.reason.txt` can follow: file systems allow 255 bytes."""
    stem, ending = os.path.splitext(name)
    kept = os.fsencode(stem)[: 220 - min(len(os.fsencode(ending)), 20)].decode("utf-8", "ignore")
    return kept + ending[:20] if len(os.fsencode(name)) > 220 else name


def _prepare(guard: FileGuard, root: str, folder: int) -> None:
    """Make the directories of a folder, and check all of them."""
    found: dict[Identity, str] = {}
    disks: dict[str, int] = {}
    for name in _DIRECTORIES:
        _make_directory(name, folder)
        path = os.path.join(root, name)
        with guard.open_directory(path) as directory:
            here = identity(directory)
        disks[name] = here[0]
        other = found.setdefault(here, name)
        if other != name:  # a post would come in again as a message
            raise OSError(errno.EINVAL, f"it is the same directory as {other}", path)
    for name in ("in", "broken"):
        if disks[name] != disks[".taken"]:  # a file could not be moved in one step
            why = "it is on another file system than .taken/; only the whole folder, or out/, can be there"
            raise OSError(errno.EXDEV, why, os.path.join(root, name))


def _make_directory(name: str, parent: int) -> None:
    try:
        os.mkdir(name, 0o700, dir_fd=parent)
    except FileExistsError:
        pass


@contextmanager
def _open_below(name: str, parent: int) -> Iterator[int]:
    """Open a directory of ours, which is no link."""
    directory = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
    try:
        yield directory
    finally:
        os.close(directory)


def _exists(name: str, directory: int) -> bool:
    try:
        os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def _write_file(directory: int, partial: str, name: str, source: BinaryIO) -> None:
    """Write a file and sync it to disk before it gets its final name."""
    with create_file(partial, directory) as file:
        shutil.copyfileobj(source, file, 1024 * 1024)
        file.flush()
        os.fsync(file.fileno())
    os.replace(partial, name, src_dir_fd=directory, dst_dir_fd=directory)


def _is_unfinished(name: str) -> bool:
    return name.startswith(".") or name.lower().endswith(_UNFINISHED)
