"""Agents whose program works on a turn until the test lets it go, and keeps every turn that it got.

A turn with a text that begins with `hold` is held; all others are answered at once with `answer N`, where N is the
number of the turn. While it is held it streams words to standard error, like a program that works.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hiboss.testing.running_daemon import RunningDaemon
from tests.support.shell_agents import Boss, Worker, rows
from tests.support.waits import wait_until

HOLDS = """
n=$(wc -l < "$D/turns" | tr -d ' ')
cp "$D/given" "$D/turn.new" && mv "$D/turn.new" "$D/turn.$n"
if grep -q '^> hold' "$D/turn.$n"; then
    while [ ! -e "$D/go" ]; do echo working >&2; sleep 0.02; done
fi
echo "answer $n"
"""


class HoldingWorker(Worker):
    """An agent with such a program."""

    def __init__(self, daemon: RunningDaemon, directory: Path, **fields: Any) -> None:
        super().__init__(daemon, directory, **fields)
        self.program.does(HOLDS)

    def turn(self, number: int) -> str:
        """Wait for its turn of this number (from 1), and return its text."""
        file = self.program.directory / f"turn.{number}"
        wait_until(file.exists)
        return file.read_text()

    def shown(self, number: int) -> list[str]:
        """Wait for a turn, and return its envelopes in the order in which it shows them."""
        return re.findall(r"(?m)^envelope-id: (e\d+)$", self.turn(number))

    def works(self, number: int = 1) -> str:
        """Wait until it works on its turn of this number; return the run."""
        self.turn(number)
        [run] = [one for one in self.runs() if one["status"] == "running"]
        return str(run["id"])

    def holding(self, number: str) -> str:
        """Wait until it works on its first turn, which has this envelope; return the envelope."""
        self.works()
        return number

    def goes_on_until_done(self, *numbers: str) -> None:
        """Let it go; wait until these envelopes are done."""
        self.program.let_go()
        self.all_done(*numbers)

    def history(self) -> list[tuple[str, str | None, list[str]]]:
        """Return its runs: how each ended, the kind of its error, its envelopes."""
        return [(one["status"], one["error_kind"], one["envelopes"]) for one in self.runs()]

    def is_done(self, *numbers: str) -> bool:
        boss = Boss(self.daemon)
        return all(boss.get(number)["status"] == "done" for number in numbers)

    def all_done(self, *numbers: str) -> None:
        """Wait until these envelopes are done."""
        wait_until(lambda: self.is_done(*numbers))

    def preempts(self) -> list[tuple[str, str, str | None]]:
        """Return the controls `preempt` about it, oldest first: actor, outcome, reason."""
        query = """
            SELECT a.kind || ':' || a.name AS actor, k.outcome, k.reason FROM control k
            JOIN address a ON a.id = k.actor JOIN address g ON g.id = k.agent
            WHERE k.event = 'preempt' AND g.name = ? ORDER BY k.id
        """
        return [tuple(row) for row in rows(self.daemon, query, self.name)]


def control(daemon: RunningDaemon, event: str, **params: Any) -> tuple[str, str | None]:
    """Send a control as the boss; return its outcome and why."""
    answer = daemon.call("control.send", token=daemon.token("boss"), event=f"stream.{event}", **params)
    return answer["outcome"], answer["why"]
