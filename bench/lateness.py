"""How late a post is: of a deferred envelope after its time, of an immediate one after its send.

Each is a lone envelope, a few hundredths of a second after the one before, with much and with
little deferred behind it. Late is until the adapter is asked to post.
"""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from time import monotonic, sleep, time_ns

from hiboss.testing.running_daemon import RunningDaemon

from .figures import AT_MOST, Figure, Ratio
from .homes import AGENT, say
from .stamped import stamps

AHEAD_SECONDS = 2
BATCH = 80  # sent before the first of them is due
GAP_SECONDS = 0.01  # between two sends, each to the other daemon
WAIT_SECONDS = 30.0


class Watched:
    """A running daemon, an account of it, and when what was sent should have been posted."""

    def __init__(self, daemon: RunningDaemon, account: Path, place: str) -> None:
        self._daemon = daemon
        self._account = account
        self._params = {
            "token": daemon.token(AGENT),
            "to": f"channel:stamped:{place}",
            "text": "Good morning.",
        }
        self._wanted: dict[str, float] = {}
        self.calls: list[float] = []  # how long each send took, ms: a COMMIT and the way there and back

    def send(self, **more: str) -> None:
        before = time_ns() / 1e6
        answer = self._daemon.call("envelope.send", **self._params, **more)
        self.calls.append(time_ns() / 1e6 - before)
        due = answer["deliver_at"]
        at = before if due is None else datetime.fromisoformat(due).timestamp() * 1000
        self._wanted[answer["ids"][0]] = at

    def lateness(self) -> list[float]:
        """Milliseconds, once everything is posted."""
        end = monotonic() + WAIT_SECONDS
        while not self._wanted.keys() <= (posted := stamps(self._account)).keys():
            if monotonic() > end:
                raise AssertionError(
                    f"not posted within {WAIT_SECONDS:.0f} s: {self._wanted.keys() - posted}"
                )
            sleep(0.05)
        late = [posted[envelope] - at for envelope, at in self._wanted.items()]
        self._wanted.clear()
        return late


def measure(watched: tuple[Watched, Watched], sizes: tuple[int, int], rounds: int) -> list[Figure]:
    """Both daemons run: one with the first size deferred, one with the second."""
    late: tuple[list[float], list[float]] = ([], [])
    fresh: tuple[list[float], list[float]] = ([], [])
    for number in range(rounds):
        say(f"lateness with {sizes[0]:,} and {sizes[1]:,} deferred, round {number + 1} of {rounds}")
        _batch(watched, late, deliver_at=f"+{AHEAD_SECONDS}s")
        _batch(watched, fresh)
    for found in late:
        if min(found) < 0:
            raise AssertionError(f"posted {-min(found):.1f} ms before its time")
    deferred, sent = f"a +{AHEAD_SECONDS} s envelope is late", "send to post, one immediate envelope"
    return [
        _figure("late", deferred, late, sizes, watched[0]),
        _one("late_tenth", deferred, late[1], sizes[1], ()),
        _figure("send_to_post", sent, fresh, sizes, watched[0]),
        _one("send_to_post_tenth", sent, fresh[1], sizes[1], ()),
    ]


def _batch(watched: tuple[Watched, Watched], late: tuple[list[float], list[float]], **more: str) -> None:
    for _ in range(BATCH):
        for one in watched:
            one.send(**more)
            sleep(GAP_SECONDS)
    for taken, one in zip(late, watched, strict=True):
        taken += one.lateness()


def _figure(
    key: str, work: str, late: tuple[list[float], list[float]], sizes: tuple[int, int], watched: Watched
) -> Figure:
    many, fewer = _quantile(late[0], 0.5), _quantile(late[1], 0.5)
    flat = Ratio(
        key="flat",
        value=many / fewer,
        of=f"× the same with {sizes[1]:,} ({fewer:.2f} ms)",
        sense=AT_MOST,
        aim=1.5,
    )
    call = _quantile(watched.calls, 0.5)
    # Two COMMITs lie before a post. Where the disk is slow, or shared, this says more than the time.
    to_send = Ratio(
        key="to_send", value=many / call, of=f"× a call that sends ({call:.2f} ms)", sense=AT_MOST, aim=3.0
    )
    return _one(key, work, late[0], sizes[0], (flat, to_send))


def _one(key: str, work: str, late: list[float], size: int, ratios: tuple[Ratio, ...]) -> Figure:
    p50, p99 = _quantile(late, 0.5), _quantile(late, 0.99)
    return Figure(
        key=key,
        work=f"{work}, {size:,} deferred",
        value=p50,
        unit="ms",
        goal="5 ms",
        p50=p50,
        p99=p99,
        ratios=ratios,
    )


def _quantile(times: list[float], share: float) -> float:
    return sorted(times)[min(len(times) - 1, int(len(times) * share))]
