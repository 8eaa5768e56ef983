"""Agents with a shell script as program, for tests of processes; and what must be true when their runs are over.

    program = Program(tmp_path / "nex")
    boss.call("agent.set", name="nex", provider="command", settings={"command": program.command})
    program.hangs()

A program can be changed between two turns; a turn under way continues with the old one.
"""

from __future__ import annotations

import os
import shlex
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil

from hiboss.store.invariants import violations
from hiboss.testing.running_daemon import RunningDaemon
from tests.support import python_agents
from tests.support.parties import Party, agent
from tests.support.waits import wait_until

Run = dict[str, Any]

SLEEP = "sleep 1000"
STUBBORN = "(trap '' INT TERM; exec sleep 1000)"
# Forks twice, in a session of its own and without an environment, like a daemon; its pid is in `escaped`.
ESCAPES = """setsid env -i /bin/sh -c '/bin/sleep 1000 </dev/null >/dev/null 2>&1 &
echo $! > "$0/new" && /bin/mv "$0/new" "$0/escaped"' "$D"
"""


class Program:
    """A script in a directory of its own, where it writes down each turn it gets."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.directory = directory
        self.path = directory / "agent"
        self.answers("done")

    @property
    def command(self) -> str:
        return shlex.quote(str(self.path))

    # --- what it does ----------------------------------------------------------------

    def does(self, script: str) -> None:
        """Lines of shell, run after it has written down its pid and read its turn. `$D` is its directory."""
        head = f"#!/bin/sh\nD={shlex.quote(str(self.directory))}\n"
        noting = 'cat > "$D/given.$$"\nmv "$D/given.$$" "$D/given"\necho $$ >> "$D/turns"\n'
        self.becomes(head + noting + script + "\n")

    def becomes(self, whole: str) -> None:
        """Replace the whole file, in one step: a shell that runs the old file continues to read it."""
        fresh = self.directory / "agent.new"
        fresh.write_text(whole)
        fresh.chmod(0o700)
        fresh.rename(self.path)

    def answers(self, text: str) -> None:
        self.does(f"printf '%s\\n' {shlex.quote(text)}")

    def says_nothing(self) -> None:
        self.does("exit 0")

    def says_bytes(self, raw: bytes) -> None:
        (self.directory / "raw").write_bytes(raw)
        self.does('cat "$D/raw"')

    def exits(self, status: int, stderr: str = "") -> None:
        self.does(f"printf '%s\\n' {shlex.quote(stderr)} >&2\nexit {status}")

    def hangs(self) -> None:
        self.does(f"exec {SLEEP}")

    def ignores_signals(self) -> None:
        """Only KILL ends it."""
        self.does(f"trap '' INT TERM\nexec {SLEEP}")

    def hangs_with_children(self) -> None:
        self.does(f"{SLEEP} &\n{SLEEP} >/dev/null 2>&1 &\n{SLEEP}")

    def leaves_children(self, text: str = "done") -> None:
        """Leave three children: one with the pipes, one without, and one that ignores INT and TERM."""
        self.does(f"{SLEEP} &\n{SLEEP} >/dev/null 2>&1 &\n{STUBBORN} &\necho {shlex.quote(text)}")

    def floods(self) -> None:
        self.does("exec yes 'something to say'")

    def waits(self, then: str = "echo done") -> None:
        """Wait until `let_go` is called."""
        self.does(f'while [ ! -e "$D/go" ]; do sleep 0.02; done\n{then}')

    def sends(self, to: str, text: str, then: str) -> None:
        """Send a message with the `hiboss` and the token it was given, then continue."""
        send = f"hiboss envelope send --to {shlex.quote(to)} --text {shlex.quote(text)} >/dev/null || exit 9"
        self.does(f'{send}\ntouch "$D/sent"\n{then}')

    def let_go(self) -> None:
        (self.directory / "go").touch()

    def goes_away(self) -> None:
        self.path.unlink()

    # --- what it got and did ---------------------------------------------------------

    @property
    def pids(self) -> list[int]:
        """The pid of each turn, in order."""
        file = self.directory / "turns"
        return [int(line) for line in file.read_text().splitlines()] if file.exists() else []

    @property
    def escaped(self) -> psutil.Process:
        """The child that ESCAPES has started; wait for it."""
        file = self.directory / "escaped"
        wait_until(file.exists)
        return psutil.Process(int(file.read_text()))

    @property
    def given(self) -> str:
        """The last turn it got."""
        return (self.directory / "given").read_text()

    @property
    def sent(self) -> bool:
        return (self.directory / "sent").exists()

    def begins(self, turns: int = 1) -> None:
        """Wait until it got so many turns."""
        wait_until(lambda: len(self.pids) >= turns)


class Boss(python_agents.Boss):
    """The boss, who always sends as user:boss."""

    def send(self, *to: Party | str, text: str = "hello", **params: Any) -> Any:
        return super().send(*to, text=text, **{"from": self.address, **params})

    def notices_of(self, party: Party) -> list[str]:
        """Return the notices to the boss about somebody."""
        query = """SELECT text FROM envelopes WHERE "to" = ? AND "from" = 'agent:system' ORDER BY arrived"""
        texts = [str(row["text"]) for row in rows(self.daemon, query, self.address)]
        return [text for text in texts if party.address in text]


class Worker(Party):
    """An agent with such a program, and helpers to look at its runs."""

    def __init__(self, daemon: RunningDaemon, directory: Path, **fields: Any) -> None:
        fresh = agent(daemon, provider="demo")
        super().__init__(daemon, fresh.address, fresh.token)
        self.program = Program(directory / self.name)
        self.change(provider="command", settings={"command": self.program.command}, **fields)

    def change(self, **fields: Any) -> None:
        self.order("agent.set", name=self.name, **fields)

    def order(self, method: str, **params: Any) -> Any:
        """Call an operation as the boss."""
        return self.daemon.call(method, token=self.daemon.token("boss"), **params)

    def runs(self) -> list[Run]:
        """Return its runs, oldest first."""
        return list(reversed(self.order("run.list", agent=self.name, page_size=100)["runs"]))

    def settled(self, number: int = 1) -> Run:
        """Wait until its run of this number (from 1) has ended; return it."""

        def over() -> bool:
            found = self.runs()
            return len(found) >= number and found[number - 1]["status"] != "running"

        wait_until(over)
        return self.runs()[number - 1]

    def under_way(self, turns: int = 1) -> Run:
        """Wait until the program has its turn; return the run."""
        self.program.begins(turns)
        [run] = [one for one in self.runs() if one["status"] == "running"]
        return run

    def works_on(self, number: str) -> str:
        """Wait until the program has its turn with an envelope; return the run."""
        self.program.begins()
        [run] = [one for one in self.runs() if one["status"] == "running" and number in one["envelopes"]]
        return str(run["id"])

    def ran(self, number: str) -> Run:
        """Wait until a run with an envelope has ended; return the first one."""
        return wait_until(
            lambda: [one for one in self.runs() if number in one["envelopes"] and one["ended_at"]]
        )[0]

    def status(self) -> dict[str, Any]:
        return self.order("agent.status", name=self.name)["agent"]

    def answers_to(self, number: str) -> list[str]:
        """Return the answers to an envelope, in order; read from the file, so it works without a daemon."""
        query = """
            SELECT a.text FROM envelope e JOIN message a ON a.reply_to = e.message AND a.sender = e.recipient
            WHERE e.id = ? ORDER BY a.id
        """
        return [str(row["text"]) for row in rows(self.daemon, query, int(number[1:]))]


def begin(boss: Boss, worker: Worker, script: str = f"exec {SLEEP}") -> tuple[str, str]:
    """Let a worker work on a message, with this script; return the envelope, and the run under way."""
    worker.program.does(script)
    return boss.tell(worker), str(worker.under_way()["id"])


# --- what must be true when runs are over ---------------------------------------------------


def left_behind(daemon: RunningDaemon, pids: list[int]) -> list[str]:
    """Return processes of runs that still exist: found by mark, by session and by parent."""
    ours = set(pids)
    if daemon.process is not None:
        ours |= {one.pid for one in psutil.Process(daemon.pid).children(recursive=True)}
    return [_described(one) for one in psutil.process_iter() if _alive(one) and _is_of(one, daemon, ours)]


def _is_of(process: psutil.Process, daemon: RunningDaemon, pids: set[int]) -> bool:
    try:
        if process.pid in pids or os.getsid(process.pid) in pids:
            return True
        environment = process.environ()
    except (psutil.Error, OSError):
        return False
    return "HIBOSS_RUN" in environment and environment.get("HIBOSS_HOME") == daemon.home.path


def has_ended(process: psutil.Process) -> bool:
    return not _alive(process)


def _alive(process: psutil.Process) -> bool:
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def _described(process: psutil.Process) -> str:
    try:
        return f"{process.pid} {shlex.join(process.cmdline())}"
    except psutil.Error:
        return str(process.pid)


def rows(daemon: RunningDaemon, query: str, *values: Any) -> list[sqlite3.Row]:
    with daemon.database() as database:
        return database.execute(query, values).fetchall()


def held(daemon: RunningDaemon) -> list[int]:
    """Return the ids of envelopes that are held."""
    return [row["id"] for row in rows(daemon, "SELECT id FROM envelope WHERE held_by IS NOT NULL")]


def running(daemon: RunningDaemon) -> list[int]:
    return [row["id"] for row in rows(daemon, "SELECT id FROM run WHERE status = 'running'")]


def assert_idle(daemon: RunningDaemon, *programs: Program) -> None:
    """Wait until no run is under way; assert that no process, held envelope or valid token is left."""
    pids = [pid for program in programs for pid in program.pids]
    found: list[Any] = []

    def is_idle() -> bool:
        before = _runs(daemon)
        found[:] = remains(daemon, pids)
        # A retry may have begun meanwhile; then look again.
        return not running(daemon) and _runs(daemon) == before

    wait_until(is_idle)
    assert found == []


def _runs(daemon: RunningDaemon) -> list[tuple[int, str]]:
    return [tuple(row) for row in rows(daemon, "SELECT id, status FROM run ORDER BY id")]


def remains(daemon: RunningDaemon, pids: list[int]) -> list[Any]:
    """Return what must not be left when no run is under way."""
    found: list[Any] = [*left_behind(daemon, pids), *(f"held: e{number}" for number in held(daemon))]
    for query in (
        "SELECT 'a token in force: r' || run FROM token WHERE kind = 'run' AND revoked_at IS NULL",
        "SELECT 'without an end: r' || id FROM run WHERE ended_at IS NULL",
        "SELECT 'halted: r' || id FROM run WHERE paused_at IS NOT NULL",
    ):
        found += [row[0] for row in rows(daemon, query)]
    with daemon.database() as database:
        return found + violations(database)


@contextmanager
def limits(daemon: RunningDaemon, **values: float) -> Iterator[None]:
    """Set limits for the runs that begin inside the block."""
    config = Path(daemon.home.config)
    config.write_text("[runs]\n" + "".join(f"{name} = {value}\n" for name, value in values.items()))
    Boss(daemon).call("config.reload")
    try:
        yield
    finally:
        config.unlink()
        Boss(daemon).call("config.reload")


def end_all(daemon: RunningDaemon) -> None:
    """Delete all agents with a provider, and so their runs and retries: the next test has its own."""
    ada = Boss(daemon)
    for one in ada.call("agent.list")["agents"]:
        if one["provider"]:
            ada.call("agent.delete", name=one["name"])
    wait_until(lambda: not running(daemon))


def eventually(found: Callable[[], Any], wanted: Any) -> None:
    """Wait until a value is the wanted one."""
    wait_until(lambda: found() == wanted)
