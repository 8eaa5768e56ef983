"""Bad input of the operations of open sessions (`bad_input.py`)."""

from __future__ import annotations

from collections.abc import Iterator

from tests.api.bad_input_row import LONG, NUL, RIGHT, Row, row, shown

REPORTS = ("prompt", "step", "stop", "break", "end", "wait", "permit")


def attached() -> Iterator[Row]:
    for part in (_start, _reports, _detach):
        yield from part()


def _start() -> Iterator[Row]:
    name = "attached.start"
    right = RIGHT[name]
    for value in ("", "a b", "../up", ".hidden", "é", "x" * 101):
        yield row(name, {**right, "session": value}, "invalid_params", "session must be an id")
    for value in (1, 0, -1, 2**31):
        yield row(name, {**right, "pid": value}, "invalid_params", "pid")
    for value in ("work", "./work", "~/work"):
        yield row(name, {**right, "directory": value}, "invalid_params", "directory|absolute")
    yield row(name, {**right, "client": "gemini"}, "invalid_params", "client|claude")
    for value in ("gone", "user:ann", "' OR 1=1 --", NUL):
        yield row(name, {**right, "agent": value}, "unknown_agent", f"{shown(value)}|agent list")
    yield row(name, {**right, "agent": "ended"}, "cannot_attach", "ended|revoked")


def _reports() -> Iterator[Row]:
    for verb in REPORTS:
        for by in ("nex", "boss"):
            name = f"attached.{verb}"
            yield row(name, RIGHT.get(name, {}), "not_attached", "", by=by)


def _detach() -> Iterator[Row]:
    for value in ("", "gone", "agent:gone", "user:ann", NUL, "' OR 1=1 --", LONG):
        yield row("agent.detach", {"name": value}, "unknown_agent", f"{shown(value)}|agent list")
    yield row("agent.detach", {"name": "spar"}, "unknown_agent", "spar |spare?", "agent detach spar")
    allowed = {"agent.detach": "standard"}
    yield row("agent.detach", RIGHT["agent.detach"], "boss_only", "agent:nex", by="nex", policy=allowed)
