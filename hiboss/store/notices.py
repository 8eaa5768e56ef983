"""Notices: messages from agent:system to people and agents. They start no turn and cause no other notice.

What others wrote, like an error of a program, is quoted: it cannot look like a line of the notice.
"""

from __future__ import annotations

from ..core.address import BACKGROUND, BOSS, SYSTEM, Address
from ..core.clock import local, zone
from ..core.envelope import Draft, Lane, Priority
from ..core.escaping import quote, visible
from . import messages
from .boss import boss_timezone
from .connection import Row
from .group_commit import Tx


def tell_sender(tx: Tx, sender: int, rows: list[Row], why: str, now: int, *, again: bool) -> None:
    """Send one notice about all envelopes of a sender that failed; never about a notice."""
    row = tx.execute("SELECT kind, name, retired_at FROM address WHERE id = ?", (sender,)).fetchone()
    address = Address(row["kind"], row["name"])
    if row["retired_at"] is not None or address.kind not in ("agent", "user"):
        return
    if address in (SYSTEM, BACKGROUND):  # they read no notices
        return
    what = ", ".join(f"e{one['id']} to {visible(one['address'])}" for one in rows[:20])
    more = f" and {len(rows) - 20} more" if len(rows) > 20 else ""
    text = f"Not delivered: {what}{more}. Reason: {quote(why)}"
    if again:
        ids = " ".join(f"e{one['id']}" for one in rows[:20])
        text += f"\nTo retry: hiboss envelope retry {ids}"
    notify(tx, address, text, now, about=rows[0]["message"])


def tell_boss_of_lane(tx: Tx, lane: Lane, why: str, now: int) -> None:
    """Tell the boss that deliveries to an address, or by a whole account, fail and are retried."""
    since = local(now, zone(boss_timezone(tx)))
    if lane.address:
        row = tx.execute("SELECT kind, name FROM address WHERE id = ?", (lane.address,)).fetchone()
        what = f"Delivery to {row['kind']}:{visible(row['name'])} has failed"
        see = f"hiboss agent status {row['name']}" if row["kind"] == "agent" else "hiboss lane list"
    else:
        row = tx.execute("SELECT adapter, account FROM binding WHERE id = ?", (lane.binding,)).fetchone()
        what = f"The account {row['adapter']}:{visible(row['account'])} has failed"
        see = "hiboss agent bindings"
    text = f"{what} since {since}: {quote(why)}\nIts envelopes wait in order and are retried. See: {see}"
    notify(tx, BOSS, text, now)


def tell_boss_of_crashes(tx: Tx, numbers: list[int], why: str, now: int) -> None:
    """Tell the boss which envelopes were given up because the daemon crashed again and again with them."""
    ids = [f"e{number}" for number in numbers[:20]]
    more = f" and {len(numbers) - 20} more" if len(numbers) > 20 else ""
    text = (
        f"Not delivered: {', '.join(ids)}{more}. For each of them, {why}. One of them may be the cause.\n"
        f"To look at one: hiboss envelope get {ids[0]}\nTo retry: hiboss envelope retry {' '.join(ids)}"
    )
    notify(tx, BOSS, text, now)


def notify(tx: Tx, to: Address, text: str, now: int, about: int | None = None) -> None:
    """Send a notice from agent:system; nothing happens if the recipient does not exist."""
    if tx.cache.live_address(to) is None:
        return
    entry = tx.cache.live_address(SYSTEM) or tx.cache.add_address(SYSTEM)
    draft = Draft(
        sender=SYSTEM,
        caller=entry.id,
        sees_all=True,
        to=(to,),
        text=text,
        priority=Priority.NOTICE,
        auto=True,
        reply_to=None if about is None else ("message", about),
    )
    messages.insert(tx, draft, now)
