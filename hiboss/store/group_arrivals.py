"""Deferred messages of groups: who gets one when its time comes, and what if nobody does.

It waits in the envelope of the group itself; those of the members are made when it arrives. If it cannot
arrive, that envelope fails and the sender is told, or the boss if there is no such sender any more.
What takes a Tx runs inside the writer.
"""

from __future__ import annotations

from ..core.address import BOSS, Address
from ..core.contracts.failures import Failure
from ..core.envelope import Kind
from ..core.errors import EmptyGroup
from ..core.escaping import quote, visible
from ..core.events import EnvelopeSettled
from . import conversation_routes, envelopes, giving_up, group_delivery, notices
from .connection import Row
from .conversation_routes import Addressed
from .group_commit import Tx
from .stand_ins import group_of
from .writer_cache import LiveAddress

LEFT = Failure("not_member", "its sender is not in the group any more")
EMPTY = Failure(EmptyGroup.code, "nobody but its sender was in the group when its time came")


def waiting(tx: Tx, message: int) -> Row | None:
    """Return the envelope in which a message waits for a group; None: it is for no group."""
    row: Row | None = tx.execute(
        """
        SELECT e.id, e.priority, a.name FROM envelope e
        JOIN address a ON a.id = e.recipient AND a.kind = 'group'
        WHERE e.message = ? AND e.status = 0
        """,
        (message,),
    ).fetchone()
    return row


def members(tx: Tx, message: Row, waits: Row, now: int) -> list[Addressed] | None:
    """Return who gets a message that arrives now, and who reads it along; None: nobody, and it has failed.

    `waits`: the envelope of its group.
    """
    if group_delivery.has_left(tx, message["conversation"], message["sender"], message["reply_to"]):
        _give_up(tx, message, waits, LEFT, now)
        return None
    address = group_of(tx, message["conversation"])
    entry = None if address is None else tx.cache.live_address(address)
    assert entry is not None  # mail that waits for a group fails when that is deleted
    sender = LiveAddress(message["sender"], Address(message["sender_kind"], message["sender_name"]))
    text, kind = message["text"], Kind(message["type"])
    said = group_delivery.Said(sender, text, kind, bool(message["auto"]))
    group = group_delivery.Group(message["conversation"], entry)
    found = group_delivery.members(tx, group, said, message["reply_to"])
    if not (found.members or found.gone):
        _give_up(tx, message, waits, EMPTY, now)
        return None
    _fail_posts(tx, message, found.gone, now)
    routes = tx.cache.routes().of.get(message["conversation"])
    return conversation_routes.redirect(routes, sender.id, found.members) if routes else found.members


def _give_up(tx: Tx, message: Row, waits: Row, failure: Failure, now: int) -> None:
    giving_up.fail(tx, [waits["id"]], failure, now)  # it tells the sender
    if message["sender_gone"] is None:
        return
    who, to = f"{message['sender_kind']}:{visible(message['sender_name'])}", visible(waits["name"])
    text = f"Not delivered: e{waits['id']} of {who}, who was deleted, to group:{to}. Reason: {failure.text}"
    said = f"Its text: {quote(message['text'], 200)}"
    notices.notify(tx, BOSS, f"{text}\n{said}", now, about=message["id"], quotes=True)


def _fail_posts(tx: Tx, message: Row, channels: tuple[int, ...], now: int) -> None:
    """Store that a message was not posted to channels of its group, and tell the sender, who is not there."""
    rows = []
    for channel in channels:
        number = envelopes.insert_failed(tx, message["id"], channel, None, now)
        tx.facts.append(EnvelopeSettled(now, number, "failed"))
        query = """
            SELECT e.id, e.message, e.error_text, a.kind || ':' || a.name AS address
            FROM envelope e JOIN address a ON a.id = e.recipient WHERE e.id = ?
        """
        rows.append(tx.execute(query, (number,)).fetchone())
    if rows:
        notices.tell_sender(tx, message["sender"], rows, rows[0]["error_text"], now, again=False)
