"""What metrics read from the store costs the same in a large one (test_flat.py)."""

from __future__ import annotations

from pathlib import Path

from hiboss.core.metrics import CONVERSATION_SIZES
from hiboss.store import counters, due_envelopes, metric_counts
from hiboss.store.connection import Connection
from tests.store.test_flat import LARGE, POPULATIONS, Hot, not_flat

STATEMENTS: dict[str, Hot] = {
    "rows made": lambda c, _: metric_counts.rows_made(c),
    "lanes": lambda c, _: metric_counts.troubled_lanes(c),
    "sizes": lambda c, _: metric_counts.recent_sizes(c, CONVERSATION_SIZES),
    "counts": lambda c, _: counters.counts(c, 100),
    "oldest": lambda c, _: due_envelopes.oldest(c),
}


def _many(connection: Connection, size: int) -> None:
    """Give each of the last messages a conversation of its own, and make as many others as there are messages."""
    numbers = f"WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < {size})"
    connection.execute(
        f"{numbers} INSERT INTO conversation (kind, key, created_at) SELECT 'private', 'k' || n, n FROM t"
    )


def test_metrics_cost_the_same_whatever_number_of_messages_and_conversations(tmp_path: Path) -> None:
    for name, population in POPULATIONS.items():
        found = not_flat(tmp_path / name, population, STATEMENTS, large=LARGE // 2, prepare=_many)
        assert found == {}, name


def test_the_check_finds_a_search_for_the_largest_of_all_conversations(tmp_path: Path) -> None:
    largest: dict[str, Hot] = {
        "largest": lambda c, _: c.execute("SELECT max(last_seq) FROM conversation").fetchone()
    }
    found = not_flat(tmp_path, POPULATIONS["settled"], largest, large=LARGE // 2, prepare=_many)
    assert list(found) == ["largest"]
