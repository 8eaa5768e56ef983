"""A thousand envelopes due at one instant, to a hundred places: how fast they are posted.

Against the sends of the same round; and how long `daemon.ping` takes meanwhile. Once with an
adapter that costs next to nothing, once with folders, where every post is a file on disk.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from time import monotonic, perf_counter, sleep, time

from hiboss.core import clock
from hiboss.testing.running_daemon import RunningDaemon

from .figures import AT_MOST, Figure, Ratio, middle_ratio, quantile
from .homes import AGENT, ENVIRONMENT, TEXT, bind, cpu, new_home
from .load import Load, generate
from .rounds import Size, rounds, say

PLACES = 100
DUE = 1_000
MARGIN_SECONDS = 1.0
CONNECTIONS = 32
RATE_AIM = 1 / 3  # of the rate of sends: the faster these are, the less
CPU_FLOOR, CPU_AIM = 4.0, 3.0  # times the CPU of a send
PING_GAP_SECONDS = 0.005  # so that pinging takes next to nothing away
WAIT_SECONDS = 120.0
LOOK_EACH = 10  # pings: whether all is delivered
# Whether anything waits for its time, is in hand, or is due at a place: three looks into an index.
_LEFT = """
    SELECT EXISTS (SELECT 1 FROM envelope INDEXED BY envelope_wake WHERE wake_at IS NOT NULL)
        OR EXISTS (SELECT 1 FROM address a CROSS JOIN envelope e INDEXED BY envelope_due ON e.recipient = a.id
                   WHERE a.kind = 'channel' AND e.status = 0 AND e.arrived IS NOT NULL AND e.waits IS NULL)
