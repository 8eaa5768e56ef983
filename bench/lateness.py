"""How late a post is: of a deferred envelope after its time, of an immediate one after its send.

Each is a lone envelope, a few hundredths of a second after the one before, with much and with
little deferred behind it. Late is until the adapter is asked to post.
"""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from statistics import median
from time import monotonic, sleep, time_ns

from hiboss.testing.running_daemon import RunningDaemon

from .figures import AT_MOST, Figure, Ratio, middle_ratio, quantile
from .homes import AGENT
from .rounds import rounds
from .stamped import stamps

AHEAD_SECONDS = 1
BATCH = 20  # sent before the first of them is due
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


Pair = tuple[Watched, Watched]


def measure(watched: Pair, sizes: tuple[int, int], number: int) -> list[Figure]:
    """Both daemons run: one with the first size deferred, one with the second."""
    late, fresh = Taken(), Taken()
    for _ in rounds(number, "how late posts are"):
        late.add(watched, deliver_at=f"+{AHEAD_SECONDS}s")
        fresh.add(watched)
    early = min(min(one) for found in late.all for one in found)
    if early < 0:
        raise AssertionError(f"posted {-early:.1f} ms before its time")
    deferred, sent = f"a +{AHEAD_SECONDS} s envelope is late", "send to post, one immediate envelope"
    call = quantile(watched[0].calls, 0.5)
    return [*late.figures("late", deferred, sizes, call), *fresh.figures("send_to_post", sent, sizes, call)]


class Taken:
    """How late the posts of each round were, with much deferred and with less; milliseconds."""

    def __init__(self) -> None:
        self.all: tuple[list[list[float]], list[list[float]]] = ([], [])

    def add(self, watched: Pair, **more: str) -> None:
        for _ in range(BATCH):
            for one in watched:
                one.send(**more)
                sleep(GAP_SECONDS)
        for taken, one in zip(self.all, watched, strict=True):
            taken.append(one.lateness())

    def figures(self, key: str, work: str, sizes: tuple[int, int], call: float) -> list[Figure]:
        many, fewer = ([median(one) for one in found] for found in self.all)
        flat = Ratio(
            key="flat",
            value=middle_ratio(many, fewer),
            of=f"× the same with {sizes[1]:,} ({median(fewer):.2f} ms)",
            sense=AT_MOST,
            aim=1.5,
        )
        # Two COMMITs lie before a post. Where the disk is slow, or shared, this says more than the time.
        to_send = Ratio(
            key="to_send",
            value=median(many) / call,
            of=f"× a call that sends ({call:.2f} ms)",
            sense=AT_MOST,
            aim=3.0,
        )
        ratios: tuple[tuple[Ratio, ...], ...] = (flat, to_send), ()
        return [
            Figure(
                key=key if ratios[which] else f"{key}_tenth",
                work=f"{work}, {sizes[which]:,} deferred",
                taken=taken,
                unit="ms",
                goal="5 ms",
                p50=median(taken),
                p99=quantile([time for one in self.all[which] for time in one], 0.99),
                ratios=ratios[which],
            )
            for which, taken in enumerate((many, fewer))
        ]
