"""What a journal in front of SQLite would buy: `python -m bench.journal_spike`, about two minutes.

Sends in turns: bare, this hiboss, the spike (bench/journal_server.py), and its two halves as plain loops.
Then how soon a send can be read, how long a replay takes, and whether kill -9 loses or doubles anything.
docs/design/journal.md has the figures, and what follows from them.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter, process_time

from . import spike_kills
from .bare import Bare
from .homes import say
from .journal import Journal
from .journal_server import Tables
from .load import ROOT, generate
from .sends import DEEP, ONE, WARM_SECONDS, WAYS, Way
from .spike_process import SIZE, Spike
from .trees import Tree

LONG_SECONDS = 8.0
REPLAYS = (10_000, 100_000)
BIG = 64 << 20  # a journal file for these
Slice = tuple[float, float, float, float]  # a second, CPU µs each, p50 ms, p99 ms
Act = Callable[[int], None]  # write a group of this size


def halves(directory: Path) -> dict[str, Act]:
    """Plain loops: only the journal, and only the tables, each as durable as bare."""
    journal, spike = Journal(directory, SIZE), Spike(directory / "tables")
    tables = Tables(spike.home, durable=True)
    made, numbers = spike.records(1, 256), [1]

    def append(group: int) -> None:
        journal.append(made[:group])
        journal.release()

    def apply(group: int) -> None:
        tables.apply(spike.records(numbers[0], group))
        numbers[0] += group

    return {"only append and fdatasync": append, "bare by executemany, ids known": apply}


def timed(act: Act, group: int, seconds: float) -> Slice:
    begin, worked, done = perf_counter(), process_time(), 0
    while perf_counter() < begin + seconds:
        act(group)
        done += group
    return done / (perf_counter() - begin), (process_time() - worked) / done * 1e6, 0.0, 0.0


class Sides:
    """All that is measured in turns."""

    def __init__(self, directory: Path) -> None:
        self.bare, self.ours = Bare(directory / "bare"), Tree(ROOT, directory / "ours")
        self.spike, self.lean = Spike(directory / "spike"), Spike(directory / "lean", 0)
        self._halves = halves(directory)
        self.unapplied: dict[str, list[float]] = {}

    def measure(self, way: Way, seconds: float) -> dict[str, Slice]:
        wrote = self.bare.run(way.group, seconds, WARM_SECONDS)
        sent, spent = self.ours.send(way, seconds)
        accepted, worked, until_applied = self.spike.send(way, seconds)
        stored, stored_cpu, _ = self.lean.send(way, seconds)
        self.unapplied.setdefault(way.key, []).append(until_applied)
        return {
            "bare": (wrote.rate, wrote.cpu, 0.0, 0.0),
            "hiboss": (sent.rate, spent, sent.p50, sent.p99),
            "the spike": (accepted.rate, worked, accepted.p50, accepted.p99),
            "the spike without a journal": (stored.rate, stored_cpu, stored.p50, stored.p99),
            **{name: timed(act, way.group, seconds) for name, act in self._halves.items()},
        }


def sends(directory: Path, rounds: int, seconds: float) -> None:
    sides = Sides(directory)
    taken: dict[str, list[dict[str, Slice]]] = {way.key: [] for way in WAYS}
    sides.ours.start()
    sides.spike.start()
    sides.lean.start()
    try:
        for number in range(rounds):
            say(f"sends, round {number + 1} of {rounds}")
            for way in WAYS:
                taken[way.key].append(sides.measure(way, seconds))
        print(f"{'':32}{'/s':>9}{'of bare':>9}{'CPU µs':>8}{'p50 ms':>8}{'p99 ms':>8}")
        for way in WAYS:
            show(way, taken[way.key], median(sides.unapplied[way.key]))
        show_reading(sides.spike, seconds)
        show_long(sides)
    finally:
        sides.ours.stop()
        sides.spike.kill()
        sides.lean.kill()
        sides.bare.close()
    sides.spike.check()
    sides.lean.check()


def show(way: Way, rounds: list[dict[str, Slice]], unapplied: float) -> None:
    print(f"{way.group} in flight (after the last answer, {unapplied * 1000:.0f} ms until all is in SQLite)")
    for name in rounds[0]:
        rate, cpu, p50, p99 = (median(one[name][column] for one in rounds) for column in range(4))
        share = median(one[name][0] / one["bare"][0] for one in rounds)
        times = f"{p50:8.2f}{p99:8.2f}" if p50 else ""
        print(f"  {name:30}{rate:9,.0f}{share:9.2f}{cpu:8.0f}{times}")


def show_reading(spike: Spike, seconds: float) -> None:
    """A send and a wait until it is applied, in turns on two connections."""
    sent, read = generate(*(spike.load(method, ONE, seconds) for method in ("envelope.send", "applied.wait")))
    print(
        f"a send: p50 {sent.p50:.2f} ms, p99 {sent.p99:.2f} ms; then until it can be read in SQLite: "
        f"p50 {read.p50:.2f} ms, p99 {read.p99:.2f} ms"
    )


def show_long(sides: Sides) -> None:
    """When it does not end: then what is applied sets the pace."""
    for name, server in (("the spike", sides.spike), ("without a journal", sides.lean)):
        sent, _, late = server.send(DEEP, LONG_SECONDS)
        print(
            f"{DEEP.group} in flight for {LONG_SECONDS:.0f} s, {name}: {sent.rate:,.0f}/s, "
            f"the slowest answer {sent.most:.0f} ms, {late * 1000:.0f} ms more until all is in SQLite"
        )


def replays(directory: Path) -> None:
    """A journal full of what was never applied, and a start."""
    for count in REPLAYS:
        spike = Spike(directory / f"replay{count}")
        journal, made = Journal(Path(spike.home.path), BIG), spike.records(1, count)
        for start in range(0, count, 256):
            journal.append(made[start : start + 256])
        begin, tables = perf_counter(), Tables(spike.home)
        replayed = tables.recover(Journal(Path(spike.home.path), BIG))
        took = perf_counter() - begin
        if replayed != count:
            raise AssertionError(f"{replayed} of {count} records were replayed")
        print(f"replay of {count:,} records: {took:.2f} s, {took / count * 1e6:.0f} µs each")
        tables.connection.close()
        spike.check()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.journal_spike", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.8)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--dir", help="where to put the homes (default: the temporary directory)")
    given = parser.parse_args()
    os.environ["HIBOSS_WEB_ENABLED"] = "off"
    with tempfile.TemporaryDirectory(prefix="hiboss-spike-", dir=given.dir) as path:
        sends(Path(path), given.rounds, given.seconds)
        replays(Path(path))
        spike = Spike(Path(path) / "kills", spike_kills.SIZE)
        print(spike_kills.kills(spike, given.kills))
    return 0


if __name__ == "__main__":
    sys.exit(main())
