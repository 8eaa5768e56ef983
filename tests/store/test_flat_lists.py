"""Every flat set of filters costs the same among 20,000 messages as among 1,000: pages, counts, unread counts.

Made from the named list in the code: who adds a set there without a case here gets a failing test.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from hiboss.core.envelope import Box, Kind
from hiboss.core.errors import TooBroad
from hiboss.store import list_query, message_rows, message_walks, paging, thread_lists, unread_counts
from hiboss.store.connection import Connection
from hiboss.store.list_query import FLAT, AnyTag, Position, Query, RunSpan, Tag
from tests.store.test_flat import (
    ADA_ID,
    BOSS_ID,
    FRESH,
    NEX_ID,
    NOW,
    POPULATIONS,
    SETTLED,
    Hot,
    filled,
    not_flat,
)

pytestmark = pytest.mark.slow

AUTH = AnyTag("scope", (Tag("scope", "module", "auth"),))
ISSUE = AnyTag("ref", (Tag("ref", "issue", "42"),))
CALLED = AnyTag("mentions", (*list_query.mention("nex", "agent"), *list_query.mention("reviewer", "role")))
BY_NEX: dict[str, Any] = {"owner": NEX_ID, "viewer": NEX_ID}
BY_ADA: dict[str, Any] = {"owner": ADA_ID, "viewer": ADA_ID}
BY_BOSS: dict[str, Any] = {"owner": BOSS_ID, "viewer": None}
ARCHIVED, TRASHED = {**SETTLED, "box": "1"}, {**SETTLED, "box": "2"}
SNOOZED = {**SETTLED, "box": "3", "waits": "3", "wait_until": f"{NOW} + n", "snoozed_until": f"{NOW} + n"}


class Flat(NamedTuple):
    """A case of a flat set: what the rows are like, and what is asked."""

    query: Query
    letter: str  # of its cursors
    population: dict[str, str] = SETTLED
    prepare: str = ""  # statements, with {size}


TAGGED = """
    INSERT INTO tag SELECT id, 'scope', 'module', 'auth' FROM message;
    INSERT INTO tag SELECT id, 'ref', 'issue', '42' FROM message;
    INSERT INTO tag SELECT id, 'mention', 'nex', 'agent' FROM message;
    INSERT INTO tag SELECT id, 'mention', 'reviewer', 'role' FROM message WHERE id % 2;
"""
IN_ONE_THREAD = """
    UPDATE message SET thread = 1, reply_to = 1 WHERE id > 1 AND id <= {size};
    INSERT INTO thread SELECT conversation, 1, {size}, {size}, {size} FROM message WHERE id = 1;
"""
IN_ONE_RUN = """
    INSERT INTO run (id, agent, status, provider, boot, started_at, ended_at, after_message, last_message)
    VALUES (1, 3, 'completed', 'demo', 1, 1, 2, 0, {size});
    UPDATE message SET run = 1 WHERE id <= {size};
    INSERT INTO run_envelope VALUES (1, 1);
