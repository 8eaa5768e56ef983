"""A spike, not a part of hiboss: a server that answers a send when a journal has it, and writes SQLite later.

`python -m bench.journal_server HOME SOCKET SIZE` takes `envelope.send` and `applied.wait` as JSON
lines. The loop decides all that the answer says (ids, seq) from memory; one thread appends groups to the
journal and calls fdatasync; another applies them to the database of a real home. SIZE 0 is the same
server without a journal: groups go to the database, and are answered after its COMMIT.
docs/design/journal.md says what came of it.
"""

from __future__ import annotations

import asyncio
import hashlib
import queue
import sys
import threading
from pathlib import Path
from time import sleep
from typing import Any

import orjson

from hiboss.core import clock
from hiboss.core.paths import Home
from hiboss.core.settings import DEFAULTS
from hiboss.store.connection import Connection, connect

from .journal import Journal, Record

APPLY_AFTER_SECONDS = 0.02  # so that many small groups are applied by one transaction
APPLY_AT_ONCE = 2_000


class Tables:
    """The rows of a send, as hiboss writes them; the ids are known, so each table is one executemany."""

    def __init__(self, home: Home, *, durable: bool = False) -> None:
        self.connection: Connection = connect(home, wait_seconds=DEFAULTS.lock_wait_seconds)
        if not durable:
            # The journal makes it durable, so a COMMIT need not: a checkpoint syncs WAL and database.
            self.connection.execute("PRAGMA synchronous = NORMAL")
            self.connection.execute("PRAGMA wal_autocheckpoint = 0")
        self.connection.execute("CREATE TABLE IF NOT EXISTS journal_applied (number INTEGER NOT NULL)")
        if self.applied is None:
            self.connection.execute("INSERT INTO journal_applied VALUES (0)")

    @property
    def applied(self) -> Any:
        row = self.connection.execute("SELECT number FROM journal_applied").fetchone()
        return None if row is None else row[0]

    def apply(self, records: list[Record]) -> None:
        """All of them and their number, or nothing: so no crash applies one twice."""
        rows = [orjson.loads(payload) for _, payload in records]
        connection = self.connection
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany(
            """
            INSERT INTO message (id, conversation, seq, sender, caller, from_boss, type, text, interruptible,
                                 auto, hops, created_at, arrived_at, context, repeats)
            VALUES (?1, ?2, ?3, ?4, ?4, 0, 0, ?8, 1, 0, 0, ?7, ?7, 0, 0)
            """,
            rows,
        )
        connection.executemany(
            """
            INSERT INTO envelope (id, message, recipient, status, priority, arrived, addressed, context,
                                  offered)
            VALUES (?6, ?1, ?5, 0, 2, ?6, 0, 0, 0)
            """,
            [row[:6] for row in rows],
        )
        lasts = {row[1]: row[2] for row in rows}
        connection.executemany(
            "UPDATE conversation SET last_seq = ?2 WHERE id = ?1", [list(one) for one in lasts.items()]
        )
        connection.execute("UPDATE counter SET value = ? WHERE name = 'arrived'", (rows[-1][5],))
        connection.execute("UPDATE journal_applied SET number = ?", (records[-1][0],))
        connection.execute("COMMIT")

    def make_durable(self) -> bool:
        """Whether all that was applied is now synced in the database file itself; a reader can prevent it."""
        blocked, in_log, done = self.connection.execute("PRAGMA wal_checkpoint(FULL)").fetchone()
        return not blocked and in_log == done

    def recover(self, journal: Journal) -> int:
        """Apply what a crash left in the journal; return how many."""
        left = journal.after(self.applied)
        for start in range(0, len(left), APPLY_AT_ONCE):
            self.apply(left[start : start + APPLY_AT_ONCE])
        if not self.make_durable():
            raise AssertionError("the database is in use")
        return len(left)


