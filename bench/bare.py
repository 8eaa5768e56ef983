"""Bare: the rows of a send written by a plain loop, and nothing else.

The same schema, the same pragmas, the very statements of the store, the same durability:
what is left out is the daemon. No daemon can be faster than this with the same groups. Its CPU time
is that of Python and SQLite for two inserts, and of a COMMIT with its fsync for each group.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

from hiboss.core import clock
from hiboss.core.settings import DEFAULTS
from hiboss.store import envelopes, messages
from hiboss.store.connection import connect
from hiboss.store.invariants import violations

from .homes import AGENT, TEXT, new_home


@dataclass(frozen=True, kw_only=True)
class Wrote:
    """How fast the loop was, and what it cost."""

    rate: float  # messages a second
    cpu: float  # microseconds a message, user and system


class Bare:
    """A home of its own, written to by hand."""

    def __init__(self, directory: Path) -> None:
        daemon = new_home(directory)
        self.home = daemon.home
        daemon.start()
        try:  # one real send begins the conversation
            daemon.call("envelope.send", token=daemon.token(AGENT), to=f"agent:{AGENT}", text=TEXT)
        finally:
            daemon.stop()
        self._connection = connect(self.home, wait_seconds=DEFAULTS.lock_wait_seconds)
        execute = self._connection.execute
        begun = execute("SELECT id, last_seq FROM conversation").fetchone()
        self._conversation, self._seq = begun["id"], begun["last_seq"]
        self._message = self._values("message", messages._INSERT_MESSAGE)
        self._envelope = self._values("envelope", envelopes._INSERT)

    def _values(self, table: str, statement: str) -> dict[str, Any]:
        """What the real send wrote, by the columns of the statement: repeated below, but for the numbers."""
        found = re.match(rf"\s*INSERT INTO {table} \(([^)]*)\)", statement)
        assert found is not None
        row = self._connection.execute(f"SELECT {found[1]} FROM {table}").fetchone()
        return dict(row)

    def close(self) -> None:
        self._connection.close()

    def run(self, group: int, seconds: float, warm_seconds: float) -> Wrote:
        """Write messages in groups of this size for so long."""
        begin = perf_counter()
        while perf_counter() < begin + warm_seconds:
            self._write(group)
        before, start, worked = self._seq, perf_counter(), process_time()
        while (now := perf_counter()) < start + seconds:
            self._write(group)
        wrote = float(self._seq - before)
        return Wrote(rate=wrote / (now - start), cpu=(process_time() - worked) / wrote * 1e6)

    def check(self) -> None:
        """Bare must have written what the daemon writes, or the comparison is worth nothing."""
        if broken := violations(self._connection):
            raise AssertionError("\n".join(broken))

    def _write(self, group: int) -> None:
        execute, message, envelope = self._connection.execute, self._message, self._envelope
        message["created_at"] = message["arrived_at"] = clock.now()
        execute("BEGIN IMMEDIATE")
        for seq in range(self._seq + 1, self._seq + group + 1):
            message["seq"] = envelope["arrived"] = seq
            envelope["message"] = execute(messages._INSERT_MESSAGE, tuple(message.values())).lastrowid
            execute(envelopes._INSERT, tuple(envelope.values()))
        self._seq += group
        execute("UPDATE conversation SET last_seq = ? WHERE id = ?", (self._seq, self._conversation))
        execute("UPDATE counter SET value = ? WHERE name = 'arrived'", (self._seq,))
        execute("COMMIT")
