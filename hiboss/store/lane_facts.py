"""The facts about lanes: one waits, or may deliver again. The lane of an agent is part of its state."""

from __future__ import annotations

from ..core.envelope import Lane
from ..core.events import AgentChanged, LaneOpen, LaneWaits
from .group_commit import Tx


def tell_open(tx: Tx, address: int | None, binding: int | None, now: int) -> None:
    """Tell those who follow that a lane, or all of an account (address None), may deliver again."""
    tx.facts.append(LaneOpen(now, address, binding))
    if binding is None and address is not None:
        tx.facts.append(AgentChanged(now, address))


def tell_waiting(tx: Tx, lane: Lane, until: int | None, now: int) -> None:
    """Tell those who follow that a lane waits; `until` None: it is paused."""
    tx.facts.append(LaneWaits(now, lane.address or None, lane.binding, until))
    if lane.binding is None:
        tx.facts.append(AgentChanged(now, lane.address))
