"""Conversations, chats, receipts, briefings and metrics cost the same among many rows as among few (test_flat.py)."""

from __future__ import annotations

from pathlib import Path

import pytest

from hiboss.api import agent_briefing, receipts
from hiboss.api.agent_states import Live
from hiboss.core.metrics import CONVERSATION_SIZES
from hiboss.store import (
    briefings,
    chat_entries,
    conversation_lists,
    conversation_reading,
    conversations,
    counters,
    due_envelopes,
    envelope_details,
    envelope_rows,
    groups,
    metric_counts,
    traces,
)
from hiboss.store.chat_entries import Place
from hiboss.store.connection import Connection
from hiboss.store.conversation_lists import LOOKED_THROUGH, Filter
from hiboss.store.conversations import Piece
from hiboss.store.group_commit import Tx
from tests.store.test_flat import ADA_ID, FRESH, LARGE, NEX_ID, NOW, POPULATIONS, Hot, not_flat, write
from tests.store.test_flat_runs import numbers, with_runs
from tests.support.sweeps import sweep

pytestmark = pytest.mark.slow


# --- conversations -------------------------------------------------------------------------------

NEW = 2**62


def _in_many(connection: Connection, size: int) -> None:
    """Let nex be in as many conversations as there are messages, but at least as many as a page looks through."""
    number = max(size, LOOKED_THROUGH + 100)
    connection.execute(
        f"""
        {numbers(number)} INSERT INTO conversation (kind, key, created_at) SELECT 'private', 'k' || n, n FROM t
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
        assert len(conversations.piece(connection, Piece(1, parts, NEX_ID, **which), 100)) == 100

    return read


def _mark(connection: Connection, size: int) -> None:
    conversation_reading.mark(Tx(connection), 1, NEX_ID, size, size + 12, 1, reader=NEX_ID, session="")


CONVERSATIONS: dict[str, Hot] = {
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


# --- the chat of an agent and the boss -----------------------------------------------------------


def _changes(connection: Connection, size: int) -> None:
    """Let every second message be followed by a change, and as many subscribers have a position."""
    connection.execute(
        """
        INSERT INTO chat_change (conversation, after_seq, number, message, changed_at)
        SELECT conversation, seq, 1, id, 1 FROM message WHERE conversation = 1 AND seq % 2 = 0
        """
    )
    connection.execute(
        f"""
        {numbers(size)} INSERT INTO chat_position (holder, conversation, subscriber, seq, updated_at)
        SELECT {NEX_ID}, 1, 's' || n, n, 1 FROM t
        """
    )


def _page(found: list[object]) -> None:
    assert len(found) == 100


CHAT: dict[str, Hot] = {
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


# --- metrics -------------------------------------------------------------------------------------


METRIC: dict[str, Hot] = {
    "rows made": lambda c, _: metric_counts.rows_made(c),
    "lanes": lambda c, _: metric_counts.troubled_lanes(c),
    "sizes": lambda c, _: metric_counts.recent_sizes(c, CONVERSATION_SIZES),
    "counts": lambda c, _: counters.counts(c, 100),
    "oldest": lambda c, _: due_envelopes.oldest(c),
}


def _many_conversations(connection: Connection, size: int) -> None:
    """Give each of the last messages a conversation of its own, and make as many others as there are messages."""
    connection.execute(
        f"{numbers(size)} INSERT INTO conversation (kind, key, created_at) SELECT 'private', 'k' || n, n FROM t"
    )


# --- receipts, traces and briefings --------------------------------------------------------------


def worked_on(connection: Connection, size: int) -> None:
    """Let nex have had a run for each old envelope, which sent something; each message has three tags."""
    with_runs(connection, size)
    connection.execute("INSERT INTO tag (message, kind, name) SELECT id, 'mention', 'nex' FROM message")
    for kind in ("scope", "ref"):
        connection.execute(
            "INSERT INTO tag (message, kind, name, value) SELECT id, ?, 'x', id FROM message", (kind,)
        )
    connection.execute(
        "INSERT OR IGNORE INTO reading (envelope, reader, at) SELECT id, recipient, 1 FROM envelope"
    )


def middle(size: int) -> list[int]:
    return list(range(size // 2, size // 2 + 10))


def traced(connection: Connection, size: int) -> None:
    message = size // 2
    assert traces.visible(connection, [message], ADA_ID, 1)
    mine = traces.envelopes_of(connection, message, ADA_ID)
    assert [row["id"] for row in traces.runs_of(connection, mine.ids)] == [message]
    walk = traces.came_of(connection, message)
    assert walk.ids == [size + FRESH + message] and not walk.more
    traces.visible(connection, walk.ids, ADA_ID, 101)
    traces.recipients(connection, walk.ids, 10)


def paged(connection: Connection, size: int) -> None:
    found = envelope_details.of_page(connection, envelope_rows.shown(connection, middle(size)), NEX_ID)
    assert len(found.tags) == len(found.read_by) == 10


def briefed(connection: Connection, size: int) -> None:
    found = agent_briefing.of_address(connection, NEX_ID, NOW, Live())
    assert found is not None and found["newest"]


RECEIPTS: dict[str, Hot] = {
    "receipts of a page": lambda c, n: receipts.of_envelopes(c, middle(n), ADA_ID, NOW),
    "a trace": traced,
    "what a page shows beside its envelopes": paged,
    "groups of somebody": lambda c, n: briefings.groups(c, NEX_ID, 20),
    "schedules of somebody": lambda c, n: briefings.next_schedules(c, NEX_ID, 5),
}


# --- the tests -----------------------------------------------------------------------------------

# What is asked, how the rows are prepared, among which, and how many there are.
SUBJECTS: dict[str, tuple[dict[str, Hot], Hot, list[str], int]] = {
    "conversations": (CONVERSATIONS, _in_many, ["settled", "pending"], LARGE // 2),
    "the chat": (CHAT, _changes, ["settled", "pending"], LARGE),
    "metrics": (METRIC, _many_conversations, [*POPULATIONS], LARGE // 2),
    "receipts": (RECEIPTS, worked_on, ["settled"], LARGE),
    "a briefing": ({"a briefing": briefed}, worked_on, ["settled", "archived", "pending"], LARGE),
}


@pytest.mark.parametrize("subject", SUBJECTS)
def test_what_is_looked_at_costs_the_same_among_many_as_among_few(tmp_path: Path, subject: str) -> None:
    statements, prepare, populations, large = SUBJECTS[subject]
    with sweep() as row:
        for name in populations:
            with row(name):
                rows = POPULATIONS[name]
                assert not_flat(tmp_path / name, rows, statements, large=large, prepare=prepare) == {}


@pytest.mark.parametrize(
    ("query", "prepare"),
    [
        ("SELECT count(*) FROM conversation c JOIN participant p ON p.conversation = c.id", _in_many),
        ("SELECT max(last_seq) FROM conversation", _many_conversations),
    ],
)
def test_the_check_finds_what_looks_through_all_conversations(
    tmp_path: Path, query: str, prepare: Hot
) -> None:
    everything: dict[str, Hot] = {"all": lambda c, _: c.execute(query).fetchall()}
    found = not_flat(tmp_path, POPULATIONS["settled"], everything, large=20_000, prepare=prepare)
    assert set(found) == {"all"}
