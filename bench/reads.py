"""Looking: a page of a full inbox, and the poll of one where nothing is to be done.

Each is measured in a large and in a small store, call by call in turns with a ping: what counts is that
both cost the same, and not much more than a ping. (tests/ checks the first exactly, by SQLite's own steps;
here it is seen from outside.) A page is kept as bytes until the store changes, so the list is also measured
with a message between each two looks.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from statistics import median
from typing import Any

from hiboss.testing.running_daemon import RunningDaemon

from .figures import AT_MOST, Figure, Ratio, middle_ratio
from .homes import AGENT, SETTLED, WAITING, cpu, say
from .load import Load, Outcome, generate

PINGS = 2.5  # that a list of ten may cost
PINGS_CHANGED = 5.0  # and the first after a change
CALLS = 2_000  # of each kind in a round that counts the daemon's work: its clock ticks every 10 ms
ROUNDS = 5


@dataclass(frozen=True, kw_only=True)
class Look:
    key: str
    work: str
    agent: str
    params: dict[str, Any] = field(default_factory=dict)
    envelopes: int = 0  # how many the page must have


LOOKS = (
    Look(key="list", work="list 10 of {rows} settled", agent=SETTLED, envelopes=10),
    Look(key="list_pending", work="list 10 of {rows} pending", agent=WAITING, envelopes=10),
    Look(
        key="poll_pending",
        work="empty poll over {rows} settled, pending",
        agent=SETTLED,
        params={"status": "pending"},
    ),
    Look(
        key="poll_unread",
        work="empty poll over {rows} settled, unread",
        agent=SETTLED,
        params={"unread": True},
    ),
)


def measure(
    large: RunningDaemon, small: RunningDaemon, sizes: tuple[int, int], seconds: float
) -> list[Figure]:
    """Both daemons run; `sizes` says how much lies in each."""
    figures = []
    for look in LOOKS:
        say(look.work.format(rows=f"{sizes[0]:,}"))
        loads = [_load(daemon, look, seconds) for daemon in (large, small)]
        figures.append(_figure(look, generate(*loads, _ping(large, seconds)), sizes))
    say(f"list 10 of {sizes[0]:,} after each change")
    figures.append(_changed(large, LOOKS[0], seconds, sizes))
    figures.append(_work(large, LOOKS[0], sizes))
    return figures


def _load(daemon: RunningDaemon, look: Look, seconds: float) -> Load:
    params = {"token": daemon.token(look.agent), **look.params}
    found = len(daemon.call("envelope.list", **params)["envelopes"])
    if found != look.envelopes:
        raise AssertionError(f"{look.key} found {found} envelopes, not {look.envelopes}")
    return Load(socket=daemon.home.socket, method="envelope.list", params=params, seconds=seconds)


def _ping(daemon: RunningDaemon, seconds: float) -> Load:
    return Load(socket=daemon.home.socket, method="daemon.ping", seconds=seconds)


def _figure(look: Look, taken: list[Outcome], sizes: tuple[int, int]) -> Figure:
    large, small, ping = taken
    flat = Ratio(
        key="flat",
        value=large.p50 / small.p50,
        of=f"× the same over {sizes[1]:,} ({small.p50:.2f} ms)",
        sense=AT_MOST,
        floor=2.0,
    )
    return Figure(
        key=look.key,
        work=look.work.format(rows=f"{sizes[0]:,}"),
        value=large.p50,
        unit="ms",
        goal="0.3 ms",
        p50=large.p50,
        p99=large.p99,
        ratios=(flat, _in_pings(large, ping, PINGS)),
    )


def _in_pings(taken: Outcome, ping: Outcome, floor: float) -> Ratio:
    of = f"× a ping ({ping.p50:.2f} ms)"
    return Ratio(key="pings", value=taken.p50 / ping.p50, of=of, sense=AT_MOST, floor=floor, aim=0.8 * floor)


def _changed(daemon: RunningDaemon, look: Look, seconds: float, sizes: tuple[int, int]) -> Figure:
    """A list of which nothing is kept, since somebody else got a message just before."""
    params = {"token": daemon.token(AGENT), "to": f"agent:{AGENT}", "text": "between two looks"}
    send = Load(socket=daemon.home.socket, method="envelope.send", params=params, seconds=seconds)
    ping, _, listed = generate(_ping(daemon, seconds), send, _load(daemon, look, seconds))
    return Figure(
        key="list_changed",
        work=f"list 10 of {sizes[0]:,} settled, after a change",
        value=listed.p50,
        unit="ms",
        p50=listed.p50,
        p99=listed.p99,
        ratios=(_in_pings(listed, ping, PINGS_CHANGED),),
    )


def _work(daemon: RunningDaemon, look: Look, sizes: tuple[int, int]) -> Figure:
    """What the daemon itself works for a list, beside a ping: in turns, each many times."""
    most = 60.0  # seconds; the number of calls ends it before
    loads = [
        replace(one, most=CALLS, warm_seconds=0.0) for one in (_load(daemon, look, most), _ping(daemon, most))
    ]
    taken: list[list[float]] = [[], []]
    for _ in range(ROUNDS):
        for load, found in zip(loads, taken, strict=True):
            before = cpu(daemon)
            (outcome,) = generate(load)
            found.append((cpu(daemon) - before) / outcome.answered)
    ratio = Ratio(
        key="pings",
        value=middle_ratio(taken[0], taken[1]),
        of=f"× a ping ({median(taken[1]):.0f} µs)",
        sense=AT_MOST,
        floor=PINGS,
        aim=0.8 * PINGS,
    )
    work = f"daemon CPU of a list of 10 of {sizes[0]:,}"
    return Figure(key="list_cpu", work=work, value=median(taken[0]), unit="µs", ratios=(ratio,))
