"""Stories of the breaker: a daemon, an agent that works and does not end by itself, and the boss."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hiboss.core.stop_flag import StopFlag
from tests.support.cli import Office
from tests.support.forked_daemons import pauses
from tests.support.mortals import Mortal
from tests.support.shell_agents import SLEEP, Boss, Worker, assert_idle, end_all, eventually, rows, running
from tests.support.waits import wait_until

WITH_CHILD = f"{SLEEP} &\nexec {SLEEP}"
DEAF = f"trap '' INT TERM\n{WITH_CHILD}"

# A daemon that works has its answer in time, however busy the machine is; one that is stopped has none in any time.
PATIENT = pauses({f"cli.commands.stop.{name}": 60.0 for name in ("ANSWER_SECONDS", "END_SECONDS")})
HANGS = pauses({"cli.commands.stop.ANSWER_SECONDS": 0.5})


class Terminal(Office):
    """A terminal of the boss, at which `hiboss stop` waits for a daemon that works."""

    def environment(self, **extra: str) -> dict[str, str]:
        return super().environment(**{**PATIENT, **extra})


class Story:
    """A daemon, an agent whose program does not end by itself and has a child, and the boss at a terminal."""

    def __init__(self, daemon: Mortal, directory: Path) -> None:
        self.daemon, self.office = daemon, Terminal(daemon)
        self.ada, self.worker = Boss(daemon), Worker(daemon, directory)
        self.program = self.worker.program
        self.program.does(WITH_CHILD)

    def begins(self) -> str:
        """Let the agent begin to work; return the envelope."""
        number = self.ada.tell(self.worker)
        self.program.begins()
        return number

    def flag(self) -> bool:
        return StopFlag(self.daemon.home).is_there()

    def is_held(self, number: str) -> None:
        """Everything has ended, and nothing begins, although the agent would answer at once."""
        self.program.answers("done")
        wait_until(lambda: running(self.daemon) == [])
        assert_idle(self.daemon, self.program)
        assert self.ada.call("breaker.status")["breaker"] is not None
        assert self.ada.get(number)["status"] == "pending" and self.worker.answers_to(number) == []
        assert {
            row["error_kind"]
            for row in rows(self.daemon, "SELECT error_kind FROM run WHERE agent = ?", self.id)
        } == {"stopped"}

    @property
    def id(self) -> int:
        [row] = rows(
            self.daemon, "SELECT id FROM address WHERE name = ? AND retired_at IS NULL", self.worker.name
        )
        return int(row["id"])

    def waits_for_go(self, number: str) -> None:
        """Nothing begins by itself; and after `hiboss go` it does."""
        self.is_held(number)
        self.comes_after_go(number)

    def comes_after_go(self, number: str) -> None:
        done = self.office("go")
        assert (done.rc, done.values("breaker")) == (0, ["released"])
        eventually(lambda: self.worker.answers_to(number), ["done"])
        assert_idle(self.daemon, self.program)
        assert not self.flag()


@contextmanager
def told(daemon: Mortal, directory: Path) -> Iterator[Story]:
    """Begin a story; at its end a daemon runs, and nothing is stopped."""
    yield Story(daemon, directory)
    daemon.restart()  # also one that a test has stopped, or that was to crash
    Boss(daemon).call("breaker.release")
    end_all(daemon)
