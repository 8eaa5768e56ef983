"""At most eight indexes over message and envelope: each one is paid for by every send."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from hiboss.core.paths import Home
from hiboss.store.connection import connect
from hiboss.store.migrations import migrate

LIMIT = 8


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    """A freshly migrated database."""
    home = Home(str(tmp_path / "home"))
    home.create()
    connection = connect(home, wait_seconds=5)
    migrate(connection, home)
    yield connection
    connection.close()


def hot_indexes(connection: sqlite3.Connection) -> list[str]:
    """Also those SQLite makes by itself, for UNIQUE."""
    rows = connection.execute(
        "SELECT name FROM sqlite_master WHERE type = 'index' AND tbl_name IN ('message', 'envelope') ORDER BY name"
    )
    return [row[0] for row in rows]


def test_message_and_envelope_have_at_most_eight_indexes(fresh: sqlite3.Connection) -> None:
    found = hot_indexes(fresh)
    assert "envelope_due" in found
    assert len(found) <= LIMIT, found


def test_the_check_counts_every_index_once_more_is_made(fresh: sqlite3.Connection) -> None:
    before = hot_indexes(fresh)
    fresh.execute("CREATE INDEX one_more ON envelope (box)")
    fresh.execute("CREATE INDEX and_another ON message (text)")
    fresh.execute("CREATE INDEX elsewhere ON tag (name)")
    assert set(hot_indexes(fresh)) - set(before) == {"one_more", "and_another"}
