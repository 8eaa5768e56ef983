"""Make a message of what came in from a platform, and find what an update is about.

The bookkeeping of updates is in hiboss/store/intake.py.
"""

from __future__ import annotations

from ..core.address import Address
from ..core.contracts.inbound import Inbound
from ..core.envelope import Accepted, Attachment, Draft, Kind
from ..core.errors import NotBound
from . import messages
from .accounts import KNOWN_AS, SAME_ACCOUNT
from .connection import Connection
from .group_commit import Tx
from .speakers import Answered, speaker


def receive(
    tx: Tx,
    binding: int,
    adapter: str,
    inbound: Inbound,
    files: tuple[Attachment, ...],
    now: int,
    chat: str | None = None,
) -> Accepted:
    """Store a message for the agents that its binding serves. Its place is known (`places.meet`).

    `chat`: the id that the chat had when it came, if it has another one now.
    """
    answers = replied_to(tx, binding, adapter, inbound, chat)
    who = speaker(tx, binding, adapter, inbound, answers)
    if not who.has_recipients:
        raise NotBound(sender="nobody", adapter=adapter, address=str(who.place or who.sender))
    draft = Draft(
        sender=who.sender,
        caller=None,
        sees_all=True,
        to=who.to,
        from_boss=who.from_boss,
        place=who.place,
        text=inbound.text,
        kind=Kind[inbound.type.upper()],
        auto=inbound.auto,
        subject=inbound.subject,
        attachments=files,
        from_name=inbound.author.name,
        reply_to=None if answers is None or answers.message is None else ("message", answers.message),
        channel=facts(inbound),
        gone=who.gone,
        context=who.context,
    )
    try:
        return messages.insert(tx, draft, now)
    except NotBound:  # of where the boss's reply goes, and not of this account: it must not hold up his chat
        return _insert_unposted(tx, draft, now)


def _insert_unposted(tx: Tx, draft: Draft, now: int) -> Accepted:
    """Store a reply of the boss to a chat that no account may post to now: it failed, and can be retried."""
    found = [tx.cache.live_address(one) for one in draft.to]
    chats = [one.id for one in found if one is not None]
    if not chats:
        raise NotBound(sender=str(draft.sender), adapter=draft.to[0].adapter, address=str(draft.to[0]))
    row = tx.execute(
        "SELECT binding FROM platform_update WHERE message = ? ORDER BY id DESC LIMIT 1",
        (draft.reply_to[1] if draft.reply_to else None,),
    ).fetchone()
    binding = None if row is None else int(row["binding"])
    return messages.insert(tx, draft._replace(to=(), gone=(*draft.gone, *chats), binding=binding), now)


def find(tx: Tx, binding: int, chat: str, platform_id: str | None, *, private: bool = False) -> int | None:
    """Return the stored message that came in from this chat with this id of the platform.

    `private`: also with the ids that the chat had before. In a group, ids of messages begin anew then.
    """
    row = tx.execute(
        f"""
        {KNOWN_AS}
        SELECT message FROM platform_update
        WHERE binding IN {SAME_ACCOUNT.format("?1")} AND platform_id = ?3 AND message IS NOT NULL
          AND chat IN (SELECT chat FROM known_as WHERE ?4 OR chat = ?2)
        ORDER BY chat = ?2 DESC, binding DESC, id LIMIT 1
        """,
        (binding, chat, platform_id, private),
    ).fetchone()
    return None if row is None else int(row["message"])


def last_wording(tx: Tx, binding: int, chat: str, platform_id: str | None) -> int | None:
    """Return the message that was made of the last edit of what came in with this id; None: none was."""
    row = tx.execute(
        """
        SELECT message FROM platform_update
        WHERE binding = ? AND chat = ? AND platform_id = ? AND outcome = 'edited' ORDER BY id DESC LIMIT 1
        """,
        (binding, chat, platform_id),
    ).fetchone()
    return None if row is None else int(row["message"])


def replied_to(
    tx: Tx, binding: int, adapter: str, inbound: Inbound, chat: str | None = None
) -> Answered | None:
    """Return what this replies to: something we posted, or a message that came in from this chat."""
    if inbound.reply_to is None:
        return None
    posted = _posted(tx, binding, adapter, inbound, chat)
    if posted is not None:
        return posted
    private = inbound.chat_kind == "private"
    message = find(tx, binding, chat or inbound.chat, inbound.reply_to, private=private)
    row = tx.execute("SELECT id, sender FROM message WHERE id = ?", (message,)).fetchone()
    return None if row is None else Answered(*row)


