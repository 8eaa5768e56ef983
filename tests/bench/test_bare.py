"""Bare writes what a daemon writes, with the same statements; Redis is asked as it wants to be."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from bench.bare import Bare
from bench.redis_server import encoded
from hiboss.store.connection import Connection
from tests.support.in_process_daemon import InProcessDaemon, frozen

OWN = ("id", "message", "seq", "arrived", "created_at", "arrived_at")  # numbers and times
_INSERT = re.compile(r"INSERT INTO (message|envelope) \(([^)]*)\)")


def rows(database: str, table: str) -> list[dict[str, object]]:
    with closing(sqlite3.connect(database)) as connection:
        connection.row_factory = sqlite3.Row
        return [dict(row) for row in connection.execute(f"SELECT * FROM {table} ORDER BY id")]


def test_the_rows_of_bare_are_those_of_a_real_send_but_for_numbers_and_times(tmp_path: Path) -> None:
    bare = Bare(tmp_path)
    wrote = bare.run(group=3, seconds=0.0)  # one group, whatever the clock says
    bare.check()
    assert wrote.rate > 0
    for table in ("message", "envelope"):
        first, *more = rows(bare.home.database, table)
        assert len(more) == 3
        for row in more:
            assert {name: value for name, value in row.items() if name not in OWN} == {
                name: value for name, value in first.items() if name not in OWN
            }
    bare.close()


@contextmanager
def inserted(connection: Connection) -> Iterator[list[tuple[str, str]]]:
    """Collect the tables and columns that this connection inserts."""
    found: list[tuple[str, str]] = []
    connection.set_trace_callback(lambda statement: found.extend(_INSERT.findall(statement)))
    try:
        yield found
    finally:
        connection.set_trace_callback(None)


@frozen(at=None)
async def test_bare_writes_exactly_the_columns_that_a_plain_send_writes(daemon: InProcessDaemon) -> None:
    await daemon.send()  # begins the conversation
    with inserted(daemon.daemon.wiring.delivery._store._connection) as by_a_send:
        await daemon.send()
    bare = Bare(Path(daemon.home.path).parent / "bare")
    with inserted(bare._connection) as by_bare:
        bare.run(group=1, seconds=0.0)
    bare.close()
    assert by_bare == by_a_send
    assert {table for table, _ in by_a_send} == {"message", "envelope"}


def test_a_command_is_written_to_redis_with_the_length_of_each_word_in_bytes() -> None:
    assert encoded("XADD", "s", "*", "text", "Grüße") == (
        "*5\r\n$4\r\nXADD\r\n$1\r\ns\r\n$1\r\n*\r\n$4\r\ntext\r\n$7\r\nGrüße\r\n"
    )
