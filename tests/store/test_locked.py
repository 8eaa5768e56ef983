"""A database locked by another program: a clear error, and normal service as soon as it is unlocked."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from hiboss.testing.running_daemon import Answered, RunningDaemon
from tests.support.daemons import answers, code, daemon_with, launch, line, set_up, started


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDaemon]:
    with daemon_with(tmp_path_factory.mktemp("d"), lock_wait_seconds=0.1) as running:
        yield running


@pytest.mark.parametrize("lock", ["BEGIN IMMEDIATE", "BEGIN EXCLUSIVE"])
def test_a_send_into_a_locked_database_is_refused_and_later_sends_go_through(
    daemon: RunningDaemon, lock: str
) -> None:
    token = daemon.token("nex")
    with daemon.database() as other:
        other.isolation_level = None
        other.execute(lock)
        with pytest.raises(Answered) as refused:
            daemon.call("envelope.send", token=token, to="agent:nex", text=f"into {lock}", key=lock)
        assert refused.value.stable_code == "store_locked" and refused.value.rpc_code == -32041
        assert daemon.home.database in refused.value.message
        other.execute("ROLLBACK")
    again = daemon.call("envelope.send", token=token, to="agent:nex", text=f"into {lock}", key=lock)
    assert again["duplicate"] is False  # nothing of the first attempt was stored
    daemon.check()


def test_reading_goes_on_while_another_program_holds_the_lock(daemon: RunningDaemon) -> None:
    token = daemon.token("nex")
    sent = daemon.call("envelope.send", token=token, to="agent:nex", text="before the lock")
    with daemon.database() as other:
        other.execute("BEGIN IMMEDIATE")
        assert (
            daemon.call("envelope.get", token=token, id=sent["ids"][0])["envelope"]["text"]
            == "before the lock"
        )
        assert daemon.call("envelope.list", token=token, page_size=1)["envelopes"][0]["id"] == sent["ids"][0]
        assert daemon.call("daemon.status")["set_up"] is True


def test_everybody_who_waited_is_told_and_the_numbers_given_have_no_gap(daemon: RunningDaemon) -> None:
    token = daemon.register("waiter")
    send = {"token": token, "to": "agent:waiter"}
    daemon.call("envelope.send", text="before", **send)
    with daemon.connect() as connection:
        with daemon.database() as other:
            other.execute("BEGIN IMMEDIATE")
            connection.sendall(b"".join(line("envelope.send", n, text=f"{n}", **send) for n in range(50)))
            refused = answers(connection, 50)
        assert [code(one) for one in refused] == ["store_locked"] * 50
    daemon.call("envelope.send", text="after", **send)
    found = daemon.call("envelope.list", token=token, page_size=100)["envelopes"]
    assert [(one["text"], one["seq"]) for one in found] == [("after", 2), ("before", 1)]
    daemon.check()


def test_a_reader_of_the_database_disturbs_nobody(daemon: RunningDaemon) -> None:
    token = daemon.token("nex")
    with daemon.database() as other:
        other.execute("BEGIN")
        before = other.execute("SELECT count(*) FROM envelopes").fetchone()[0]
        daemon.call("envelope.send", token=token, to="agent:nex", text="beside a reader")
        assert other.execute("SELECT count(*) FROM envelopes").fetchone()[0] == before
        other.execute("ROLLBACK")
        assert other.execute("SELECT count(*) FROM envelopes").fetchone()[0] == before + 1


def test_a_daemon_cannot_start_on_a_locked_database_and_says_so(tmp_path: Path) -> None:
    home = set_up(tmp_path)
    with closing(sqlite3.connect(home.database, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        process, word = launch(home, lock_wait_seconds=0.1)
        assert (process.wait(30), word["ready"], word["code"]) == (1, False, "store_locked")
        assert "Traceback" not in word["message"]
        other.execute("ROLLBACK")
    process, word = launch(home, lock_wait_seconds=0.1)
    process.terminate()
    assert word["ready"] and process.wait(30) == 0


def test_a_program_that_opens_and_closes_the_database_costs_no_mail(tmp_path: Path) -> None:
    """If the daemon lost its lock, SQLite in that program would delete the WAL that the daemon writes to."""
    with started(tmp_path) as daemon:
        token = daemon.token("nex")
        answered = []
        for number in range(4):
            daemon.call("daemon.status")  # opens a reader, from a pool
            answered += daemon.call("envelope.send", token=token, to="agent:nex", text=f"{number}")["ids"]
            with daemon.database() as other:
                other.execute("SELECT count(*) FROM envelopes").fetchone()
        assert os.path.exists(f"{daemon.home.database}-wal")
        answered += daemon.call("envelope.send", token=token, to="agent:nex", text="last")["ids"]
        daemon.kill()
        daemon.start()
        found = daemon.call("envelope.list", token=token, oldest_first=True)["envelopes"]
        assert [one["id"] for one in found] == answered
        daemon.check()
