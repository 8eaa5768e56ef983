"""The digest: one notice about all that came in the boss's quiet hours, posted when they are over."""

from __future__ import annotations

from ..core.address import BOSS, SYSTEM
from ..core.clock import from_ms, zone
from ..core.envelope import Lane, Priority
from ..core.escaping import quote
from . import forwarding, notices
from .boss import boss_timezone
from .connection import Row
from .group_commit import Tx
from .quiet_hours import quiet_until

LINES = 20  # of one digest
CHARACTERS = 120  # of each notice in it: all fits into one post of every platform
# What nobody has read, moved or deleted in the box meanwhile.
_UNREAD = """
    FROM quiet_notice q JOIN envelope e ON e.id = q.envelope JOIN message m ON m.id = e.message
    WHERE e.read_at IS NULL AND e.context = 0 AND e.acked_at IS NULL AND e.box = 0 AND m.deleted_at IS NULL
"""
# What can be decided where it is posted: it has buttons that nobody has pressed.
_DECIDABLE = """
    EXISTS (SELECT 1 FROM button b WHERE b.message = m.id)
    AND NOT EXISTS (SELECT 1 FROM button b WHERE b.message = m.id AND b.pressed_at IS NOT NULL)
"""


def send(tx: Tx, now: int) -> None:
    """Send the digest, unless it is quiet again. What is to be decided follows it as it is, with buttons.

    All in one transaction with the end of the wait: however often it is tried, there is one digest.
    """
    if quiet_until(tx, tx.settings, now) is not None:
        return
    to_decide = tx.execute(
        f"SELECT e.id {_UNREAD} AND {_DECIDABLE} ORDER BY e.id LIMIT ?", (LINES,)
    ).fetchall()
    others = f"{_UNREAD} AND e.id NOT IN ({','.join('?' * len(to_decide))})"
    numbers = [one["id"] for one in to_decide]
    count = tx.execute(f"SELECT count(*) {others}", numbers).fetchone()[0]
    rows = tx.execute(
        f"SELECT e.id, m.text, m.created_at {others} ORDER BY e.id LIMIT ?", (*numbers, LINES)
    ).fetchall()
    place = _place(tx, rows)
    if place is not None:
        accepted = notices.notify(tx, BOSS, _text(tx, rows, count), now, forward=False)
        if accepted is not None:
            box, message = accepted.envelopes[0], accepted.message
            forwarding.to_place(tx, box, message, Priority.NOTICE, place, now)
    for one in to_decide:
        forwarding.arrived(tx, one["id"], now)
    tx.execute("DELETE FROM quiet_notice")


def _place(tx: Tx, rows: list[Row]) -> Lane | None:
    """Return where a digest of these notices is posted; None: nowhere. They are in his box all the same.

    Where other notices are posted now; else where one of these would have been.
    """
    if not rows:
        return None
    system = tx.cache.live_address(SYSTEM)
    assert system is not None  # it has sent them
    reached = forwarding.reached(tx, Priority.NOTICE, system.id)
    if reached is not None:
        return reached
    places = (forwarding.place_of(tx, one["id"]) for one in rows)
    return next((one for one in places if one is not None), None)


def _text(tx: Tx, rows: list[Row], count: int) -> str:
    place = zone(boss_timezone(tx))
    heading = "1 notice came" if count == 1 else f"{count} notices came"
    lines = [f"{heading} in your quiet hours:"]
    for number, one in enumerate(rows, 1):
        at = f"{from_ms(one['created_at'], place):%H:%M}"
        lines.append(f"{number}. {at} e{one['id']}: {quote(one['text'], CHARACTERS)}")
    if count > len(rows):
        lines.append(f"and {count - len(rows)} more, in your box: hiboss inbox --unread")
    lines.append(f"To read one in full: hiboss read e{rows[0]['id']}")
    return "\n".join(lines)
