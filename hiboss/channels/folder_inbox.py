"""The inbox of a folder: files put into `in/`, taken one by one, read, and deleted or moved to `broken/`.

A file is first moved into a directory of its own in `.taken/`. The name of that directory is the id
of the update and stays the same after a crash, so the file becomes a message exactly once. It stays
there until its message is stored. A file that cannot become a message is moved to `broken/`, with the
reason in a file next to it.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection
from contextlib import ExitStack
from typing import Any

from ..core.contracts.failures import Refused
from ..core.contracts.inbound import Author, Inbound
from ..core.crashpoint import FOLDER_TAKEN, crashpoint
from ..core.file_guard import create_file
from .folder_directory import FolderDirectory, exists, open_below, shortened
from .folder_messages import parse_message, parse_text, read_text

_UNFINISHED = (".part", ".tmp", ".crdownload", "~")  # somebody still writes to these
_TEXTS = (".txt", ".md")
_COMMAND_BYTES = 4096  # a longer file is not looked into before its turn
Listing = dict[str, tuple[int, int, int]]  # by name: inode, size, time of the last change


class FolderInbox:
    """The files that come in. All methods block."""

    def __init__(self, directory: FolderDirectory, place: str) -> None:
        self._directory = directory
        self._place = place
        self._last_listing: Listing = {}

    def take(self, known: Collection[str]) -> list[str]:
        """Move every finished file into a directory of its own in `.taken/`; list those not known."""
        with (
            self._directory.open_root() as root,
            self._directory.open_in("in", root) as inbox,
            self._directory.open_in(".taken", root) as taken,
        ):
            ready = self._find_ready(inbox)
            for changed, name in sorted(ready):
                update = f"{changed:020d}-{os.urandom(6).hex()}"
                os.mkdir(update, 0o700, dir_fd=taken)
                with open_below(update, taken) as own:
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
            return [name for name in _directories(taken) if name not in known]

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

    def name_of(self, update: str) -> str | None:
        """Return the name of a taken file; None if it is gone."""
        with ExitStack() as opened:
            inbox, taken = opened.enter_context(self._directory.open("in", ".taken"))
            try:
                own = opened.enter_context(open_below(update, taken))
            except FileNotFoundError:  # it was digested since it was listed
                return None
            names = [name for name in os.listdir(own) if not name.startswith(".")]
            for stray in names[1:]:  # somebody put another file here: it goes back to `in/`
                os.rename(stray, shortened(f"{update}-{stray}"), src_dir_fd=own, dst_dir_fd=inbox)
        return names[0] if names else None

    def read(self, update: str, name: str) -> Inbound:
        """Make a message of a taken file; raise Refused if it can be none."""
        # Only the folder itself may be reached by links: what lies in `.taken/` is opened without any.
        path = os.path.join(os.path.realpath(os.path.join(self._directory.root, ".taken")), update, name)
        ending = os.path.splitext(name)[1].lower()
        fields: dict[str, Any] = {}
        files: list[str] = []
        if ending in _TEXTS:
            fields = parse_text(read_text(self._directory.guard, path))
        elif ending == ".json":
            fields = parse_message(read_text(self._directory.guard, path))
        else:
            files = [path]
        group = fields.pop("group", None)
        return Inbound(
            kind="command" if fields.get("command") else "message",
            chat=self._place,
            chat_kind="private" if group is None else "group",
            title=group,
            author=Author(**fields.pop("author", {})),
            message=as_text(name),
            files=files,
            **fields,
        )

    def command(self, update: str, name: str | None) -> Inbound | None:
        """Return the command that a taken file is; None: it is none, or `read` says what is wrong with it."""
        with self._directory.open(".taken") as (taken,):
            if name is None or os.path.splitext(name)[1].lower() not in (*_TEXTS, ".json"):
                return None
            try:
                with open_below(update, taken) as own:
                    if os.stat(name, dir_fd=own, follow_symlinks=False).st_size > _COMMAND_BYTES:
                        return None
                inbound = self.read(update, name)
            except (Refused, FileNotFoundError):
                return None
        return inbound if inbound.kind == "command" else None

    def move_to_broken(self, update: str, name: str, why: str) -> None:
        """Keep a file that cannot become a message, with the reason beside it."""
        with self._directory.open("broken", ".taken") as (broken, taken):
            kept = shortened(name)
            if exists(kept, broken):
                kept = shortened(f"{update}-{name}")
            with create_file(f"{kept}.reason.txt", broken) as reason:
                reason.write(f"{why}\n".encode("utf-8", "backslashreplace"))
            with open_below(update, taken) as own:
                os.rename(name, kept, src_dir_fd=own, dst_dir_fd=broken)
            os.fsync(broken)
        self.remove(update)

    def remove(self, update: str) -> None:
        """Delete a taken file, whose message is stored."""
        with self._directory.open(".taken") as (taken,):
            try:
                shutil.rmtree(update, dir_fd=taken)
            except FileNotFoundError:
                pass


def as_text(name: str | None) -> str:
    """Return the name of a file as it can be stored."""
    return os.fsencode(name or "").decode("utf-8", "replace")


def _as_utf8(name: str) -> str:
    """Return the name of a file as text: it may contain any bytes, and an attachment cannot."""
    text = os.fsencode(name).decode("utf-8", "replace")
    return name if text == name else shortened(text)


def _directories(taken: int) -> list[str]:
    """Return the directories in `.taken/`. Files there are not ours: file managers make some."""
    with os.scandir(taken) as entries:
        return sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))


def _is_unfinished(name: str) -> bool:
    return name.startswith(".") or name.lower().endswith(_UNFINISHED)
