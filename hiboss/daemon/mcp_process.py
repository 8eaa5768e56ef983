"""One MCP worker process: started with two sockets of its own and little else; read, watched and ended.

It holds the other end of its standard input: where that ends, the daemon is gone, also after a kill -9, and
the worker ends. It writes `ready` when its sockets take clients. What it complains about goes to the log.
"""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import signal
import socket
from collections.abc import Mapping, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase

from ..api.mcp_sockets import McpSockets
from ..core.paths import MCP_HTTP_SOCKET, MCP_SOCKET, WORKER, Home
from ..core.quoting import beginning, redact
from ..core.settings import TABLE

log = logging.getLogger(__name__)
READY = b"ready\n"
END_SECONDS = 2.0  # from the end of its input, and a SIGTERM, to SIGKILL
READ_BYTES = 1 << 16
LINE_BYTES = 10_000  # of a line of its complaints that are kept
LINE_SHOWN = 2_000  # characters of it
# What a Python process needs. All else stays here: the environment of the daemon may have secrets of others.
KEPT = (
    *("PATH", "HOME", "USER", "LOGNAME", "TMPDIR", "TZ", "LANG", "LANGUAGE", "LC_*", "XDG_RUNTIME_DIR"),
    *("PYTHON*", "VIRTUAL_ENV", "LD_LIBRARY_PATH", "DYLD_*", "COVERAGE_*", "COV_CORE_*"),
)
SETTINGS = frozenset(setting.variable for setting in TABLE)


async def launch(command: Sequence[str], home: Home) -> McpProcess:
    """Start a worker. Raises OSError, or HomeUnusable if there is no place for its sockets."""
    name = secrets.token_hex(len(WORKER))[: len(WORKER)]
    path, http_path = home.mcp_socket(name), home.mcp_http_socket(name)
    for one in (path, http_path):
        home.create_socket_directory(one)
    child = await asyncio.create_subprocess_exec(
        *command,
        cwd=home.path,
        env={
            **environment(os.environ),
            "HIBOSS_HOME": home.path,
            MCP_SOCKET: path,
            MCP_HTTP_SOCKET: http_path,
        },
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,  # so that Ctrl-C in a terminal is for the daemon alone, which ends it then
    )
    return McpProcess(child, McpSockets(socket=path, http_socket=http_path, pid=child.pid))


def environment(own: Mapping[str, str]) -> dict[str, str]:
    """Return what a worker gets of the daemon's environment: no token, and nothing that it does not need."""
    return {
        name: value
        for name, value in own.items()
        if (name in SETTINGS or any(fnmatchcase(name, one) for one in KEPT)) and redact(value) == value
    }


class McpProcess:
    def __init__(self, child: asyncio.subprocess.Process, sockets: McpSockets) -> None:
        self._child = child
        self.sockets = sockets
        self.is_unwanted = False  # it was told to end
        self._last_words = ""
        self._tasks = [asyncio.create_task(self._log_complaints())]
        self.ended = asyncio.create_task(self._wait())

    @property
    def status(self) -> int | None:
        """The exit status, negative for a signal; None while it runs."""
        return self._child.returncode

    @property
    def end_in_words(self) -> str:
        status = self.status or 0
        how = f"ended with status {status}" if status >= 0 else f"was ended by signal {-status}"
        return f"it {how}: {self._last_words}" if self._last_words else f"it {how}"

    async def ready(self) -> bool:
        """Wait until it takes clients; False: it has ended before."""
        stdout = self._child.stdout
        assert stdout is not None
        with suppress(ValueError):  # a line without an end
            while line := await stdout.readline():
                if line == READY:
                    self._tasks.append(asyncio.create_task(_throw_away(stdout)))
                    return True
        return False

    def takes_clients(self) -> bool:
        """Tell whether its sockets are open. One that is about to end closes them first."""
        sockets = (self.sockets.socket, self.sockets.http_socket)
        return self.status is None and all(_is_open(path) for path in sockets)

    async def end(self) -> None:
        """End it: by the end of its input and SIGTERM, after END_SECONDS by SIGKILL."""
        self.is_unwanted = True
        if self._child.stdin is not None:
            self._child.stdin.close()
        for number in (signal.SIGTERM, signal.SIGKILL):
            self._signal(number)
            await asyncio.wait([self.ended], timeout=END_SECONDS)

    def _signal(self, number: int) -> None:
        """Send a signal to it and to what it has started."""
        if not self.ended.done():
            with suppress(ProcessLookupError, PermissionError):  # PermissionError: macOS, for zombies
                os.killpg(self._child.pid, number)

    async def _wait(self) -> None:
        await self._child.wait()
        await asyncio.wait(self._tasks, timeout=END_SECONDS)  # its last words
        for task in self._tasks:
            task.cancel()
        for path in (self.sockets.socket, self.sockets.http_socket):
            with suppress(OSError):  # it has removed them itself, unless it was killed
                os.unlink(path)

    async def _log_complaints(self) -> None:
        """Log its standard error line by line."""
        stderr = self._child.stderr
        assert stderr is not None
        line = b""
        while part := await stderr.read(READ_BYTES):
            *whole, rest = part.split(b"\n")
            for one in whole:
                self._log(line + one)
                line = b""
            line = (line + rest)[:LINE_BYTES]
        self._log(line)

    def _log(self, line: bytes) -> None:
        if words := beginning(line[:LINE_BYTES].decode("utf-8", "replace").strip(), LINE_SHOWN):
            self._last_words = words[:200]
            log.warning("The MCP worker says: %s", words, extra={"action": "mcp"})


async def _throw_away(stream: asyncio.StreamReader) -> None:
    """Read a pipe that nobody needs, so that it never fills."""
    while await stream.read(READ_BYTES):
        pass


def _is_open(path: str) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)
        try:
            probe.connect(path)
        except BlockingIOError:  # many are waiting to be taken
            return True
        except OSError:
            return False
        return True