"""
ALL = RunSpan(1, ADA_ID, 0, 2**62)
CASES: dict[str, list[Flat]] = {
    "box": [
        Flat(Query(**BY_NEX), "a"),
        Flat(Query(**BY_BOSS), "a"),
        Flat(Query(**BY_NEX, boxed=True), "a"),
    ],
    "archived": [
        Flat(Query(**BY_NEX, box=Box.ARCHIVED, boxed=True), "a", ARCHIVED),
        Flat(Query(**BY_NEX, box=Box.ARCHIVED, boxed=True), "a"),
    ],
    "trash": [
        Flat(Query(**BY_NEX, box=Box.TRASH, boxed=True), "a", TRASHED),
        Flat(Query(**BY_NEX, box=Box.TRASH, boxed=True), "a"),
    ],
    "outbox": [
        Flat(Query(**BY_ADA, boxed=True, outbox=True), "m"),
        Flat(Query(**BY_NEX, boxed=True, outbox=True), "m"),
        Flat(Query(**BY_BOSS, boxed=True, outbox=True), "m"),
    ],
    "unread": [
        Flat(Query(**BY_NEX, unread=True), "a", POPULATIONS["pending"]),
        Flat(Query(**BY_NEX, unread=True), "a"),
    ],
    "snoozed": [
        Flat(Query(**BY_NEX, box=Box.SNOOZED), "a", SNOOZED),
        Flat(Query(**BY_NEX, box=Box.SNOOZED), "a"),
    ],
    "thread": [Flat(Query(**by, thread=1), "m", SETTLED, IN_ONE_THREAD) for by in (BY_NEX, BY_ADA, BY_BOSS)],
    "conversation": [Flat(Query(**by, conversation=1), "s") for by in (BY_NEX, BY_ADA, BY_BOSS)],
    "scope": [Flat(Query(**by, tags=(AUTH,)), "m", SETTLED, TAGGED) for by in (BY_NEX, BY_ADA, BY_BOSS)],
    "ref": [Flat(Query(**BY_NEX, tags=(ISSUE,)), "m", SETTLED, TAGGED)],
    "mentions": [Flat(Query(**by, tags=(CALLED,)), "m", SETTLED, TAGGED) for by in (BY_NEX, BY_ADA)],
    "run": [Flat(Query(**by, run=ALL), "m", SETTLED, IN_ONE_RUN) for by in (BY_NEX, BY_ADA, BY_BOSS)],
    "author": [Flat(Query(**BY_ADA, senders=(ADA_ID,)), "m"), Flat(Query(**BY_BOSS, senders=(ADA_ID,)), "m")],
}


def test_every_flat_set_in_the_code_has_a_case_here() -> None:
    assert set(CASES) == set(FLAT)


def prepared(statements: str) -> Hot:
    def prepare(connection: Connection, size: int) -> None:
        for one in filter(str.strip, statements.format(size=size).split(";")):
            connection.execute(one)

    return prepare


def page(query: Query, **words: Any) -> Hot:
    return lambda connection, size: paging.page(connection, replace(query, **words), message_walks.walk)


def middle(query: Query, letter: str) -> Hot:
    """Return a page that begins in the middle."""

    def run(connection: Connection, size: int) -> Any:
        of = f"message.{message_walks.walk_name(connection, query)}"
        position = Position(walk=letter, number=size // 2, second=2**62, of=of)
        return page(query, after=position)(connection, size)

    return run


def count(query: Query) -> Hot:
    return lambda connection, size: message_walks.count(connection, query, 100)


def asked(case: Flat) -> Iterator[tuple[str, Hot]]:
    """The first page, one of a hundred, one from the middle, the count; each in both orders."""
    for oldest_first in (False, True):
        query = replace(case.query, oldest_first=oldest_first)
        order = "oldest first" if oldest_first else "newest first"
        yield f"a page, {order}", page(query)
        yield f"100, {order}", page(query, limit=100)
        yield f"the count, {order}", count(query)
        yield f"from the middle, {order}", middle(query, case.letter)


@pytest.mark.parametrize(("name", "number"), [(name, n) for name in CASES for n in range(len(CASES[name]))])
def test_a_flat_set_of_filters_is_flat(tmp_path: Path, name: str, number: int) -> None:
    case = CASES[name][number]

    def prepare(connection: Connection, size: int) -> None:
        prepared(case.prepare)(connection, size)
        assert message_walks.walk_name(connection, case.query) == name

    assert not_flat(tmp_path, case.population, dict(asked(case)), prepare=prepare) == {}


def test_what_a_page_shows_and_counts_is_flat(tmp_path: Path) -> None:
    statements: dict[str, Hot] = {
        "fetch": lambda c, n: message_rows.fetch(c, list(range(n // 2, n // 2 + 10)), NEX_ID),
        "about": lambda c, n: message_rows.about(c, list(range(n // 2, n // 2 + 10))),
        "bytes": lambda c, n: paging.fitting(c, list(range(n // 2, n // 2 + 10)), 10**6, "message"),
        "unread in the box": lambda c, n: unread_counts.of_box(c, NEX_ID, 100),
        "unread in the conversation": lambda c, n: unread_counts.of_conversation(c, NEX_ID, 1, 100),
        "unread in the thread": lambda c, n: unread_counts.of_thread(c, NEX_ID, 1, 100),
        "the thread": lambda c, n: message_rows.thread_of(c, ("thread", 1), NEX_ID),
        "a party": lambda c, n: message_rows.is_party(c, 1, NEX_ID),
        "a small run": lambda c, n: paging.page(
            c, Query(**BY_NEX, run=RunSpan(1, ADA_ID, n // 2, n // 2 + 5)), message_walks.walk
        ),
    }
    assert not_flat(tmp_path, SETTLED, statements, prepare=prepared(IN_ONE_THREAD + IN_ONE_RUN)) == {}


IN_MANY_THREADS = """
    UPDATE message SET thread = id - 1, reply_to = id - 1 WHERE id % 2 = 0 AND id <= {size};
    INSERT INTO thread SELECT conversation, id - 1, 2, id, id FROM message WHERE id % 2 = 0 AND id <= {size};
