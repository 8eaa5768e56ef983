"""Bad input of the operations that follow a message and brief somebody (`bad_input.py`)."""

from __future__ import annotations

from collections.abc import Iterator

from tests.api.bad_input_row import BAD_ADDRESSES, BAD_IDS, NOBODYS_NAMES, Row, row, shown


def followed() -> Iterator[Row]:
    yield from _traces()
    yield from _briefings()


def _traces() -> Iterator[Row]:
    name = "envelope.trace"
    for value in BAD_IDS:
        yield row(name, {"id": value}, "bad_id", f"{shown(value)} is not a valid |e81")
    yield row(name, {"id": "x1"}, "bad_id", "x1|e81|m81", "trace x1")
    yield row(name, {"id": "%others"}, "not_found", "%others", "trace %others")
    for value in ("%others_message", "%deferred", "m999999", 2**63 - 1):
        yield row(name, {"id": value}, "not_found", "there is no")


def _briefings() -> Iterator[Row]:
    name = "agent.briefing"
    for value in BAD_ADDRESSES:
        yield row(name, {"name": value}, "bad_address", "is not a valid address|agent:nex", by="boss")
    for value in (*NOBODYS_NAMES, "channel:folder:nowhere"):
        yield row(name, {"name": value}, "unknown_address", value, by="boss")
    yield row(name, {"name": "spare"}, "boss_only", "agent:nex", "prime spare")
