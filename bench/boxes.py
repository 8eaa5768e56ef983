"""Full inboxes: a page of one, the poll of one where nothing is to be done, and the CPU of a page."""

from __future__ import annotations

from pathlib import Path
from statistics import median
from typing import Any

from hiboss.testing.running_daemon import RunningDaemon

from . import looks
from .figures import AT_MOST, Figure, Ratio, middle_ratio
from .homes import SETTLED, SMALL, WAITING, cpu, full_home
from .load import generate
from .looks import Look
from .rounds import Size, rounds

PINGS, PINGS_CHANGED = 2.5, 5.0  # that a list of ten may cost, and the first after a change
WORKED = 500  # calls of each kind in a round that counts the daemon's work


def _look(key: str, work: str, who: str, number: int = 10, **params: Any) -> Look:
    return Look(
        key=key,
        work=work,
        method="envelope.list",
        params=params,
        answer="envelopes",
        number=number,
        who=who,
        flat=2.0,
        pings=(PINGS, PINGS_CHANGED),
    )


LOOKS = (
    _look("list", "list 10 of {rows} settled", SETTLED),
    _look("list_pending", "list 10 of {rows} pending", WAITING),
    _look("poll_pending", "empty poll over {rows} settled, pending", SETTLED, 0, status="pending"),
    _look("poll_unread", "empty poll over {rows} settled, unread", SETTLED, 0, unread=True),
)


def measure(directory: Path, size: Size) -> list[Figure]:
    homes = full_home(directory.parent / "large", size.rows), full_home(directory.parent / "small", SMALL)
    try:
        for daemon in homes:
            daemon.start()
        figures = looks.measure(LOOKS, homes, _params, (size.rows, SMALL), size)
        return [*figures, _work(homes[0], size)]
    finally:
        for daemon in homes:
            daemon.stop()


def _params(daemon: RunningDaemon, look: Look) -> dict[str, Any]:
    return looks.checked(daemon, look, {"token": daemon.token(look.who), **look.params})


def _work(daemon: RunningDaemon, size: Size) -> Figure:
    """What the daemon itself works for a list, beside a ping: in turns, each many times."""
    socket = daemon.home.socket
    asked = [
        looks.call(socket, "envelope.list", WORKED, **_params(daemon, LOOKS[0])),
        looks.call(socket, "daemon.ping", WORKED),
    ]
    taken: tuple[list[float], list[float]] = ([], [])
    for _ in rounds(size.rounds, "the daemon's CPU of a list"):
        for load, found in zip(asked, taken, strict=True):
            before = cpu(daemon.pid)
            (outcome,) = generate(load)
            found.append((cpu(daemon.pid) - before) / outcome.answered)
    ratio = Ratio(
        key="pings",
        value=middle_ratio(*taken),
        of=f"× a ping ({median(taken[1]):.0f} µs)",
        sense=AT_MOST,
        floor=PINGS,
        aim=0.8 * PINGS,
    )
    work = f"daemon CPU of a list of 10 of {size.rows:,}"
    return Figure(key="list_cpu", work=work, taken=taken[0], unit="µs", ratios=(ratio,))