"""


def test_a_page_of_threads_is_flat(tmp_path: Path) -> None:
    def facts(connection: Connection, size: int) -> Any:
        found = thread_lists.page(connection, NEX_ID, None, None, 10)
        assert len(found.ids) == 10 and found.next
        return [thread_lists.facts(connection, one, NEX_ID, NEX_ID) for one in found.ids]

    def middle(connection: Connection, size: int) -> Any:
        position = Position(walk="a", number=size // 2, of=thread_lists.KIND)
        found = thread_lists.page(connection, NEX_ID, None, position, 10)
        assert found.ids[0] == size // 2 - 3
        return found

    statements: dict[str, Hot] = {
        "a page": facts,
        "100": lambda c, n: thread_lists.page(c, NEX_ID, None, None, 100),
        "from the middle": middle,
        "of somebody who has none": lambda c, n: thread_lists.page(c, BOSS_ID, None, None, 100),
    }
    assert not_flat(tmp_path, SETTLED, statements, prepare=prepared(IN_MANY_THREADS)) == {}


IN_MANY_CONVERSATIONS = """
    INSERT INTO conversation (id, kind, key, created_at, last_seq)
        SELECT id + 10, 'adhoc', 'k' || id, 1, 1 FROM message WHERE id > 1;
    INSERT INTO participant (conversation, address, joined_seq)
        SELECT c.id, a.id, 1 FROM conversation c, address a WHERE c.id > 11 AND a.id IN ({nex}, {ada});
    UPDATE message SET conversation = id + 10, seq = 1 WHERE id > 1;
    INSERT INTO thread SELECT conversation, id, 1, id, id FROM message WHERE id > 1;
"""


def test_threads_of_many_conversations_are_read_together(tmp_path: Path) -> None:
    with filled(tmp_path, SETTLED, 1_000) as connection:
        for one in filter(str.strip, IN_MANY_CONVERSATIONS.format(nex=NEX_ID, ada=ADA_ID).split(";")):
            connection.execute(one)
        asked: list[str] = []
        connection.set_trace_callback(asked.append)
        found = thread_lists.page(connection, NEX_ID, None, None, 900)
        connection.set_trace_callback(None)
    assert len(found.ids) == 900 and found.more
    assert len(asked) <= 20


def test_a_page_of_the_threads_of_a_scope_is_flat(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thread_lists, "TAGGED", 500)  # fewer than the small database has

    def first(connection: Connection, size: int) -> Any:
        found = thread_lists.page(connection, NEX_ID, AUTH, None, 10)
        assert len(found.ids) == 10 and found.next and thread_lists.is_cut(connection, AUTH)
        return found

    statements: dict[str, Hot] = {
        "a page": first,
        "all": lambda c, n: thread_lists.page(c, NEX_ID, AUTH, None, 1_000),
    }
    assert not_flat(tmp_path, SETTLED, statements, prepare=prepared(IN_MANY_THREADS + TAGGED)) == {}


def test_only_threads_of_the_last_messages_with_a_scope_are_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with filled(tmp_path, SETTLED, 20) as connection:
        prepared(IN_MANY_THREADS + TAGGED)(connection, 20)
        assert not thread_lists.is_cut(connection, AUTH)
        every = thread_lists.page(connection, NEX_ID, AUTH, None, 100).ids
        tagged = connection.execute("SELECT count(*) FROM tag WHERE kind = 'scope'").fetchone()[0]
        monkeypatch.setattr(thread_lists, "TAGGED", tagged - 10)
        assert thread_lists.is_cut(connection, AUTH)
        assert thread_lists.page(connection, NEX_ID, AUTH, None, 100).ids == every[:5]


def test_a_filter_that_is_not_flat_is_seen_to_be_none(tmp_path: Path) -> None:
    """The counting would notice: a type alone reads through everything."""
    statements: dict[str, Hot] = {
        "a type": lambda c, n: paging.page(c, Query(**BY_NEX, kind=Kind.JSON), message_walks.walk),
        "a time": lambda c, n: paging.page(c, Query(**BY_NEX, created_before=0), message_walks.walk),
        "data": lambda c, n: paging.page(c, Query(**BY_NEX, meta=(("a", 1),)), message_walks.walk),
    }
    assert set(not_flat(tmp_path, SETTLED, statements, large=5_000)) == set(statements)
    assert FRESH > 10  # a page of the fresh ones alone would be flat


def test_sorting_by_the_last_change_is_bounded(tmp_path: Path) -> None:
    query = Query(**BY_NEX, conversation=1)
    most = message_walks.SORTED_AT_ONCE
    with filled(tmp_path, SETTLED, most - FRESH) as connection:
        found = paging.page(connection, query, message_walks.walk_by_change)
        assert found.ids == list(range(most, most - 10, -1)) and found.next
    with filled(tmp_path, SETTLED, most - FRESH + 1) as connection, pytest.raises(TooBroad, match="10,000"):
        paging.page(connection, query, message_walks.walk_by_change)
