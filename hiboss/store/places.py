"""Places: the chats of a binding and their topics, as they are met, left and renamed.

A chat has one row of `contact`, which says whether it may be written to. It and each of its topics
have a row of `place` with an address of its own: `channel:x:chat` and `channel:x:chat/topic`.
"""

from __future__ import annotations

from ..core.address import Address
from ..core.contracts.failures import Failure
from ..core.contracts.inbound import Inbound
from ..core.envelope import Lane
from ..core.events import ChatRenamed
from . import (
    chat_pacing,
    conversation_routes,
    envelopes,
    gone_topics,
    group_members,
    lanes,
    live_posts,
    notices,
    posts,
    provider_sessions,
    schedules,
    threads,
)
from .accounts import SAME_ACCOUNT
from .connection import Row
from .group_commit import Tx
from .lane_failures import SLICE
from .topics import add_place
from .writer_cache import LiveAddress


def meet(tx: Tx, binding: int, adapter: str, inbound: Inbound, now: int) -> LiveAddress:
    """Return the address of the place where something came in; store chat and place if they are new."""
    address = Address("channel", f"{adapter}:{inbound.place}")
    entry = tx.cache.live_address(address) or tx.cache.add_address(address)
    known = tx.execute(
        """
        SELECT c.id, c.kind, c.name, p.gone_at FROM place p JOIN contact c ON c.id = p.contact
        WHERE p.address = ? AND p.binding = ?
        """,
        (entry.id, binding),
    ).fetchone()
    name = inbound.title if inbound.chat_kind != "private" else inbound.author.name
    if known is None:
        chat = Address("channel", f"{adapter}:{inbound.chat}")
        whole = entry if inbound.topic is None else tx.cache.live_address(chat) or tx.cache.add_address(chat)
        contact = _contact(tx, binding, inbound, whole.id, now)
        for place in sorted({whole.id, entry.id}):
            add_place(tx, place, binding, contact, now)
    elif known["gone_at"] is not None:
        gone_topics.is_there(tx, Lane(entry.id, binding), now)
    if known is not None and (known["kind"] != inbound.chat_kind or name not in (None, known["name"])):
        tx.execute(
            # A folder has one chat for people and groups. The boss's stays a private one.
            "UPDATE contact SET name = ifnull(?, name), kind = ? WHERE id = ? AND state <> 'boss'",
            (name, inbound.chat_kind, known["id"]),
        )
    if inbound.chat_kind == "private" and inbound.author.username:
        tx.execute(
            "UPDATE contact SET person = ?1 WHERE binding = ?2 AND platform_id = ?3 AND person IS NOT ?1",
            (inbound.author.username, binding, inbound.chat),
        )
    return entry


def _contact(tx: Tx, binding: int, inbound: Inbound, address: int, now: int) -> int:
    """Return the contact of a chat; a new one must be approved before anything is posted there."""
    name = inbound.title if inbound.chat_kind != "private" else inbound.author.name
    row = tx.execute(
        """
        INSERT INTO contact (binding, platform_id, address, kind, name, created_at) VALUES (?, ?, ?, ?, ?, ?)
        ON CONFLICT (binding, platform_id) DO UPDATE SET
            address = excluded.address, kind = excluded.kind, name = ifnull(excluded.name, name)
        RETURNING id
        """,
        (binding, inbound.chat, address, inbound.chat_kind, name, now),
    ).fetchone()
    return int(row["id"])


def present_chat(tx: Tx, binding: int, chat: str) -> str:
    """Return the id that a chat has now: an update that comes late still has the old one."""
    for _ in range(100):  # nobody renames it so often; but no circle may keep the writer
        if contact_of(tx, binding, chat) is not None:
            return chat
        row = tx.execute(
            f"""
            SELECT platform_id FROM platform_update
            WHERE binding IN {SAME_ACCOUNT.format("?")} AND chat = ? AND outcome = 'renamed'
            ORDER BY id DESC LIMIT 1
            """,
            (binding, chat),
        ).fetchone()
        if row is None or row["platform_id"] is None:
            return chat
        chat = row["platform_id"]
    return chat


def contact_of(tx: Tx, binding: int, chat: str) -> Row | None:
    """Return the row of a chat; None if it was never met."""
    row: Row | None = tx.execute(
        "SELECT * FROM contact WHERE binding = ? AND platform_id = ?", (binding, chat)
    ).fetchone()
    return row


# --- leaving -------------------------------------------------------------------------


LEFT = Failure("left", "the account is not in this chat any more")
BLOCKED = Failure("blocked", "the boss has blocked this chat")


