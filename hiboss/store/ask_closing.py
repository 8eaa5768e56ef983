"""Close asks: the one compare-and-set that settles an ask. What follows from that is in asks.py.

Apart from it, so that what ends asks by itself (a run, a pause) needs nothing of what an answer leads to.
What takes a Tx runs inside the writer.
"""

from __future__ import annotations

from typing import NamedTuple

from ..core.address import Address
from ..core.events import AgentChanged, AskSettled
from . import buttons
from .group_commit import Tx


class Settlement(NamedTuple):
    """How an ask ends."""

    state: str  # answered, expired, cancelled
    answer: str | None  # one of the options
    by: int | None  # the address id of who settles it; None: its time is over
    comment: str | None = None
    scope: str | None = None  # of the answer to a permission: once, session, rule
    place: Address | None = None  # the chat where a person said it; None: not in a chat


def close(tx: Tx, ask: int, settlement: Settlement, now: int) -> bool:
    """Settle an ask and let its buttons do nothing any more; return False if it was settled before."""
    row = tx.execute(
        """
        UPDATE ask SET state = ?, answer = ?, answered_by = ?, comment = ?, scope = ?, answered_at = ?,
               wake_at = NULL
        WHERE id = ? AND state = 'open' RETURNING run, asker
        """,
        (*settlement[:5], now, ask),
    ).fetchone()
    if row is None:
        return False
    buttons.decide_ask(tx, ask, now)
    tx.facts.append(AskSettled(now, ask, settlement.state))
    if row["run"] is not None:
        tx.facts.append(AgentChanged(now, row["asker"]))
    tx.arrived_for.append(row["asker"])  # wakes the calls that wait for this ask
    return True


def cancel_limits(tx: Tx, agent: int, why: str, now: int) -> None:
    """Cancel what an agent asked because it had reached a limit: it is decided otherwise."""
    rows = tx.execute(
        "SELECT id FROM ask INDEXED BY ask_asker WHERE asker = ? AND state = 'open' AND kind = 'limit'"
        " AND subject IS NULL",
        (agent,),
    ).fetchall()
    for row in rows:
        close(tx, row["id"], Settlement("cancelled", None, None, why), now)
