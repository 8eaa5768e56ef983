"""Store what comes in from a platform: the update and its message, in one transaction."""

from __future__ import annotations

from ..core.address import Address
from ..core.contracts.adapter import Inbound
from ..core.envelope import Accepted, Attachment, Draft
from ..core.errors import NotBound
from . import bindings, messages
from .group_commit import Tx


def known(tx: Tx, binding: int, update: str) -> bool:
    """Tell whether this update was stored before."""
    row = tx.execute(
        "SELECT 1 FROM platform_update WHERE binding = ? AND update_id = ?", (binding, update)
    ).fetchone()
    return row is not None


def receive(
    tx: Tx, binding: int, adapter: str, inbound: Inbound, files: tuple[Attachment, ...], now: int
) -> Accepted | None:
    """Store a message for the agents that its binding serves; return None if it was stored before."""
    if known(tx, binding, inbound.update):
        return None
    address = Address("channel", f"{adapter}:{inbound.place}")
    to = bindings.agents_of(tx, binding)
    if not to:
        raise NotBound(sender="nobody", adapter=adapter, address=str(address))
    draft = Draft(
        sender=address,
        caller=None,
        sees_all=True,
        to=tuple(to),
        text=inbound.text,
        subject=inbound.subject,
        attachments=files,
        from_name=inbound.author.get("name"),
        reply_to=_replied_to(tx, binding, address, inbound),
        channel=_facts(inbound),
    )
    accepted = messages.insert(tx, draft, now)
    tx.execute(
        """
        INSERT INTO platform_update (binding, update_id, chat, platform_id, message, outcome, received_at)
        VALUES (?, ?, ?, ?, ?, 'accepted', ?)
        """,
        (binding, inbound.update, inbound.place, inbound.message, accepted.message, now),
    )
    return accepted


def _replied_to(tx: Tx, binding: int, address: Address, inbound: Inbound) -> tuple[str, int] | None:
    """Return the stored message that this replies to: one we posted, or one that came in from this chat."""
    if inbound.reply_to is None:
        return None
    entry = tx.cache.live_address(address)
    row = tx.execute(
        """
        SELECT e.message FROM post p JOIN envelope e ON e.id = p.envelope
        WHERE p.platform_id = ?1 AND e.binding = ?2 AND e.recipient = ?4
        UNION ALL
        SELECT message FROM platform_update
        WHERE binding = ?2 AND chat = ?3 AND platform_id = ?1 AND message IS NOT NULL
        LIMIT 1
        """,
        (inbound.reply_to, binding, inbound.place, entry.id if entry else None),
    ).fetchone()
    return None if row is None else ("message", int(row["message"]))


def _facts(inbound: Inbound) -> dict[str, object]:
    chat = {"id": inbound.place, "kind": "private" if inbound.group is None else "group"}
    if inbound.group is not None:
        chat["title"] = inbound.group
    facts: dict[str, object] = {"chat": chat}
    if inbound.author:
        facts["author"] = dict(inbound.author)
    if inbound.message is not None:
        facts["message"] = inbound.message
    return facts
