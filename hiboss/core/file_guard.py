"""The one guard for files that come in and go out: it keeps them apart from the files of the home.

Whoever opens a path that others can change opens it here: attachments, folders, downloads. What is
opened is checked by its descriptor, not by its path, so nobody can exchange it after the check.

DANGER: to close any descriptor of the database drops all POSIX locks that this process has on it.
The next reader would then believe that it is the last user, and delete the WAL that the daemon still
writes to. So a file of the home is recognized before it is opened (O_PATH opens nothing and its
close drops no lock), and where that is not possible (macOS), its descriptor is never closed.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import BinaryIO

from .paths import Home

Identity = tuple[int, int]  # device and inode: the same whatever the path

_HAS_PATH_ONLY = hasattr(os, "O_PATH") and os.path.isdir("/proc/self/fd")
_PATH_ONLY = os.O_PATH if _HAS_PATH_ONLY else os.O_RDONLY | os.O_NONBLOCK
_STEP = _PATH_ONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_BELOW = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# NONBLOCK: to open a named pipe must not wait for a writer.
_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_KERNEL = ("/proc", "/sys")  # what looks like files there tells about processes: also about the daemon
_never_closed: list[int] = []  # descriptors of files of the home, opened in a race


class HomeFile(PermissionError):
    """A file or a directory that belongs to the home, or a directory around the home."""

    def __init__(self, path: str, why: str = "it is in the home directory of hiboss") -> None:
        super().__init__(errno.EPERM, why, path)


class PrivateFile(PermissionError):
    """A file in a place from which the caller wants nothing; `place` is that place."""

    def __init__(self, path: str, place: str) -> None:
        super().__init__(errno.EPERM, f"it is in {place}", path)
        self.place = place


class OutsideRoots(PermissionError):
    """A file that is below none of the directories that its caller may read from."""

    def __init__(self, path: str) -> None:
        super().__init__(errno.EPERM, "it is below none of the allowed directories", path)


class SecondName(PermissionError):
    """A file with a hard link: its other name may be anywhere, so its place says nothing about it."""

    def __init__(self, path: str) -> None:
        super().__init__(
            errno.EPERM, "it has a second name (a hard link); copy it, and attach the copy", path
        )


class NotAFile(OSError):
    """Something else than a regular file: a directory, a pipe, a socket, a device, a file of the kernel."""

    def __init__(self, path: str) -> None:
        super().__init__(errno.EINVAL, "it is not a regular file", path)


class FileGuard:
    """Opens files and directories outside the home. All methods block."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._above_home: list[Identity] = []

    def _home_and_above(self) -> list[Identity]:
        """Return the home and the directories above it, the home last; nothing if it does not exist."""
        home = _stat(self._home.path)
        # Only the home itself is looked at each time: what is above it is no secret.
        if home is not None and self._above_home[-1:] != [_identity(home)]:
            self._above_home = _ancestors(self._home.path)
        return self._above_home if home is not None else []

    def open_file(
        self, path: str, private: Sequence[str] = (), roots: Sequence[str] | None = None
    ) -> BinaryIO:
        """Open a regular file to read it; resolve links before, since none is followed here.

        `roots`: only below one of these directories or in media/, and only a file with one name. A root
        may be in the home, as most workspaces are.

        Raises HomeFile for every file of the home except those in media/ and below a root, also by a hard
        link; OutsideRoots; SecondName; PrivateFile for a file below one of `private`; NotAFile; and OSError.
        """
        parent, above = _descend(os.path.dirname(path))
        try:
            below_root = self._below_root(above, roots or ())
            if self._in_home(below_root or above):
                raise HomeFile(path)
            if roots is not None and not below_root and not self._in_media(above):
                raise OutsideRoots(path)
            return self._open_checked(path, parent, above, private, single=roots is not None)
        finally:
            os.close(parent)

    def open_below_workspace(self, workspace: str, *names: str) -> BinaryIO:
        """Open a regular file below a directory, which may be in the home, as most workspaces are.

        Links to the directory are followed, and none below it. Raises HomeFile for a hard link to a file of
        the home, NotAFile, and OSError; ELOOP says that there is a link.
        """
        path = os.path.join(workspace, *names)
        here, above = _descend_through_links(workspace)
        try:
            for name in names[:-1]:
                with _named(path):
                    if stat.S_ISLNK(os.stat(name, dir_fd=here, follow_symlinks=False).st_mode):
                        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
                    below = os.open(name, _STEP, dir_fd=here)
                os.close(here)
                here = below
                above.append(identity(here))
            return self._open_checked(path, here, above, (), itself=True)
        finally:
            os.close(here)

    def open_in_home(self, name: str) -> BinaryIO:
        """Open a regular file of the home that people write, like BOSS.md; no link. Raises as above."""
        path = os.path.join(self._home.path, name)
        home, above = _descend_through_links(self._home.path)
        try:
            return self._open_checked(path, home, above, (), itself=True)
        finally:
            os.close(home)

    def _open_checked(
        self,
        path: str,
        parent: int,
        above: Sequence[Identity],
        private: Sequence[str],
        *,
        itself: bool = False,
        single: bool = False,
    ) -> BinaryIO:
        name = os.path.basename(path)
        if not _HAS_PATH_ONLY:  # most cases without opening it; a race is seen below
            with _named(path):
                before = os.stat(name, dir_fd=parent, follow_symlinks=False)
            self._check(path, before, above, private, itself=itself, single=single)
        with _named(path):
            found = os.open(name, _PATH_ONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
        closes = True
        try:
            self._check(path, os.fstat(found), above, private, itself=itself, single=single)
            with _named(path):
                return open(
                    os.open(f"/proc/self/fd/{found}", _READ) if _HAS_PATH_ONLY else os.dup(found), "rb"
                )
        except HomeFile:
            closes = _HAS_PATH_ONLY
            raise
        finally:
            if closes:
                os.close(found)
            else:
                _never_closed.append(found)

    def _check(
        self,
        path: str,
        found: os.stat_result,
        above: Sequence[Identity],
        private: Sequence[str],
        *,
        itself: bool = False,
        single: bool = False,
    ) -> None:
        """Raise the error for a file that must not be opened. The home comes first: see `_open_checked`.

        `itself`: this file of the home may be opened, by its own name. `single`: it must have no other name.
        """
        if stat.S_ISLNK(found.st_mode):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
        kernel = {_identity(one) for one in map(_stat, _KERNEL) if one is not None}
        if not stat.S_ISREG(found.st_mode) or not kernel.isdisjoint(above):
            raise NotAFile(path)
        # Whatever its number of links says: another link may be gone again since it was found. For those that
        # may be opened by their own name it counts, but for the database: its locks are in danger.
        deep = not itself or found.st_nlink > 1
        if _identity(found) in self._own_files(but=path if itself else None, deep=deep):
            raise HomeFile(path, "it is a hard link to a file in the home directory of hiboss")
        if single and found.st_nlink > 1:
            raise SecondName(path)
        for place in private:
            root = _stat(os.path.expanduser(place))
            if root is not None and _identity(root) in (*above, _identity(found)):
                raise PrivateFile(path, place)

    @contextmanager
    def open_directory(self, path: str) -> Iterator[int]:
        """Open a directory for the block, and yield its descriptor. Links are followed.

        Raises HomeFile if it is in the home or contains it, and OSError.
        """
        directory, above = _descend_through_links(path)
        try:
            home = self._home_and_above()
            if home and home[-1] in above:
                raise HomeFile(path, f"it leads into the home directory of hiboss, {self._home.path}")
            if above[-1] in home:
                raise HomeFile(path, f"it contains the home directory of hiboss, {self._home.path}")
            with _named(path):
                opened = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=directory)
        finally:
            os.close(directory)
        try:
            yield opened
        finally:
            os.close(opened)

    @contextmanager
    def open_below(self, name: str, parent: int, path: str) -> Iterator[int]:
        """Open a directory in one that `open_directory` has opened, and yield its descriptor.

        What is really there needs no look at what is above it: that was checked with the parent. A
        link is followed, and checked as by `open_directory`.
        """
        try:
            opened = os.open(name, _BELOW, dir_fd=parent)
        except OSError as error:
            if error.errno not in (errno.ELOOP, errno.ENOTDIR):
                raise type(error)(error.errno, error.strerror, path) from error
            with self.open_directory(path) as elsewhere:
                yield elsewhere
            return
        try:
            home = _stat(self._home.path)
            if home is not None and identity(opened) == _identity(home):  # mounted there
                raise HomeFile(path, f"it leads into the home directory of hiboss, {self._home.path}")
            yield opened
        finally:
            os.close(opened)

    def _in_home(self, above: Sequence[Identity]) -> bool:
        """Return whether one of these directories is the home, and none is its media/."""
        home = _stat(self._home.path)
        return home is not None and _identity(home) in above and not self._in_media(above)

    def _in_media(self, above: Sequence[Identity]) -> bool:
        media = _stat(self._home.media, follow=False)  # a link to another place of the home is not media/
        return media is not None and stat.S_ISDIR(media.st_mode) and _identity(media) in above

    @staticmethod
    def _below_root(above: Sequence[Identity], roots: Sequence[str]) -> Sequence[Identity]:
        """Return the part of `above` from the last root on; nothing if no root is in it."""
        known = {_identity(root) for root in map(_stat, map(os.path.expanduser, roots)) if root is not None}
        last = max((place for place, one in enumerate(above) if one in known), default=None)
        return () if last is None else above[last:]

    def _own_files(self, *, but: str | None = None, deep: bool = True) -> set[Identity]:
        """Return the files of the home, except media/ and the workspaces, which hold no secrets of hiboss.

        Not `but`. Without `deep` only those that are in the home itself, as the database is: some homes
        have thousands of token files.
        """
        found: set[Identity] = set()
        others = (self._home.media, os.path.dirname(self._home.workspace("any")))
        for directory, directories, names in os.walk(self._home.path):
            kept = [name for name in directories if os.path.join(directory, name) not in others]
            directories[:] = kept if deep else []
            for name in names:
                path = os.path.join(directory, name)
                one = None if path == but else _stat(path, follow=False)
                if one is not None:  # token files of runs come and go
                    found.add(_identity(one))
        return found


