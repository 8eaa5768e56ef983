"""Faults on purpose: what goes wrong with the next calls of a method, or of all."""

from __future__ import annotations

import json
import random
import threading
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from .refusals import Refusal, other_poller, too_many_requests, unauthorized

ALL = "*"
FILE = "file"  # stands for downloads, beside the names of methods
KINDS = ("answer", "hang", "drop", "lose_answer", "garbage", "slow")
# What random faults can be: done or not, the caller hears of an error.
RANDOM_KINDS: dict[str, dict[str, Any]] = {
    "drop": {"do": "drop"},
    "drop_done": {"do": "drop", "carry_out": True},
    "error": {"status": 500},
    "error_done": {"status": 500, "carry_out": True},
    "bad_gateway": {"status": 502},
    "bad_gateway_done": {"status": 502, "carry_out": True},
    "garbage": {"do": "garbage"},
    "garbage_done": {"do": "garbage", "carry_out": True},
    "flood": {"retry_after": 1},
    "hang": {"do": "hang"},  # until the faults are cleared: the caller needs a timeout
    "hang_done": {"do": "hang", "carry_out": True},
}
USUAL_KINDS = tuple(kind for kind in RANDOM_KINDS if not kind.startswith("hang"))
BAD_GATEWAY = (
    b"<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n"
    b"<body>\r\n<center><h1>502 Bad Gateway</h1></center>\r\n"
    b"<hr><center>nginx/1.18.0</center>\r\n</body>\r\n</html>\r\n"
)


@dataclass(kw_only=True, eq=False)
class Fault:
    """One thing that goes wrong. `hits` counts how often it did; `clear` ends it, `release` ends hanging."""

    method: str
    kind: str
    left: int | None  # None: until it is cleared
    status: int = 200
    body: bytes = b""
    carry_out: bool = False
    bytes_per_second: float | None = None
    retry_after: int | None = None
    bot: int | None = None  # only calls of this bot; None: of all
    chat: int | None = None  # only calls about this chat
    hits: int = 0
    _released: threading.Event = field(default_factory=threading.Event)

    def release(self) -> None:
        """Let the calls that hang go on, and no other hang."""
        self.left = 0
        self._released.set()

    clear = release

    def hang(self) -> None:
        self._released.wait()

    def fits(self, method: str, bot: int | None, chat: int | None) -> bool:
        wanted = self.method.lower()
        named = wanted == method.lower() or (wanted == ALL and method != FILE)
        return self.left != 0 and named and self.bot in (None, bot) and self.chat in (None, chat)


class RandomFaults:
    """Faults that come at random, the same ones for a seed and an order of calls. `hits` counts them."""

    def __init__(self, rate: float, seed: int, methods: Iterable[str], kinds: Iterable[str]) -> None:
        self._rate = rate
        self._random = random.Random(seed)
        self._methods = {method.lower() for method in methods}
        self._kinds = sorted(kinds)
        self.hits: Counter[str] = Counter()
        if unknown := set(self._kinds) - set(RANDOM_KINDS):
            raise AssertionError(f"random faults are {', '.join(RANDOM_KINDS)}, not {', '.join(unknown)}")

    def draw(self, method: str) -> Fault | None:
        """Return what goes wrong with this call, mostly nothing."""
        if method.lower() not in self._methods or self._random.random() >= self._rate:
            return None
        kind = self._random.choice(self._kinds)
        self.hits[kind] += 1
        fault = make_fault(method, **RANDOM_KINDS[kind])
        fault.left, fault.hits = 0, 1
        return fault


class FaultBook:
    """The faults of a server. The one that was scripted first comes first."""

    def __init__(self, changed: threading.Condition) -> None:
        self._changed = changed
        self._faults: list[Fault] = []
        self.random: list[RandomFaults] = []

    def add(self, fault: Fault) -> Fault:
        with self._changed:
            self._faults.append(fault)
        return fault

    def take(self, method: str, bot: int | None = None, chat: int | None = None) -> Fault | None:
        """Return what goes wrong with this call, and count it."""
        with self._changed:
            for fault in self._faults:
                if fault.fits(method, bot, chat):
                    fault.hits += 1
                    fault.left = None if fault.left is None else fault.left - 1
                    self._changed.notify_all()
                    return fault
            for source in self.random:
                if drawn := source.draw(method):
                    self._faults.append(drawn)  # so that clear finds it, if it hangs
                    return drawn
            return None

    def clear(self) -> None:
        """End all faults; what hangs goes on."""
        with self._changed:
            for fault in self._faults:
                fault.release()
            self._faults.clear()
            self.random.clear()


def make_fault(
    method: str,
    *,
    do: str = "answer",
    status: int = 500,
    retry_after: int | None = None,
    description: str | None = None,
    body: bytes | str | dict[str, Any] | None = None,
    times: int | None = 1,
    carry_out: bool = False,
    bytes_per_second: float | None = None,
    bot: int | None = None,
    chat: int | None = None,
) -> Fault:
    """Return a fault; see BotApi.fault."""
    if bytes_per_second is not None:
        do = "slow"
    if do not in KINDS:
        raise AssertionError(f"a fault does one of {', '.join(KINDS)}, not {do!r}")
    if retry_after is not None:
        status = 429
    return Fault(
        method=method,
        kind=do,
        left=times,
        status=200 if do == "garbage" else status,
        body=b'{"ok": true, "resu' if do == "garbage" else _body(status, retry_after, description, body),
        carry_out=carry_out or do == "lose_answer",
        bytes_per_second=bytes_per_second,
        retry_after=retry_after,
        bot=bot,
        chat=chat,
    )


def _body(
    status: int, retry_after: int | None, description: str | None, body: bytes | str | dict[str, Any] | None
) -> bytes:
    if isinstance(body, bytes):
        return body
    if isinstance(body, str):
        return body.encode()
    if body is None and description is None and status == 502:
        return BAD_GATEWAY
    return json.dumps(body or _refusal(status, retry_after, description).as_json()).encode()


def _refusal(status: int, retry_after: int | None, description: str | None) -> Refusal:
    if retry_after is not None:
        return too_many_requests(retry_after)
    if description is not None:
        return Refusal(status, description)
    if status == 401:
        return unauthorized()
    if status == 409:
        return other_poller()
    words = {403: "Forbidden", 404: "Not Found", 500: "Internal Server Error", 400: "Bad Request"}
    return Refusal(status, words.get(status, f"Error {status}"))
