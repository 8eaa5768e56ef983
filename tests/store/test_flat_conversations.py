"""Lists of conversations, their messages and their marks cost the same for many as for few (test_flat.py)."""

from __future__ import annotations

from pathlib import Path

from hiboss.store import conversation_lists, conversation_reading, conversations, groups
from hiboss.store.connection import Connection
from hiboss.store.conversation_lists import LOOKED_THROUGH, Filter
from hiboss.store.conversations import Piece
from hiboss.store.group_commit import Tx
from tests.store.test_flat import LARGE, NEX_ID, POPULATIONS, Hot, not_flat

NEW = 2**62


def _many(connection: Connection, size: int) -> None:
    """Let nex be in as many conversations as there are messages, but at least as many as a page looks through."""
    number = max(size, LOOKED_THROUGH + 100)
    numbers = f"WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < {number})"
    connection.execute(
        f"""
        {numbers} INSERT INTO conversation (kind, key, created_at) SELECT 'private', 'k' || n, n FROM t
        """
    )
    connection.execute(
        f"INSERT INTO participant (conversation, address) SELECT id, {NEX_ID} FROM conversation WHERE key LIKE 'k%'"
    )


def _messages(**which: int) -> Hot:
    def read(connection: Connection, size: int) -> None:
        row = groups.by_id(connection, 1)
        assert row is not None
        parts = conversations.stretches(connection, row, NEX_ID)
        found = conversations.piece(connection, Piece(1, parts, NEX_ID, **which), 100)
        assert len(found) == 100

    return read


def _mark(connection: Connection, size: int) -> None:
    tx = Tx(connection)
    conversation_reading.mark(tx, 1, NEX_ID, size, size + 12, 1, reader=NEX_ID, session="")


STATEMENTS: dict[str, Hot] = {
    "own": lambda c, _: conversation_lists.own(c, NEX_ID, Filter(), 100, NEW),
    "own of a type": lambda c, _: conversation_lists.own(c, NEX_ID, Filter(kind="adhoc"), 100, NEW),
    "own by name": lambda c, _: conversation_lists.own(c, NEX_ID, Filter(name="core"), 100, NEW),
    "count": lambda c, _: conversation_lists.count(c, NEX_ID, Filter()),
    "count of a type": lambda c, _: conversation_lists.count(c, NEX_ID, Filter(kind="group")),
    "open groups": lambda c, _: conversation_lists.groups(c, NEX_ID, 100, "", archived=None, every=False),
    "one": lambda c, _: conversation_lists.one(c, NEX_ID, 1),
    "the last messages": _messages(),
    "the first messages": _messages(after=0),
    "messages before one": _messages(before=500),
    "mark the new ones": _mark,
    "unread": lambda c, _: conversation_reading.unread(c, 1, NEX_ID),
}


def test_conversations_cost_the_same_whatever_their_number_and_length(tmp_path: Path) -> None:
    for name in ("settled", "pending"):
        found = not_flat(tmp_path / name, POPULATIONS[name], STATEMENTS, large=LARGE // 2, prepare=_many)
        assert found == {}, name


def test_the_check_finds_a_list_that_looks_through_everything(tmp_path: Path) -> None:
    everything: dict[str, Hot] = {
        "all": lambda c, _: c.execute(
            "SELECT count(*) FROM conversation c JOIN participant p ON p.conversation = c.id"
        ).fetchall()
    }
    assert set(not_flat(tmp_path, POPULATIONS["settled"], everything, large=20_000, prepare=_many)) == {"all"}
