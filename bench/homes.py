"""Homes to measure in: set up, with as many envelopes as wanted, their daemon under our hand.

The rows are written by bulk SQL while no daemon runs; they are such as the daemon itself
could have written, and the invariants of the store hold for them.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from time import clock_gettime, perf_counter, sleep

import psutil

from hiboss.cli.daemon_process import call_once
from hiboss.core import clock
from hiboss.core.paths import Home
from hiboss.core.settings import DEFAULTS
from hiboss.store.connection import Connection, connect
from hiboss.testing.running_daemon import RunningDaemon

from .load import ROOT
from .rounds import say

AGENT = "nex"
SETTLED = "settled"  # the agent whose inbox is full of what is dealt with
WAITING = "waiting"  # the agent who has dealt with nothing
SETUP = {"boss_name": "Ada", "timezone": "UTC", "agent_name": AGENT}
TEXT = "The quick brown fox jumps over the lazy dog; the post office opens at nine. " * 3
SMALL = 1_000  # rows of the small store that the large one is compared with
CHUNK = 100_000
TELL = 500_000  # a word of progress after so many rows
CHECKED_ROWS = 50_000  # up to here every invariant is checked; over it that would take minutes
HOUR = 3_600_000
REST_SECONDS = 0.2
# With it a daemon finds the adapter that says when it was asked to post.
ENVIRONMENT = {
    "HIBOSS_ADAPTERS_MODULES": "bench.stamped",
    "PYTHONPATH": os.pathsep.join([os.environ.get("PYTHONPATH", ""), os.fspath(ROOT)]).strip(os.pathsep),
}


def cpu(pid: int) -> float:
    """Microseconds a process has worked: steadier than any rate on a machine that others use too."""
    if sys.platform == "linux":  # the clock of a process, by nanoseconds; elsewhere by ticks of 10 ms
        return clock_gettime((~pid << 3) | 2) * 1e6
    times = psutil.Process(pid).cpu_times()
    return float(times.user + times.system) * 1e6


def memory(daemon: RunningDaemon) -> float:
    """MB that a daemon holds when it rests."""
    daemon.call("daemon.ping")
    sleep(REST_SECONDS)
    return float(psutil.Process(daemon.pid).memory_info().rss / 1e6)


def is_alive(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def new_home(directory: Path) -> RunningDaemon:
    """A home that is set up; its daemon does not run yet."""
    daemon = RunningDaemon(Home(os.fspath(directory / "home")))
    call_once(daemon.home, "setup.execute", SETUP)
    return daemon


def full_home(directory: Path, rows: int) -> RunningDaemon:
    """A home where SETTLED has so many settled envelopes and WAITING so many pending ones; made once."""
    if (directory / "full").exists():
        return RunningDaemon(Home(os.fspath(directory / "home")))
    say(f"writing {2 * rows:,} envelopes to look through")
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
    _write(
        daemon,
        (SETTLED, rows, _settled),
        (WAITING, rows - rows // 2, _due),
        (WAITING, rows // 2, _deferred),
    )
    (directory / "full").touch()
    return daemon


def deferred_home(directory: Path, rows: int, places: list[str]) -> RunningDaemon:
    """A home where so many envelopes wait for their time, and AGENT may post to these places."""
    daemon = new_home(directory)
    daemon.start(**ENVIRONMENT)
    try:
        daemon.register(WAITING)
        daemon.call("envelope.send", token=daemon.token(AGENT), to=f"agent:{WAITING}", text=TEXT)
        bind(daemon, directory / "account", places)
    finally:
        daemon.stop()
    _write(daemon, (WAITING, rows, _deferred))
    return daemon


def bind(daemon: RunningDaemon, account: Path, places: list[str]) -> None:
    """Let AGENT post to these places with the adapter of bench.stamped. The daemon runs."""
    account.mkdir()
    (account / "settings.json").write_text(json.dumps({"places": places}))
    daemon.call(
        "agent.bind",
        token=daemon.token("boss"),
        name=AGENT,
        adapter_type="stamped",
        settings={"path": os.fspath(account)},
    )


def _write(daemon: RunningDaemon, *fills: tuple[str, int, str]) -> None:
    """Each fill: whose box, how many rows, and what is in their columns. The daemon does not run."""
    begin, total = perf_counter(), sum(rows for _, rows, _ in fills)
    connection = connect(daemon.home, wait_seconds=DEFAULTS.lock_wait_seconds)
    try:
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("PRAGMA foreign_keys = OFF")  # checked below, all at once
        for fill in fills:
            _fill(connection, *fill)
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    finally:
        connection.close()
    if total <= 2 * CHECKED_ROWS:
        daemon.check()
    say(f"wrote {total:,} envelopes in {perf_counter() - begin:.1f} s")


# Each gives, for row number i: seq, deliver_at of the message; status, arrived, waits, wait_until,
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
        INSERT INTO message (id, conversation, seq, sender, caller, text, deliver_at, created_at, arrived_at)
        SELECT ?1 + i, ?2, seq, ?3, ?3, 'Message number ' || i || '. ' || ?4, deliver, ?5, iif(seq, ?5, NULL)
        FROM fresh ORDER BY i
        """,
        (message, conversation, sender, TEXT[:100], now),
    )
    one(
        """
        INSERT INTO envelope (message, recipient, status, arrived, waits, wait_until, read_at, done_at)
        SELECT ?1 + i, ?2, status, arrived, waits, wake, read, done FROM fresh ORDER BY i
        """,
        (message, recipient),
    )
    one(
        """
        INSERT INTO reading (envelope, reader, at) SELECT e.id, e.recipient, e.read_at
        FROM envelope e INDEXED BY envelope_message WHERE e.message > ? AND e.read_at IS NOT NULL
        """,
        (message,),
    )
    one(
        "UPDATE conversation SET last_seq = last_seq + (SELECT count(seq) FROM fresh) WHERE id = ?",
        (conversation,),
    )
    one("UPDATE counter SET value = value + (SELECT count(arrived) FROM fresh) WHERE name = 'arrived'")
