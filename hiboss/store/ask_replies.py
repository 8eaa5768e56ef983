"""What follows when an ask is settled: its asker is told in the thread, and who was asked if need be.

What takes a Tx runs inside the writer.
"""

from __future__ import annotations

from ..core.address import BOSS, SYSTEM, Address
from ..core.envelope import Draft, Lane, Priority
from . import ask_messages, counters, envelopes, forwarding, messages, notices
from .connection import Connection, Row
from .group_commit import Tx
from .quiet_hours import quiet_until

LEASE_MS = 60_000  # a task in the background that still runs has so long to fetch the answer itself


def address_of(tx: Tx | Connection, number: int) -> Address:
    row = tx.execute("SELECT kind, name FROM address WHERE id = ?", (number,)).fetchone()
    return Address(row["kind"], row["name"])


def tell(tx: Tx, ask: Row, place: Address | None, now: int) -> None:
    """Tell the asker how its question ended, in its thread, and who was asked, if somebody else ended it."""
    if ask["in_turn"]:  # its turn waits for it
        return
    if ask["asker_retired"] is None:
        message = _answer(tx, ask, place, now) if ask["state"] == "answered" else None
        if message is None and ask["answered_by"] != ask["asker"]:
            message = _say(tx, ask, now)
        tx.execute("UPDATE ask SET reply = ? WHERE id = ?", (message, ask["id"]))
        if message is not None:
            _keep_for_background(tx, ask, message, now)
    if ask["asked_retired"] is None and ask["answered_by"] != ask["asked"]:
        tell_asked(tx, ask, ask_messages.over(ask), now)


def _answer(tx: Tx, ask: Row, place: Address | None, now: int) -> int | None:
    """Send the answer to the asker; None: who gave it is not here any more. `place`: where it was said."""
    by = address_of(tx, ask["answered_by"])
    entry = tx.cache.live_address(by)
    if entry is None or entry.id != ask["answered_by"]:
        return None
    asked = tx.execute("SELECT trace, hops FROM message WHERE id = ?", (ask["message"],)).fetchone()
    continues = by.kind == "agent"  # a person begins a new trace, as with every message
    draft = Draft(
        sender=by,
        caller=entry.id,
        sees_all=True,
        to=(address_of(tx, ask["asker"]),),
        text=ask_messages.answer(ask),
        reply_to=("message", ask["message"]),
        from_boss=by == BOSS,
        auto=continues,  # of an agent: it wants no answer
        trace=asked["trace"] if continues else None,
        hops=asked["hops"] + 1 if continues else 0,
        place=place,
        metadata={"ask": f"q{ask['id']}"},
    )
    return messages.insert(tx, draft, now).message


def _say(tx: Tx, ask: Row, now: int) -> int:
    """Tell the asker in the name of hiboss how its ask ended: it starts a turn, which no loop escapes."""
    entry = tx.cache.live_address(SYSTEM) or tx.cache.add_address(SYSTEM)
    asked = tx.execute("SELECT trace, hops FROM message WHERE id = ?", (ask["message"],)).fetchone()
    draft = Draft(
        sender=SYSTEM,
        caller=entry.id,
        sees_all=True,
        to=(address_of(tx, ask["asker"]),),
        text=ask_messages.outcome_for_asker(ask),
        auto=True,
        reply_to=("message", ask["message"]),
        trace=asked["trace"] or f"m{ask['message']}",
        hops=asked["hops"] + 1,
        metadata={"ask": f"q{ask['id']}"},
    )
    return messages.insert(tx, draft, now).message


def _keep_for_background(tx: Tx, ask: Row, message: int, now: int) -> None:
    """Keep an answer from the agent's next turn while the task that asked for it can still fetch it.

    A turn needs no such thing: its agent begins no other one before it has ended.
    """
    running = tx.execute(
        "SELECT 1 FROM run WHERE id = ? AND kind = 'background' AND status = 'running'", (ask["run"],)
    ).fetchone()
    mail = reply_envelope(tx, message, ask["asker"])
    if running is not None and mail is not None:
        envelopes.lease(tx, mail, counters.next_claim(tx), now + LEASE_MS, now)


def reply_envelope(tx: Tx, message: int | None, asker: int) -> int | None:
    """Return the pending envelope that tells the asker how its ask ended."""
    row = tx.execute(
        "SELECT id FROM envelope WHERE message = ? AND recipient = ? AND status = 0", (message, asker)
    ).fetchone()
    return None if row is None else int(row["id"])


def tell_asked(tx: Tx, ask: Row, text: str, now: int) -> int | None:
    """Send a notice about an ask to who was asked, also to the chat where the question is.

    Return its message.
    """
    posted = tx.execute(
        """
        SELECT e.recipient, e.binding FROM envelope e
        JOIN binding b ON b.id = e.binding AND b.removed_at IS NULL
        JOIN place p ON p.address = e.recipient AND p.binding = e.binding AND p.gone_at IS NULL
        JOIN contact c ON c.id = p.contact AND c.state = 'boss'
        WHERE e.message = ? AND e.forwards IS NOT NULL AND e.status <> 3 ORDER BY e.id LIMIT 1
        """,
        (ask["message"],),
    ).fetchone()
    asked = address_of(tx, ask["asked"])
    there = posted is not None and quiet_until(tx, tx.settings, now) is None
    quotes = ask["question_deleted"] is None
    sent = notices.notify(tx, asked, text, now, about=ask["message"], quotes=quotes, forward=not there)
    if sent is None:
        return None
    if there:
        place = Lane(posted["recipient"], posted["binding"])
        forwarding.to_place(tx, sent.envelopes[0], sent.message, Priority.NOTICE, place, now)
    return sent.message
