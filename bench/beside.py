"""hiboss beside another checkout of it: every row of the bench, measured in turns within one run.

A worker process (bench/worker.py) measures a part with our code and another one with theirs, each with the
same files of `bench`: ours. They never work at the same time: after each slice the turn goes to the other
one, and from round to round the other one begins. What the other tree lacks is not there, and does not count.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple

from . import parts
from .figures import show
from .load import ROOT
from .report import aligned
from .rounds import Size, say
from .verdicts import BETTER, EQUAL, NONE, WORSE, Verdict, judge

COLUMNS = ("work", "here", "there", "ratio", "interval", "")
NOT_THERE = "not there"


class Row(NamedTuple):
    """What both trees gave; without a verdict the other one does not have it."""

    key: str
    work: str
    unit: str
    here: list[float]
    there: list[float] | None
    verdict: Verdict | None

    @property
    def word(self) -> str:
        return NOT_THERE if self.verdict is None else self.verdict.word


class Tree:
    """A checkout, its Python, and where its homes lie."""

    def __init__(self, code: Path, directory: Path, *, may_lack: bool) -> None:
        self.code = code.resolve()
        self._directory = directory
        self._may_lack = "may-lack" if may_lack else ""
        self._links = directory / "code"
        self._links.mkdir(parents=True)
        (self._links / "bench").symlink_to(ROOT / "bench")
        # The same order of every dict and set in both trees, or else chance decides by some per cent.
        paths = os.pathsep.join(map(os.fspath, (self._links, self.code)))
        self._environment = {**os.environ, "PYTHONPATH": paths, "PYTHONHASHSEED": "0"}
        own = self.code / ".venv" / "bin" / "python"
        self._python = os.fspath(own) if self._is_used(own) else sys.executable
        if not self._is_used(Path(self._python)):
            raise RuntimeError(f"the code of {self.code} is not used by {self._python}")
        subprocess.run([self._python, "-m", "compileall", "-q", self.code / "hiboss"], check=True)

    def _is_used(self, python: Path) -> bool:
        """Whether this Python has what the bench needs, and imports hiboss from the checkout."""
        if not python.exists():
            return False
        program = "import psutil, bench.load, hiboss; print(hiboss.__file__)"
        found = subprocess.run(
            [python, "-c", program],
            env=self._environment,
            cwd=self._links,
            capture_output=True,
            text=True,
            check=False,
        ).stdout.strip()
        return bool(found) and Path(found).is_relative_to(self.code)

    def begin(self, part: str, size: Size) -> Worker:
        given = [part, os.fspath(self._directory), json.dumps(asdict(size)), self._may_lack]
        process = subprocess.Popen(
            [self._python, "-m", "bench.worker", *given],
            env=self._environment,
            cwd=self._links,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        return Worker(process)


class Worker:
    """A process that measures a part; `answer` is what it said last: a turn, figures, or what failed."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.answer: dict[str, Any] = {}
        self._read()

    def _read(self) -> None:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        self.answer = json.loads(line) if line else {"failed": "the worker has ended"}

    def work(self) -> None:
        """Let it work until it waits for its next turn; nothing, when it has ended."""
        if "turn" in self.answer:
            assert self._process.stdin is not None
            self._process.stdin.write("\n")
            self._process.stdin.flush()
            self._read()

    def end(self) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


def is_checkout(path: Path) -> bool:
    return (path / "hiboss" / "daemon" / "__main__.py").is_file()


def measure(directory: Path, other: Path, chosen: Iterable[str], size: Size) -> list[Row]:
    """Measure these parts with our code and with that of another checkout, in turns."""
    trees = Tree(ROOT, directory / "here", may_lack=False), Tree(other, directory / "there", may_lack=True)
    wanted = list(chosen)
    left = [2 * parts.seconds(part, size) for part in wanted]
    done, begun = 0.0, monotonic()
    rows = []
    for number, part in enumerate(wanted):
        # What is left, by how long the parts before it really took.
        pace = (monotonic() - begun) / done if done else 1.0
        minutes = sum(left[number:]) * pace / 60
        say(f"part {number + 1} of {len(wanted)}: {part}; about {minutes:.0f} min are left")
        rows += _part(trees, part, size)
        done += left[number]
    return rows


def _part(trees: tuple[Tree, Tree], part: str, size: Size) -> list[Row]:
    workers = [tree.begin(part, size) for tree in trees]
    try:
        order = list(workers)
        while any("turn" in one.answer for one in workers):
            say(next(one.answer["turn"] for one in workers if "turn" in one.answer))
            for one in order:
                one.work()
            order.reverse()
    finally:
        for one in workers:
            one.end()
    here, there = (one.answer for one in workers)
    if "failed" in here:
        raise RuntimeError(f"{part}: {here['failed']}")
    if "failed" in there:
        say(f"{part}: not there: {there['failed']}")
    found = {one["key"]: one for one in there.get("figures", [])}
    return [_row(one, found.get(one["key"])) for one in here["figures"]]


def _row(here: dict[str, Any], there: dict[str, Any] | None) -> Row:
    what = here["key"], here["work"], here["unit"], here["taken"]
    if there is None:
        return Row(*what, None, None)
    verdict = judge(here["taken"], there["taken"], is_rate=here["unit"] == "/s", grain=here["grain"])
    return Row(*what, there["taken"], verdict)


def table(rows: list[Row]) -> str:
    lines: list[tuple[str, ...]] = [COLUMNS]
    for row in rows:
        if row.verdict is None or row.there is None:
            lines.append((row.work, _middle(row.here, row.unit), "", "", "", NOT_THERE))
            continue
        found = row.verdict
        values = _middle(row.here, row.unit), _middle(row.there, row.unit)
        span = f"{found.low:.2f} to {found.high:.2f}"
        lines.append((row.work, *values, f"{found.ratio:.2f}", span, found.word))
    return aligned(lines, to_the_left={0, len(COLUMNS) - 1})


def _middle(taken: list[float], unit: str) -> str:
    return show(sorted(taken)[len(taken) // 2], unit)


def summary(rows: list[Row]) -> str:
    words = [row.word for row in rows]
    counts = [f"{words.count(word)} {word}" for word in (BETTER, EQUAL, WORSE, NONE, NOT_THERE)]
    return f"{len(rows)} rows: " + ", ".join(one for one in counts if not one.startswith("0 "))
