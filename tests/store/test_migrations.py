"""Bringing a database up to date: with a backup, whole or not at all, and the same as a fresh one."""

from __future__ import annotations

import json
import os
import sqlite3
import stat
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlite_utils import Database, Migrations

from hiboss.core.errors import StoreError
from hiboss.core.paths import Home
from hiboss.store import schedules, tokens
from hiboss.store.connection import Connection, connect
from hiboss.store.group_commit import Tx
from hiboss.store.invariants import violations
from hiboss.store.migrations import migrate, migrations
from hiboss.testing.running_daemon import Answered, RunningDaemon, running_daemon
from tests.support.daemons import started, wait_until

Step = Callable[[Database], None]


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(str(tmp_path / "home"))
    home.create()
    return home


@pytest.fixture
def connection(home: Home) -> Iterator[Connection]:
    """A database of today, with something in it."""
    with closing(connect(home, wait_seconds=1)) as connection:
        migrate(connection, home)
        connection.execute("INSERT INTO config (key, value) VALUES ('old', 'data')")
        yield connection


def tomorrow(*steps: Step) -> Migrations:
    """The migrations of a later hiboss: ours, and some more."""
    known = Migrations("hiboss")
    for ours in migrations._migrations:
        known(name=ours.name)(ours.fn)
    for step in steps:
        known()(step)
    return known


def m0002_pets(db: Database) -> None:
    db.executescript(
        "CREATE TABLE pet (id INTEGER PRIMARY KEY, name TEXT); INSERT INTO pet (name) VALUES ('Rex');"
    )
    db.execute("UPDATE config SET value = 'changed' WHERE key = 'old'")


def m0003_breaks(db: Database) -> None:
    db.execute("UPDATE config SET value = 'half done' WHERE key = 'old'")
    db.executescript("CREATE TABLE half (id INTEGER); INSERT INTO half VALUES (1);")
    db.execute("INSERT INTO no_such_table VALUES (1)")


def m0003_raises(db: Database) -> None:
    db.executescript(
        "CREATE TABLE half (id INTEGER); UPDATE config SET value = 'half done' WHERE key = 'old';"
    )
    raise RuntimeError("a defect in a migration")


def schema(connection: Connection) -> dict[tuple[str, str], Any]:
    rows = connection.execute("SELECT type, name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite_%'")
    return {(row[0], row[1]): row[2] and " ".join(row[2].split()) for row in rows}


def content(connection: Connection) -> str:
    return "\n".join(connection.iterdump())


def backups(home: Home) -> list[str]:
    return sorted(os.path.join(home.backups, name) for name in os.listdir(home.backups))


# --- backup ------------------------------------------------------------------------------------


def test_a_migration_makes_a_backup_that_opens_and_holds_the_old_data(
    home: Home, connection: Connection
) -> None:
    before = content(connection)
    migrate(connection, home, tomorrow(m0002_pets))
    (backup,) = backups(home)
    assert stat.S_IMODE(os.stat(backup).st_mode) == 0o600
    assert migrations._migrations[-1].name in os.path.basename(backup)
    with closing(sqlite3.connect(backup)) as old:
        assert content(old) == before
        assert violations(old) == []
    assert connection.execute("SELECT name FROM pet").fetchone()["name"] == "Rex"
    assert connection.execute("SELECT value FROM config WHERE key = 'old'").fetchone()["value"] == "changed"


def test_a_backup_can_be_put_back_and_served(tmp_path: Path) -> None:
    with started(tmp_path) as daemon:
        token = daemon.token("nex")
        sent = daemon.call("envelope.send", token=token, to="agent:nex", text="from before the upgrade")
    with closing(connect(daemon.home, wait_seconds=1)) as connection:
        migrate(connection, daemon.home, tomorrow(m0002_pets))
    with pytest.raises(Answered) as refused:
        daemon.start()
    assert refused.value.stable_code == "store_newer"
    os.replace(backups(daemon.home)[0], daemon.home.database)
    daemon.start()
    try:
        assert (
            daemon.call("envelope.get", token=token, id=sent["ids"][0])["envelope"]["text"]
            == "from before the upgrade"
        )
        daemon.check()
    finally:
        daemon.stop()


def test_a_new_database_and_one_up_to_date_are_not_backed_up(home: Home, connection: Connection) -> None:
    migrate(connection, home)
    migrate(connection, home)
    assert backups(home) == []


def test_no_migration_without_a_backup(home: Home, connection: Connection) -> None:
    before = content(connection)
    os.rmdir(home.backups)
    Path(home.backups).write_text("in the way")
    with pytest.raises(OSError):
        migrate(connection, home, tomorrow(m0002_pets))
    assert content(connection) == before


# --- whole or not at all ---------------------------------------------------------------------------


