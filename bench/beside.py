"""hiboss beside others, in turns within one run: Redis, or another checkout of hiboss.

In each round every way to send is measured with bare, with this tree, and with each of the others, one
right after the other; the next round goes the other way round. What counts are medians of these pairs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter, sleep
from typing import Protocol

import psutil

from .bare import Bare, Wrote
from .figures import AT_MOST, Figure, Ratio, middle, middle_ratio
from .homes import AGENT, say
from .life import REST_SECONDS
from .load import ROOT, Load, Outcome, generate
from .reads import PINGS
from .redis_server import RedisServer
from .sends import DEEP, MANY, ONE, PAIRS, WARM_SECONDS, WAYS, Way
from .trees import Tree

REDIS = "redis"
REDIS_AIMS = {ONE.key: 0.5, MANY.key: 0.35, DEEP.key: 0.25}
LISTS_SECONDS = 1.0


class Server(Protocol):
    """What can be sent to, and what it has stored is checked at the end."""

    def start(self) -> None: ...

    def stop(self) -> None: ...

    def send(self, way: Way, seconds: float) -> tuple[Outcome, float]: ...

    def check(self) -> None: ...


@dataclass(frozen=True, kw_only=True)
class Sent:
    """What one way gave, round by round: rates and microseconds of CPU, by the name of who was measured."""

    bare: list[Wrote]
    others: dict[str, list[tuple[Outcome, float]]]

    def rates(self, name: str) -> list[float]:
        return [sent.rate for sent, _ in self.others[name]]

    def spent(self, name: str) -> list[float]:
        return [spent for _, spent in self.others[name]]


def measure(directory: Path, others: Sequence[str], rounds: int, seconds: float) -> list[Figure]:
    """`others`: the word redis, or directories of checkouts."""
    ours = Tree(ROOT, directory / "ours")
    trees = [Tree(Path(one), directory / f"tree{n}") for n, one in enumerate(others) if one != REDIS]
    servers: dict[str, Server] = {"": ours, **{tree.name: tree for tree in trees}}
    if REDIS in others:
        servers[REDIS] = RedisServer(directory / REDIS)
    bare = Bare(directory / "bare")
    try:
        for server in servers.values():
            server.start()
        rests = [_memory(ours, tree) for tree in trees]
        figures = _sends(bare, servers, rounds, seconds)
        lists = [_lists(ours, tree, rounds) for tree in trees]
        say("checking that what was written is right")
        bare.check()
        for server in servers.values():
            server.check()
    finally:
        bare.close()
        for server in servers.values():
            server.stop()
    return [*figures, *(one for some in lists for one in some), *rests, *_starts(directory, trees, rounds)]


# --- sends ---------------------------------------------------------------------------


def _sends(bare: Bare, servers: dict[str, Server], rounds: int, seconds: float) -> list[Figure]:
    taken = {way.key: Sent(bare=[], others={name: [] for name in servers}) for way in WAYS}
    for number in range(rounds * PAIRS):
        if number % PAIRS == 0:
            say(f"sends beside others, round {number // PAIRS + 1} of {rounds}")
        names = list(servers)[:: 1 if number % 2 else -1]
        for way in WAYS:
            taken[way.key].bare.append(bare.run(way.group, seconds / PAIRS, WARM_SECONDS))
            for name in names:
                taken[way.key].others[name].append(servers[name].send(way, seconds / PAIRS))
    rates = [_rate(way, taken[way.key]) for way in WAYS]
    return [*rates, *(_cpu(way, taken[way.key]) for way in WAYS)]


def _rate(way: Way, taken: Sent) -> Figure:
    bare = [one.rate for one in taken.bare]
    ours = middle([sent for sent, _ in taken.others[""]])
    ratios = [
        Ratio(
            key="to_bare",
            value=middle_ratio(taken.rates(""), bare),
            of=f"of bare in groups of {way.group} ({median(bare):,.0f}/s)",
            floor=way.floor,
            aim=way.aim,
            needs_quiet=True,
        )
    ]
    for name in filter(None, taken.others):
        theirs = taken.rates(name)
        share = middle_ratio(theirs, bare)
        of = f"{_words(name)} ({median(theirs):,.0f}/s, {share:.2f} of bare)"
        aim = REDIS_AIMS[way.key] if name == REDIS else None
        ratios.append(Ratio(key=f"to_{name}", value=middle_ratio(taken.rates(""), theirs), of=of, aim=aim))
    return Figure(
        key=f"beside_{way.key}",
        work=f"durable sends, {way.group} in flight",
        value=ours.rate,
        unit="/s",
        p50=ours.p50,
        p99=ours.p99,
        ratios=tuple(ratios),
    )


def _cpu(way: Way, taken: Sent) -> Figure:
    sides = {"bare": [one.cpu for one in taken.bare]}
    sides |= {name: taken.spent(name) for name in taken.others if name}
    return Figure(
        key=f"beside_cpu_{way.key}",
        work=f"daemon CPU a send, {way.group} in flight",
        value=median(taken.spent("")),
        unit="µs",
        ratios=tuple(_times(name, taken.spent(""), theirs, "µs") for name, theirs in sides.items()),
    )


def _words(name: str) -> str:
    return "of XADD to Redis, appendfsync always" if name == REDIS else f"of {name}"


def _times(name: str, ours: list[float], theirs: list[float], unit: str) -> Ratio:
    """Ours as a multiple of theirs: less is better."""
    shown = f"{median(theirs):,.0f} {unit}" if median(theirs) >= 10 else f"{median(theirs):.2f} {unit}"
    return Ratio(key=f"to_{name}", value=middle_ratio(ours, theirs), of=f"× {name} ({shown})", sense=AT_MOST)


# --- another tree: lists, memory, starts ---------------------------------------------


def _lists(ours: Tree, other: Tree, rounds: int) -> list[Figure]:
    """A list of 10 and a ping of both, call by call in turns; then the CPU of a list."""
    say(f"a list of 10 beside {other.name}")
    loads = [
        Load(
            socket=tree.daemon.home.socket,
            method=method,
            params={"token": tree.daemon.token(AGENT)},
            seconds=LISTS_SECONDS,
        )
        for tree in (ours, other)
        for method in ("envelope.list", "daemon.ping")
    ]
    listed, pinged, their_list, their_ping = generate(*loads)
    spent: tuple[list[float], list[float]] = ([], [])
    for _ in range(rounds):
        for tree, load, costs in ((ours, loads[0], spent[0]), (other, loads[2], spent[1])):
            before = tree.cpu()
            [done] = generate(load)
            costs.append((tree.cpu() - before) / done.answered)
    pings = Ratio(
        key="to_ping",
        value=listed.p50 / pinged.p50,
        of=f"× a ping ({pinged.p50:.2f} ms); of the other tree {their_list.p50 / their_ping.p50:.2f}",
        sense=AT_MOST,
        floor=PINGS,
    )
    return [
        Figure(
            key="beside_list",
            work="list of 10",
            value=listed.p50,
            unit="ms",
            p50=listed.p50,
            p99=listed.p99,
            ratios=(pings, _times(other.name, [listed.p50], [their_list.p50], "ms")),
        ),
        Figure(
            key="beside_list_cpu",
            work="daemon CPU a list of 10",
            value=median(spent[0]),
            unit="µs",
            ratios=(_times(other.name, *spent, "µs"),),
        ),
    ]


def _memory(ours: Tree, other: Tree) -> Figure:
    """Both were just started."""
    held = []
    for tree in (ours, other):
        tree.daemon.call("daemon.ping")
        sleep(REST_SECONDS)
        held.append(psutil.Process(tree.daemon.pid).memory_info().rss / 1e6)
    return Figure(
        key="beside_idle",
        work="daemon idle, RSS",
        value=held[0],
        unit="MB",
        ratios=(_times(other.name, held[:1], held[1:], "MB"),),
    )


def _starts(directory: Path, others: list[Tree], rounds: int) -> list[Figure]:
    """In fresh homes: how long, and how much work, until the daemon is ready."""
    figures = []
    for number, other in enumerate(others):
        say(f"starts beside {other.name}, {rounds} of each")
        pair = [Tree(ROOT, directory / f"start{number}"), Tree(other.code, directory / f"other{number}")]
        took: tuple[list[float], list[float]] = ([], [])
        worked: tuple[list[float], list[float]] = ([], [])
        for _ in range(rounds):
            for side, tree in enumerate(pair):
                begin = perf_counter()
                tree.start()
                took[side].append((perf_counter() - begin) * 1000)
                worked[side].append(tree.cpu() / 1000)
                tree.stop()
        for key, work, sides in (("ms", "daemon start", took), ("cpu", "daemon start, CPU", worked)):
            ratio = _times(other.name, *sides, "ms")
            figures.append(
                Figure(
                    key=f"beside_start_{key}", work=work, value=median(sides[0]), unit="ms", ratios=(ratio,)
                )
            )
    return figures