def fail_left(tx: Tx, binding: int, chat: str, now: int, failure: Failure = LEFT) -> int:
    """Fail at most SLICE envelopes that wait for a chat which cannot be used any more; return how many."""
    rows = tx.execute(
        """
        SELECT e.id FROM contact c JOIN place p ON p.contact = c.id
        JOIN envelope e INDEXED BY envelope_box
            ON e.recipient = p.address AND e.box = 0 AND e.status = 0 AND e.binding = p.binding
        WHERE c.binding = ?1 AND c.platform_id = ?2 AND e.held_by IS NULL LIMIT ?3
        """,
        (binding, chat, SLICE),
    ).fetchall()
    lanes.fail(tx, [row["id"] for row in rows], failure, now)
    return len(rows)


# --- renaming ------------------------------------------------------------------------


def rename_chat(tx: Tx, binding: int, adapter: str, old: str, new: str, now: int) -> bool:
    """Give a chat another id, with all its topics; return False if the chat is not known.

    The addresses keep their numbers, so mail, lanes, conversations, sessions and the boss's reach follow.
    Schedules name addresses, and are rewritten. In a group, ids of messages begin anew under the new id.
    """
    contact = contact_of(tx, binding, old)
    if contact is None or old == new:
        return False
    taken = contact_of(tx, binding, new)
    if taken is not None:
        _join(tx, contact, taken, now)
    places = tx.execute(
        """
        SELECT a.id, a.name FROM place p JOIN address a ON a.id = p.address
        WHERE p.contact = ? AND a.retired_at IS NULL
        """,
        (contact["id"],),
    ).fetchall()
    # Of two accounts in one chat, the second finds its addresses renamed already.
    changed = [one for one in places if one["name"].partition(":")[2].partition("/")[0] == old]
    gone: dict[int, int] = {}  # addresses that became one with another
    merged: dict[int, int] = {}  # conversations that did
    for place in changed:
        entry = LiveAddress(place["id"], Address("channel", place["name"]))
        _, slash, topic = place["name"].partition("/")
        live_posts.chat_renamed(tx, entry.id, live_posts.place_name(place["name"]))
        posts.chat_renamed(tx, entry.id, old)
        address = Address("channel", f"{adapter}:{new}{slash}{topic}")
        lanes.open_renamed(tx, entry.id, now)
        other = tx.cache.live_address(address)
        if other is not None and other.id != entry.id:
            gone[other.id] = entry.id
            merged |= _merge(tx, other, entry, now)
        tx.cache.rename_address(entry, address)
    if taken is not None:
        tx.execute("UPDATE place SET contact = ? WHERE contact = ?", (contact["id"], taken["id"]))
        tx.execute("DELETE FROM contact WHERE id = ?", (taken["id"],))
        chat_pacing.share(tx, contact["id"], now)
    tx.execute("UPDATE contact SET platform_id = ?, was = ? WHERE id = ?", (new, old, contact["id"]))
    if changed:
        kept = [one["id"] for one in changed]
        schedules.follow_chat(tx, adapter, old, new, {**gone, **dict(zip(kept, kept, strict=True))})
        _tell(tx, binding, kept, gone, merged, now)
    return True


def _tell(
    tx: Tx, binding: int, kept: list[int], gone: dict[int, int], merged: dict[int, int], now: int
) -> None:
    """Tell those who follow a chat, or somebody who takes part in its conversations."""
    marks = ",".join("?" * len(kept))
    rows = tx.execute(f"SELECT conversation FROM participant WHERE address IN ({marks})", kept)
    conversations = {row["conversation"] for row in rows}
    marks = ",".join("?" * len(conversations))
    rows = tx.execute(
        f"""
        SELECT address FROM participant WHERE conversation IN ({marks})
        UNION SELECT agent FROM binding_agent WHERE binding = ?
        """,
        (*conversations, binding),
    )
    parties = [*(row["address"] for row in rows), *kept, *gone]
    tx.facts.append(ChatRenamed(now, parties, [*conversations, *merged], gone, merged))


def _join(tx: Tx, contact: Row, taken: Row, now: int) -> None:
    """Decide what may be done in the chat that two become: something came in under the new id before.

    It is blocked if one of them was, and else it may be written to if one of them could. It is the boss's
    if one was, unless the other one was somebody's: then his reach ends.
    """
    states = {contact["state"], taken["state"]}
    if "boss" in states and not states.isdisjoint(("allowed", "blocked")):
        his = contact if contact["state"] == "boss" else taken
        notices.end_reach(tx, contact["binding"], now, his["id"], "another chat has become the same one")
        states.add("allowed")
    state = next(one for one in ("blocked", "allowed", "boss", "asking") if one in states)
    tx.execute(
        """
        UPDATE contact SET state = ?1, decided_at = ifnull(decided_at, ?2),
               kind = iif(?1 = 'boss', 'private', kind) WHERE id = ?3
        """,
        (state, taken["decided_at"], contact["id"]),
    )


