"""Who calls: what it costs to know a caller by a token and to check the level, before any work is done.

Measured inside one process, with the parts the daemon itself uses: a call over the socket costs
so much more that it would not be seen.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter

from hiboss.api import dispatch  # noqa: F401 - it declares the operations
from hiboss.api.auth import Authenticator
from hiboss.api.policy import Policy
from hiboss.cli.daemon_process import call_once
from hiboss.core.errors import BadToken
from hiboss.core.paths import Home
from hiboss.core.settings import DEFAULTS
from hiboss.daemon.lock import Lock
from hiboss.store import tokens
from hiboss.store.store import Store

from .figures import AT_MOST, Figure, Ratio, middle_ratio
from .homes import AGENT, new_home
from .rounds import Size, rounds

CALLS = 20  # between two looks at the clock
OPERATION = "envelope.send"
LIMIT_KNOWN, LIMIT_REFUSED = 50.0, 1_000.0  # µs: microseconds, not milliseconds


def measure(directory: Path, size: Size) -> list[Figure]:
    daemon = new_home(directory)
    known, revoked = daemon.token(AGENT), daemon.token("boss")
    call_once(daemon.home, "boss.token.rotate", {})
    lock = Lock(daemon.home)
    try:
        return asyncio.run(_measure(daemon.home, known, revoked, size))
    finally:
        lock.release()


async def _measure(home: Home, known: str, revoked: str, size: Size) -> list[Figure]:
    store = await Store.open(home, DEFAULTS)
    try:
        return _figures(Authenticator(store, Policy(store)), (known, revoked, tokens.new("agent")), size)
    finally:
        await store.close()


def _figures(auth: Authenticator, given: tuple[str, str, str], size: Size) -> list[Figure]:
    known, revoked, unknown = given

    def authorize(token: str) -> None:
        auth.authorize(token, OPERATION)

    def refuse(token: str) -> None:
        try:
            authorize(token)
        except BadToken:
            return
        raise AssertionError("a token that is not in force was taken")

    levels = {hashlib.sha256(known.encode()).digest(): 1}

    def bare(token: str) -> None:
        levels[hashlib.sha256(token.encode()).digest()]

    authorize(known)  # the first time it is looked up
    taken: dict[str, list[float]] = {"known": [], "revoked": [], "unknown": [], "bare": []}
    for _ in rounds(size.rounds, "knowing callers"):
        for key, act, token in (
            ("bare", bare, known),
            ("known", authorize, known),
            ("revoked", refuse, revoked),
            ("unknown", refuse, unknown),
        ):
            taken[key].append(_microseconds(act, token, size.seconds / 4))
    ratio = Ratio(
        key="to_bare",
        value=middle_ratio(taken["known"], taken["bare"]),
        of=f"× a SHA-256 and a look into a dictionary ({median(taken['bare']):.2f} µs)",
        sense=AT_MOST,
        aim=5.0,
    )
    return [
        _figure("token_known", "token check, known caller", taken["known"], LIMIT_KNOWN, (ratio,)),
        _figure("token_revoked", "token check, revoked token", taken["revoked"], LIMIT_REFUSED),
        _figure("token_unknown", "token check, unknown token", taken["unknown"], LIMIT_REFUSED),
    ]


def _figure(key: str, work: str, taken: list[float], limit: float, ratios: tuple[Ratio, ...] = ()) -> Figure:
    return Figure(
        key=key, work=work, taken=taken, unit="µs", goal="microseconds", at_most=limit, ratios=ratios
    )


def _microseconds(act: Callable[[str], None], token: str, seconds: float) -> float:
    """What one costs: the middle of many short turns, since others disturb only a few of them."""
    end = perf_counter() + seconds
    took: list[float] = []
    while not took or perf_counter() < end:
        begin = perf_counter()
        for _ in range(CALLS):
            act(token)
        took.append((perf_counter() - begin) / CALLS * 1e6)
    return median(took)
