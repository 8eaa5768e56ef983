"""Which updates come in: those of chats that the boss has approved. What others write is held.

Decided when an update is stored, before anything of it is fetched or shown to anybody. Of a chat that nobody
knows, only a few updates are held, and only what is for us. What takes a Tx runs inside the writer.
"""

from __future__ import annotations

from dataclasses import replace

from ..core.contracts.inbound import Inbound
from . import identities, pairing, places
from .connection import Row
from .group_commit import Tx

HELD_PER_CHAT = 20  # updates
HELD_PER_BINDING = 1_000
WORDS_LOOKED_AT = 20  # of something said in a group, for a code
UNKEPT = ("ignored", "blocked", "paired")  # outcomes of updates that nobody needs as they came


def binding_of(tx: Tx, binding: int) -> Row | None:
    """Return what admission needs to know of a binding; None if it has ended."""
    row: Row | None = tx.execute(
        """
        SELECT id, adapter, closed, ifnull(name, account) AS account FROM binding
        WHERE id = ? AND removed_at IS NULL
        """,
        (binding,),
    ).fetchone()
    return row


def refused(
    tx: Tx, binding: Row, chat: str, about: Inbound | None, act: Inbound | None, now: int
) -> str | None:
    """Return the outcome of an update that does not come in (yet); None: it does.

    `about`: who wrote it, where and what; `act`: what it does at once.
    """
    if not binding["closed"] or (act is not None and act.kind == "membership"):
        return None
    chat = places.present_chat(tx, binding["id"], chat)
    about = about or act
    contact = places.contact_of(tx, binding["id"], chat)
    if contact is None and about is not None and about.chat_kind != "private":
        contact = _before_renaming(tx, binding["id"], chat)
    state = "asking" if contact is None else contact["state"]
    if about is None:  # the adapter does not say who it is
        return {"asking": "ignored", "blocked": "blocked"}.get(state)
    about = replace(about, chat=chat)
    if _pairs(tx, binding, about, act, now):
        return "paired"
    if state != "asking":
        return "blocked" if state == "blocked" else None
    if about.chat_kind == "private" and identities.is_boss(tx, binding["adapter"], chat):
        identities.become_boss(tx, _met(tx, binding, about, now), now)
        return None
    return _of_stranger(tx, binding, contact, about, act, now)


def _pairs(tx: Tx, binding: Row, about: Inbound, act: Inbound | None, now: int) -> bool:
    """Let the boss be known by the code that was made for him, if this is it; return whether it was."""
    if about.kind not in ("message", "command") or about.forwarded is not None:
        return False
    said = act.arguments if act is not None and act.command == "start" else about.text
    if about.chat_kind != "private":  # whoever reads a code there could use it: also behind the bot's name
        if any(pairing.is_boss_code(tx, word, now) for word in said.split()[:WORDS_LOOKED_AT]):
            pairing.forget_boss_code(tx)
        return False
    if not pairing.is_boss_code(tx, said, now):
        return False
    contact = _met(tx, binding, about, now)
    pairing.pair_boss(tx, contact, binding["adapter"], binding["account"], now)
    return True


def _before_renaming(tx: Tx, binding: int, chat: str) -> Row | None:
    """Return what a new chat was: that it has this id now came just before it, and was not acted on yet."""
    row = tx.execute(
        """
        SELECT chat FROM platform_update INDEXED BY platform_update_acting
        WHERE binding = ? AND outcome IS NULL AND substr(raw, 1, 7) = '{"act":'
          AND json_extract(raw, '$.act.renamed_to') = ? LIMIT 1
        """,
        (binding, chat),
    ).fetchone()
    return None if row is None else places.contact_of(tx, binding, row["chat"])