class Server:
    """The state from which answers are made, and the two threads behind it."""

    def __init__(self, home: Home, size: int, loop: asyncio.AbstractEventLoop) -> None:
        self._loop, self._without = loop, not size
        self._tables = Tables(home, durable=self._without)
        self._journal = Journal(Path(home.path), size)
        self.replayed = self._tables.recover(self._journal)
        one = self._tables.connection.execute
        tokens = one("SELECT hash, holder FROM token WHERE revoked_at IS NULL")
        self.tokens = {row["hash"]: row["holder"] for row in tokens}
        addresses = one("SELECT id, fold FROM address WHERE retired_at IS NULL")
        self.addresses = {row["fold"]: row["id"] for row in addresses}
        self.conversation, self.seq = one("SELECT id, last_seq FROM conversation").fetchone()
        self.number = self._tables.applied
        self.message = one("SELECT max(id) FROM message").fetchone()[0]
        self.arrived = one("SELECT max(id) FROM envelope").fetchone()[0]
        self.done = self.number
        self._collected: list[tuple[Record, asyncio.Transport, bytes]] = []
        self._appending = False
        self._waiting: list[tuple[int, asyncio.Transport, bytes]] = []
        self._to_append: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._to_apply: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._hurry = threading.Event()
        threading.Thread(target=self._append, daemon=True).start()
        threading.Thread(target=self._apply, daemon=True).start()

    def send(self, transport: asyncio.Transport, request: dict[str, Any]) -> None:
        params = request["params"]
        sender = self.tokens[hashlib.sha256(params["token"].encode()).digest()]
        recipient, text = self.addresses[params["to"]], params["text"]
        self.number += 1
        self.message += 1
        self.arrived += 1
        self.seq += 1
        row = [self.message, self.conversation, self.seq, sender, recipient, self.arrived, clock.now(), text]
        answer = b'{"jsonrpc":"2.0","id":%d,"result":{"id":"m%d","envelopes":["e%d"],"seq":%d}}\n' % (
            *(request["id"], self.message, self.arrived, self.seq),
        )
        self._collected.append(((self.number, orjson.dumps(row)), transport, answer))
        if not self._appending:
            self._appending = True
            self._loop.call_soon(self._hand_over)

    def wait(self, transport: asyncio.Transport, request: dict[str, Any]) -> None:
        """Answer when all that was accepted until now can be read in SQLite."""
        answer = b'{"jsonrpc":"2.0","id":%d,"result":{"applied":%d}}\n' % (request["id"], self.number)
        self._waiting.append((self.number, transport, answer))
        self._hurry.set()
        self._applied(self.done)

    def _hand_over(self) -> None:
        self._appending = bool(self._collected)
        if self._collected:
            self._to_append.put(self._collected)
            self._collected = []

    def _appended(self, group: list[tuple[Any, asyncio.Transport, bytes]]) -> None:
        answers: dict[asyncio.Transport, list[bytes]] = {}
        for _, transport, answer in group:
            answers.setdefault(transport, []).append(answer)
        for transport, lines in answers.items():
            transport.write(b"".join(lines))
        self._loop.call_soon(self._hand_over)

    def _applied(self, number: int) -> None:
        self.done = number
        ready = [one for one in self._waiting if one[0] <= number]
        self._waiting = [one for one in self._waiting if one[0] > number]
        for _, transport, answer in ready:
            transport.write(answer)

    def _append(self) -> None:
        while True:
            group = self._to_append.get()
            records = [record for record, _, _ in group]
            if self._without:
                self._tables.apply(records)
                self._loop.call_soon_threadsafe(self._applied, records[-1][0])
            else:
                self._journal.append(records)
                self._to_apply.put(records)
            self._loop.call_soon_threadsafe(self._appended, group)

    def _apply(self) -> None:
        while True:
            records = self._to_apply.get()
            self._hurry.wait(APPLY_AFTER_SECONDS)
            self._hurry.clear()
            while not self._to_apply.empty() and len(records) < APPLY_AT_ONCE:
                records += self._to_apply.get()
            self._tables.apply(records)
            self._loop.call_soon_threadsafe(self._applied, records[-1][0])
            last = self._journal.left_behind
            if last is not None and last <= records[-1][0]:
                while not self._tables.make_durable():
                    sleep(APPLY_AFTER_SECONDS)
                self._journal.release()


class Lines(asyncio.Protocol):
    def __init__(self, server: Server) -> None:
        self._methods = {"envelope.send": server.send, "applied.wait": server.wait}
        self._rest = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            request = orjson.loads(line)
            self._methods[request["method"]](self._transport, request)


async def main(home: Home, socket: str, size: int) -> None:
    loop = asyncio.get_running_loop()
    server = Server(home, size, loop)
    listener = await loop.create_unix_server(lambda: Lines(server), socket)
    print(server.replayed, flush=True)  # whoever started it waits for this
    async with listener:
        await listener.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(Home(sys.argv[1]), sys.argv[2], int(sys.argv[3])))