@pytest.mark.parametrize(("step", "error"), [(m0003_breaks, StoreError), (m0003_raises, RuntimeError)])
def test_a_failing_migration_leaves_the_database_as_it_was(
    home: Home, connection: Connection, step: Step, error: type[Exception]
) -> None:
    before = content(connection)
    with pytest.raises(error):
        migrate(connection, home, tomorrow(step))
    assert not connection.in_transaction
    assert content(connection) == before
    assert len(backups(home)) == 1
    migrate(connection, home)  # today's hiboss goes on with it
    assert violations(connection) == []


def test_steps_before_a_failing_one_stay_and_the_rest_is_made_up_for_later(
    home: Home, connection: Connection
) -> None:
    with pytest.raises(StoreError):
        migrate(connection, home, tomorrow(m0002_pets, m0003_breaks))
    assert connection.execute("SELECT count(*) FROM pet").fetchone()[0] == 1
    assert ("table", "half") not in schema(connection)
    migrate(connection, home, tomorrow(m0002_pets))
    assert connection.execute("SELECT count(*) FROM pet").fetchone()[0] == 1


# --- the same as a fresh one ---------------------------------------------------------------------------


def test_a_database_migrated_step_by_step_equals_a_fresh_one(tmp_path: Path) -> None:
    names = [step.name for step in migrations._migrations]
    fresh, grown = Home(str(tmp_path / "fresh")), Home(str(tmp_path / "grown"))
    fresh.create()
    grown.create()
    with closing(connect(fresh, wait_seconds=1)) as one, closing(connect(grown, wait_seconds=1)) as other:
        migrate(one, fresh)
        for count in range(1, len(names) + 1):
            known = Migrations("hiboss")
            for step in migrations._migrations[:count]:
                known(name=step.name)(step.fn)
            migrate(other, grown, known)
        assert schema(one) == schema(other)
        assert {kind for kind, _ in schema(one)} == {"table", "index", "view"}
        for table in ("config", "counter"):
            sql = f"SELECT * FROM {table} WHERE {'key' if table == 'config' else 'name'} <> 'epoch'"
            assert [tuple(row) for row in one.execute(sql)] == [tuple(row) for row in other.execute(sql)]


def test_mail_from_before_there_was_delivery_says_when_it_arrived(home: Home) -> None:
    first = Migrations("hiboss")
    first(name=migrations._migrations[0].name)(migrations._migrations[0].fn)
    with closing(connect(home, wait_seconds=1)) as connection:
        migrate(connection, home, first)
        connection.executescript(
            """
            INSERT INTO address (id, kind, name, fold)
                VALUES (1, 'user', 'boss', 'user:boss'), (2, 'agent', 'nex', 'agent:nex');
            INSERT INTO conversation (id, kind, key, last_seq, created_at) VALUES (1, 'private', '1,2', 2, 1);
            INSERT INTO participant (conversation, address) VALUES (1, 1), (1, 2);
            INSERT INTO message (id, conversation, seq, sender, text, created_at, deliver_at)
                VALUES (1, 1, 1, 1, 'at once', 100, NULL), (2, 1, 2, 1, 'deferred', 100, 900),
                       (3, 1, NULL, 1, 'still deferred', 100, 5000);
            INSERT INTO envelope (message, recipient, arrived, waits, wake_at)
                VALUES (1, 2, 1, NULL, NULL), (2, 2, 2, NULL, NULL), (3, 2, NULL, 0, 5000);
            UPDATE counter SET value = 2 WHERE name = 'arrived';
            """
        )
        migrate(connection, home)
        rows = connection.execute("SELECT text, arrived_at FROM message ORDER BY id").fetchall()
        assert [tuple(row) for row in rows] == [
            ("at once", 100),
            ("deferred", 900),
            ("still deferred", None),
        ]
        assert violations(connection) == []


def test_a_home_from_before_there_were_schedules_gets_them(home: Home) -> None:
    """Its table of slots was never written; what else there was stays."""
    known = Migrations("hiboss")
    for step in migrations._migrations[:2]:
        known(name=step.name)(step.fn)
    with closing(connect(home, wait_seconds=1)) as connection:
        migrate(connection, home, known)
        connection.executescript(
            """
            INSERT INTO address (id, kind, name, fold) VALUES (1, 'agent', 'nex', 'agent:nex');
            INSERT INTO config (key, value) VALUES ('old', 'data');
            """
        )
        migrate(connection, home)
        assert connection.execute("SELECT value FROM config WHERE key = 'old'").fetchone()["value"] == "data"
        connection.execute("BEGIN")
        tx = Tx(connection)
        draft = {"from": "agent:nex", "to": ["agent:nex"], "text": "x"}
        columns = {"every_ms": 60_000, "draft": json.dumps(draft)}
        number = schedules.insert(tx, 1, columns, 1_000)
        assert schedules.get(tx, number, 1)["next_at"] == 61_000
        connection.execute("COMMIT")
        found = [row["id"] for row in connection.execute("SELECT * FROM schedules")]
        assert found == ["s1"] and connection.execute("SELECT * FROM schedule_slots").fetchall() == []
        assert violations(connection) == []


