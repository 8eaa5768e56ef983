"""The settings file of a harness: read, backed up, and written at once or not at all.

A link is kept, and the file behind it is changed. Each change of a file that exists leaves a copy beside
it; the newest five stay.
"""

from __future__ import annotations

import os
import stat
from codecs import BOM_UTF8

from ...core import clock
from ...core.errors import HarnessSettingsRefused, HarnessSettingsUnwritable, UnreadableFile
from ...core.paths import replacing, sync_directory

BACKUP = ".hiboss-backup-"
KEPT_BACKUPS = 5
_BOM = BOM_UTF8.decode()
_NEW_MODE = 0o600  # settings can hold keys


class SettingsFile:
    """One settings file as it was when this object was made."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._target = os.path.realpath(path)
        self._content = self._read()

    def _read(self) -> bytes | None:
        try:
            if not stat.S_ISREG(os.stat(self._target).st_mode):  # a pipe would keep us waiting
                raise UnreadableFile(path=self.path, why="it is no regular file")
            with open(self._target, "rb") as file:
                return file.read()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise UnreadableFile(path=self.path, why=error.strerror or str(error)) from None

    @property
    def text(self) -> str | None:
        """Its text without a byte order mark; None: there is no such file."""
        if self._content is None:
            return None
        try:
            return self._content.decode().removeprefix(_BOM)
        except UnicodeDecodeError as error:
            why = f"byte {error.start} is no UTF-8 text"
            raise HarnessSettingsRefused(path=self.path, form="UTF-8 text", why=why) from None

    def change(self, text: str | None, *, keep_copy: bool = True) -> str | None:
        """Write another text, or delete the file (None). Returns the path of the backup, if one was made.

        Without `keep_copy` none is made: where a project has its own history, a copy would get into it.
        """
        marked = self._content is not None and self._content.startswith(BOM_UTF8)
        content = text.encode() if text is not None else None
        if marked:
            content = BOM_UTF8 + (content or b"")
        try:
            backup = self._back_up() if keep_copy else None
            if content is not None:
                self._write(content)
            else:
                self._check_unchanged()
                os.unlink(self._target)
                sync_directory(os.path.dirname(self._target))
        except OSError as error:
            raise HarnessSettingsUnwritable(path=self.path, why=error.strerror or str(error)) from None
        return backup

    def _write(self, content: bytes) -> None:
        """Replace the file, so that a reader sees the old text or the new one. The mode and the owner stay."""
        os.makedirs(os.path.dirname(self._target), mode=0o700, exist_ok=True)
        with replacing(self._target) as temporary:
            with open(temporary, "xb", opener=_private) as file:
                file.write(content)
                if self._content is not None:
                    _copy_rights(self._target, file.fileno())
                file.flush()
                os.fsync(file.fileno())
            self._check_unchanged()

    def _check_unchanged(self) -> None:
        """Raise if somebody has written the file since it was read: his change must not be lost."""
        if self._read() != self._content:
            why = "another program changed it at the same time; try again"
            raise HarnessSettingsUnwritable(path=self.path, why=why)

    # --- backups -------------------------------------------------------------------------

    def _back_up(self) -> str | None:
        if self._content is None:
            return None
        backup = self._backup_path()
        with open(backup, "xb", opener=_private) as file:
            file.write(self._content)
            _copy_rights(self._target, file.fileno())
            file.flush()
            os.fsync(file.fileno())
        for old in self.backups()[:-KEPT_BACKUPS]:
            os.unlink(old)
        sync_directory(os.path.dirname(self.path))
        return backup

    def _backup_path(self) -> str:
        now = clock.wall()
        while os.path.exists(path := f"{self.path}{BACKUP}{_stamp(now)}"):
            now += 1
        return path

    def backups(self) -> list[str]:
        """Return the paths of the copies, the oldest first."""
        directory, name = os.path.split(self.path)
        return [os.path.join(directory, one) for one in sorted(os.listdir(directory)) if _is_copy(one, name)]


def _is_copy(name: str, of: str) -> bool:
    stamp = name.removeprefix(of + BACKUP)
    return stamp != name and len(stamp) == len(_stamp(0)) and stamp[:8].isdigit()


def _stamp(ms: int) -> str:
    """Return 20260128T120845.120Z, which sorts by time."""
    return clock.iso(ms).replace("-", "").replace(":", "")


def _copy_rights(of: str, to: int) -> None:
    known = os.stat(of)
    if (known.st_uid, known.st_gid) != (os.geteuid(), os.getegid()):
        try:
            os.fchown(to, known.st_uid, known.st_gid)
        except PermissionError:
            pass  # only root can give a file to another user; the file is ours then
    os.fchmod(to, stat.S_IMODE(known.st_mode))


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, _NEW_MODE)
