"""Numbers for the metrics that no other list or count has. Each costs the same in a large store."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .connection import Connection

RECENT = 1_000  # messages whose conversations are measured: there is no index by the size of all of them


class Sizes(NamedTuple):
    """How large the conversations are in which somebody wrote lately."""

    numbers: list[int]  # of conversations: up to each end, and above the last one
    largest: int  # messages of the largest one


def rows_made(connection: Connection) -> dict[str, int]:
    """Return how many rows were ever made of those tables whose ids never repeat."""
    # One row for each table. A rollback takes its ids back, a deleted row does not.
    rows = connection.execute("SELECT name, seq FROM sqlite_sequence").fetchall()
    return {row["name"]: int(row["seq"]) for row in rows}


def troubled_lanes(connection: Connection) -> dict[tuple[str, str], int]:
    """Count the lanes that wait or are paused, by scope (lane, account) and state. An open one has no row."""
    rows = connection.execute(
        """
        SELECT iif(address IS NULL, 'account', 'lane') AS scope,
               iif(state = 'paused', 'paused', 'waiting') AS state, count(*) AS number
        FROM lane WHERE state <> 'open' GROUP BY 1, 2
        """
    ).fetchall()
    found = {(scope, state): 0 for scope in ("lane", "account") for state in ("waiting", "paused")}
    return found | {(row["scope"], row["state"]): row["number"] for row in rows}


def recent_sizes(connection: Connection, ends: Sequence[int]) -> Sizes:
    """Measure the conversations of the last messages."""
    rows = connection.execute(
        """
        SELECT c.last_seq - c.first_seq + 1 AS size FROM conversation c
        WHERE c.id IN (SELECT conversation FROM (SELECT conversation FROM message ORDER BY id DESC LIMIT ?))
        """,
        (RECENT,),
    ).fetchall()
    sizes = [row["size"] for row in rows]
    numbers = [sum(size <= end for size in sizes) for end in ends] + [len(sizes)]
    return Sizes(
        [number - below for number, below in zip(numbers, [0, *numbers], strict=False)], max(sizes, default=0)
    )
