"""Homes to measure in: set up, with as many envelopes as wanted, their daemon under our hand.

The rows are written by bulk SQL while no daemon runs; they are such as the daemon itself
could have written, and the invariants of the store hold for them.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from time import perf_counter

from hiboss import clock
from hiboss.cli.spawn import call_once
from hiboss.config import DEFAULTS
from hiboss.paths import Home
from hiboss.store.database import Connection, connect
from hiboss.testing import RunningDaemon

AGENT = "nex"
SETTLED = "settled"  # the agent whose inbox is full of what is dealt with
WAITING = "waiting"  # the agent who has dealt with nothing
SETUP = {"boss_name": "Ada", "timezone": "UTC", "agent_name": AGENT}
TEXT = "The quick brown fox jumps over the lazy dog; the post office opens at nine. " * 3
CHUNK = 100_000
TELL = 500_000  # a word of progress after so many rows
CHECKED_ROWS = 50_000  # up to here every invariant is checked; over it that would take minutes
HOUR = 3_600_000


def say(sentence: str) -> None:
    """Progress, for whoever watches."""
    print(f"bench: {sentence}", file=sys.stderr, flush=True)


def new_home(directory: Path) -> RunningDaemon:
    """A home that is set up; its daemon does not run yet."""
    daemon = RunningDaemon(Home(os.fspath(directory / "home")))
    call_once(daemon.home, "setup.execute", SETUP)
    return daemon


def full_home(directory: Path, rows: int) -> RunningDaemon:
    """A home where SETTLED has so many settled envelopes and WAITING so many pending ones."""
    daemon = new_home(directory)
    daemon.start()
    try:
        for name in (SETTLED, WAITING):
            daemon.register(name)
            # One real envelope begins the conversation that the others are written into.
            daemon.call("envelope.send", token=daemon.token(AGENT), to=f"agent:{name}", text=TEXT)
        daemon.call("envelope.ack", token=daemon.token(SETTLED), all=True)
    finally:
        daemon.stop()
    begin = perf_counter()
    connection = connect(daemon.home, wait_seconds=DEFAULTS.lock_wait_seconds)
    try:
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("PRAGMA foreign_keys = OFF")  # checked below, all at once
        _fill(connection, SETTLED, rows, _settled)
        _fill(connection, WAITING, rows - rows // 2, _due)
        _fill(connection, WAITING, rows // 2, _deferred)
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    finally:
        connection.close()
    if rows <= CHECKED_ROWS:
        daemon.check()
    say(f"wrote {2 * rows:,} envelopes in {perf_counter() - begin:.1f} s")
    return daemon


# Each gives, for row number i: seq, deliver_at of the message; status, arrived, waits, wake_at,
# read_at, done_at of its envelope. ?base is the last number given out before, ?now the time.
_settled = """
    ?seq + i, NULL, CASE i % 20 WHEN 0 THEN 2 WHEN 1 THEN 3 ELSE 1 END, ?base + i, NULL, NULL, ?now, ?now
"""
_due = "?seq + i, NULL, 0, ?base + i, NULL, NULL, NULL, NULL"
_deferred = f"NULL, ?now + {HOUR} + i, 0, NULL, 0, ?now + {HOUR} + i, NULL, NULL"


def _fill(connection: Connection, name: str, rows: int, columns: str) -> None:
    one = connection.execute
    sender = one("SELECT id FROM address WHERE fold = ?", (f"agent:{AGENT}",)).fetchone()[0]
    recipient = one("SELECT id FROM address WHERE fold = ?", (f"agent:{name}",)).fetchone()[0]
    now = clock.now()
    conversation = one(
        "SELECT m.conversation FROM envelope e JOIN message m ON m.id = e.message WHERE e.recipient = ?",
        (recipient,),
    ).fetchone()[0]
    for start in range(0, rows, CHUNK):
        part = min(CHUNK, rows - start)
        one("BEGIN IMMEDIATE")
        _fill_chunk(connection, (sender, recipient, conversation, part, now), columns)
        one("COMMIT")
        if (start + part) % TELL == 0:
            say(f"{name}: {start + part:,} of {rows:,} rows")


def _fill_chunk(connection: Connection, facts: tuple[int, int, int, int, int], columns: str) -> None:
    sender, recipient, conversation, part, now = facts
    one = connection.execute
    message = one("SELECT ifnull(max(id), 0) FROM message").fetchone()[0]
    seq = one("SELECT last_seq FROM conversation WHERE id = ?", (conversation,)).fetchone()[0]
    base = one("SELECT value FROM counter WHERE name = 'arrived'").fetchone()[0]
    chosen = columns.replace("?seq", str(seq)).replace("?base", str(base)).replace("?now", str(now))
    one("DROP TABLE IF EXISTS temp.fresh")
    one(
        "CREATE TEMP TABLE fresh (i INTEGER PRIMARY KEY, "
        "seq, deliver, status, arrived, waits, wake, read, done)"
    )
    one(
        f"""
        INSERT INTO fresh WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {part})
        SELECT i, {chosen} FROM n
        """
    )
    one(
        """
        INSERT INTO message (id, conversation, seq, sender, caller, text, deliver_at, created_at)
        SELECT ?1 + i, ?2, seq, ?3, ?3, 'Message number ' || i || '. ' || ?4, deliver, ?5
        FROM fresh ORDER BY i
        """,
        (message, conversation, sender, TEXT[:100], now),
    )
    one(
        """
        INSERT INTO envelope (message, recipient, status, arrived, waits, wake_at, read_at, done_at)
        SELECT ?1 + i, ?2, status, arrived, waits, wake, read, done FROM fresh ORDER BY i
        """,
        (message, recipient),
    )
    one(
        "UPDATE conversation SET last_seq = last_seq + (SELECT count(seq) FROM fresh) WHERE id = ?",
        (conversation,),
    )
    one("UPDATE counter SET value = value + (SELECT count(arrived) FROM fresh) WHERE name = 'arrived'")
