"""Bad input of the operations about controls (`bad_input.py`)."""

from __future__ import annotations

from collections.abc import Iterator

from tests.api.bad_input_row import BAD_ADDRESSES, BAD_IDS, NOBODYS_NAMES, NUL, Row, row, shown

RUNNING = {"event": "stream.pause", "run": "%running"}


def controls() -> Iterator[Row]:
    for part in (_targets, _parameters, _rights, _lists):
        yield from part()


def _targets() -> Iterator[Row]:
    name = "control.send"
    for kind, letter in (("run", "r"), ("conversation", "c"), ("envelope", "e")):
        for value in BAD_IDS:
            wrong = {"event": "stream.cancel", kind: value}
            yield row(name, wrong, "bad_id", f"{shown(value)} is not a valid |{letter}81")
        for value in (f"{letter}999999", 2**63 - 1):
            yield row(name, {"event": "stream.resume", kind: value}, "not_found", f"no {kind}")
    none = {"event": "stream.pause", "run": "r999999"}
    yield row(name, none, "not_found", "r999999|run list", "control pause --run r999999")
    for value in ("", "gone", "agent:gone", "user:ann", NUL):
        agent = {"event": "stream.pause", "agent": value}
        yield row(name, agent, "unknown_agent", f"{shown(value).removeprefix('agent:')}|agent list")
    mistyped = {"event": "stream.pause", "agent": "spar"}
    yield row(name, mistyped, "unknown_agent", "spar |spare?", "control pause --agent spar")


def _parameters() -> Iterator[Row]:
    name = "control.send"
    several = {**RUNNING, "agent": "spare"}
    words = "control pause --run %running --agent spare"
    yield row(name, several, "invalid_params", "exactly one of|agent, run", words)
    yield row(name, {"event": "stream.cancel"}, "invalid_params", "exactly one of", "control cancel")
    yield row(name, {"event": "stream.stop", "run": "%running"}, "invalid_params", "event|stream.pause")
    for event, more, says in (
        ("pause", {"requeue": True}, "requeue|cancel"),
        ("pause", {"to": "agent:ada"}, "to|route and handoff"),
        ("pause", {"level": "high"}, "level|priority"),
        ("priority", {}, "priority takes no run|envelope"),
    ):
        yield row(name, {**RUNNING, "event": f"stream.{event}", **more}, "invalid_params", says)
    pending = {"envelope": "%pending"}
    yield row(name, {"event": "stream.priority", **pending}, "invalid_params", "priority needs level")
    yield row(name, {"event": "stream.route", **pending}, "invalid_params", "route needs to")
    yield row(name, {"event": "stream.preempt", "run": "%running"}, "invalid_params", "needs envelope")
    route = {"event": "stream.route", **pending}
    for value in BAD_ADDRESSES:
        yield row(name, {**route, "to": value}, "bad_address", "is not a valid address|agent:nex")
    for value in NOBODYS_NAMES:
        yield row(name, {**route, "to": value}, "unknown_address", value)
    yield row(name, {**RUNNING, "reason": NUL}, "bad_text", "reason|NUL")
    long = "r" * 257
    words = f"control pause --run %running --reason {long}"
    yield row(name, {**RUNNING, "reason": long}, "too_large", "reason|257 bytes|256", words)
    taken = {**RUNNING, "meta": {"control": 1}}
    words = "control pause --run %running --meta control=1"
    yield row(name, taken, "invalid_params", "meta|control", words)
    yield row(name, {**RUNNING, "meta": {"a": "x" * 20_000}}, "too_large", "meta")


def _rights() -> Iterator[Row]:
    """Whose it is not cannot tell it from none; whose it is needs the right."""
    name = "control.send"
    for verb in ("pause", "resume", "cancel"):
        foreign = {"event": f"stream.{verb}", "run": "%running"}
        yield row(name, foreign, "not_found", "%running", by="nex")
        yield row(f"run.{verb}", {"id": "%running"}, "not_found", "%running", by="nex")
        yield row(
            name, {"event": f"stream.{verb}", "agent": "spare"}, "forbidden", "control.interrupt", by="nex"
        )
    foreign = {"event": "stream.route", "agent": "spare", "to": "agent:nex"}
    yield row(name, foreign, "boss_only", "control route|agent:nex", by="nex")
    yield row(name, {"event": "stream.cancel", "envelope": "%pending"}, "not_found", "%pending", by="ann")
    yield row(name, {"event": "stream.pause", "conversation": "%conversation"}, "not_found", by="ann")


def _lists() -> Iterator[Row]:
    name = "control.list"
    for value in BAD_IDS:
        yield row(name, {"conversation": value}, "bad_id", f"{shown(value)} is not a valid |c81")
    foreign = {"conversation": "%conversation"}
    yield row(name, foreign, "not_found", "%conversation", by="ann")
    yield row(name, {"agent": "gone"}, "unknown_agent", "gone|agent list", "control list --agent gone")
    for value in BAD_ADDRESSES:
        yield row(name, {"actor": value}, "bad_address", "is not a valid address|agent:nex")
    for value in NOBODYS_NAMES:
        yield row(name, {"actor": value}, "unknown_address", value)
    for number in (0, 101):
        yield row(name, {"page_size": number}, "invalid_params", "page_size", f"control list -n {number}")
    for number in (0, -1, 2**64):
        yield row(name, {"after": number}, "invalid_params", "after")
