"""Pairing: codes by which the boss is known in a chat, and by which he approves others.

A stranger gets a code and tells it to the boss, who approves it. The boss himself asks hiboss for a code
and sends it to the account. What takes a Tx runs inside the writer.
"""

from __future__ import annotations

import hashlib
import json
import secrets

from ..core.address import BOSS, SYSTEM, Address
from ..core.contracts.inbound import Inbound
from ..core.envelope import Draft, Lane, Priority
from ..core.escaping import name, quote, visible
from . import buttons, identities, messages, notices
from .connection import Connection, Row
from .group_commit import Tx

LETTERS = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"  # none that looks like another one
LENGTH = 8
LIFETIME = 3_600_000  # milliseconds
MOST_ASKING = 3  # strangers with a code that is still valid, for each binding
_BOSS_CODE = "boss_pairing"


def new_code() -> str:
    return "".join(secrets.choice(LETTERS) for _ in range(LENGTH))


def as_code(text: str) -> str | None:
    """Return the code that a text is, however it was typed; None if it is none."""
    plain = text.strip().upper().replace("-", "").replace(" ", "")
    return plain if len(plain) == LENGTH and set(plain) <= set(LETTERS) else None


# --- strangers -----------------------------------------------------------------------


def ask(tx: Tx, contact: Row, account: str, about: Inbound, now: int) -> None:
    """Give a stranger a code and tell the boss; nothing while a code is valid, or too many others are."""
    if contact["pairing_until"] is not None and contact["pairing_until"] > now:
        return
    asking = tx.execute(
        "SELECT count(*) FROM contact WHERE binding = ? AND state = 'asking' AND pairing_until > ?",
        (contact["binding"], now),
    ).fetchone()[0]
    if asking >= MOST_ASKING:
        return
    code = new_code()
    tx.execute(
        "UPDATE contact SET pairing = ?, pairing_until = ? WHERE id = ?",
        (code, now + LIFETIME, contact["id"]),
    )
    if contact["kind"] == "private":
        text = (
            f"This account answers only people whom its owner has approved. Your code is {code}. "
            "Give it to the owner within an hour. What you wrote is kept until then."
        )
        post(tx, Lane(contact["address"], contact["binding"]), text, now)
    _tell_boss(tx, contact, account, about, code, now)


def _tell_boss(tx: Tx, contact: Row, account: str, about: Inbound, code: str, now: int) -> None:
    who = _described(contact, about)
    said = f" They wrote: {quote(about.text, 200)}" if about.text.strip() else ""
    text = (
        f"{who} wants to write to {visible(account)}.{said}\n"
        f"To let them: hiboss contact approve {code}\nTo refuse: hiboss contact block {code}"
    )
    accepted = notices.notify(tx, BOSS, text, now)
    if accepted is not None:
        choices = [("Approve", "contact.approve"), ("Block", "contact.block")]
        buttons.add(tx, accepted.message, [(label, what, str(contact["id"])) for label, what in choices])


def _described(contact: Row, about: Inbound) -> str:
    if contact["kind"] != "private":
        return f"The {contact['kind']} {quote(contact['name'] or contact['platform_id'], 60)}"
    known = [name(about.author.name, 60)] if about.author.name else []
    if about.author.username:
        known.append(f"@{visible(about.author.username)}")
    return " ".join([*known, f"(id {visible(contact['platform_id'])})"])


def post(tx: Tx, place: Lane, text: str, now: int, about: int | None = None) -> None:
    """Post something to a chat in the name of hiboss, also if nobody may write there.

    `about`: the message that it quotes, if that is there.
    """
    entry = tx.cache.live_address(SYSTEM) or tx.cache.add_address(SYSTEM)
    row = tx.execute("SELECT kind, name FROM address WHERE id = ?", (place.address,)).fetchone()
    draft = Draft(
        sender=SYSTEM,
        caller=entry.id,
        sees_all=True,
        to=(Address(row["kind"], row["name"]),),
        text=text,
        priority=Priority.NORMAL,
        auto=True,
        reply_to=None if about is None else ("message", about),
        binding=place.binding,
    )
    messages.insert(tx, draft, now)
    tx.posts_for.append(place)


# --- the boss ------------------------------------------------------------------------


def new_boss_code(tx: Tx, now: int) -> str:
    """Make a code by which the boss is known in the chat that sends it; the last one made counts."""
    code = new_code()
    tx.execute(
        "INSERT OR REPLACE INTO config (key, value) VALUES (?, ?)",
        (_BOSS_CODE, json.dumps({"hash": _hash(code), "until": now + LIFETIME})),
    )
    return code


def is_boss_code(tx: Tx | Connection, text: str, now: int) -> bool:
    """Tell whether a text is the code that was made for the boss, and still counts."""
    code = as_code(text)
    row = tx.execute("SELECT value FROM config WHERE key = ?", (_BOSS_CODE,)).fetchone()
    if code is None or row is None:
        return False
    stored = json.loads(row["value"])
    return bool(secrets.compare_digest(stored["hash"], _hash(code)) and now < stored["until"])


def forget_boss_code(tx: Tx) -> None:
    """Let the code that was made for the boss count no more."""
    tx.execute("DELETE FROM config WHERE key = ?", (_BOSS_CODE,))


def pair_boss(tx: Tx, contact: Row, adapter: str, account: str, now: int) -> None:
    """The boss has sent his code in this private chat: it is his, and the code is used up."""
    forget_boss_code(tx)
    identities.set_boss(tx, adapter, contact["platform_id"], now)
    identities.become_boss(tx, contact, now)  # also if it was his id before
    text = (
        f"This chat is yours now. What you write here goes to the agents of {visible(account)}. "
        "/help shows the commands."
    )
    notices.answer_command(tx, Lane(contact["address"], contact["binding"]), text, now)


def _hash(code: str) -> str:
    return hashlib.sha256(code.encode()).hexdigest()