OLD_HOUSE = """
    INSERT INTO address (id, kind, name, fold)
        VALUES (1, 'user', 'boss', 'user:boss'), (2, 'agent', 'nex', 'agent:nex');
    INSERT INTO user (address, name, boss, timezone, created_at) VALUES (1, 'Ada', 1, 'UTC', 1);
    INSERT INTO agent (address, budget, description, created_at) VALUES (2, 'unused', 'from before', 1);
    INSERT INTO conversation (id, kind, key, last_seq, created_at) VALUES (1, 'private', '1,2', 1, 1);
    INSERT INTO participant (conversation, address) VALUES (1, 1), (1, 2);
    INSERT INTO message (id, conversation, seq, sender, from_boss, text, created_at) VALUES (1, 1, 1, 1, 1, 'hello', 1);
    INSERT INTO envelope (id, message, recipient, arrived) VALUES (1, 1, 2, 1);
    UPDATE counter SET value = 1 WHERE name = 'arrived';
"""


@pytest.mark.parametrize("steps", [1, 2, 3])
def test_a_home_from_before_there_were_turns_gets_them_and_old_mail_is_answered(
    home: Home, steps: int
) -> None:
    known = Migrations("hiboss")
    for step in migrations._migrations[:steps]:
        known(name=step.name)(step.fn)
    with closing(connect(home, wait_seconds=1)) as connection:
        migrate(connection, home, known)
        connection.executescript(OLD_HOUSE)
        if steps > 1:  # where it is noted
            connection.execute("UPDATE message SET arrived_at = created_at")
        token = tokens.new("boss")
        connection.execute(
            "INSERT INTO token (hash, kind, holder, created_at) VALUES (?, 'boss', 1, 1)",
            (tokens.digest(token),),
        )
    daemon = RunningDaemon(home)
    daemon.start()
    try:
        (nex,) = daemon.call("agent.list", token=token)["agents"]
        assert (nex["mode"], nex["provider"], nex["description"]) == ("pull", None, "from before")
        assert (nex["daily_tokens"], nex["daily_cost"], nex["paused"]) == (None, None, None)
        assert daemon.call("run.list", token=token)["runs"] == []
        daemon.call("agent.set", token=token, name="nex", provider="demo")
        wait_until(lambda: daemon.call("run.list", token=token, status="completed")["runs"])
        (run,) = daemon.call("run.list", token=token)["runs"]
        assert (run["kind"], run["envelopes"], run["trace"], run["hops"]) == ("turn", ["e1"], "m1", 0)
        assert daemon.call("envelope.get", token=token, id="e1")["envelope"]["status"] == "done"
        daemon.check()
    finally:
        daemon.stop()
    assert len(backups(home)) == 1


def test_old_views_are_replaced_by_those_of_the_program(home: Home, connection: Connection) -> None:
    expected = schema(connection)
    connection.executescript(
        "DROP VIEW envelopes; CREATE VIEW envelopes AS SELECT 1 AS old; CREATE VIEW gone AS SELECT 2 AS old;"
    )
    connection.execute("UPDATE config SET value = 'of an older hiboss' WHERE key = 'views'")
    migrate(connection, home)
    assert schema(connection) == expected


# --- the epoch ---------------------------------------------------------------------------------------------


def test_a_cursor_of_another_store_is_answered_gap(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    with started(tmp_path) as here, running_daemon(tmp_path / "other") as there:
        cursors = [_cursor(daemon) for daemon in (here, there)]
        assert cursors[0].partition("-")[0] != cursors[1].partition("-")[0]
        with pytest.raises(Answered) as refused:
            here.call("envelope.list", token=here.token("nex"), after=cursors[1])
        assert refused.value.stable_code == "gap" and refused.value.rpc_code == -32011
        page = here.call("envelope.list", token=here.token("nex"), page_size=2, after=cursors[0])
        assert [one["text"] for one in page["envelopes"]] == ["0"]
        here.kill()
        here.start()  # the epoch outlives the daemon
        assert here.call("envelope.list", token=here.token("nex"), page_size=2, after=cursors[0]) == page


def _cursor(daemon: RunningDaemon) -> str:
    token = daemon.token("nex")
    for number in range(3):
        daemon.call("envelope.send", token=token, to="agent:nex", text=f"{number}")
    return str(daemon.call("envelope.list", token=token, page_size=2)["next"])
