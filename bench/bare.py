"""Bare: the rows of a send written by a plain loop, and nothing else.

The same schema, the same pragmas, the very statements of the store, the same durability:
what is left out is the daemon. No daemon can be faster than this with the same groups.
"""

from __future__ import annotations

from pathlib import Path
from time import perf_counter

from hiboss.core import clock
from hiboss.core.settings import DEFAULTS
from hiboss.store import envelopes, messages
from hiboss.store.connection import connect
from hiboss.store.invariants import violations

from .homes import AGENT, TEXT, new_home


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
        self._agent = execute("SELECT id FROM address WHERE fold = ?", (f"agent:{AGENT}",)).fetchone()[0]
        begun = execute("SELECT id, last_seq FROM conversation").fetchone()
        self._conversation, self._seq = begun["id"], begun["last_seq"]

    def close(self) -> None:
        self._connection.close()

    def run(self, group: int, seconds: float, warm_seconds: float) -> float:
        """Write messages in groups of this size for so long; how many a second."""
        begin = perf_counter()
        while perf_counter() < begin + warm_seconds:
            self._write(group)
        before, start = self._seq, perf_counter()
        while (now := perf_counter()) < start + seconds:
            self._write(group)
        return float(self._seq - before) / (now - start)

    def check(self) -> None:
        """Bare must have written what the daemon writes, or the comparison is worth nothing."""
        if broken := violations(self._connection):
            raise AssertionError("\n".join(broken))

    def _write(self, group: int) -> None:
        execute, agent, conversation = self._connection.execute, self._agent, self._conversation
        now = clock.now()
        execute("BEGIN IMMEDIATE")
        for seq in range(self._seq + 1, self._seq + group + 1):
            message = execute(
                messages._INSERT_MESSAGE,
                (
                    *(conversation, seq, None, None, agent, agent, False, None, None),
                    *(0, TEXT, None, True, False, None, None, None, 0, None, None, now, now),
                    *(None, False, None, None, None, False),
                ),
            ).lastrowid
            execute(
                envelopes._INSERT,
                (message, agent, None, 0, 2, seq, *(None, None, None, None), False, False, None, False, None),
            )
        self._seq += group
        execute("UPDATE conversation SET last_seq = ? WHERE id = ?", (self._seq, conversation))
        execute("UPDATE counter SET value = ? WHERE name = 'arrived'", (self._seq,))
        execute("COMMIT")
