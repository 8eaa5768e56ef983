"""Live posts: posts that grow with a run, until they become its answer or are removed.

A note is one too: it says in a chat that what was written there waits for a run, and goes when that ends.

The row is written before the post, and the platform's id after it. So a row without an id, found at the
start of a daemon, stands for a post that may be there and that nobody can remove. The table is nearly
always empty. What takes a Tx runs inside the writer.
"""

from __future__ import annotations

from typing import NamedTuple

from ..core.address import BOSS
from ..core.envelope import Lane
from . import forwarding, posts, recipients
from .connection import Connection, Row
from .group_commit import Tx
from .run_start import Turn

KEPT_MS = 7 * 24 * 3600 * 1000  # the ids of those that were deleted


class Key(NamedTuple):
    """Which live post."""

    run: int
    lane: Lane
    note: bool = False  # it says that mail waits for the run


class Target(NamedTuple):
    """A place where the answer of a run will be posted."""

    lane: Lane
    place: str  # the chat, and the topic if there is one
    chat: int  # the id of the contact: topics of one chat share it
    reply_to: str | None = None  # the platform's id of the message that is answered
    named: bool = False  # the text begins with the name of the agent
    display: str | None = None  # the name of the agent that is shown to people
    gone_topic: str | None = None  # it is meant for this topic of the chat, which is gone
    is_his: bool = False  # it is a private chat of the boss


def targets(connection: Connection | Tx, turn: Turn) -> list[Target]:
    """Return where the answer of a turn would be posted if it came now."""
    if turn.kind != "turn" or turn.reply != "auto" or turn.reply_conversation is None:
        return []
    rows = connection.execute(
        """
        SELECT a.id, a.kind, a.fold FROM participant p JOIN address a ON a.id = p.address
        WHERE p.conversation = (SELECT reply_conversation FROM run WHERE id = ?)  -- its chat may be merged
          AND p.left_seq IS NULL AND p.role <> 'guest' AND a.retired_at IS NULL ORDER BY a.id
        """,
        (turn.run,),
    ).fetchall()
    found: dict[Lane, bool] = {}  # with whether the agent is named
    for row in rows:
        if row["kind"] == "channel":
            account = recipients.account_for(connection, turn.agent, row["id"], turn.reply_message)
            if account is not None:
                found.setdefault(Lane(row["id"], account[0]), _several_write(connection, account[0]))
        elif row["fold"] == BOSS.fold:
            forwarded = forwarding.answer_place(connection, turn.agent, turn.reply_message)
            if forwarded is not None:
                found[forwarded] = True
    made = [_target(connection, turn, lane, named) for lane, named in found.items()]
    return [one for one in made if one is not None]


def _several_write(connection: Connection | Tx, binding: int) -> bool:
    """Tell whether several agents write in the chats of a binding: then each post names its agent."""
    row = connection.execute("SELECT count(*) FROM binding_agent WHERE binding = ?", (binding,)).fetchone()
    return bool(row[0] > 1)


def _target(connection: Connection | Tx, turn: Turn, lane: Lane, named: bool) -> Target | None:
    row = connection.execute(
        """
        SELECT a.name, p.contact, p.gone_at, (SELECT display FROM agent WHERE address = ?3) AS display,
               c.state = 'boss' AS is_his
        FROM place p JOIN address a ON a.id = p.address
        LEFT JOIN contact c ON c.id = p.contact
        JOIN binding b ON b.id = p.binding AND b.removed_at IS NULL
        WHERE p.address = ?1 AND p.binding = ?2
        """,
        (lane.address, lane.binding, turn.agent),
    ).fetchone()
    if row is None:
        return None
    reply_to = posts.quoted(connection, turn.reply_message, lane) if turn.reply_message else None
    place, gone_topic = place_name(row["name"]), None
    if row["gone_at"] is not None:
        place, _, gone_topic = place.partition("/")
    is_his = bool(row["is_his"])
    return Target(lane, place, row["contact"], reply_to, named, row["display"], gone_topic, is_his)


def place_name(name: str) -> str:
    """Return the place in the name of a channel's address: 777/5 for telegram:777/5."""
    return name.split(":", 1)[1]


def begin(tx: Tx, key: Key, now: int) -> bool:
    """Write the row of a live post before it is posted; return False if it must not begin any more."""
    return bool(
        tx.execute(
            """
            INSERT OR IGNORE INTO live_post (run, address, binding, note, created_at)
            SELECT r.id, ?2, b.id, ?4, ?5 FROM run r JOIN binding b ON b.id = ?3
            WHERE r.id = ?1 AND r.status = 'running' AND r.ends_as IS NULL AND b.removed_at IS NULL
            """,
            (*_columns(key), now),
        ).rowcount
    )


