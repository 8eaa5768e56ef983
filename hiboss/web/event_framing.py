"""Server-sent events as text: names for pages, and an id that says where a client is."""

from __future__ import annotations

from typing import Any, NamedTuple

import orjson

NAMES = {
    "envelope.arrived": "new-message",
    "run.progress": "run-delta",
    "ask.created": "ask",
    "ask.settled": "ask",
    "control": "control",
    "presence": "presence",
    "presence.typing": "presence",
    "gap": "gap",
    "closed": "closed",
}
DIGITS = 15  # of a number in an id


class Place(NamedTuple):
    """Where a client is: the start of the daemon, the fact, the store, and the last mail that arrived."""

    boot: int
    number: int
    epoch: str
    arrived: int

    def __str__(self) -> str:
        return f"{self.boot}-{self.number}-{self.epoch}-{self.arrived}"


def place_of(given: str | None) -> Place | None:
    """Return the place in a Last-Event-ID; None: there is none, or it is not ours."""
    parts = (given or "").split("-")
    if len(parts) != 4:
        return None
    boot, number, epoch, arrived = parts
    for part in (boot, number, arrived):
        if not (part.isascii() and part.isdecimal() and len(part) <= DIGITS):
            return None
    return Place(int(boot), int(number), epoch[:64], int(arrived))


def event(name: str, data: dict[str, Any], place: Place | None = None) -> bytes:
    """Return one event. JSON has no line breaks, so it is one line of data."""
    written = b"event: %s\ndata: %s\n\n" % (name.encode(), orjson.dumps(data))
    return written if place is None else b"id: %s\n%s" % (str(place).encode(), written)
