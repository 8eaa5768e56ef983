"""The home directory (`~/.hiboss` or HIBOSS_HOME) and the paths of everything in it.

Every command imports this, so it uses os.path and imports little.
"""

from __future__ import annotations

import errno
import json
import os
from contextlib import contextmanager, suppress
from functools import cached_property

from .errors import HibossError, HomeUnusable, StoreFull

TYPE_CHECKING = False  # importing typing would cost every command 3 ms
if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Container, Iterator, Mapping

# sun_path has 108 bytes on Linux and 104 on macOS, including the closing NUL.
SOCKET_PATH_LIMIT = 103
ASIDE = "aside"  # in secrets/: the directory of those that the store does not name
KEEP_ASIDE_DAYS = 30
WORKER = "??????"  # any name of an MCP worker, as a pattern
# Where the daemon tells an MCP worker the paths of its sockets.
MCP_SOCKET, MCP_HTTP_SOCKET = "HIBOSS_MCP_SOCKET", "HIBOSS_MCP_HTTP_SOCKET"


class Home:
    """The home of one hiboss: database, settings, tokens, secrets, media. Directories 0700, files 0600."""

    def __init__(self, path: str | None = None) -> None:
        chosen = path or os.environ.get("HIBOSS_HOME") or "~/.hiboss"
        self.path = os.path.abspath(os.path.expanduser(chosen))

    def __str__(self) -> str:
        return self.path

    @property
    def identity(self) -> str:
        """Which directory this is, on its disk: a renamed home keeps it, a copy has another one."""
        known = os.stat(self.path)
        return f"{known.st_dev:x}.{known.st_ino:x}"

    def _in(self, *names: str) -> str:
        return os.path.join(self.path, *names)

    @property
    def database(self) -> str:
        return self._in("hiboss.db")

    @property
    def config(self) -> str:
        return self._in("config.toml")

    @property
    def boss_file(self) -> str:
        """What the boss tells all agents; people write it."""
        return self._in("BOSS.md")

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
        """The directory of secrets that must not be in the database, such as bot tokens: one file each."""
        return self._in("secrets")

    def workspace(self, agent: str) -> str:
        """Return the workspace of an agent that has no other one."""
        return self._in("workspaces", agent.lower())

    @property
    def programs(self) -> str:
        return self._in("bin")

    def keep_program(self, name: str, script: str) -> str:
        """Store a program for runs, unless it is there as it should be; return its directory.

        Other runs may start it at the same moment: it is replaced as a whole, and never written in place.
        """
        path = os.path.join(self.programs, name)
        with suppress(OSError, UnicodeDecodeError), open(path, encoding="utf-8") as file:
            if file.read() == script and os.access(path, os.X_OK):
                return self.programs
        os.makedirs(self.programs, mode=0o700, exist_ok=True)
        with (
            replacing(path) as temporary,
            open(temporary, "w", opener=lambda path, flags: os.open(path, flags, 0o700)) as file,
        ):
            file.write(script)
        return self.programs

    @property
    def log_file(self) -> str:
        return self._in("logs", "daemon.log")

    @cached_property
    def socket(self) -> str:
        """The path of the socket: in the home, or in the runtime directory if that path is too long."""
        return self._socket("daemon")

    def mcp_socket(self, worker: str) -> str:
        """The socket on which an MCP worker serves `hiboss mcp`. Each worker has a name of its own (WORKER).

        So one that is about to end never removes the socket of the next one.
        """
        return self._socket(f"mcp-{worker}")

    def mcp_http_socket(self, worker: str) -> str:
        """The socket on which an MCP worker serves what comes through the HTTP door."""
        return self._socket(f"mcp-{worker}-http")

    def forget_mcp_sockets(self) -> None:
        """Delete the sockets that MCP workers left behind. Call it at start, when none is wanted."""
        try:
            paths = (self.mcp_socket(WORKER), self.mcp_http_socket(WORKER))
        except HomeUnusable:  # there cannot be any
            return
        from fnmatch import fnmatchcase

        for path in paths:
            directory, pattern = os.path.split(path)
            for name in _names_in(directory):
                if fnmatchcase(name, pattern):
                    _unlink(os.path.join(directory, name))

    def _socket(self, name: str) -> str:
        near = self._in(f"{name}.sock")
        if len(os.fsencode(near)) <= SOCKET_PATH_LIMIT:
            return near
        import hashlib
        import warnings

        from platformdirs import user_runtime_dir

        mark = hashlib.sha256(os.fsencode(self.path)).hexdigest()[:16]
        with warnings.catch_warnings():  # platformdirs warns when it falls back to another directory
            warnings.simplefilter("ignore")
            directory = user_runtime_dir("hiboss")
        far = os.path.join(directory, f"{mark}.sock" if name == "daemon" else f"{mark}-{name}.sock")
        if len(os.fsencode(far)) > SOCKET_PATH_LIMIT:
            raise HomeUnusable(home=self.path, why=f"its path is too long for a socket, and so is {far}")
        return far

    def create(self) -> None:
        """Create the directories that are missing; raise HomeUnusable if the home cannot be written."""
        try:
            # With files of two owners, one of them could not open the other's.
            if os.path.exists(self.path) and os.stat(self.path).st_uid != os.geteuid():
                raise HomeUnusable(home=self.path, why="it belongs to another user")
            inside = (self.media, self.tokens, self.backups, self.secrets, self._in("logs"))
            for directory in (self.path, *inside):
                os.makedirs(directory, mode=0o700, exist_ok=True)
            os.chmod(self.path, 0o700)
            self.create_socket_directory(self.socket)
        except OSError as error:
            raise unusable(error, self.path) from error
        # root passes every access check, so write a file to find out
        probe = self._in(".writable")
        try:
            with open(probe, "w"):
                pass
            _unlink(probe)  # another start may have removed it
        except OSError as error:
            raise unusable(error, self.path) from error

    def create_socket_directory(self, socket: str) -> None:
        """Create the directory of a socket. Raises OSError, or HomeUnusable if it is of another user."""
        path = os.path.dirname(socket)
        os.makedirs(path, mode=0o700, exist_ok=True)
        if os.stat(path).st_uid != os.geteuid():
            raise HomeUnusable(home=self.path, why=f"{path}, where its socket is, belongs to another user")
        os.chmod(path, 0o700)

    def profile(self, name: str) -> str:
        """Return the path of the token file that `--as name` reads."""
        return os.path.join(self.tokens, name)

    def profiles(self) -> list[str]:
        """Return the names of all profiles, sorted."""
        try:
            return sorted(n for n in os.listdir(self.tokens) if "." not in n)
        except OSError:
            return []

    def has_profile(self, name: str) -> bool:
        return os.path.exists(self.profile(name.lower()))

    @contextmanager
    def keeping(self, name: str, token: str) -> Iterator[str]:
        """Store a token for `--as name` if the block succeeds; yield the path of its file.

        The block stores the hash of the token in the database. The token is written to disk
        before that, under a temporary name, because it cannot be recovered afterwards. After
        a crash or a cancellation in between, the next start cleans up (`settle_profiles`).
        """
        path = self.profile(name.lower())
        waiting = f"{path}.{os.urandom(4).hex()}.new"
        try:
            self._write_waiting(waiting, token)
            yield path
        except Exception:  # not a cancellation: the hash may be stored all the same
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
            _unlink(waiting)
            raise unusable(error, self.path, waiting) from error

    def keep_secrets(self, secrets: Mapping[str, str], epoch: str) -> str:
        """Store the secrets of one binding or agent in one file, and return the name to read them by.

        `epoch`: of the store that will have this name. After a crash before that, or before an old file
        is deleted, the next start cleans up (`settle_secrets`).
        """
        name = f"{epoch}-{os.urandom(8).hex()}"
        self._write_waiting(os.path.join(self.secrets, name), json.dumps(dict(secrets)))
        return name

    def secrets_of(self, name: str | None) -> dict[str, str]:
        """Return the secrets stored under a name; none if they cannot be read."""
        try:
            return self.needed_secrets(name)
        except OSError:
            return {}

    def needed_secrets(self, name: str | None) -> dict[str, str]:
        """Return the secrets stored under a name. Raises OSError if they cannot be read."""
        return {} if name is None else _read_secrets(os.path.join(self.secrets, name))

    def known_secrets(self) -> frozenset[str]:
        """Return the values of all stored secrets, for what must never contain one."""
        names = [*_names_in(self.secrets), *(f"{ASIDE}/{name}" for name in _names_in(self._aside))]
        return frozenset(str(value) for name in names for value in self.secrets_of(name).values())

    def keep_run_token(self, run: str, token: str) -> str:
        """Store the token of a run and return the path of its file.

        A file and not only a variable: some programs hide variables called *TOKEN* from their tools.
        """
        os.makedirs(self._in("run-tokens"), mode=0o700, exist_ok=True)
        path = self._in("run-tokens", run)
        # Not written again for a new session in the same run, whose programs may read it now.
        with suppress(FileExistsError), open(path, "x", opener=_private) as file:
            file.write(token + "\n")
        return path

    def run_token_file(self, run: str) -> str | None:
        """The file that holds the token of this run, if it is under way."""
        path = self._in("run-tokens", os.path.basename(run))
        return path if os.path.isfile(path) else None

    def forget_run_token(self, run: str) -> None:
        _unlink(self._in("run-tokens", run))

    def forget_run_tokens(self) -> None:
        """Delete the token files that a crash left behind. Call it at start, when no run is active."""
        import shutil

        shutil.rmtree(self._in("run-tokens"), ignore_errors=True)

    def keep_login_page(self, page: str) -> str:
        """Store a page that leads a browser to its one-time link, and return its path.

        A browser gets the path: the link itself would stand in the process list, for everybody to see.
        """
        os.makedirs(self._in("login-pages"), mode=0o700, exist_ok=True)
        path = self._in("login-pages", f"{os.urandom(8).hex()}.html")
        with open(path, "w", encoding="utf-8", opener=_private) as file:
            file.write(page)
        return path

    def forget_login_pages(self, before: float) -> None:
        """Delete the pages from before this time (in seconds): nobody can log in by them any more."""
        for name in _names_in(self._in("login-pages")):
            path = self._in("login-pages", name)
            with suppress(FileNotFoundError):  # another command may delete it too
                if os.stat(path).st_mtime < before:
                    os.unlink(path)

    def session_file(self, client: str, session: str) -> str:
        """The file that says which agent an open session is, with its token."""
        return self._in("sessions", f"{client}-{os.path.basename(session)}.json")

    def late_reports(self, client: str, session: str) -> str:
        """The file with what the hooks of an open session reported while no daemon answered."""
        return self._in("sessions", f"{client}-{os.path.basename(session)}.late")

    def keep_session(self, client: str, session: str, facts: Mapping[str, object]) -> str:
        """Store who an open session is, with its token, and return the path of the file."""
        os.makedirs(self._in("sessions"), mode=0o700, exist_ok=True)
        path = self.session_file(client, session)
        with replacing(path) as temporary, open(temporary, "w", opener=_private) as file:
            json.dump(dict(facts), file)
        return path

    def known_session(self, client: str, session: str) -> dict[str, object]:
        """Return what is stored of an open session; nothing if it is not attached."""
        try:
            if not os.path.isfile(self.session_file(client, session)):
                return {}
            with open(self.session_file(client, session), encoding="utf-8") as file:
                found = json.load(file)
        except (OSError, ValueError, RecursionError):
            return {}
        return found if isinstance(found, dict) else {}

    def known_sessions(self) -> list[dict[str, object]]:
        """Return what is stored of all open sessions."""
        names = [
            name[:-5].partition("-") for name in _names_in(self._in("sessions")) if name.endswith(".json")
        ]
        found = [self.known_session(client, session) for client, _, session in names]
        return [one for one in found if one.get("token")]

    def forget_session(self, client: str, session: str, pid: int) -> None:
        """Delete the files of a session that is over, also those that its process had under other ids."""
        if self.known_session(client, session).get("pid") == pid:  # else it was opened again meanwhile
            _unlink(self.session_file(client, session))
        _unlink(self._in("sessions", f"waiter-{pid}.lock"))
        for name in _names_in(self._in("sessions")) if client == "claude" else ():
            other = name.removeprefix("claude-").removesuffix(".json")
            if name.endswith(".json") and self.known_session(client, other).get("pid") == pid:
                _unlink(self.session_file(client, other))

    def forget_secrets(self, name: str | None) -> None:
        if name is not None:
            _unlink(os.path.join(self.secrets, name))

    def settle_secrets(self, epoch: str, named: Container[str], now: float) -> None:
        """Clean up after a crash: put the files of this store aside that it does not name.

        They are deleted after KEEP_ASIDE_DAYS, and not at once: this can be an older copy of the store,
        and when the newer one is put back, what it names is there again. Those of another store stay.
        """
        for name in _names_in(self.secrets):
            if name.startswith(f"{epoch}-") and name not in named:
                os.makedirs(self._aside, mode=0o700, exist_ok=True)
                os.utime(os.path.join(self.secrets, name), (now, now))
                os.replace(os.path.join(self.secrets, name), os.path.join(self._aside, name))
        for name in _names_in(self._aside):
            path = os.path.join(self._aside, name)
            if name in named:
                os.replace(path, os.path.join(self.secrets, name))
            elif os.stat(path).st_mtime < now - KEEP_ASIDE_DAYS * 86_400:
                _unlink(path)

    @property
    def _aside(self) -> str:
        return os.path.join(self.secrets, ASIDE)

    def settle_profiles(self, in_force: Callable[[str], bool]) -> None:
        """Clean up after a crash in `keeping`: keep a token file if its token is valid, else delete it."""
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
    """Yield a temporary path beside `path`; when the block succeeds, rename it to `path`, durably."""
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
    """Sync a directory: a new name in it survives a power cut only after this."""
    directory = os.open(path, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def _names_in(directory: str) -> list[str]:
    try:
        return os.listdir(directory)
    except OSError:
        return []


def _read_secrets(path: str) -> dict[str, str]:
    with open(path, encoding="utf-8") as file:
        try:
            found = json.load(file)
        except ValueError as error:
            raise OSError(errno.EINVAL, "it is damaged", path) from error
    return found if isinstance(found, dict) else {}


def _unlink(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def private_socket(path: str) -> socket.socket:
    """Return a unix socket at `path` that only its owner may open. Nobody can connect before it listens.

    The umask would do that too, but it is one for all threads: what others make meanwhile could not be used.
    """
    import socket

    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listener.bind(path)
        os.chmod(path, 0o600)
    except OSError:
        listener.close()
        raise
    return listener


def is_disk_full(error: OSError) -> bool:
    """Return whether there was no space: on the disk, by a quota, or by a limit of the file size."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def unusable(error: OSError, home: str, path: str | None = None) -> HibossError:
    """Return the error for a file of the home that could not be used: StoreFull or HomeUnusable."""
    if is_disk_full(error):
        return StoreFull(path=path or error.filename or home)
    return HomeUnusable(home=home, why=_why(error))


def _why(error: OSError) -> str:
    return f"{error.strerror or error} ({error.filename})" if error.filename else str(error)