"""
_PING = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "daemon.ping"}).encode() + b"\n"


@dataclass
class Burst:
    """What the rounds gave."""

    sends: list[float] = field(default_factory=list)  # a second
    filled: list[float] = field(default_factory=list)  # a second: the sends of what is due later
    posts: list[float] = field(default_factory=list)  # a second
    pings: list[list[float]] = field(default_factory=list)  # ms
    send_cpu: list[float] = field(default_factory=list)  # the daemon's, microseconds each
    post_cpu: list[float] = field(default_factory=list)


def measure(directory: Path, size: Size) -> list[Figure]:
    daemon = new_home(directory)
    daemon.start(**ENVIRONMENT)
    stamped, folder = Burst(), Burst()
    try:
        places = [f"p{number}" for number in range(PLACES)]
        bind(daemon, directory / "stamped", places)
        channels = [f"channel:stamped:{place}" for place in places]
        folders = [_folder(daemon, directory / f"f{number}") for number in range(PLACES)]
        for _ in rounds(size.rounds, f"{DUE:,} due at once"):
            _round(daemon, channels, size.seconds, stamped)
            _round(daemon, folders, size.seconds, folder)
        say("checking that what was delivered is right")
        daemon.check()
    finally:
        daemon.stop()
    work = f"{DUE:,} due at once delivered to {PLACES}"
    return [
        *_figures("deliver", f"{work} places", stamped, marked=True),
        *_figures("deliver_folder", f"{work} folders", folder, marked=False),
    ]


def _folder(daemon: RunningDaemon, path: Path) -> str:
    path.mkdir()
    answer = daemon.call(
        "agent.bind",
        token=daemon.token("boss"),
        name=AGENT,
        adapter_type="folder",
        settings={"path": os.fspath(path)},
    )
    return str(answer["address"])


def _round(daemon: RunningDaemon, places: list[str], seconds: float, burst: Burst) -> None:
    token = daemon.token(AGENT)
    plain = Load(
        socket=daemon.home.socket,
        method="envelope.send",
        params={"token": token, "to": f"agent:{AGENT}", "text": TEXT},
        connections=CONNECTIONS,
        seconds=seconds,
    )
    before = cpu(daemon.pid)
    [sent] = generate(plain)
    burst.send_cpu.append((cpu(daemon.pid) - before) / sent.answered)
    # Time enough to send them all before they are due; more, when the machine is too slow for that.
    margin = MARGIN_SECONDS + 2.5 * DUE / sent.rate
    while True:
        at = int((time() + margin) * 1000)
        [filled] = generate(
            Load(
                socket=daemon.home.socket,
                method="envelope.send",
                params={"token": token, "text": TEXT, "deliver_at": clock.iso(at)},
                to=places,
                connections=CONNECTIONS,
                seconds=WAIT_SECONDS,
                warm_seconds=0.0,
                most=DUE,
            )
        )
        if time() * 1000 < at:
            break
        _ping_until_delivered(daemon)
        margin *= 2
    sleep(max(0.0, at / 1000 - time() - 0.1))
    before = cpu(daemon.pid)
    burst.pings.append(_ping_until_delivered(daemon))
    burst.post_cpu.append((cpu(daemon.pid) - before) / filled.answered)
    number, last = _delivered(daemon, at)
    if number != filled.answered:
        raise AssertionError(f"{filled.answered} were sent and {number} are delivered")
    burst.sends.append(sent.rate)
    burst.filled.append(filled.rate)
    burst.posts.append(number / (last - at) * 1000)


def _ping_until_delivered(daemon: RunningDaemon) -> list[float]:
    """How long each ping took, in milliseconds; it ends when nothing is left for any place."""
    pings: list[float] = []
    end = monotonic() + WAIT_SECONDS
    with daemon.connect() as line, daemon.database() as connection:
        while len(pings) % LOOK_EACH or connection.execute(_LEFT).fetchone()[0]:
            begin = perf_counter()
            line.sendall(_PING)
            line.recv(65_536)
            pings.append((perf_counter() - begin) * 1000)
            sleep(PING_GAP_SECONDS)
            if monotonic() > end:
                raise AssertionError(f"not delivered within {WAIT_SECONDS:.0f} s")
    return pings


def _delivered(daemon: RunningDaemon, at: int) -> tuple[int, int]:
    """How many of those due then are done, and when the last was posted."""
    with daemon.database() as connection:
        row = connection.execute(
            """
            SELECT count(*), max(p.posted_at) FROM message m JOIN envelope e ON e.message = m.id
            JOIN post p ON p.envelope = e.id WHERE m.deliver_at = ? AND e.status = 1
            """,
            (at,),
        ).fetchone()
    return int(row[0]), int(row[1])


def _figures(key: str, work: str, burst: Burst, *, marked: bool) -> list[Figure]:
    to_sends = Ratio(
        key="to_sends",
        value=middle_ratio(burst.posts, burst.sends),
        of=f"of durable sends, {CONNECTIONS} connections ({median(burst.sends):,.0f}/s)",
        aim=RATE_AIM if marked else None,
    )
    to_filling = Ratio(
        key="to_filling",
        value=middle_ratio(burst.posts, burst.filled),
        of=f"of sending just these, for later ({median(burst.filled):,.0f}/s)",
    )
    to_send_cpu = Ratio(
        key="to_send_cpu",
        value=middle_ratio(burst.post_cpu, burst.send_cpu),
        of=f"× the CPU of a send ({median(burst.send_cpu):.0f} µs)",
        sense=AT_MOST,
        floor=CPU_FLOOR if marked else None,
        aim=CPU_AIM if marked else None,
    )
    pings = [ping for some in burst.pings for ping in some]
    return [
        Figure(key=key, work=work, taken=burst.posts, unit="/s", ratios=(to_sends, to_filling)),
        Figure(
            key=f"{key}_cpu",
            work="daemon CPU a delivery, its arrival included",
            taken=burst.post_cpu,
            unit="µs",
            ratios=(to_send_cpu,),
        ),
        Figure(
            key=f"{key}_ping",
            work="daemon.ping meanwhile, 90 of 100 are shorter",
            taken=[quantile(some, 0.9) for some in burst.pings],
            unit="ms",
            p50=quantile(pings, 0.5),
            p99=quantile(pings, 0.99),
        ),
    ]
