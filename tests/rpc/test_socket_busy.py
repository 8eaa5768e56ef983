"""Overload: a stable `busy`, nothing stored of what was refused, and service when there is room again."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from hiboss.cli.client import Answered
from hiboss.core.errors import Busy, StoreLocked
from hiboss.core.settings import Settings
from hiboss.store.connection import connect
from hiboss.store.group_commit import Tx, Writer
from tests.support.daemons import answers, ask, code, daemon_with, line, set_up
from tests.support.raising import raised
from tests.support.scripted_channels import written
from tests.support.waits import wait_until


def test_a_connection_over_the_limit_is_told_busy_and_the_others_are_served(tmp_path: Path) -> None:
    with daemon_with(tmp_path, connections=5) as daemon:
        with ExitStack() as stack:
            inside = [stack.enter_context(daemon.connect()) for _ in range(5)]
            assert [code(ask(one, "daemon.ping")) for one in inside] == ["ok"] * 5
            (refused,) = answers(stack.enter_context(daemon.connect()), 2)  # one answer, then it hangs up
            assert code(refused) == "busy" and refused["error"]["code"] == -32030 and refused["id"] is None
            assert [code(ask(one, "daemon.ping")) for one in inside] == ["ok"] * 5

        def served_again() -> bool:
            with daemon.connect() as connection:
                return code(ask(connection, "daemon.ping")) == "ok"

        wait_until(served_again)


@pytest.mark.parametrize("size", [10, 3_000_000], ids=["small", "larger than the socket's buffer"])
def test_a_request_refused_for_busy_hears_so_through_the_shipped_client(tmp_path: Path, size: int) -> None:
    with daemon_with(tmp_path, connections=1) as daemon, daemon.connect() as only:
        assert code(ask(only, "daemon.ping")) == "ok"
        for _ in range(3):
            error = raised(
                Answered,
                daemon.call,
                "envelope.send",
                token=daemon.token("nex"),
                to="agent:nex",
                text="x" * size,
            )
            assert error.stable_code == "busy"


def test_sends_over_the_writers_queue_are_answered_busy_and_store_nothing(tmp_path: Path) -> None:
    with daemon_with(tmp_path, writer_queue=20, lock_wait_seconds=60.0) as daemon:
        token = daemon.token("nex")
        written(daemon)  # what the daemon writes at its start
        with daemon.database() as other, daemon.connect() as connection:
            other.execute("BEGIN IMMEDIATE")  # nothing can be written while this lasts
            connection.sendall(line("envelope.send", 0, token=token, to="agent:nex", text="0"))
            wait_until(lambda: daemon.call("daemon.status")["writes_waiting"] == 0)
            for number in range(1, 101):
                connection.sendall(
                    line("envelope.send", number, token=token, to="agent:nex", text=f"{number}")
                )
            wait_until(lambda: daemon.call("daemon.status")["writes_waiting"] == 20)
            # Reading goes on: it needs no place in the queue.
            assert daemon.call("envelope.list", token=token)["envelopes"] == []
            other.execute("ROLLBACK")
            found = answers(connection, 101)
        assert [one["id"] for one in found] == list(range(101))
        assert {code(one) for one in found} == {"ok", "busy"}
        accepted = {str(one["id"]) for one in found if code(one) == "ok"}
        page = daemon.call("envelope.list", token=token, page_size=100)
        assert {one["text"] for one in page["envelopes"]} == accepted
        assert daemon.call("envelope.send", token=token, to="agent:nex", text="room again")["ids"]
        daemon.check()


def test_the_writer_refuses_at_its_limit_and_writes_everything_it_took(tmp_path: Path) -> None:
    home = set_up(tmp_path)
    settings = Settings(writer_queue=4, lock_wait_seconds=60.0)

    def note(name: str) -> Callable[[Tx], str]:
        def operation(tx: Tx) -> str:
            tx.execute("INSERT INTO config (key, value) VALUES (?, '')", (f"note {name}",))
            return name

        return operation

    async def overload(other: sqlite3.Connection) -> list[str]:
        connection = connect(home, wait_seconds=settings.lock_wait_seconds)
        writer = Writer(connection, home, settings)
        other.execute("BEGIN IMMEDIATE")
        futures = [writer.submit(note("first"))]
        while writer.waiting:  # until the writer has it in hand and waits for the lock
            await asyncio.sleep(0.001)
        futures += [writer.submit(note(f"{n}")) for n in range(4)]
        for _ in range(3):
            with pytest.raises(Busy):
                writer.submit(note("refused"))
        other.execute("ROLLBACK")
        done = await asyncio.gather(*futures)
        await writer.close()
        connection.close()
        return done

    with closing(sqlite3.connect(home.database, isolation_level=None)) as other:
        assert asyncio.run(overload(other)) == ["first", "0", "1", "2", "3"]
        notes = {row[0] for row in other.execute("SELECT key FROM config WHERE key LIKE 'note %'")}
    assert notes == {"note first", "note 0", "note 1", "note 2", "note 3"}


def test_the_whole_group_is_told_that_the_database_is_locked(tmp_path: Path) -> None:
    home = set_up(tmp_path)
    settings = Settings(lock_wait_seconds=0.05)

    async def blocked() -> list[object]:
        connection = connect(home, wait_seconds=settings.lock_wait_seconds)
        writer = Writer(connection, home, settings)
        found = await asyncio.gather(
            *(writer.submit(lambda tx: 1) for _ in range(50)), return_exceptions=True
        )
        await writer.close()
        connection.close()
        return list(found)

    with closing(sqlite3.connect(home.database, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        assert [type(one) for one in asyncio.run(blocked())] == [StoreLocked] * 50
        other.execute("ROLLBACK")
    assert asyncio.run(blocked()) == [1] * 50
