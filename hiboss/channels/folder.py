"""A folder as a channel: what is posted becomes a file in `out/`, a file in `in/` a message.

`channel:folder:<name>` is the folder called <name>. In `in/`, `.txt` and `.md` are a text,
`.json` describes a message (text, subject, author, group, reply_to), and anything else is a
file sent along. A file is taken by moving it into `.taken/`, under a name that stays the
same over crashes, so it becomes a message exactly once; what cannot be one goes to
`broken/` with the reason beside it.
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
_UNFINISHED = (".part", ".tmp", ".crdownload", "~")
_NAME = re.compile(r"[^\s/:\x00-\x1f\x7f]{1,128}")
_KEYS = ("text", "subject", "author", "group", "reply_to")
_TEXT_BYTES = 16 * 1024 * 1024  # read whole; what a message may have is less, and asked for later
_AUTHOR = ("name", "username", "id")
Look = dict[str, tuple[int, int, int]]


class FolderAdapter:
    """The contract's adapter for a directory."""

    type: ClassVar[str] = "folder"

    def __init__(self, account: Account) -> None:
        self._place = account.name
        self._root = str(account.settings["path"])
        self._last_look: Look = {}

    @classmethod
    def bind(cls, given: Mapping[str, Any]) -> tuple[str, dict[str, Any], list[str]]:
        """The account, its settings and where it may post, of what the boss gave."""
        path = given.get("path")
        if not path or not os.path.isabs(path):
            raise Refused("a folder needs an absolute path (--path DIR)")
        root = os.path.realpath(path)
        home = os.path.realpath(given["home"])
        if os.path.commonpath([root, home]) in (root, home):
            raise Refused(f"{root} lies in hiboss's own home, or around it; choose another directory")
        name = os.path.basename(root)
        if not _NAME.fullmatch(name):
            raise Refused(
                f"{name or root} cannot be an address; the last name of the path has no blanks or colons"
            )
        try:
            _make(root)
        except OSError as error:
            raise Refused(f"{root} cannot be used: {error.strerror or error}") from None
        return name, {"path": root}, [name]

    def _in(self, *names: str) -> str:
        return os.path.join(self._root, *names)

    async def start(self) -> None:
        if not os.path.isdir(self._root):  # unplugged or moved: what is posted must not land beside it
            raise LaneError("folder_unusable", f"{self._root} is gone")
        try:
            await run_blocking(self._root, _make, self._root)
        except OSError as error:
            raise _unusable(self._root, error) from error

    async def stop(self) -> None:
        """Nothing is kept open."""

    # --- out -------------------------------------------------------------------------

    def chunks(self, letter: Letter) -> list[str]:
        return [letter.text]

    async def post(self, letter: Letter, number: int, chunk: str) -> str:
        try:
            return await run_blocking(self._root, self._write, letter, chunk)
        except FileNotFoundError as error:
            if error.filename and not str(error.filename).startswith(self._root):
                raise EnvelopeError("file_missing", f"{error.filename} is gone") from error
            raise LaneError("folder_unusable", f"{self._root} is gone") from error
        except OSError as error:
            raise _unusable(self._root, error) from error

    def _write(self, letter: Letter, chunk: str) -> str:
        """The files first, the text last: whoever sees the text finds its files."""
        out = self._in("out")
        if os.path.isdir(self._root):  # people tidy up; but a folder that is away is not made anew here
            os.makedirs(out, mode=0o700, exist_ok=True)
        names: set[str] = set()
        for number, file in enumerate(letter.files):
            named = _fitting(f"{letter.id}-{os.path.basename(file.name)}")
            if named in names:  # two files of the same name are still two
                named = _fitting(f"{letter.id}-{number}-{os.path.basename(file.name)}")
            names.add(named)
            target = os.path.join(out, named)
            partial = os.path.join(out, f".{letter.id}-{number}.part")  # the same at every attempt
            shutil.copyfile(file.path, partial)
            _put(partial, target)
        name = letter.id + _ENDINGS[letter.type]
        partial = os.path.join(out, f".{name}.part")
        with open(partial, "w", encoding="utf-8", newline="") as text:
            text.write(chunk)
        _put(partial, os.path.join(out, name))
        sync_directory(out)
        return name

    # --- in --------------------------------------------------------------------------

    async def listen(self, receive: Receive) -> None:
        while True:
            await run_blocking(self._root, self._take)
            for update in await run_blocking(self._root, self._taken):
                await self._hand_in(update, receive)
            await asyncio.sleep(POLL_SECONDS)

    def _take(self) -> None:
        """Move what lies ready into `.taken/`, each into a directory named after it for good."""
        look: Look = {}
        ready = []
        with os.scandir(self._in("in")) as entries:
            for entry in entries:
                if not entry.is_file(follow_symlinks=False) or _is_unfinished(entry.name):
                    continue
                facts = entry.stat(follow_symlinks=False)
                look[entry.name] = (facts.st_ino, facts.st_size, facts.st_mtime_ns)
                # Twice the same: nobody writes to it any more.
                if self._last_look.get(entry.name) == look[entry.name]:
                    ready.append((facts.st_mtime_ns, entry.name))
        self._last_look = look
        for changed, name in sorted(ready):
            update = f"{changed:020d}-{os.urandom(6).hex()}"
            os.mkdir(self._in(".taken", update), 0o700)
            try:
                os.rename(self._in("in", name), self._in(".taken", update, name))
            except FileNotFoundError:  # somebody took it back
                os.rmdir(self._in(".taken", update))
                continue
            for directory in ((".taken", update), (".taken",), ("in",)):
                sync_directory(
                    self._in(*directory)
                )  # before the COMMIT, or a power cut could undo this alone
        if ready:
            crashpoint(FOLDER_TAKEN)

    def _taken(self) -> list[str]:
        """Only what we made ourselves: file managers leave things everywhere."""
        with os.scandir(self._in(".taken")) as entries:
            return sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))

    async def _hand_in(self, update: str, receive: Receive) -> None:
        directory = self._in(".taken", update)
        names = [
            name for name in await run_blocking(self._root, os.listdir, directory) if not name.startswith(".")
        ]
        for stray in names[1:]:  # nobody but us should put anything here; it comes in by itself
            os.rename(os.path.join(directory, stray), self._in("in", _fitting(f"{update}-{stray}")))
        if names:
            try:
                inbound = await run_blocking(
                    self._root, self._read, update, os.path.join(directory, names[0])
                )
                await receive(inbound)
                crashpoint(FOLDER_RECEIVED)
            except Refused as refusal:
                await run_blocking(self._root, self._set_aside, directory, names[0], refusal.why)
                return
            except HibossError as error:  # not now; it stays taken and is tried again
                raise LaneError(error.code, error.message) from error
        await run_blocking(self._root, shutil.rmtree, directory)

    def _read(self, update: str, path: str) -> Inbound:
        name = os.path.basename(path)
        ending = os.path.splitext(name)[1].lower()
        facts: dict[str, Any] = {}
        files: list[str] = []
        if ending in (".txt", ".md"):
            facts["text"] = _text(path)
        elif ending == ".json":
            facts = _message(_text(path))
        else:
            files = [path]
        message = os.fsencode(name).decode("utf-8", "replace")  # a name may be any bytes
        return Inbound(update=update, place=self._place, message=message, files=files, **facts)

    def _set_aside(self, directory: str, name: str, why: str) -> None:
        kept = _fitting(name)
        if os.path.exists(self._in("broken", kept)):
            kept = _fitting(f"{os.path.basename(directory)}-{name}")
        reason = self._in("broken", f"{kept}.reason.txt")
        with open(reason, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(why + "\n")
        os.rename(os.path.join(directory, name), self._in("broken", kept))
        sync_directory(self._in("broken"))
        shutil.rmtree(directory)


def _unusable(root: str, error: OSError) -> LaneError:
    return LaneError("folder_unusable", f"{error.filename or root}: {error.strerror or error}")


def _fitting(name: str) -> str:
    """A name that has room for `.reason.txt` behind it: file systems count bytes, up to 255."""
    stem, ending = os.path.splitext(name)
    kept = os.fsencode(stem)[: 220 - min(len(os.fsencode(ending)), 20)].decode("utf-8", "ignore")
    return kept + ending[:20] if len(os.fsencode(name)) > 220 else name


def _make(root: str) -> None:
    for name in ("in", "out", "broken", ".taken"):
        os.makedirs(os.path.join(root, name), mode=0o700, exist_ok=True)


def _put(partial: str, target: str) -> None:
    """On disk before it has its name."""
    file = os.open(partial, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)
    os.replace(partial, target)


def _is_unfinished(name: str) -> bool:
    return name.startswith(".") or name.lower().endswith(_UNFINISHED)


def _text(path: str) -> str:
    size = os.path.getsize(path)
    if size > _TEXT_BYTES:
        raise Refused(f"it has {size} bytes, and a text may have {_TEXT_BYTES} here; send it as a file")
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            return file.read().rstrip("\r\n")  # an editor's last line break is not part of what was said
    except UnicodeDecodeError:
        raise Refused("it is no UTF-8 text; give it another ending to send it as a file") from None
    except OSError as error:
        raise Refused(f"it cannot be read: {error.strerror or error}") from None


def _message(text: str) -> dict[str, Any]:
    """A message described in JSON, checked."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:  # also of a nesting beyond all measure
        raise Refused(f"it is no JSON: {error}") from None
    if not isinstance(document, dict):
        raise Refused('it must be an object, like {"text": "hello"}')
    for key, value in document.items():
        if key not in _KEYS:
            raise Refused(
                f"{key} is no part of a message{nearest(key, list(_KEYS))}; there are: {', '.join(_KEYS)}"
            )
        if key == "author":
            if not isinstance(value, dict) or not all(
                name in _AUTHOR and isinstance(one, str) for name, one in value.items()
            ):
                raise Refused(f"author must be an object of texts: {', '.join(_AUTHOR)}")
        elif not isinstance(value, str):
            raise Refused(f"{key} must be text")
    return document
