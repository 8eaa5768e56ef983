"""Contacts: the chats that a binding has met, and what the boss decided about each.

asking: nobody has decided, and what comes from there is held. allowed: it may write and be written to.
blocked: nothing comes in and nothing goes out. boss: a private chat of the boss. What takes a Tx runs
inside the writer.
"""

from __future__ import annotations

from ..core.address import Address
from ..core.errors import InvalidParams, NotFound
from . import buttons, identities, pairing
from .accounts import KNOWN_AS
from .connection import Connection, Row
from .group_commit import Tx

WHERE = "hiboss contact list"  # who is known
_SELECT = """
    SELECT c.*, a.kind || ':' || a.name AS full_address, b.adapter, b.account, b.name AS account_name,
           (SELECT count(*) FROM platform_update u INDEXED BY platform_update_held
            WHERE u.binding = c.binding AND u.chat IN (c.platform_id, c.was) AND u.outcome = 'held') AS held,
           (SELECT g.name FROM place p JOIN address g ON g.id = p.agent
            WHERE p.address = c.address AND p.binding = c.binding) AS agent
    FROM contact c JOIN binding b ON b.id = c.binding AND b.removed_at IS NULL
    LEFT JOIN address a ON a.id = c.address
"""


def listed(connection: Connection, state: str | None, limit: int, after: int = 0) -> list[Row]:
    """Return the contacts of all bindings, oldest first; of one state, if given."""
    return connection.execute(
        f"{_SELECT} WHERE c.id > ?1 AND (?2 IS NULL OR c.state = ?2) ORDER BY c.id LIMIT ?3",
        (after, state, limit),
    ).fetchall()


def get(connection: Connection | Tx, number: int) -> Row | None:
    row: Row | None = connection.execute(f"{_SELECT} WHERE c.id = ?", (number,)).fetchone()
    return row


def find(tx: Tx, given: str, binding: int | None, now: int) -> Row:
    """Return the contact with this address, or with this code while it is valid; raise if there is none."""
    given = given.strip()
    code = pairing.as_code(given)
    rows = tx.execute(
        f"{_SELECT} WHERE c.pairing = ?1 AND c.pairing_until > ?2 AND c.state = 'asking'", (code, now)
    ).fetchall()
    if not rows:
        kind, _, name = given.partition(":")
        address = Address(kind, name.partition("/")[0]) if kind == "channel" and name else None
        entry = tx.cache.live_address(address) if address is not None else None
        rows = tx.execute(
            f"{_SELECT} WHERE c.address = ?1 AND (?2 IS NULL OR c.binding = ?2) ORDER BY c.id",
            (entry.id if entry else None, binding),
        ).fetchall()
    if not rows:
        raise NotFound(what="contact", value=given[:100], where=WHERE)
    if len(rows) > 1:
        known = ", ".join(f"b{row['binding']}" for row in rows)
        raise InvalidParams(detail=f"several accounts know {given[:100]}: give binding (--binding): {known}")
    found: Row = rows[0]
    return found


def approve(tx: Tx, contact: Row, now: int) -> bool:
    """Let a chat write and be written to; what was held comes in. Return whether that changed something."""
    if contact["state"] in ("allowed", "boss"):
        return False
    _decide(tx, contact, "allowed", now)
    identities.release(tx, contact)
    return True


def block(tx: Tx, contact: Row, now: int) -> bool:
    """Let nothing come in or go out any more, and drop what was held; return whether that is a change."""
    if contact["state"] == "blocked":
        return False
    if contact["state"] == "boss":
        raise InvalidParams(detail="this chat is yours; to be reached nowhere: hiboss boss set --reach ''")
    _decide(tx, contact, "blocked", now)
    _drop_held(tx, contact)
    return True


def renamed(tx: Tx, contact: Row) -> None:
    """Do with what was held under the new id of a chat, or the old one, as was decided about the other."""
    if contact["state"] in ("allowed", "boss"):
        identities.release(tx, contact)
    elif contact["state"] == "blocked":
        _drop_held(tx, contact)


def _drop_held(tx: Tx, contact: Row) -> None:
    tx.execute(
        f"""
        {KNOWN_AS}
        UPDATE platform_update SET outcome = 'blocked', raw = NULL
        WHERE binding = ?1 AND outcome = 'held' AND chat IN (SELECT chat FROM known_as)
        """,
        (contact["binding"], contact["platform_id"]),
    )


def _decide(tx: Tx, contact: Row, state: str, now: int) -> None:
    tx.execute(
        """
        UPDATE contact SET state = ?, pairing = NULL, pairing_until = NULL, decided_at = ? WHERE id = ?
        """,
        (state, now, contact["id"]),
    )
    buttons.decide(tx, "contact.", str(contact["id"]), now)


def route(tx: Tx, address: int, binding: int, agent: int | None) -> bool | None:
    """Let what is written in a chat or a topic go to this agent; None: to the one that leads the binding.

    Return whether that is a change; None: there is no such place.
    """
    place = (address, binding)
    before = tx.execute("SELECT agent FROM place WHERE address = ? AND binding = ?", place).fetchone()
    if before is None:
        return None
    tx.execute("UPDATE place SET agent = ? WHERE address = ? AND binding = ?", (agent, *place))
    return bool(before["agent"] != agent)
