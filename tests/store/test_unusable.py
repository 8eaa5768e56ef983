"""A database that cannot be used: damaged, of a newer hiboss, or locked by another program. It is not changed."""

from __future__ import annotations

import hashlib
import os
import random
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from hiboss.cli.daemon_process import call_once
from hiboss.core.paths import Home
from hiboss.testing.running_daemon import Answered, RunningDaemon
from tests.support.daemons import answers, code, daemon_fixture, launch, line, set_up, started
from tests.support.forked_daemons import spawn
from tests.support.raising import raised

PAGE = 4096


@pytest.fixture(scope="module")
def intact(tmp_path_factory: pytest.TempPathFactory) -> str:
    with started(tmp_path_factory.mktemp("d")) as daemon:
        for number in range(20):
            daemon.call(
                "envelope.send", token=daemon.token("nex"), to="agent:nex", text=f"{number} " + "x" * 2_000
            )
    return daemon.home.path


@pytest.fixture
def home(intact: str, tmp_path: Path) -> Home:
    """A home with mail in it, and no daemon."""
    shutil.copytree(intact, tmp_path / "home")
    return Home(str(tmp_path / "home"))


def overwrite(path: str, start: int, length: int) -> None:
    with open(path, "r+b") as file:
        file.seek(start)
        file.write(random.Random(start).randbytes(length))


def header(path: str) -> None:
    overwrite(path, 0, 100)


def all_but_the_first_page(path: str) -> None:
    overwrite(path, PAGE, os.path.getsize(path) - PAGE)


def half_is_missing(path: str) -> None:
    os.truncate(path, os.path.getsize(path) // 2)


def another_kind_of_file(path: str) -> None:
    Path(path).write_text("Dear diary,\n" * 1_000)


@pytest.mark.parametrize("damage", [header, all_but_the_first_page, half_is_missing, another_kind_of_file])
def test_a_damaged_database_is_refused_at_start_with_advice(
    home: Home, damage: Callable[[str], None]
) -> None:
    damage(home.database)
    mark = hashlib.sha256(Path(home.database).read_bytes()).digest()
    with pytest.raises(Answered) as refused:
        spawn(home, {})
    assert refused.value.stable_code == "store_damaged"
    assert home.database in refused.value.message and home.backups in refused.value.message
    assert "Traceback" not in refused.value.message
    assert "Traceback" not in Path(home.log_file).read_text()
    with pytest.raises(Answered) as refused:
        call_once(home, "setup.execute", {})
    assert refused.value.stable_code == "store_damaged"
    assert (
        hashlib.sha256(Path(home.database).read_bytes()).digest() == mark
    )  # unchanged, so that it can be rescued


def test_a_page_damaged_in_the_middle_is_named_to_who_needs_it_and_the_daemon_lives(home: Home) -> None:
    with closing(sqlite3.connect(home.database)) as connection:
        page = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'message'").fetchone()[0]
    overwrite(home.database, (page - 1) * PAGE, PAGE)
    daemon = RunningDaemon(home)
    daemon.start()
    try:
        token = daemon.token("nex")
        for method, params in (
            ("envelope.list", {}),
            ("envelope.send", {"to": "agent:nex", "text": "into the damage"}),
            ("envelope.list", {"from": "agent:nex"}),
        ):
            error = raised(Answered, daemon.call, method, token=token, **params)
            assert error.stable_code == "store_damaged", method
        assert daemon.call("daemon.ping")["pid"] == daemon.pid
        assert daemon.call("agent.list", token=token)["agents"][0]["name"] == "nex"
    finally:
        assert daemon.stop() == 0


def test_a_write_ahead_log_of_noise_is_passed_over_and_nothing_is_lost(home: Home) -> None:
    Path(f"{home.database}-wal").write_bytes(random.Random(1).randbytes(100_000))
    daemon = RunningDaemon(home)
    daemon.start()
    try:
        assert len(daemon.call("envelope.list", token=daemon.token("nex"), page_size=100)["envelopes"]) == 20
        daemon.check()
    finally:
        daemon.stop()


def test_a_newer_database_is_refused_with_advice_and_left_alone(tmp_path: Path) -> None:
    home = set_up(tmp_path)
    with closing(sqlite3.connect(home.database)) as connection, connection:
        connection.execute(
            "INSERT INTO _sqlite_migrations (migration_set, name, applied_at) VALUES ('hiboss', 'm0999_from_tomorrow', '')"
        )
        connection.execute("CREATE VIEW tomorrow AS SELECT 1 AS it")
    with pytest.raises(Answered) as refused:
        spawn(home, {})
    assert refused.value.stable_code == "store_newer"
    assert "m0999_from_tomorrow" in refused.value.message and "upgrade" in refused.value.message.lower()
    with closing(sqlite3.connect(home.database)) as connection:
        assert connection.execute("SELECT it FROM tomorrow").fetchone() == (1,)
        connection.execute("DELETE FROM _sqlite_migrations WHERE name = 'm0999_from_tomorrow'")
        connection.commit()
    daemon = RunningDaemon(home)
    daemon.start()
    assert daemon.stop() == 0


def test_another_programs_migrations_are_not_taken_for_ours(tmp_path: Path) -> None:
    home = set_up(tmp_path)
    with closing(sqlite3.connect(home.database)) as connection, connection:
        connection.execute(
            "INSERT INTO _sqlite_migrations (migration_set, name, applied_at) VALUES ('llm', 'm001_initial', '')"
        )
    daemon = RunningDaemon(home)
    daemon.start()
    assert daemon.stop() == 0


# --- locked -------------------------------------------------------------------------


daemon = daemon_fixture(lock_wait_seconds=0.1)


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
