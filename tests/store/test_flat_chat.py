"""The chat of an agent and the boss costs the same among many messages and changes as among few (test_flat.py)."""

from __future__ import annotations

from pathlib import Path

from hiboss.store import chat_entries
from hiboss.store.chat_entries import Place
from hiboss.store.connection import Connection
from tests.store.test_flat import LARGE, NEX_ID, POPULATIONS, Hot, not_flat, write


def _changes(connection: Connection, size: int) -> None:
    """Let every second message be followed by a change, and as many subscribers have a position."""
    connection.execute(
        """
        INSERT INTO chat_change (conversation, after_seq, number, message, changed_at)
        SELECT conversation, seq, 1, id, 1 FROM message WHERE conversation = 1 AND seq % 2 = 0
        """
    )
    numbers = f"WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < {size})"
    connection.execute(
        f"""
        {numbers} INSERT INTO chat_position (holder, conversation, subscriber, seq, updated_at)
        SELECT {NEX_ID}, 1, 's' || n, n, 1 FROM t
        """
    )


def _page(found: list[object]) -> None:
    assert len(found) == 100


STATEMENTS: dict[str, Hot] = {
    "the first entries": lambda c, _: _page(chat_entries.after(c, 1, Place(0), 100)),
    "entries in the middle": lambda c, n: _page(chat_entries.after(c, 1, Place(n // 2, 1), 100)),
    "nothing new": lambda c, n: chat_entries.after(c, 1, chat_entries.last(c, 1), 100),
    "the newest entries": lambda c, _: _page(chat_entries.newest(c, 1, 100)),
    "one entry": lambda c, n: chat_entries.at(c, 1, Place(n // 2)),
    "one change": lambda c, n: chat_entries.at(c, 1, Place(n // 2 * 2, 1)),
    "a position": lambda c, n: chat_entries.position(c, NEX_ID, 1, f"s{n}"),
    "moving a position": write(lambda tx, n: chat_entries.advance(tx, NEX_ID, 1, "s1", Place(n, 0), 1)),
    "noting a change": write(lambda tx, n: chat_entries.note_change(tx, 1, 1)),
}


def test_the_chat_costs_the_same_however_long_it_is(tmp_path: Path) -> None:
    for name in ("settled", "pending"):
        found = not_flat(tmp_path / name, POPULATIONS[name], STATEMENTS, large=LARGE, prepare=_changes)
        assert found == {}, name
