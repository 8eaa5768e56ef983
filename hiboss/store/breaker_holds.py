"""What a pulled breaker holds: the mail of agents, and what agents post to channels, except to the boss.

What people and hiboss itself post passes, and so does everything for a chat of the boss. What takes a Tx
runs inside the writer.
"""

from __future__ import annotations

from typing import NamedTuple

from ..core.address import BACKGROUND, SYSTEM
from ..core.envelope import Lane
from . import due_envelopes
from .connection import Connection, Row
from .group_commit import Tx
from .lane_index import BINDING, PLACE
from .stray_forwards import IN_HIS_CHAT

# Of an address `s`: whether it is an agent, and not hiboss itself.
_IS_AGENT = f"(s.kind = 'agent' AND s.fold <> '{SYSTEM.fold}')"
# Of an envelope `e` with the message `m` of the sender `s`: whether it holds while the breaker is pulled.
_HOLDS = f"({_IS_AGENT} AND NOT {IN_HIS_CHAT})"
# Of a change of a post `e`, asked for by the address id in {}: whether it holds now.
CHANGE_HOLDS = f"""
    (EXISTS (SELECT 1 FROM breaker) AND NOT {IN_HIS_CHAT}
     AND EXISTS (SELECT 1 FROM address s WHERE s.id = {{}} AND {_IS_AGENT}))
"""


def is_pulled(connection: Connection | Tx) -> bool:
    """Tell whether the breaker is pulled (hiboss/store/breaker.py)."""
    return connection.execute("SELECT 1 FROM breaker").fetchone() is not None


# --- mail ----------------------------------------------------------------------------


def holds_mail(connection: Connection | Tx, recipient: int) -> bool:
    """Tell whether nothing may be handed to this recipient now: it is an agent, and the breaker is pulled."""
    if not is_pulled(connection):
        return False
    row = connection.execute(f"SELECT {_IS_AGENT} FROM address s WHERE s.id = ?", (recipient,)).fetchone()
    return row is not None and bool(row[0])


# --- posts ---------------------------------------------------------------------------


def are_in(connection: Connection | Tx, lane: Lane) -> bool:
    """Tell whether what agents post in a lane holds now: the breaker is pulled, it is no chat of the boss."""
    if not is_pulled(connection):
        return False
    row = connection.execute(
        """
        SELECT 1 FROM place p JOIN contact c ON c.id = p.contact AND c.state = 'boss'
        WHERE p.address = ? AND p.binding = ?
        """,
        (lane.address, lane.binding),
    ).fetchone()
    return row is None


def next_passing(tx: Tx, lane: Lane) -> int | None:
    """Return the first due envelope of a lane that does not hold; one that is partly posted goes first."""
    row = tx.execute(
        f"""
        SELECT e.id FROM envelope e INDEXED BY envelope_due JOIN message m ON m.id = e.message
        JOIN address s ON s.id = m.sender
        WHERE e.recipient = ?1 AND e.binding = ?2 AND e.status = 0 AND e.arrived IS NOT NULL
          AND e.waits IS NULL AND e.held_by IS NULL AND NOT {_IS_AGENT}
        ORDER BY e.id IN (SELECT l.partly_posted FROM lane l WHERE {PLACE} = ?1 AND {BINDING} = ?2) DESC,
                 e.priority, e.arrived LIMIT 1
        """,
        (lane.address, lane.binding),
    ).fetchone()
    return None if row is None else int(row["id"])


def holds_post(connection: Connection | Tx, envelope: int) -> bool:
    """Tell whether an envelope for a channel holds now."""
    if not is_pulled(connection):
        return False
    row = connection.execute(
        f"""
        SELECT {_HOLDS} FROM envelope e JOIN message m ON m.id = e.message JOIN address s ON s.id = m.sender
        WHERE e.id = ?
        """,
        (envelope,),
    ).fetchone()
    return row is not None and bool(row[0])


def holds_begun(connection: Connection | Tx, lane: Lane, other_than: int) -> bool:
    """Tell whether a lane has another envelope that is partly posted, and whose rest holds now."""
    if not is_pulled(connection):
        return False
    row = connection.execute(
        f"""
        SELECT id FROM envelope WHERE status = 0 AND id <> ?3
          AND id = (SELECT partly_posted FROM lane WHERE {PLACE} = ?1 AND {BINDING} = ?2)
        """,
        (lane.address, lane.binding or 0, other_than),
    ).fetchone()
    return row is not None and holds_post(connection, row["id"])


# --- what waits ----------------------------------------------------------------------


class Waits(NamedTuple):
    """What waits until the breaker is released."""

    mail: list[tuple[str, int | str]]  # agents, each with how many envelopes are due for it
    tasks: int | str  # for agent:background
    posts: int | str
    schedules: int  # whose time has come


def waiting(connection: Connection, now: int, exact_to: int) -> Waits:
    """Return what waits. A number over `exact_to` is a text, like 1000+."""
    rows: list[Row] = connection.execute(
        "SELECT id, name, fold FROM address WHERE kind = 'agent' AND retired_at IS NULL ORDER BY fold"
    ).fetchall()
    # Also what a run that is still ending holds.
    due = {row["fold"]: due_envelopes.count(connection, row["id"], exact_to, with_held=True) for row in rows}
    names = {row["fold"]: row["name"] for row in rows}
    tasks = due.pop(BACKGROUND.fold, 0)
    due.pop(SYSTEM.fold, None)
    schedules = connection.execute(
        "SELECT count(*) FROM schedule INDEXED BY schedule_next WHERE next_at IS NOT NULL AND next_at <= ?",
        (now,),
    ).fetchone()[0]
    mail = [(f"agent:{names[fold]}", number) for fold, number in due.items() if number]
    return Waits(mail, tasks, _posts(connection, exact_to), schedules)


def _posts(connection: Connection, exact_to: int) -> int | str:
    """Return how many posts of agents hold: one lookup for each place, and a limit."""
    found: int = connection.execute(
        f"""
        SELECT count(*) FROM (
            SELECT 1 FROM place l JOIN binding b ON b.id = l.binding AND b.removed_at IS NULL
            CROSS JOIN envelope e INDEXED BY envelope_due ON e.recipient = l.address AND e.binding = l.binding
            JOIN message m ON m.id = e.message JOIN address s ON s.id = m.sender
            WHERE e.status = 0 AND e.arrived IS NOT NULL AND e.waits IS NULL AND {_HOLDS} LIMIT ?)
        """,
        (exact_to + 1,),
    ).fetchone()[0]
    return f"{exact_to}+" if found > exact_to else found
