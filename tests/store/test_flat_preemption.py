"""Whether a run is to be set aside costs the same among 20,000 envelopes as among 1,000. Counted as in test_flat.py.

It is looked up each time that mail comes for an agent which has a turn.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from hiboss.core.address import BOSS
from hiboss.core.envelope import Draft, Priority
from hiboss.store import messages, preemption
from hiboss.store.connection import Connection
from hiboss.store.group_commit import Tx
from hiboss.store.preemption import Found
from tests.store.test_flat import ADA, ADA_ID, BOSS_ID, NEX, NEX_ID, NOW, POPULATIONS, Hot, not_flat, write
from tests.store.test_flat_runs import taken, with_runs


def with_a_turn(connection: Connection, size: int) -> None:
    """Let nex work on a turn, as if all other mail had come since it began."""
    with_runs(connection, size)
    connection.execute("UPDATE agent SET busy = 'interrupt' WHERE address = ?", (NEX_ID,))
    turn = taken(Tx(connection))
    connection.execute("UPDATE run SET after_message = 0 WHERE id = ?", (turn.run,))


def nothing(connection: Connection, size: int) -> None:
    assert preemption.find(connection, NEX_ID, NOW) is None


def found(tx: Tx) -> Found:
    one = preemption.find(tx, NEX_ID, NOW)
    assert one is not None
    return one


def critical(tx: Tx, size: int) -> None:
    draft = Draft(sender=ADA, caller=ADA_ID, to=(NEX,), text="now", priority=Priority.CRITICAL)
    sent = messages.insert(tx, draft, NOW)
    assert (found(tx).envelope, found(tx).critical) == (sent.envelopes[0], True)


def said(tx: Tx, size: int) -> None:
    draft = Draft(sender=BOSS, caller=BOSS_ID, to=(NEX,), text="now", conversation=1)
    sent = messages.insert(tx, draft, NOW)
    assert (found(tx).envelope, found(tx).critical) == (sent.envelopes[0], False)


def set_aside(tx: Tx, size: int) -> None:
    critical(tx, size)
    done = preemption.for_news(tx, NEX_ID, NOW)
    assert done is not None
    assert preemption.for_news(tx, NEX_ID, NOW) is None  # it is ending already


HOT: dict[str, Hot] = {
    "nothing that cannot wait": nothing,
    "critical mail": write(critical),
    "what a person says": write(said),
    "a run is set aside": write(set_aside),
}


@pytest.mark.parametrize("population", ["settled", "pending"])
def test_what_cannot_wait_is_found_at_the_same_cost_among_20_000(tmp_path: Path, population: str) -> None:
    assert not_flat(tmp_path, POPULATIONS[population], HOT, prepare=with_a_turn) == {}