def _of_stranger(
    tx: Tx, binding: Row, contact: Row | None, about: Inbound, act: Inbound | None, now: int
) -> str:
    """Ask the boss about a chat that nobody has decided about; hold what it says, as far as there is room."""
    if not _is_for_us(tx, binding["id"], about, act):
        return "ignored"
    contact = contact or _met(tx, binding, about, now)
    opened = act is not None and act.command == "start"  # a client sends it when a chat is opened: no words
    pairing.ask(tx, contact, binding["account"], replace(about, text="") if opened else about, now)
    return "held" if not opened and _has_room(tx, binding["id"], about.chat, now) else "ignored"


def _is_for_us(tx: Tx, binding: int, about: Inbound, act: Inbound | None) -> bool:
    """Tell whether something of a stranger is held: in a group only what names us."""
    if about.kind == "edit":
        row = tx.execute(
            """
            SELECT 1 FROM platform_update INDEXED BY platform_update_place
            WHERE binding = ? AND chat = ? AND platform_id = ? AND outcome = 'held'
            """,
            (binding, about.chat, about.message),
        ).fetchone()
        return row is not None
    if about.kind not in ("message", "command") or about.author.bot:
        return False
    return about.chat_kind == "private" or about.mentioned or about.replied or act is not None


def decided_meanwhile(tx: Tx, binding: int, inbound: Inbound) -> str | None:
    """Return the outcome of something that was stored before the boss decided against its chat; else None."""
    if inbound.kind in ("membership", "ignored"):
        return None
    account = binding_of(tx, binding)
    contact = (
        places.contact_of(tx, binding, inbound.chat) if account is not None and account["closed"] else None
    )
    states = {"blocked": "blocked", "asking": "held"}
    return None if contact is None else states.get(contact["state"])


def joined(tx: Tx, binding: int, inbound: Inbound, now: int) -> None:
    """The account was added to a group: ask the boss about it, if nobody has decided."""
    account, contact = binding_of(tx, binding), places.contact_of(tx, binding, inbound.chat)
    if account is None or contact is None or not account["closed"]:
        return
    if contact["state"] == "asking" and contact["kind"] != "private":
        pairing.ask(tx, contact, account["account"], inbound, now)
    if contact["state"] == "boss":  # he had blocked the account, and lets it write again
        identities.become_boss(tx, contact, now)


def _met(tx: Tx, binding: Row, about: Inbound, now: int) -> Row:
    places.meet(tx, binding["id"], binding["adapter"], about, now)
    contact = places.contact_of(tx, binding["id"], about.chat)
    assert contact is not None
    return contact


def _has_room(tx: Tx, binding: int, chat: str, now: int) -> bool:
    """Tell whether one more update of a chat can be held. Who has no valid code gives way to who has."""
    if _count(tx, "binding = ? AND chat = ?", (binding, chat), HELD_PER_CHAT) >= HELD_PER_CHAT:
        return False
    if _count(tx, "binding = ?", (binding,), HELD_PER_BINDING) < HELD_PER_BINDING:
        return True
    dropped = tx.execute(
        """
        UPDATE platform_update SET outcome = 'ignored', raw = NULL WHERE id = (
            SELECT u.id FROM platform_update u INDEXED BY platform_update_held
            LEFT JOIN contact c ON c.binding = u.binding AND u.chat IN (c.platform_id, c.was)
            WHERE u.binding = ?1 AND u.outcome = 'held' AND ifnull(c.pairing_until, 0) <= ?2 AND u.chat <> ?3
            ORDER BY u.id LIMIT 1)
        """,
        (binding, now, chat),
    )
    return dropped.rowcount == 1


def _count(tx: Tx, where: str, values: tuple[object, ...], most: int) -> int:
    """Return how many updates are held, counted to a limit only."""
    row = tx.execute(
        f"""
        SELECT count(*) FROM (SELECT 1 FROM platform_update INDEXED BY platform_update_held
        WHERE {where} AND outcome = 'held' LIMIT ?)
        """,
        (*values, most),
    ).fetchone()
    return int(row[0])