_WHICH = "run = ?1 AND address = ?2 AND binding = ?3 AND note = ?4"


def _columns(key: Key) -> tuple[int, int, int | None, bool]:
    return key.run, key.lane.address, key.lane.binding, key.note


def note_id(tx: Tx, key: Key, platform_id: str) -> None:
    """Store the platform's id of a live post. It overtakes all others in the same place."""
    tx.execute(f"UPDATE live_post SET platform_id = ?5 WHERE {_WHICH}", (*_columns(key), platform_id))
    overtake(tx, key.lane, key)


def overtake(tx: Tx, lane: Lane, new: Key | None = None) -> None:
    """Note that something was posted in a place after its live posts; `new`: the one that was.

    By whichever account: in a group, several can post.
    """
    run, note = (0, False) if new is None else (new.run, new.note)
    tx.execute(
        "UPDATE live_post SET overtaken = 1 WHERE address = ? AND (run, note) <> (?, ?)",
        (lane.address, run, note),
    )


def chat_renamed(tx: Tx, address: int, place: str) -> None:
    """Note that the live posts of a place have ids of the chat as it was: none of them becomes an answer."""
    tx.execute(
        "UPDATE live_post SET overtaken = 1, place = ifnull(place, ?2) WHERE address = ?1", (address, place)
    )
    tx.execute("UPDATE deleted_live_post SET place = ifnull(place, ?2) WHERE address = ?1", (address, place))


def deleted(tx: Tx, key: Key, now: int) -> None:
    """Delete the row of a live post that is not there any more. Who has replied to it still finds its run."""
    tx.execute(
        f"""
        INSERT INTO deleted_live_post (run, address, binding, platform_id, place, deleted_at)
        SELECT run, address, binding, platform_id, place, ?5 FROM live_post
        WHERE {_WHICH} AND note = 0 AND platform_id IS NOT NULL
        """,
        (*_columns(key), now),
    )
    forget(tx, key)


def forget(tx: Tx, key: Key) -> None:
    """Delete the row of a live post that has become the answer."""
    tx.execute(f"DELETE FROM live_post WHERE {_WHICH}", _columns(key))


def forget_lost(tx: Tx, now: int) -> int:
    """Delete the rows of live posts that nobody can remove, at the start of a daemon; return how many.

    The daemon died while they were posted, so their platform ids are not known; or their binding has ended.
    """
    tx.execute("DELETE FROM deleted_live_post WHERE deleted_at < ?", (now - KEPT_MS,))
    return tx.execute(
        """
        DELETE FROM live_post WHERE platform_id IS NULL
           OR binding IN (SELECT id FROM binding WHERE removed_at IS NOT NULL)
        """
    ).rowcount


def left(connection: Connection | Tx) -> list[Row]:
    """Return all live posts, each with the place it is in."""
    return connection.execute(
        """
        SELECT l.run, l.address, l.binding, l.note, l.platform_id, p.contact,
               ifnull(l.place, substr(a.name, instr(a.name, ':') + 1)) AS place
        FROM live_post l JOIN address a ON a.id = l.address
        LEFT JOIN place p ON p.address = l.address AND p.binding = l.binding
        ORDER BY l.run
        """
    ).fetchall()


def get(connection: Connection | Tx, key: Key) -> Row | None:
    """Return a live post, with the message that is the answer of its run."""
    row: Row | None = connection.execute(
        f"""
        SELECT platform_id, overtaken, (SELECT answer FROM run WHERE id = live_post.run) AS answer
        FROM live_post WHERE {_WHICH}
        """,
        _columns(key),
    ).fetchone()
    return row


def is_answer(connection: Connection | Tx, run: int, message: int) -> bool:
    """Tell whether a message is the answer of a run."""
    row = connection.execute("SELECT 1 FROM run WHERE id = ? AND answer = ?", (run, message)).fetchone()
    return row is not None


def awaits_answer(connection: Connection | Tx, run: int, lane: Lane) -> bool:
    """Tell whether the answer of a run still has to be posted in this place."""
    row = connection.execute(
        """
        SELECT 1 FROM run r CROSS JOIN envelope e INDEXED BY envelope_message
            ON e.message = r.answer AND e.recipient = ?2
        WHERE r.id = ?1 AND e.binding = ?3 AND e.status = 0
        """,
        (run, lane.address, lane.binding),
    ).fetchone()
    return row is not None
