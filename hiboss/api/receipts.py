"""Receipts: how far an envelope got with an open session."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from ..core import clock
from ..core.envelope import Status
from ..store import attached_turns
from ..store.connection import Row
from ..store.store import Store


class Receipt(TypedDict):
    state: Annotated[
        str,
        Field(
            description="submitted: the session was told of it; held: its harness holds it back until "
            "a person allows it; seen: the session has it; done, failed, cancelled: it is settled; "
            "returned: the session ended before it was done"
        ),
    ]
    run: Annotated[str, Field(description="the turn of the session, like r9")]
    submitted_at: Annotated[str, Field(description="when the session was told")]
    held_at: Annotated[str | None, Field(description="when its harness began to hold it back")]
    seen_at: Annotated[str | None, Field(description="when the session had it")]
    done_at: Annotated[str | None, Field(description="when it was settled")]


def of_envelope(store: Store, number: int) -> Receipt | None:
    """Return how far an envelope got; None if no open session had it."""
    row = store.read(lambda c: attached_turns.receipt(c, number))
    if row is None:
        return None
    return {
        "state": _state(row),
        "run": f"r{row['id']}",
        "submitted_at": clock.iso(row["submitted_at"]),
        "held_at": clock.iso_or_none(row["held_at"]),
        "seen_at": clock.iso_or_none(row["seen_at"]),
        "done_at": clock.iso_or_none(row["done_at"]),
    }


def _state(row: Row) -> str:
    if row["status"] != Status.PENDING:
        return Status(row["status"]).word
    if row["run_status"] != "running":
        return "returned"
    if row["seen_at"] is not None:
        return "seen"
    return "submitted" if row["held_at"] is None else "held"
