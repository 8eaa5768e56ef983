"""Facts as they are shown at the doors: ids like e81, times like 2026-01-28T12:08:45.120Z, addresses."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ..core import clock
from ..core.events import TOPICS, AgentChanged, Arrival, EnvelopesArrived, EnvelopesDeferred, Fact
from ..store.fact_parties import Concerned

Name = Callable[[int], str]  # an address by its id
State = Callable[[int], tuple[str | None, str]]  # of an agent: `state` and `presence` of agent.status
_LETTERS = {
    "envelope": "e",
    "forwards": "e",
    "message": "m",
    "conversation": "c",
    "run": "r",
    "binding": "b",
    "ask": "q",
}


def shown(fact: Fact, concerned: Concerned, name: Name, state: State) -> dict[str, Any]:
    """Return a fact as JSON."""
    if isinstance(fact, EnvelopesArrived):
        return arrived(fact, name, fact.envelopes)
    found: dict[str, Any] = {"topic": TOPICS[type(fact)]}
    for field, value in zip(fact._fields, fact, strict=True):
        found[field] = _value(field, value, name)
    if isinstance(fact, EnvelopesDeferred):
        found["envelopes"] = [{"id": f"e{one}"} for one in found.pop("numbers")]
    elif isinstance(fact, AgentChanged):
        found["state"], found["presence"] = state(fact.agent)
    found.pop("parties", None)
    if concerned.sender is not None:
        found.pop("sender", None)
        found["from"] = name(concerned.sender)
        found["message"] = f"m{concerned.message}"
    if concerned.recipient is not None:
        found["to"] = name(concerned.recipient)
    found["conversation"] = None if concerned.conversation is None else f"c{concerned.conversation}"
    return found


def arrived(fact: EnvelopesArrived, name: Name, envelopes: Iterable[Arrival]) -> dict[str, Any]:
    """Return as JSON that mail arrived, with these envelopes."""
    return {
        "topic": TOPICS[EnvelopesArrived],
        "at": clock.iso(fact.at),
        "message": f"m{fact.message}",
        "conversation": f"c{fact.conversation}",
        "seq": fact.seq,
        "from": name(fact.sender),
        "envelopes": [
            {"id": f"e{one.envelope}", "to": name(one.recipient), "arrived": one.arrived} for one in envelopes
        ],
    }


def _value(field: str, value: Any, name: Name) -> Any:
    if value is None:
        return None
    if letter := _LETTERS.get(field):
        return f"{letter}{value}"
    if field in ("at", "until"):
        return clock.iso(value)
    if field in ("agent", "address", "sender", "actor", "by", "user", "who", "routed_from"):
        return name(value)
    return value
