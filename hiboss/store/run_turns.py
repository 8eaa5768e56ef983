"""The texts of turns, as providers got them, for people who look at a run. Only of the latest runs."""

from __future__ import annotations

from .connection import Connection
from .group_commit import Tx

KEPT = 1_000  # runs


def put(tx: Tx, run: int, text: str) -> None:
    """Store the text of a turn; one that is given again replaces the one before. Older runs lose theirs."""
    tx.execute(
        "INSERT INTO run_turn (run, text) VALUES (?, ?) ON CONFLICT (run) DO UPDATE SET text = excluded.text",
        (run, text),
    )
    # By the key: it reads only what it deletes.
    tx.execute("DELETE FROM run_turn WHERE run <= ?", (run - KEPT,))


def get(connection: Connection, run: int) -> str | None:
    """Return the text of the turn of a run; None if it was never given, or is not kept any more."""
    row = connection.execute("SELECT text FROM run_turn WHERE run = ?", (run,)).fetchone()
    return None if row is None else str(row["text"])
