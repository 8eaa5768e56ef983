"""Notices: messages from agent:system to people and agents. They start no turn and cause no other notice.

What others wrote, like an error of a program, is quoted: it cannot look like a line of the notice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ..core.address import BACKGROUND, BOSS, SYSTEM, Address, parse_address
from ..core.clock import local, zone
from ..core.envelope import Accepted, Draft, Lane, Priority
from ..core.escaping import quote, visible
from ..core.quoting import storable
from . import forwarding, messages, quiet_hours, session_scopes
from .boss import boss_timezone
from .connection import Row
from .envelope_rows import EnvelopeRow
from .group_commit import Tx
from .quiet_hours import quiet_until

CHATS_NAMED = 5  # in one notice
MISSING_NAMED, MISSING_CHARACTERS = 20, 300  # what of an envelope was not posted


def tell_sender(
    tx: Tx, sender: int, rows: list[Row], why: str, now: int, *, again: bool, forward: bool = True
) -> None:
    """Send one notice about all envelopes of a sender that failed; never about a notice.

    `again`: they can be retried. `forward`: one to the boss may be posted to a chat of his too.
    """
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
    notify(tx, address, text, now, about=rows[0]["message"], forward=forward)


def tell_sender_of_rest(tx: Tx, envelope: EnvelopeRow, missing: Sequence[str], now: int) -> None:
    """Tell a sender what of an envelope was not posted, like a file that is too big. The rest was."""
    address = parse_address(envelope["from_address"])
    if address.kind not in ("agent", "user") or address in (SYSTEM, BACKGROUND):
        return
    where = f"e{envelope['id']} to {visible(envelope['to_address'])}"
    why = "; ".join(quote(storable(one, MISSING_CHARACTERS)) for one in missing[:MISSING_NAMED])
    notify(tx, address, f"Not all of {where} was posted: {why}", now, about=envelope["message"])


def tell_boss_of_lane(tx: Tx, lane: Lane, why: str, now: int, *, forward: bool = True) -> None:
    """Tell the boss that deliveries to an address, or by a whole account, fail and are retried.

    `forward`: that may be posted to a chat of his too.
    """
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
    # Not by the account it is about: each notice could fail there and cause the next one.
    reach = tx.cache.reach().place
    notify(tx, BOSS, text, now, forward=forward and (reach is None or reach.binding != lane.binding))


def tell_boss_of_forwards(tx: Tx, rows: list[Row], why: str, now: int) -> None:
    """Tell the boss, only in his box, which of his mail could not be posted to a chat of his."""
    ids = [f"e{one['forwards']}" for one in rows[:20]]
    more = f" and {len(rows) - 20} more" if len(rows) > 20 else ""
    text = (
        f"Not posted to {visible(rows[0]['address'])}: {', '.join(ids)}{more}. Reason: {quote(why)}\n"
        f"It is in your box. To read it: hiboss envelope get {ids[0]}"
    )
    notify(tx, BOSS, text, now, about=rows[0]["message"], forward=False)


def tell_boss_of_reply(tx: Tx, accepted: Accepted, now: int) -> None:
    """Tell the boss, where he wrote it, that nobody got his reply: deleted, or no account may post there."""
    text = tx.execute("SELECT text FROM message WHERE id = ?", (accepted.message,)).fetchone()["text"]
    marks = ",".join("?" * len(accepted.failed))
    rows = tx.execute(
        f"""
        SELECT e.id, a.kind || ':' || a.name AS address, a.retired_at
        FROM envelope e JOIN address a ON a.id = e.recipient
        WHERE e.id IN ({marks}) ORDER BY e.id
        """,
        accepted.failed,
    ).fetchall()
    told = "".join(
        f"{one['address']} was deleted: your reply e{one['id']} was not delivered.\n"
        if one["retired_at"] is not None
        else f"No account may post to {visible(one['address'])} now: your reply e{one['id']} was not posted. "
        f"When that is mended: hiboss envelope retry e{one['id']}\n"
        for one in rows
    )
    # Urgent: he wrote it just now.
    text = f"{told}You wrote: {quote(text, 200)}"
    notify(tx, BOSS, text, now, about=accepted.message, quotes=True, urgent=True)


def tell_boss_of_dropped(tx: Tx, account: str, chats: list[str], now: int) -> None:
    """Tell the boss that a binding ended before all that had come in by it was read: one chat for each."""
    number, of_each = len(chats), Counter(chats)
    named = [f"{quote(chat, 60)} ({times})" for chat, times in of_each.most_common(CHATS_NAMED)]
    more = f" and {len(of_each) - CHATS_NAMED} more chats" if len(of_each) > CHATS_NAMED else ""
    what = "1 update that had come in was" if number == 1 else f"{number} updates that had come in were"
    text = f"The binding of {visible(account)} ended: {what} not read yet, and will not be delivered."
    notify(tx, BOSS, f"{text}\nFrom: {', '.join(named)}{more}", now)


def tell_boss_of_gap(tx: Tx, account: Row, since: int, until: int, now: int) -> None:
    """Tell the boss that a platform may have dropped what came between two times, as nobody fetched it."""
    times = [local(one, zone(boss_timezone(tx))) for one in (since, until)]
    text = (
        f"hiboss could not fetch messages of {account['adapter']}:{visible(account['account'])} from "
        f"{times[0]} to {times[1]}. The platform keeps them for a day: some of that time may be missing."
    )
    notify(tx, BOSS, text, now)


def end_reach(
    tx: Tx,
    binding: int,
    now: int,
    chat: int | None = None,
    why: str = "nothing can be posted there any more",
) -> None:
    """Forget the place of `boss.reach` and tell the boss, if this account or this chat of it is lost to him.

    `chat`: the id of its contact; None: the whole account.
    """
    lost = forwarding.end_reach(tx, binding, now, chat)
    if lost is not None:
        place, waited = lost
        left = f" Only in your box is what waited for it: {waited}." if waited else ""
        text = (
            f"Your mail is no longer posted to {visible(place)}: {why}.{left}\n"
            "To have it posted to another chat: hiboss boss set --reach ADDRESS"
        )
        notify(tx, BOSS, text, now)


def answer_command(tx: Tx, place: Lane | None, text: str, now: int) -> None:
    """Answer a command of the boss: in the chat of his where he gave it; None: where his notices go."""
    accepted = notify(tx, BOSS, text, now, forward=place is None, urgent=True)
    if accepted is not None and place is not None:
        forwarding.to_place(tx, accepted.envelopes[0], accepted.message, Priority.NOTICE, place, now)


def tell_boss_of_crashes(tx: Tx, numbers: list[int], why: str, now: int) -> None:
    """Tell the boss which envelopes were given up because the daemon crashed again and again with them."""
    ids = [f"e{number}" for number in numbers[:20]]
    more = f" and {len(numbers) - 20} more" if len(numbers) > 20 else ""
    text = (
        f"Not delivered: {', '.join(ids)}{more}. For each of them, {why}. One of them may be the cause.\n"
        f"To look at one: hiboss envelope get {ids[0]}\nTo retry: hiboss envelope retry {' '.join(ids)}"
    )
    notify(tx, BOSS, text, now, forward=False)  # posting it may be what crashed


def notify(
    tx: Tx,
    to: Address,
    text: str,
    now: int,
    about: int | None = None,
    *,
    quotes: bool = False,
    forward: bool = True,
    urgent: bool = False,
) -> Accepted | None:
    """Send a notice from agent:system; None: nothing happens, since the recipient does not exist.

    `about`: the message it is about; turns show it only where that message belongs. `quotes`: it has the text
    of that message, and is deleted with it. `forward`: one to the boss may be posted to a chat of his too.
    `urgent`: also in his quiet hours.
    """
    recipient = tx.cache.live_address(to)
    if recipient is None:
        return None
    to_boss = recipient.id == tx.cache.reach().boss
    waits = forward and to_boss and not urgent and quiet_until(tx, tx.settings, now) is not None
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
        repeats=quotes,
        about=None if about is None else session_scopes.belongs(tx, about),
        forward=forward and not waits,
    )
    accepted = messages.insert(tx, draft, now)
    if waits:
        quiet_hours.hold(tx, accepted.envelopes[0])
    return accepted
