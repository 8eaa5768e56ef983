"""The folder adapter: what is posted becomes a file in `out/`, and a file in `in/` becomes a message.

`channel:folder:<name>` is the folder called <name>. In `in/`, a `.txt` or `.md` file is the text of
a message, a `.json` file describes a message (text, subject, author, group, reply_to), and any other
file becomes an attachment.

A file is first moved into a directory of its own in `.taken/`. The name of that directory is the id
of the update and stays the same after a crash, so the file becomes a message exactly once. A file
that cannot become a message is moved to `broken/`, with the reason in a file next to it.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
from collections.abc import Mapping
from typing import Any, ClassVar

from ..core.contracts.adapter import Account, Inbound, Letter, Receive
from ..core.contracts.failures import EnvelopeError, LaneError, Refused
from ..core.crashpoint import FOLDER_RECEIVED, FOLDER_TAKEN, crashpoint
from ..core.errors import HibossError
from ..core.paths import sync_directory
from ..core.quoting import nearest
from .blocking_calls import run_blocking

POLL_SECONDS = 0.3
_ENDINGS = {"text": ".txt", "markdown": ".md", "json": ".json", "html": ".html", "event": ".txt"}
_UNFINISHED = (".part", ".tmp", ".crdownload", "~")  # somebody still writes to these
_NAME = re.compile(r"[^\s/:\x00-\x1f\x7f]{1,128}")
_KEYS = ("text", "subject", "author", "group", "reply_to")
_TEXT_BYTES = 16 * 1024 * 1024  # read into memory; the smaller limit of a message is checked later
_AUTHOR = ("name", "username", "id")
Listing = dict[str, tuple[int, int, int]]  # by name: inode, size, time of the last change


class FolderAdapter:
    """Posts to and reads from one directory."""

    type: ClassVar[str] = "folder"

    def __init__(self, account: Account) -> None:
        self._place = account.name
        self._root = str(account.settings["path"])
        self._last_listing: Listing = {}

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
            _make_directories(root)
        except OSError as error:
            raise Refused(f"{root} cannot be used: {error.strerror or error}") from None
        return name, {"path": root}, [name]

    def _in(self, *names: str) -> str:
        return os.path.join(self._root, *names)

    async def start(self) -> None:
        if not os.path.isdir(self._root):  # unplugged or moved: do not create it in another place
            raise LaneError("folder_unusable", f"{self._root} does not exist any more")
        try:
            await run_blocking(self._root, _make_directories, self._root)
        except OSError as error:
            raise _unusable(self._root, error) from error

    async def stop(self) -> None:
        """Nothing is open."""

    # --- out -------------------------------------------------------------------------

    def chunks(self, letter: Letter) -> list[str]:
        return [letter.text]

    async def post(self, letter: Letter, number: int, chunk: str) -> str:
        try:
            return await run_blocking(self._root, self._write, letter, chunk)
        except FileNotFoundError as error:
            if error.filename and not str(error.filename).startswith(self._root):
                raise EnvelopeError("file_missing", f"{error.filename} does not exist any more") from error
            raise LaneError("folder_unusable", f"{self._root} does not exist any more") from error
        except OSError as error:
            raise _unusable(self._root, error) from error

    def _write(self, letter: Letter, chunk: str) -> str:
        """Write the attachments first and the text last: a reader of the text finds its attachments."""
        out = self._in("out")
        if os.path.isdir(self._root):  # `out` may have been deleted; but the folder itself is never made here
            os.makedirs(out, mode=0o700, exist_ok=True)
        names: set[str] = set()
        for number, file in enumerate(letter.files):
            name = _shortened(f"{letter.id}-{os.path.basename(file.name)}")
            if name in names:  # two attachments with the same name
                name = _shortened(f"{letter.id}-{number}-{os.path.basename(file.name)}")
            names.add(name)
            target = os.path.join(out, name)
            partial = os.path.join(out, f".{letter.id}-{number}.part")  # the same name at every attempt
            shutil.copyfile(file.path, partial)
            _sync_and_rename(partial, target)
        name = letter.id + _ENDINGS[letter.type]
        partial = os.path.join(out, f".{name}.part")
        with open(partial, "w", encoding="utf-8", newline="") as text:
            text.write(chunk)
        _sync_and_rename(partial, os.path.join(out, name))
        sync_directory(out)
        return name

    # --- in --------------------------------------------------------------------------

    async def listen(self, receive: Receive) -> None:
        while True:
            await run_blocking(self._root, self._take_files)
            for update in await run_blocking(self._root, self._list_taken):
                await self._receive(update, receive)
            await asyncio.sleep(POLL_SECONDS)

    def _take_files(self) -> None:
        """Move every finished file into `.taken/`, each into a directory of its own."""
        listing: Listing = {}
        ready = []
        with os.scandir(self._in("in")) as entries:
            for entry in entries:
                if not entry.is_file(follow_symlinks=False) or _is_unfinished(entry.name):
                    continue
                stat = entry.stat(follow_symlinks=False)
                listing[entry.name] = (stat.st_ino, stat.st_size, stat.st_mtime_ns)
                # Unchanged since the last poll: nobody writes to it any more.
                if self._last_listing.get(entry.name) == listing[entry.name]:
                    ready.append((stat.st_mtime_ns, entry.name))
        self._last_listing = listing
        for changed, name in sorted(ready):
            update = f"{changed:020d}-{os.urandom(6).hex()}"
            os.mkdir(self._in(".taken", update), 0o700)
            try:
                os.rename(self._in("in", name), self._in(".taken", update, name))
            except FileNotFoundError:  # somebody moved or deleted it
                os.rmdir(self._in(".taken", update))
                continue
            for directory in ((".taken", update), (".taken",), ("in",)):
                # Before the COMMIT: a power cut must not undo the move but keep the message.
                sync_directory(self._in(*directory))
        if ready:
            crashpoint(FOLDER_TAKEN)

    def _list_taken(self) -> list[str]:
        """Return the directories in `.taken/`. Files there are not ours: file managers make some."""
        with os.scandir(self._in(".taken")) as entries:
            return sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))

    async def _receive(self, update: str, receive: Receive) -> None:
        """Make a message of one taken file, then delete it; or move it to `broken/`."""
        directory = self._in(".taken", update)
        names = [
            name for name in await run_blocking(self._root, os.listdir, directory) if not name.startswith(".")
        ]
        for stray in names[1:]:  # somebody put another file here: it goes back to `in/`
            os.rename(os.path.join(directory, stray), self._in("in", _shortened(f"{update}-{stray}")))
        if names:
            try:
                inbound = await run_blocking(
                    self._root, self._read, update, os.path.join(directory, names[0])
                )
                await receive(inbound)
                crashpoint(FOLDER_RECEIVED)
            except Refused as refusal:
                await run_blocking(self._root, self._move_to_broken, directory, names[0], refusal.why)
                return
            except HibossError as error:  # it stays in `.taken/` and is tried again later
                raise LaneError(error.code, error.message) from error
        await run_blocking(self._root, shutil.rmtree, directory)

    def _read(self, update: str, path: str) -> Inbound:
        name = os.path.basename(path)
        ending = os.path.splitext(name)[1].lower()
        fields: dict[str, Any] = {}
        files: list[str] = []
        if ending in (".txt", ".md"):
            fields["text"] = _read_text(path)
        elif ending == ".json":
            fields = _parse_message(_read_text(path))
        else:
            files = [path]
        message = os.fsencode(name).decode("utf-8", "replace")  # a file name may contain any bytes
        return Inbound(update=update, place=self._place, message=message, files=files, **fields)

    def _move_to_broken(self, directory: str, name: str, why: str) -> None:
        kept = _shortened(name)
        if os.path.exists(self._in("broken", kept)):
            kept = _shortened(f"{os.path.basename(directory)}-{name}")
        reason = self._in("broken", f"{kept}.reason.txt")
        with open(reason, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(why + "\n")
        os.rename(os.path.join(directory, name), self._in("broken", kept))
        sync_directory(self._in("broken"))
        shutil.rmtree(directory)


def _unusable(root: str, error: OSError) -> LaneError:
    return LaneError("folder_unusable", f"{error.filename or root}: {error.strerror or error}")


def _shortened(name: str) -> str:
    """Shorten a file name so that `.reason.txt` can follow: file systems allow 255 bytes."""
    stem, ending = os.path.splitext(name)
    kept = os.fsencode(stem)[: 220 - min(len(os.fsencode(ending)), 20)].decode("utf-8", "ignore")
    return kept + ending[:20] if len(os.fsencode(name)) > 220 else name


def _make_directories(root: str) -> None:
    for name in ("in", "out", "broken", ".taken"):
        os.makedirs(os.path.join(root, name), mode=0o700, exist_ok=True)


def _sync_and_rename(partial: str, target: str) -> None:
    """Sync a file to disk before it gets its final name."""
    file = os.open(partial, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)
    os.replace(partial, target)


def _is_unfinished(name: str) -> bool:
    return name.startswith(".") or name.lower().endswith(_UNFINISHED)


def _read_text(path: str) -> str:
    size = os.path.getsize(path)
    if size > _TEXT_BYTES:
        raise Refused(
            f"it has {size} bytes, and the limit for a text is {_TEXT_BYTES}; send it as an attachment"
        )
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            return file.read().rstrip("\r\n")  # editors add a line break at the end
    except UnicodeDecodeError:
        raise Refused(
            "it is not UTF-8 text; to send it as an attachment, give the file another ending"
        ) from None
    except OSError as error:
        raise Refused(f"it cannot be read: {error.strerror or error}") from None


def _parse_message(text: str) -> dict[str, Any]:
    """Parse and check a message described in JSON."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:  # RecursionError: nested too deeply
        raise Refused(f"it is not JSON: {error}") from None
    if not isinstance(document, dict):
        raise Refused('it must be an object, like {"text": "hello"}')
    for key, value in document.items():
        if key not in _KEYS:
            raise Refused(
                f"unknown key {key}{nearest(key, list(_KEYS))}; a message can have: {', '.join(_KEYS)}"
            )
        if key == "author":
            if not isinstance(value, dict) or not all(
                name in _AUTHOR and isinstance(one, str) for name, one in value.items()
            ):
                raise Refused(f"author must be an object with text values; it can have: {', '.join(_AUTHOR)}")
        elif not isinstance(value, str):
            raise Refused(f"{key} must be a text")
    return document
