"""What the acceptance tests share: the installed `hiboss` command, run as a person would run it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import psutil

from hiboss.core.paths import Home
from hiboss.testing.running_daemon import RunningDaemon, running_daemon, set_up_home
from tests.support import command_server, failures
from tests.support.waits import wait_until

HIBOSS = os.path.join(os.path.dirname(sys.executable), "hiboss")
SECONDS = 60  # a bound for what must end; never a claim about speed
# Variables that Python, a library or hiboss reads while it is loaded, so that a forked command would miss them.
READ_AT_START = (
    "PYTHON",
    "LANG",
    "LC_",
    "TZ",
    "TERM",
    "COLUMNS",
    "LINES",
    "NO_COLOR",
    "FORCE_",
)
FOR_DAEMONS = "PYTHONPATH"  # a command loads nothing from there

# The command as it is, but for a daemon that keeps it waiting: it gives up soon.
IMPATIENT = """
from hiboss.cli import client
client.TIMEOUT = 0.2
from hiboss.cli.entry import main
main()
"""


@dataclass(frozen=True, kw_only=True)
class Done:
    """How a command ended."""

    rc: int
    stdout: str
    stderr: str

    @property
    def json(self) -> Any:
        return json.loads(self.stdout)

    @property
    def error(self) -> Any:
        """The one JSON document of a failure, on standard error."""
        return json.loads(self.stderr)["error"]

    @property
    def blocks(self) -> list[dict[str, str]]:
        """The records printed: blocks of `key: value`, one blank line between them."""
        return [
            dict(line.split(": ", 1) for line in block.splitlines())
            for block in self.stdout.removesuffix("\n").split("\n\n")
        ]

    @property
    def record(self) -> dict[str, str]:
        (block,) = self.blocks
        return block

    def values(self, key: str) -> list[str]:
        """Everything printed as `key: value`, in order."""
        lines = self.stdout.splitlines()
        return [line.removeprefix(f"{key}: ") for line in lines if line.startswith(f"{key}: ")]


class Shell:
    """A terminal in which HIBOSS_HOME is set and nothing else of hiboss's."""

    def __init__(self, home: str | os.PathLike[str]) -> None:
        self.home = Home(os.fspath(home))
        failures.note_log(self.home.log_file)

    def environment(self, **extra: str) -> dict[str, str]:
        kept = {name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR") if name in os.environ}
        own = {"LANG": "C.UTF-8", "HIBOSS_HOME": self.home.path, "HIBOSS_WEB_ENABLED": "off"}
        return {**kept, **own, **extra}

    def __call__(
        self,
        *words: str,
        stdin: str | bytes = b"",
        cwd: Path | None = None,
        env: dict[str, str] | None = None,
        forked: bool = True,
    ) -> Done:
        """Run `hiboss` with these words; standard input is never a terminal.

        It is forked where it is loaded already, and so is a daemon that it starts, unless that is what is tested.
        """
        given = stdin.encode() if isinstance(stdin, str) else stdin
        early = [one for one in env or {} if one.startswith(READ_AT_START) and one != FOR_DAEMONS]
        if early or not forked or len(given) > command_server.ROOM:
            return self.run([HIBOSS, *words], stdin=given, cwd=cwd, env=env)
        where, environment = str(cwd or os.getcwd()), self.environment(**(env or {}))
        status, out, err = command_server.call([HIBOSS, *words], given, where, environment, SECONDS)
        return Done(rc=status, stdout=out.decode(), stderr=err.decode())

    def ok(self, *words: str, **more: Any) -> Done:
        """Run what must succeed without a word on standard error."""
        done = self(*words, **more)
        assert (done.rc, done.stderr) == (0, "")
        return done

    def sh(self, script: str, cwd: Path | None = None, env: dict[str, str] | None = None) -> Done:
        """Run a line of shell, in which `hiboss` is the command."""
        path = f"{os.path.dirname(HIBOSS)}:{os.environ['PATH']}"
        return self.run(["sh", "-c", script], cwd=cwd, env={"PATH": path, **(env or {})})

    def impatient(self, *words: str) -> Done:
        """The same command with a short time limit."""
        return self.run([sys.executable, "-c", IMPATIENT, *words])

    def run(
        self,
        command: list[str],
        stdin: str | bytes = b"",
        cwd: Path | None = None,
        env: dict[str, str] | None = None,
    ) -> Done:
        done = subprocess.run(
            command,
            input=stdin.encode() if isinstance(stdin, str) else stdin,
            capture_output=True,
            env=self.environment(**(env or {})),
            cwd=cwd,
            timeout=SECONDS,
            check=False,
        )
        return Done(rc=done.returncode, stdout=done.stdout.decode(), stderr=done.stderr.decode())

    @contextmanager
    def open(self, *words: str, into: IO[Any] | int = subprocess.PIPE) -> Iterator[subprocess.Popen[str]]:
        """A command that goes on until the end of the block; in a process group of its own."""
        process = subprocess.Popen(
            [HIBOSS, *words],
            env=self.environment(),
            stdin=subprocess.DEVNULL,
            stdout=into,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        with process:
            try:
                yield process
            finally:
                process.kill()

    def set_up(self) -> None:
        """What `hiboss setup` leaves here (boss Ada, zone UTC, agent nex), without its second of work."""
        set_up_home(self.home)

    @property
    def pid(self) -> int | None:
        """The pid of the daemon that runs here; None when none does. Leaves its lock alone."""
        try:
            words = self.pid_file_words()
        except FileNotFoundError:
            return None
        return int(words[0]) if words and not gone(int(words[0])) else None

    def pid_file_words(self) -> list[str]:
        return Path(self.home.pid_file).read_text().split()

    def token(self, name: str) -> str:
        return Path(self.home.profile(name)).read_text().strip()

    def end_daemon(self) -> None:
        """Whatever a test left running is ended, by its pid."""
        if (pid := self.pid) is not None:
            psutil.Process(pid).kill()
            wait_until(lambda: gone(pid))


class Office(Shell):
    """A terminal beside a daemon that runs: boss Ada, zone UTC, agent nex."""

    def __init__(self, daemon: RunningDaemon) -> None:
        super().__init__(daemon.home.path)
        self.daemon = daemon
        self._hired = 0

    def agent(self, **fields: Any) -> str:
        """A new agent of this test's own, with a profile; its name."""
        self._hired += 1
        name = f"agent-{self._hired}"
        self.daemon.register(name, **fields)
        return name

    def send(self, from_: str, to: str, text: str = "hello", **params: Any) -> str:
        """One envelope sent past the command line; its id."""
        answer = self.daemon.call(
            "envelope.send", token=self.token(from_), to=f"agent:{to}", text=text, **params
        )
        return str(answer["ids"][0])

    def envelope(self, id_: str) -> dict[str, Any]:
        """An envelope as the daemon has it."""
        return self.daemon.call("envelope.get", token=self.token("boss"), id=id_)["envelope"]


@contextmanager
def open_office(directory: Path, **env: str) -> Iterator[Office]:
    with running_daemon(directory, **env) as daemon:
        yield Office(daemon)


def gone(pid: int) -> bool:
    """Whether a process has ended; one nobody has waited for yet has ended too."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True
