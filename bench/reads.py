"""Looking: a page of a full inbox, and the poll of one where nothing is to be done.

Each is measured in a large and in a small store, call by call in turns; what counts is that
both cost the same. (tests/ checks this exactly, by SQLite's own steps; here it is seen from outside.)
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hiboss.testing.running_daemon import RunningDaemon

from .figures import AT_MOST, Figure, Ratio
from .homes import SETTLED, WAITING, say
from .load import Load, Outcome, generate


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
        figures.append(_figure(look, generate(*loads), sizes))
    return figures


def _load(daemon: RunningDaemon, look: Look, seconds: float) -> Load:
    params = {"token": daemon.token(look.agent), **look.params}
    found = len(daemon.call("envelope.list", **params)["envelopes"])
    if found != look.envelopes:
        raise AssertionError(f"{look.key} found {found} envelopes, not {look.envelopes}")
    return Load(socket=daemon.home.socket, method="envelope.list", params=params, seconds=seconds)


def _figure(look: Look, taken: list[Outcome], sizes: tuple[int, int]) -> Figure:
    large, small = taken
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
        ratios=(flat,),
    )