def create_file(name: str, directory: int) -> BinaryIO:
    """Create a file in an open directory. One that has this name is removed, never written to:

    it may be a link to any other file.
    """
    try:
        return open(os.open(name, _NEW, 0o666, dir_fd=directory), "wb")
    except FileExistsError:
        os.unlink(name, dir_fd=directory)
    return open(os.open(name, _NEW, 0o666, dir_fd=directory), "wb")


def identity(descriptor: int) -> Identity:
    """Return what identifies an open file or directory."""
    return _identity(os.fstat(descriptor))


def _identity(found: os.stat_result) -> Identity:
    return found.st_dev, found.st_ino


def _stat(path: str, *, follow: bool = True) -> os.stat_result | None:
    try:
        return os.stat(path, follow_symlinks=follow)
    except (FileNotFoundError, NotADirectoryError):
        return None


def _ancestors(path: str) -> list[Identity]:
    """Return a directory and all directories above it, itself the last; nothing if it does not exist."""
    try:
        directory, above = _descend(os.path.realpath(path))
    except FileNotFoundError:
        return []
    os.close(directory)
    return above


def _descend(path: str) -> tuple[int, list[Identity]]:
    """Open a directory step by step from the root, following no link.

    Return its descriptor (good for `dir_fd` only) and every directory on the way, itself the last.
    """
    here = os.open("/", _STEP)
    above = [identity(here)]
    try:
        for part in path.split(os.sep):
            if part:
                below = os.open(part, _STEP, dir_fd=here)
                os.close(here)
                here = below
                above.append(identity(here))
    except OSError as error:
        os.close(here)
        raise type(error)(error.errno, error.strerror, path) from error
    return here, above


def _descend_through_links(path: str) -> tuple[int, list[Identity]]:
    """Open a directory as `_descend` does, but follow links."""
    if os.path.isabs(path) and ".." not in path:
        try:
            return _descend(path)  # most often there are none, and to resolve them costs as much again
        except OSError as error:
            if error.errno not in (errno.ELOOP, errno.ENOTDIR):
                raise
    return _descend(os.path.realpath(path))


@contextmanager
def _named(path: str) -> Iterator[None]:
    """Give an OSError the whole path: with `dir_fd` it names only the last part."""
    try:
        yield
    except OSError as error:
        raise type(error)(error.errno, error.strerror, path) from error
