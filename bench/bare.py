"""Bare: the rows of a send written by a plain loop, and nothing else.

The same schema, the same pragmas, the very statements with which the store writes a plain send, the same
durability: what is left out is the daemon. No daemon can be faster than this with the same groups. Its CPU
time is that of Python and SQLite for two inserts, and of a COMMIT with its fsync for each group.
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

INSERTS = {"message": messages._INSERT_PLAIN, "envelope": envelopes._INSERT_PLAIN}
_BOUND = re.compile(r"INSERT INTO \w+ \(([^)]*)\) VALUES \(([^)]*)\)")


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
        begun = self._connection.execute("SELECT id, last_seq FROM conversation").fetchone()
        self._conversation, self._seq = begun["id"], begun["last_seq"]
        self._message, self._envelope = map(self._values, INSERTS)

    def _values(self, table: str) -> dict[str, Any]:
        """What the real send wrote into the columns that are bound: repeated below, but for the numbers."""
        found = _BOUND.fullmatch(INSERTS[table])
        assert found is not None
        places = zip(found[1].split(", "), found[2].split(", "), strict=True)
        bound = ", ".join(name for name, place in places if place == "?")
        return dict(self._connection.execute(f"SELECT {bound} FROM {table}").fetchone())

    def close(self) -> None:
        self._connection.close()

    def run(self, group: int, seconds: float, warm_seconds: float = 0.0) -> Wrote:
        """Write messages in groups of this size for so long; at least one group, however slow the machine."""
        begin = perf_counter()
        while perf_counter() < begin + warm_seconds:
            self._write(group)
        before, start, worked = self._seq, perf_counter(), process_time()
        while True:
            self._write(group)
            if (now := perf_counter()) >= start + seconds:
                break
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
            envelope["message"] = execute(INSERTS["message"], tuple(message.values())).lastrowid
            execute(INSERTS["envelope"], tuple(envelope.values()))
        self._seq += group
        execute("UPDATE conversation SET last_seq = ? WHERE id = ?", (self._seq, self._conversation))
        execute("UPDATE counter SET value = ? WHERE name = 'arrived'", (self._seq,))
        execute("COMMIT")
