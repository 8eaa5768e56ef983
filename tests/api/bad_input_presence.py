"""Bad input of the operations about who is here, and about being told of an agent (`bad_input.py`)."""

from __future__ import annotations

from collections.abc import Iterator

from tests.api.bad_input_row import BAD_ADDRESSES, BAD_IDS, LONG, NOBODYS_NAMES, NUL, Row, row, shown


def present() -> Iterator[Row]:
    for part in (_who, _typing, _watches):
        yield from part()


def _who() -> Iterator[Row]:
    name = "presence.get"
    for value in BAD_ADDRESSES:
        yield row(name, {"address": value}, "bad_address", "is not a valid address|agent:nex")
    for value in (*NOBODYS_NAMES, "user:nobody-here", "channel:telegram:1"):
        yield row(name, {"address": value}, "unknown_address", value)
    yield row(name, {"address": "adda"}, "unknown_address", "adda|ada?", "presence adda")
    yield row(name, {"address": "%lane"}, "invalid_params", "agents and people|channel", "presence %lane")


def _typing() -> Iterator[Row]:
    name = "presence.typing"
    for value in BAD_IDS:
        yield row(name, {"conversation": value}, "bad_id", f"{shown(value)} is not a valid |c81")
    for value in ("c999999", 2**63 - 1):
        yield row(name, {"conversation": value}, "not_found", "no conversation")
    foreign = {"conversation": "%conversation"}  # of two others, and of nobody whom one may see
    yield row(name, foreign, "not_found", "%conversation", by="ann")


def _watches() -> Iterator[Row]:
    for name, more, words in (
        ("agent.notify", {"when": "idle"}, ""),
        ("agent.notify.remove", {}, " --remove"),
    ):
        for value in ("", "gone", "agent:gone", "user:ann", NUL, "' OR 1=1 --", LONG):
            yield row(name, {"name": value, **more}, "unknown_agent", f"{shown(value)}|agent list")
        command = f"notify spar --when idle{words}"
        yield row(name, {"name": "spar", **more}, "unknown_agent", "spar |spare?", command)
        yield row(name, {"name": "spare", "when": "bored"}, "invalid_params", "when|finished")
    own = {"name": "nex", "when": "idle"}
    yield row("agent.notify", own, "invalid_params", "about itself", "notify nex --when idle")
    yield row("agent.notify", {"name": "spare"}, "invalid_params", "when", "notify spare")
