"""The directory of a folder: opened anew at each use, through the guard, and served by one binding only.

Others can write to it. So every directory and file is opened through the guard (core/file_guard.py),
and what is done there is done on the opened directory, not on its path.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import BinaryIO, ClassVar

from ..core.contracts.failures import LaneError
from ..core.file_guard import FileGuard, Identity, create_file, identity
from ..core.paths import Home

_DIRECTORIES = ("in", "out", "broken", ".taken")


class FolderDirectory:
    """The root of a folder and the directories in it."""

    _served: ClassVar[set[FolderDirectory]] = set()

    def __init__(self, root: str, home: str, binding: int = 0) -> None:
        self.root = root
        self.guard = FileGuard(Home(home))
        self._binding = binding
        self._here: Identity | None = None  # the directory it serves

    def serve(self) -> None:
        """Let no other binding serve this directory, whatever its path."""
        self._served.add(self)

    def leave(self) -> None:
        self._served.discard(self)

    @contextmanager
    def open(self, *names: str) -> Iterator[list[int]]:
        """Open some of its directories. At each use, since anybody may have put a link in their place."""
        with ExitStack() as opened:
            root = opened.enter_context(self.guard.open_directory(self.root))
            yield [opened.enter_context(self.open_in(name, root)) for name in names]

    def open_in(self, name: str, root: int) -> AbstractContextManager[int]:
        """Open one of its directories."""
        return self.guard.open_below(name, root, os.path.join(self.root, name))

    @contextmanager
    def open_root(self) -> Iterator[int]:
        """Open the folder itself. Raises LaneError if another binding serves it under another name."""
        with self.guard.open_directory(self.root) as root:
            here = identity(root)
            for other in self._served - {self}:
                if other._here == here:
                    text = f"{self.root} is the same directory as that of another binding, b{other._binding}"
                    raise LaneError("folder_taken", text)
            self._here = here
            yield root

    @contextmanager
    def open_out(self, root: int) -> Iterator[int]:
        """Open `out/`, also if somebody has deleted it. The folder itself is never made here."""
        with ExitStack() as opened:
            try:
                out = opened.enter_context(self.open_in("out", root))
            except FileNotFoundError:
                make_directory("out", root)
                out = opened.enter_context(self.open_in("out", root))
            yield out

    def prepare(self, root: int) -> None:
        """Make the directories of a folder, and check all of them."""
        found: dict[Identity, str] = {}
        disks: dict[str, int] = {}
        for name in _DIRECTORIES:
            make_directory(name, root)
            path = os.path.join(self.root, name)
            with self.guard.open_directory(path) as directory:
                here = identity(directory)
            disks[name] = here[0]
            other = found.setdefault(here, name)
            if other != name:  # a post would come in again as a message
                raise OSError(errno.EINVAL, f"it is the same directory as {other}", path)
        for name in ("in", "broken"):
            if disks[name] != disks[".taken"]:  # a file could not be moved in one step
                why = (
                    "it is on another file system than .taken/; only the whole folder, or out/, can be there"
                )
                raise OSError(errno.EXDEV, why, os.path.join(self.root, name))


def explained(error: OSError, root: str) -> str:
    """Say what is wrong with a folder."""
    if isinstance(error, FileNotFoundError):
        return f"{error.filename or root} does not exist any more"
    return f"{error.filename or root}: {error.strerror or error}"


def shortened(name: str) -> str:
    """Shorten a file name so that `.reason.txt` can follow: file systems allow 255 bytes."""
    stem, ending = os.path.splitext(name)
    kept = os.fsencode(stem)[: 220 - min(len(os.fsencode(ending)), 20)].decode("utf-8", "ignore")
    return kept + ending[:20] if len(os.fsencode(name)) > 220 else name


def make_directory(name: str, parent: int) -> None:
    """Make a directory, if it is not there."""
    try:
        os.mkdir(name, 0o700, dir_fd=parent)
    except FileExistsError:
        pass


@contextmanager
def open_below(name: str, parent: int) -> Iterator[int]:
    """Open a directory of ours, which is no link."""
    directory = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
    try:
        yield directory
    finally:
        os.close(directory)


def exists(name: str, directory: int) -> bool:
    """Tell whether there is anything of this name."""
    try:
        os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def write_file(directory: int, partial: str, name: str, source: BinaryIO) -> None:
    """Write a file and sync it to disk before it gets its final name."""
    with create_file(partial, directory) as file:
        shutil.copyfileobj(source, file, 1024 * 1024)
        file.flush()
        os.fsync(file.fileno())
    os.replace(partial, name, src_dir_fd=directory, dst_dir_fd=directory)
