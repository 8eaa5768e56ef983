"""The home, `~/.hiboss` or HIBOSS_HOME, and what lies in it.

The client imports this on every command, so it uses os.path and imports little.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property

from .errors import HomeUnusable

# sun_path has 108 bytes on Linux and 104 on macOS, with the closing NUL.
SOCKET_PATH_LIMIT = 103


class Home:
    """Where everything of one hiboss lies; directories 0700, files 0600."""

    def __init__(self, path: str | None = None) -> None:
        chosen = path or os.environ.get("HIBOSS_HOME") or "~/.hiboss"
        self.path = os.path.abspath(os.path.expanduser(chosen))

    def __str__(self) -> str:
        return self.path

    def _in(self, *names: str) -> str:
        return os.path.join(self.path, *names)

    @property
    def database(self) -> str:
        return self._in("hiboss.db")

    @property
    def config(self) -> str:
        return self._in("config.toml")

    @property
    def pid_file(self) -> str:
        return self._in("daemon.pid")

    @property
    def media(self) -> str:
        return self._in("media")

    @property
    def tokens(self) -> str:
        return self._in("tokens")

    @property
    def backups(self) -> str:
        return self._in("backups")

    @property
    def secrets(self) -> str:
        """What others must not learn and the database must not hold, a file each."""
        return self._in("secrets")

    def workspace(self, agent: str) -> str:
        """Where an agent works that was given no other place."""
        return self._in("workspaces", agent.lower())

    @property
    def programs(self) -> str:
        return self._in("bin")

    @property
    def log_file(self) -> str:
        return self._in("logs", "daemon.log")

    @cached_property
    def socket(self) -> str:
        """In the home, or where the platform keeps sockets when that path is too long for one."""
        near = self._in("daemon.sock")
        if len(os.fsencode(near)) <= SOCKET_PATH_LIMIT:
            return near
        import hashlib

        from platformdirs import user_runtime_dir

        mark = hashlib.sha256(os.fsencode(self.path)).hexdigest()[:16]
        with warnings.catch_warnings():  # platformdirs warns when it falls back to another place
            warnings.simplefilter("ignore")
            far = os.path.join(user_runtime_dir("hiboss"), f"{mark}.sock")
        if len(os.fsencode(far)) > SOCKET_PATH_LIMIT:
            raise HomeUnusable(home=self.path, why=f"its path is too long for a socket, and so is {far}")
        return far

    def create(self) -> None:
        """Make what is missing; refuse a home that cannot be written."""
        try:
            # Files of two owners would lock one of them out.
            if os.path.exists(self.path) and os.stat(self.path).st_uid != os.geteuid():
                raise HomeUnusable(home=self.path, why="it belongs to another user")
            rooms = (self.media, self.tokens, self.backups, self.secrets, self._in("logs"))
            for directory in (self.path, *rooms):
                os.makedirs(directory, mode=0o700, exist_ok=True)
            os.chmod(self.path, 0o700)
            self._create_socket_directory(os.path.dirname(self.socket))
        except OSError as error:
            raise HomeUnusable(home=self.path, why=_why(error)) from error
        # root passes every access check, so ask the directory itself
        probe = self._in(".writable")
        try:
            with open(probe, "w"):
                pass
            os.unlink(probe)
        except OSError as error:
            raise HomeUnusable(home=self.path, why=_why(error)) from error

    def _create_socket_directory(self, path: str) -> None:
        os.makedirs(path, mode=0o700, exist_ok=True)
        if os.stat(path).st_uid != os.geteuid():
            raise HomeUnusable(home=self.path, why=f"{path}, where its socket must go, is another user's")
        os.chmod(path, 0o700)

    def profile(self, name: str) -> str:
        return os.path.join(self.tokens, name)

    def profiles(self) -> list[str]:
        try:
            return sorted(n for n in os.listdir(self.tokens) if "." not in n)
        except OSError:
            return []

    def has_profile(self, name: str) -> bool:
        return os.path.exists(self.profile(name.lower()))

    @contextmanager
    def keeping(self, name: str, token: str) -> Iterator[str]:
        """Keep a token for `--as name` if what is done in the block succeeds.

        The token is on disk, beside its place, before the block that stores its hash, since
        nobody can learn it afterwards. A crash in between is settled by the next start.
        """
        path = self.profile(name.lower())
        waiting = f"{path}.{os.urandom(4).hex()}.new"
        try:
            self._write_waiting(waiting, token)
            yield path
        except BaseException:
            _unlink(waiting)
            raise
        os.replace(waiting, path)
        sync_directory(self.tokens)

    def _write_waiting(self, waiting: str, token: str) -> None:
        try:
            with open(waiting, "w", opener=_private) as file:
                file.write(token + "\n")
                file.flush()
                os.fsync(file.fileno())
            sync_directory(os.path.dirname(waiting))
        except OSError as error:
            raise HomeUnusable(home=self.path, why=_why(error)) from error

    def keep_secret(self, secret: str) -> str:
        """The name under which it is kept from now on."""
        name = os.urandom(8).hex()
        self._write_waiting(os.path.join(self.secrets, name), secret)
        return name

    def secret(self, name: str) -> str | None:
        try:
            with open(os.path.join(self.secrets, name), encoding="utf-8") as file:
                return file.read().strip()
        except OSError:
            return None

    def forget_secret(self, name: str) -> None:
        _unlink(os.path.join(self.secrets, name))

    def settle_profiles(self, in_force: Callable[[str], bool]) -> None:
        """What a crash left waiting: kept if its token was stored, else taken away."""
        for name in os.listdir(self.tokens):
            if name.endswith(".new"):
                waiting = os.path.join(self.tokens, name)
                with open(waiting, encoding="utf-8", errors="replace") as file:
                    token = file.read().strip()
                if in_force(token):
                    os.replace(waiting, self.profile(name.partition(".")[0]))
                else:
                    _unlink(waiting)

    def forget_profile(self, name: str) -> None:
        _unlink(self.profile(name.lower()))


@contextmanager
def replacing(path: str) -> Iterator[str]:
    """A temporary name beside `path`; it takes the path's place, durably, when all went well."""
    temporary = f"{path}.{os.getpid()}.{os.urandom(4).hex()}.part"
    try:
        yield temporary
        os.replace(temporary, path)
    except BaseException:
        if os.path.exists(temporary):
            os.unlink(temporary)
        raise
    sync_directory(os.path.dirname(path))


def sync_directory(path: str) -> None:
    """A new name in a directory survives a power cut only after this."""
    directory = os.open(path, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def _unlink(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _why(error: OSError) -> str:
    return f"{error.strerror or error} ({error.filename})" if error.filename else str(error)