def may_be_unconfirmed(connection: Connection, binding: int, inbound: Inbound) -> bool:
    """Tell whether this may reply to something that is being posted in this chat: its id is not known yet."""
    row = connection.execute(
        """
        SELECT 1 FROM contact c JOIN place p ON p.contact = c.id
        WHERE c.binding = ?1 AND c.platform_id = ?2 AND (
            EXISTS (SELECT 1 FROM envelope e INDEXED BY envelope_box WHERE e.recipient = p.address
                    AND e.box = 0 AND e.status = 0 AND e.binding = ?1 AND e.held_by IS NOT NULL)
            OR EXISTS (SELECT 1 FROM live_post l
                       WHERE l.address = p.address AND l.binding = ?1 AND l.platform_id IS NULL))
          AND NOT EXISTS (SELECT 1 FROM (SELECT envelope FROM post WHERE platform_id = ?3
                                         UNION ALL SELECT envelope FROM post_part WHERE platform_id = ?3) o
                          JOIN envelope x ON x.id = o.envelope AND x.binding = ?1
                          JOIN place l ON l.address = x.recipient AND l.contact = c.id)
          AND NOT EXISTS (SELECT 1 FROM platform_update u
                          WHERE u.binding = ?1 AND u.chat = ?2 AND u.platform_id = ?3)
        """,
        (binding, inbound.chat, inbound.reply_to),
    ).fetchone()
    return row is not None


def is_post(tx: Tx, binding: int, adapter: str, inbound: Inbound, chat: str) -> bool:
    """Tell whether this replies to something that we posted there."""
    return _posted(tx, binding, adapter, inbound, chat) is not None


# Of what `_posted` looks for: the addresses of the chat and of all its topics. Some platforms do not say in
# which topic a post is that somebody reacts to; its id is one of the chat.
_THERE = """
    (SELECT ?3 UNION SELECT l.address FROM contact c JOIN place l ON l.contact = c.id
     WHERE c.binding = ?2 AND c.platform_id = ?4)
"""


def _posted(tx: Tx, binding: int, adapter: str, inbound: Inbound, chat: str | None) -> Answered | None:
    entry = tx.cache.live_address(Address("channel", f"{adapter}:{inbound.place}"))
    row = tx.execute(
        f"""
        SELECT e.message, m.sender, 0
        FROM (SELECT envelope, chat FROM post WHERE platform_id = ?1
              UNION ALL SELECT envelope, chat FROM post_part WHERE platform_id = ?1) p
        JOIN envelope e ON e.id = p.envelope JOIN message m ON m.id = e.message
        WHERE e.binding IN {SAME_ACCOUNT.format("?2")} AND e.recipient IN {_THERE}
          AND (ifnull(p.chat, ?4) = ?5 OR ?6)
        UNION ALL
        SELECT r.reply_message, r.agent, 1 FROM live_post l JOIN run r ON r.id = l.run
        WHERE l.platform_id = ?1 AND l.binding = ?2 AND l.address IN {_THERE} AND (l.place IS NULL OR ?6)
        UNION ALL
        SELECT ifnull(r.answer, r.reply_message), r.agent, 1
        FROM deleted_live_post l JOIN run r ON r.id = l.run
        WHERE l.platform_id = ?1 AND l.binding IN {SAME_ACCOUNT.format("?2")} AND l.address IN {_THERE}
          AND (l.place IS NULL OR ?6)
        LIMIT 1
        """,
        (
            *(inbound.reply_to, binding, entry.id if entry else None),
            *(inbound.chat, chat or inbound.chat, inbound.chat_kind == "private"),
        ),
    ).fetchone()
    return None if row is None else Answered(*row)


def facts(inbound: Inbound) -> dict[str, object]:
    """Return what the platform reported, as it is stored with the message."""
    chat: dict[str, object] = {"id": inbound.chat, "kind": inbound.chat_kind}
    for name in ("topic", "title"):
        if (given := getattr(inbound, name)) is not None:
            chat[name] = given
    found: dict[str, object] = {"chat": chat, "author": inbound.author.facts()}
    for name in (
        "message",
        "mentioned",
        "replied",
        "forwarded",
        "quote",
        "sent_at",
        "note",
        "command",
        "arguments",
    ):
        found[name] = getattr(inbound, name)
    return {name: value for name, value in found.items() if value}