def _merge(tx: Tx, gone: LiveAddress, kept: LiveAddress, now: int) -> dict[int, int]:
    """Give all mail of one address to another; it is retired. Return which conversations became which."""
    tx.cache.flush()  # numbers of messages are read and written below
    rows = tx.execute("SELECT DISTINCT conversation FROM participant WHERE address = ?", (gone.id,))
    merged = {
        row["conversation"]: target
        for row in rows.fetchall()
        if (target := _merge_conversation(tx, row["conversation"], gone.id, kept.id, now)) is not None
    }
    # Of the boss's chat: what is posted there of his mail, and what he wrote there.
    envelopes.readdress(tx, gone.id, kept.id, "forwards IS NOT NULL")
    his = "sender = (SELECT address FROM user WHERE boss = 1)"
    tx.execute(f"UPDATE message SET place = ?2 WHERE place = ?1 AND {his}", (gone.id, kept.id))
    # What a lane of it has in hand is settled by the number of the envelope.
    chat_pacing.merge(tx, gone.id, kept.id)
    left = [row["id"] for row in tx.execute(_PENDING, (gone.id,))]  # sent to both: it goes to the other one
    lanes.fail(tx, left, Failure("renamed", "this chat has another id now"), now)
    # Its live posts stay as they are: the answers of their runs are posted anew.
    tx.execute("UPDATE deleted_live_post SET address = ?2 WHERE address = ?1", (gone.id, kept.id))
    tx.execute("UPDATE OR IGNORE place SET address = ?2 WHERE address = ?1", (gone.id, kept.id))
    tx.execute("DELETE FROM place WHERE address = ?", (gone.id,))
    tx.execute("UPDATE contact SET address = ?2 WHERE address = ?1", (gone.id, kept.id))
    tx.execute("UPDATE user SET reach = ?2 WHERE reach = ?1", (gone.id, kept.id))
    tx.cache.forget_reach()
    tx.cache.retire_address(gone, now)
    return merged


_PENDING = "SELECT id FROM envelope INDEXED BY envelope_box WHERE recipient = ? AND box = 0 AND status = 0"


def _change_party(tx: Tx, number: int, gone: int, kept: int, now: int) -> None:
    """Let one address be in a conversation in the place of another, with what it sent and got there."""
    tx.execute("UPDATE message SET sender = ?2 WHERE sender = ?1 AND conversation = ?3", (gone, kept, number))
    envelopes.readdress(tx, gone, kept, "message IN (SELECT id FROM message WHERE conversation = ?3)", number)
    group_members.readdress(tx, number, gone, kept, now)


def _merge_conversation(tx: Tx, number: int, gone: int, kept: int, now: int) -> int | None:
    """Move the messages of a conversation to the one with another address in the place of one.

    Return that one; None if there is nothing to move: both take part in it.
    """
    rows = tx.execute(
        "SELECT DISTINCT address FROM participant WHERE conversation = ? AND role <> 'guest'", (number,)
    )
    parties = [row["address"] for row in rows]
    if group_members.keeps_its_place(tx, number):
        _change_party(tx, number, gone, kept, now)
        return None
    if kept in parties:
        return None
    target = tx.cache.conversation(tuple(kept if one == gone else one for one in parties), now)
    for row in tx.execute(
        "SELECT id, seq FROM message WHERE conversation = ? ORDER BY seq IS NULL, seq", (number,)
    ).fetchall():
        seq = None if row["seq"] is None else tx.cache.next_seq(target)
        tx.execute("UPDATE message SET conversation = ?, seq = ? WHERE id = ?", (target, seq, row["id"]))
    tx.execute("UPDATE message SET sender = ?2 WHERE sender = ?1 AND conversation = ?3", (gone, kept, target))
    envelopes.readdress(tx, gone, kept, "message IN (SELECT id FROM message WHERE conversation = ?3)", target)
    tx.execute("UPDATE message SET about = ?2 WHERE about = ?1", (number, target))
    for column in ("conversation", "reply_conversation"):
        tx.execute(f"UPDATE run SET {column} = ?2 WHERE {column} = ?1", (number, target))
    provider_sessions.merge(tx, number, target, now)
    conversation_routes.merge(tx, number, target)
    threads.merge(tx, number, target)
    tx.execute("DELETE FROM participant WHERE conversation = ?", (number,))
    tx.execute("UPDATE conversation SET first_seq = last_seq + 1 WHERE id = ?", (number,))
    return target
