"""Reactions to messages: what people, agents and users have on each now, and which a turn is to show.

They start no turn. The agent that wrote a message is shown new ones in its next turn of the conversation
that the message belongs to; they are new until a run that showed them is completed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from ..core.contracts.inbound import Author
from ..core.envelope_json import ReactionJson
from ..core.events import MessageReacted
from .connection import Connection, Row
from .envelope_rows import QUOTED
from .group_commit import Tx

SHOWN = 20  # in one turn, at most
LISTED = 100  # of one message, at most
LOOKED_THROUGH = 1_000  # new ones of an agent, in all its conversations


IsOfTurn = Callable[[int, int], bool]  # of a message and its conversation: whether a turn may show it


class Reaction(NamedTuple):
    """Which reaction: the fields of its key."""

    message: int
    person: str
    emoji: str


class NewReactions(NamedTuple):
    """Those that a turn shows, oldest message first, and how many more there are."""

    shown: tuple[Reaction, ...] = ()
    more: int = 0


NONE = NewReactions()


# --- what people have on a message ---------------------------------------------------


def replace(tx: Tx, message: int, author: Author, emojis: Sequence[str], now: int, *, boss: bool) -> bool:
    """Store all reactions that a person has on a message now; return whether anything changed."""
    had = tx.execute(
        "SELECT emoji FROM reaction WHERE message = ? AND person = ?", (message, _person(author))
    ).fetchall()
    old, wanted = [row["emoji"] for row in had], list(dict.fromkeys(emojis))
    for emoji in [one for one in old if one not in wanted]:
        remove(tx, message, author, emoji, now)
    for emoji in [one for one in wanted if one not in old]:
        add(tx, message, author, emoji, now, boss=boss)
    return set(old) != set(wanted)


def add(tx: Tx, message: int, author: Author, emoji: str, now: int, *, boss: bool) -> bool:
    """Store one more reaction; return False if the person has it already."""
    changed = tx.execute(
        """
        INSERT INTO reaction (message, person, emoji, name, username, from_boss, agent, at)
        SELECT ?1, ?2, ?3, ?4, ?5, ?6, (SELECT address FROM agent WHERE address = m.sender), ?7
        FROM message m WHERE m.id = ?1 ON CONFLICT DO NOTHING
        """,
        (message, _person(author), emoji, author.name, author.username, boss, now),
    ).rowcount
    if changed:
        tx.facts.append(MessageReacted(now, message, emoji, False))
    return bool(changed)


def remove(tx: Tx, message: int, author: Author, emoji: str, now: int) -> bool:
    """Store that a person took a reaction back; return False if there was none."""
    changed = tx.execute(
        "DELETE FROM reaction WHERE message = ? AND person = ? AND emoji = ?",
        (message, _person(author), emoji),
    ).rowcount
    if changed:
        tx.facts.append(MessageReacted(now, message, emoji, True))
    return bool(changed)


def set_own(tx: Tx, message: int, setter: int, emoji: str | None, now: int) -> bool:
    """Store the one reaction that an agent or a user has on a message; None: none. Return whether it changed.

    The agent that wrote the message is shown it, unless it is its own.
    """
    had = tx.execute(
        "SELECT emoji FROM reaction WHERE message = ? AND setter = ?", (message, setter)
    ).fetchall()
    if [row["emoji"] for row in had] == ([] if emoji is None else [emoji]):
        return False
    tx.execute("DELETE FROM reaction WHERE message = ? AND setter = ?", (message, setter))
    tx.facts += [MessageReacted(now, message, row["emoji"], True) for row in had]
    if emoji is not None:
        tx.execute(
            """
            INSERT INTO reaction (message, person, emoji, setter, name, from_boss, agent, at)
            SELECT ?1, a.kind || ':' || a.name, ?3, ?2, coalesce(u.name, g.display), ifnull(u.boss, 0),
                   (SELECT w.address FROM agent w JOIN message m ON m.sender = w.address
                    WHERE m.id = ?1 AND w.address <> ?2), ?4
            FROM address a LEFT JOIN user u ON u.address = a.id LEFT JOIN agent g ON g.address = a.id
            WHERE a.id = ?2
            ON CONFLICT (message, person, emoji) DO UPDATE SET setter = ?2, shown = 0, at = ?4
            """,
            (message, setter, emoji, now),
        )
        tx.facts.append(MessageReacted(now, message, emoji, False))
    return True


def of_account(connection: Connection | Tx, message: int, binding: int) -> str | None:
    """Return what an account shows on a message: the last reaction that an agent of it set; None: none."""
    row = connection.execute(
        """
        SELECT r.emoji FROM reaction r JOIN binding_agent b ON b.agent = r.setter AND b.binding = ?2
        WHERE r.message = ?1 ORDER BY r.at DESC, r.setter DESC LIMIT 1
        """,
        (message, binding),
    ).fetchone()
    return None if row is None else str(row["emoji"])


def _person(author: Author) -> str:
    """Return what tells people apart. A name, which anybody can choose, is never taken for an id."""
    return author.id or f"name:{author.name or ''}"


def of_messages(connection: Connection, messages: Iterable[int]) -> dict[int, list[ReactionJson]]:
    """Return the reactions to each of these messages, in the form of the API; at most LISTED of one."""
    numbers = set(messages)
    rows = connection.execute(
        f"""
        SELECT message, emoji, name, username, from_boss, person, setter FROM (
            SELECT *, row_number() OVER (PARTITION BY message ORDER BY at, person, emoji) AS number
            FROM reaction WHERE message IN ({",".join("?" * len(numbers))}))
        WHERE number <= {LISTED} ORDER BY message, number
        """,
        tuple(numbers),
    )
    found: dict[int, list[ReactionJson]] = {}
    for row in rows:
        found.setdefault(row["message"], []).append(_facts(row))
    return found


def _facts(row: Row) -> ReactionJson:
    return {
        "emoji": row["emoji"],
        "name": row["name"],
        "username": row["username"],
        "from_boss": bool(row["from_boss"]),
        "address": None if row["setter"] is None else row["person"],
    }


# --- in turns ------------------------------------------------------------------------


def new_ones(tx: Tx | Connection, agent: int, is_of_turn: IsOfTurn) -> NewReactions:
    """Return the new reactions to what an agent wrote, where that belongs to the turn."""
    rows = tx.execute(
        """
        SELECT r.message, r.person, r.emoji, ifnull(m.about, m.conversation) AS conversation FROM (
            SELECT message, person, emoji FROM reaction INDEXED BY reaction_unshown
            WHERE agent = ?1 AND shown = 0 AND agent IS NOT NULL ORDER BY message DESC LIMIT ?2) r
        JOIN message m ON m.id = r.message AND m.deleted_at IS NULL
        ORDER BY r.message DESC, r.person, r.emoji
        """,
        (agent, LOOKED_THROUGH),
    ).fetchall()
    found = [Reaction(*row[:3]) for row in rows if is_of_turn(row["message"], row["conversation"])]
    return NewReactions(tuple(sorted(found[:SHOWN])), max(0, len(found) - SHOWN))


def fetch(connection: Connection, wanted: Sequence[Reaction]) -> list[dict[str, Any]]:
    """Return reactions with the id and the beginning of their message; not those that were taken back."""
    found = []
    for one in wanted:
        row = connection.execute(
            f"""
            SELECT r.*, substr(m.text, 1, {QUOTED}) AS text FROM reaction r
            JOIN message m ON m.id = r.message AND m.deleted_at IS NULL
            WHERE r.message = ? AND r.person = ? AND r.emoji = ?
            """,
            one,
        ).fetchone()
        if row is not None:
            found.append({"message": f"m{one.message}", "text": row["text"], **_facts(row)})
    return found


def stored(new: NewReactions) -> str | None:
    """Return those that a turn shows as `run.reactions` has them."""
    return json.dumps(new.shown, ensure_ascii=False) if new.shown else None


def mark_shown(tx: Tx, run: int) -> None:
    """Store that a completed run has shown its reactions."""
    row = tx.execute("SELECT reactions FROM run WHERE id = ?", (run,)).fetchone()
    for one in json.loads(row["reactions"] or "[]"):
        tx.execute("UPDATE reaction SET shown = 1 WHERE message = ? AND person = ? AND emoji = ?", one)
