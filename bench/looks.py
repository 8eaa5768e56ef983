"""Looking into a store: each way in a large store and in a small one, call by call in turns with a ping.

What counts is that both cost the same, and not much more than a ping. (tests/ checks the first exactly, by
SQLite's own steps; here it is seen from outside.) A page is kept as bytes until the store changes. So each is
measured twice: kept, and in the large store with a message of somebody else between each two looks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from hiboss.testing.running_daemon import RunningDaemon

from .figures import AT_MOST, Figure, Ratio, middle_ratio, timed
from .homes import AGENT
from .load import Load, Outcome, generate_all
from .rounds import Size, if_there, rounds

CALLS, CHANGED_CALLS = 30, 12  # of each kind in a round
MOST_SECONDS = 60.0  # the number of calls ends it before


@dataclass(frozen=True, kw_only=True)
class Look:
    """One way to look. The answer must have so many in this field."""

    key: str
    work: str
    method: str
    params: dict[str, Any] = field(default_factory=dict)
    answer: str = "messages"
    number: int = 10
    who: str = AGENT
    deep: bool = False  # a page by cursor, in the middle of the list
    flat: float = 3.0  # how often what it costs in the small store, at most
    pings: tuple[float | None, float | None] = (None, None)  # at most: kept, and after a change


class Taken:
    """What the rounds gave for one look."""

    def __init__(self, look: Look, large: Load, small: Load, change: Load) -> None:
        ping = call(large.socket, "daemon.ping")
        self.look = look
        self.groups = [large, small, ping], [change, large, ping]
        self.kept: list[list[Outcome]] = []
        self.changed: list[list[Outcome]] = []

    def figures(self, rows: str, few: str) -> list[Figure]:
        large, small, ping = zip(*self.kept, strict=True)
        _, changed, other_ping = zip(*self.changed, strict=True)
        key, work = self.look.key, self.look.work.format(rows=rows)
        base = _times(small)
        flat = Ratio(
            key="flat",
            value=middle_ratio(_times(large), base),
            of=f"× the same of {few} ({median(base):.2f} ms)",
            sense=AT_MOST,
            floor=self.look.flat,
        )
        kept, after = self.look.pings
        return [
            timed(key, work, large, flat, _in_pings(large, ping, kept), goal="0.3 ms"),
            timed(
                f"{key}_changed", f"{work}, after a commit", changed, _in_pings(changed, other_ping, after)
            ),
        ]


def call(socket: str, method: str, most: int = CALLS, **params: Any) -> Load:
    """So many calls of one kind, all of which count but the first."""
    return Load(
        socket=socket, method=method, params=params, seconds=MOST_SECONDS, warm_seconds=0.0, most=most
    )


def measure(
    looks: Sequence[Look],
    homes: tuple[RunningDaemon, RunningDaemon],
    loads: Callable[[RunningDaemon, Look], dict[str, Any]],
    numbers: tuple[int, int],
    size: Size,
    writer: str = AGENT,
) -> list[Figure]:
    """Both daemons run, with so much in them. `loads` gives the parameters of a look in a daemon.

    `writer` writes to itself between two looks; nobody else looks at that.
    """
    large, _ = homes
    somebody = {"token": large.token(writer), "to": f"agent:{writer}", "text": "between two looks"}
    change = call(large.home.socket, "envelope.send", CHANGED_CALLS, **somebody)
    all_taken = []
    for look in looks:
        with if_there(look.work):
            pair = [call(one.home.socket, look.method, **loads(one, look)) for one in homes]
            all_taken.append(Taken(look, pair[0], pair[1], change))
    for _ in rounds(size.rounds, f"{len(all_taken)} ways to look, kept and after a commit"):
        found = iter(generate_all([group for taken in all_taken for group in taken.groups]))
        for taken in all_taken:
            taken.kept.append(next(found))
            taken.changed.append(next(found))
    rows, few = (f"{number:,}" for number in numbers)
    return [figure for taken in all_taken for figure in taken.figures(rows, few)]


def checked(daemon: RunningDaemon, look: Look, params: dict[str, Any]) -> dict[str, Any]:
    """The same parameters, when they find what they should."""
    found = len(daemon.call(look.method, **params)[look.answer])
    if found < look.number or (found and not look.number):
        raise AssertionError(f"{look.key} found {found}, not {look.number}")
    return params


def _times(outcomes: Sequence[Outcome]) -> list[float]:
    return [one.p50 for one in outcomes]


def _in_pings(taken: Sequence[Outcome], pings: Sequence[Outcome], floor: float | None) -> Ratio:
    base = _times(pings)
    return Ratio(
        key="pings",
        value=middle_ratio(_times(taken), base),
        of=f"× a ping ({median(base):.2f} ms)",
        sense=AT_MOST,
        floor=floor,
        aim=None if floor is None else 0.8 * floor,
    )
