"""Bringing a database up to date: with a backup, whole or not at all, and the same as a fresh one."""

from __future__ import annotations

import os
import sqlite3
import stat
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlite_utils import Database, Migrations

from hiboss.cli.daemon_process import call_once, end_runs
from hiboss.core.errors import StoreError, StoreUnreleased
from hiboss.core.paths import Home
from hiboss.store import schema_files
from hiboss.store.connection import Connection, connect
from hiboss.store.invariants import violations
from hiboss.store.migrations import migrate, migrations
from hiboss.testing.running_daemon import Answered, RunningDaemon, running_daemon
from tests.store.later_schema import (
    LATER,
    ROWS,
    VIEWS,
    Step,
    content,
    m0002_pets,
    m0003_drop_role,
    rebuild,
    tomorrow,
)
from tests.support.daemons import started
from tests.support.raising import raised
from tests.support.sweeps import sweep


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
        connection.executescript(ROWS)
        yield connection


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


def rows(connection: Connection) -> dict[str, list[tuple[Any, ...]]]:
    """Return what is in all tables, but for the mark of the schema, which each migration changes."""
    found = {table: [tuple(row) for row in connection.execute(f"SELECT * FROM {table}")] for table in TABLES}
    return {table: [row for row in rows if row[0] != "schema"] for table, rows in found.items()}


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
        assert content(old) == before and violations(old) == []
    assert connection.execute("SELECT name FROM pet").fetchone()["name"] == "Rex"
    assert connection.execute("SELECT value FROM config WHERE key = 'old'").fetchone()["value"] == "changed"


def test_a_backup_can_be_put_back_and_served(tmp_path: Path) -> None:
    with started(tmp_path) as daemon:
        token = daemon.token("nex")
        sent = daemon.call("envelope.send", token=token, to="agent:nex", text="from before the upgrade")
    with closing(connect(daemon.home, wait_seconds=1)) as connection:
        migrate(connection, daemon.home, tomorrow(m0002_pets))
    assert raised(Answered, daemon.start).stable_code == "store_newer"
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
    assert not connection.in_transaction and content(connection) == before
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


# --- dropping columns, rebuilding tables ---------------------------------------------------------------


def m0002_rename_failures(db: Database) -> None:
    db.executescript("ALTER TABLE lane RENAME COLUMN failures TO misses;")


@pytest.mark.parametrize(
    ("step", "views", "table", "columns"),
    [
        (m0003_drop_role, VIEWS, "agent", {"role": False}),
        (m0002_rename_failures, VIEWS.replace("l.failures", "l.misses"), "lane", {"failures": False, "misses": True}),
    ],
)  # fmt: skip
def test_a_later_migration_may_drop_or_rename_a_column_that_a_view_uses(
    home: Home, connection: Connection, step: Step, views: str, table: str, columns: dict[str, bool]
) -> None:
    names = {name for kind, name in schema(connection) if kind == "view"}
    migrate(connection, home, tomorrow(step), views)
    found = {row["name"] for row in connection.execute(f"PRAGMA table_info({table})")}
    assert {column: column in found for column in columns} == columns
    assert names == {name for kind, name in schema(connection) if kind == "view"}
    for name in names:
        connection.execute(f"SELECT * FROM {name}").fetchall()
    assert connection.execute("SELECT description FROM agents").fetchone()["description"] == "from before"
    assert violations(connection) == []


TABLES = [
    *("address", "user", "agent", "token"),
    *(
        "conversation",
        "participant",
        "message",
        "envelope",
        "reading",
        "ack_deadline",
        "unread",
        "thread",
        "sent_key",
        "upload",
        "webhook_subscription",
        "tag",
        "revision",
        "chat_change",
        "chat_position",
        "reaction",
        "button",
    ),
    *(
        "binding",
        "binding_agent",
        "identity",
        "contact",
        "place",
        "platform_update",
        "post",
        "post_part",
        "posted_file",
        "post_change",
        "post_step",
        "reaction_change",
        "live_post",
        "deleted_live_post",
        "lane",
    ),
    *(
        "schedule",
        "schedule_slot",
        "run",
        "run_envelope",
        "run_turn",
        "interrupted_run",
        "usage",
        "trace_limit",
    ),
    *("attached_session", "provider_session", "ask", "ask_rule", "control", "conversation_route", "breaker"),
    *("config", "counter", "poll_position", "quiet_notice", "state_watch"),
]


def test_the_tables_tried_below_are_all_there_are(connection: Connection) -> None:
    found = {
        name for kind, name in schema(connection) if kind == "table" and not name.startswith(("search", "_"))
    }
    assert found == set(TABLES)


def rebuilding(table: str) -> Step:
    def step(db: Database) -> None:
        rebuild(db, table)
        db.execute(f"ALTER TABLE {table} ADD COLUMN added TEXT")

    step.__name__ = f"m0002_rebuild_{table}"
    return step


def test_later_migrations_may_rebuild_tables_that_others_refer_to(home: Home, connection: Connection) -> None:
    """One table after the other, each by a migration of its own."""
    steps: list[Step] = []
    with sweep() as row:
        for table in TABLES:
            before = rows(connection)
            steps.append(rebuilding(table))
            with row(table):
                migrate(connection, home, tomorrow(*steps))
                after = rows(connection)
                assert after.pop(table) == [(*one, None) for one in before.pop(table)] and after == before
                assert violations(connection) == []
                assert connection.execute("PRAGMA foreign_keys").fetchone()[0] == 1
                for statement in (  # what refers to it still does
                    "INSERT INTO run (agent, status, provider, boot, started_at) VALUES (9, 'failed', '', 1, 1)",
                    "DELETE FROM address WHERE id = 2",
                ):
                    with pytest.raises(sqlite3.IntegrityError):
                        connection.execute(statement)


@pytest.mark.parametrize("rows_left", [True, False])
def test_a_rebuilt_table_never_gives_out_an_id_again(
    home: Home, connection: Connection, rows_left: bool
) -> None:
    insert = "INSERT INTO schedule (owner, draft, created_at, begun_at) VALUES (2, '{}', 1, 1) RETURNING id"
    ids = [connection.execute(insert).fetchone()[0] for _ in range(3)]
    connection.execute("DELETE FROM schedule WHERE id > ?", (ids[0] if rows_left else 0,))
    migrate(connection, home, tomorrow(m0002_rebuild_schedule))
    assert connection.execute(insert).fetchone()[0] == ids[-1] + 1


def m0002_rebuild_schedule(db: Database) -> None:
    rebuild(db, "schedule")


# --- references are checked -----------------------------------------------------------------------------


def m0002_forget_messages(db: Database) -> None:
    db.execute("UPDATE config SET value = 'half done' WHERE key = 'old'")
    db.execute("DELETE FROM message WHERE id = 1")


def m0002_forget_a_table(db: Database) -> None:
    db.executescript(
        "UPDATE config SET value = 'half done' WHERE key = 'old'; DROP TABLE ask; DROP TABLE tag;"
    )
    db.executescript("CREATE TABLE note (ask INTEGER REFERENCES ask (id));")


@pytest.mark.parametrize(
    ("step", "said"),
    [
        (m0002_forget_messages, "1 rows of envelope refer to a message that does not exist"),
        (m0002_forget_a_table, "the table note refers to a table ask that does not exist"),
    ],
)
def test_a_migration_that_leaves_a_dangling_reference_is_rolled_back_and_refused(
    home: Home, connection: Connection, step: Step, said: str
) -> None:
    before = content(connection)
    error = raised(StoreError, migrate, connection, home, tomorrow(step))
    assert said in error.message and step.__name__ in error.message
    assert content(connection) == before and connection.execute("PRAGMA foreign_keys").fetchone()[0] == 1
    migrate(connection, home)  # today's hiboss goes on with it
    assert content(connection) == before and violations(connection) == []
    connection.execute("INSERT INTO tag (message, kind, name) VALUES (2, 'ref', 'x')")


def test_a_migration_waits_for_a_program_that_is_writing(home: Home, connection: Connection) -> None:
    with closing(connect(home, wait_seconds=5)) as other:
        other.execute("BEGIN IMMEDIATE")
        other.execute("INSERT INTO config (key, value) VALUES ('other', 'was first')")
        commit = threading.Timer(
            0.2, other.execute, ("COMMIT",)
        )  # while the migration waits, or before: both are right

        def traced(statement: str) -> None:
            if "foreign_keys = OFF" in statement:
                commit.start()

        connection.execute("PRAGMA busy_timeout = 30000")
        connection.set_trace_callback(traced)
        migrate(connection, home, tomorrow(m0002_pets))
        commit.join()
    found = connection.execute("SELECT value FROM config WHERE key = 'other'").fetchone()
    assert found["value"] == "was first" and ("table", "pet") in schema(connection)


# --- the same as a fresh one ---------------------------------------------------------------------------


def test_a_database_migrated_step_by_step_equals_a_fresh_one(tmp_path: Path) -> None:
    fresh, grown = Home(str(tmp_path / "fresh")), Home(str(tmp_path / "grown"))
    fresh.create()
    grown.create()
    with closing(connect(fresh, wait_seconds=1)) as one, closing(connect(grown, wait_seconds=1)) as other:
        migrate(one, fresh, tomorrow(*LATER), VIEWS)
        for count in range(len(LATER) + 1):
            migrate(other, grown, tomorrow(*LATER[:count]), VIEWS)
        assert content(one) == content(other)
        assert {kind for kind, _ in schema(one)} == {"table", "index", "view", "trigger"}
    assert len(backups(grown)) == len(LATER) and backups(fresh) == []


# --- databases of another hiboss ------------------------------------------------------------------------

UNRELEASED = ("m0001_first_light", "m0002_delivery", "m0003_schedules", "m0004_turns")


@pytest.mark.parametrize("names", [UNRELEASED, UNRELEASED[:1], ("m0001_initial", "m0002_of_a_branch")])
def test_a_database_of_an_unreleased_version_is_refused_with_advice_and_left_untouched(
    home: Home, names: tuple[str, ...]
) -> None:
    old = Migrations("hiboss")
    for name in names:
        old(name=name)(lambda db: db.execute("CREATE TABLE IF NOT EXISTS errand (trace TEXT)"))
    with closing(connect(home, wait_seconds=1)) as connection:
        old.apply(Database(connection, execute_plugins=False))
    before = Path(home.database).read_bytes()
    with closing(connect(home, wait_seconds=1)) as connection, pytest.raises(StoreUnreleased) as refused:
        migrate(connection, home, tomorrow(m0002_pets))
    assert "hiboss up" in refused.value.message and str(home) in refused.value.message
    assert refused.value.unknown == ", ".join(name for name in names if name != "m0001_initial")
    assert Path(home.database).read_bytes() == before and backups(home) == []


def test_a_daemon_does_not_start_with_a_database_of_an_unreleased_version(home: Home) -> None:
    old = Migrations("hiboss")
    old(name=UNRELEASED[0])(lambda db: db.execute("CREATE TABLE errand (trace TEXT)"))
    with closing(connect(home, wait_seconds=1)) as connection:
        old.apply(Database(connection, execute_plugins=False))
    assert raised(Answered, RunningDaemon(home).start).stable_code == "store_unreleased"


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE config SET value = 'of a branch' WHERE key = 'schema'",
        "DELETE FROM config",
        "DROP TABLE config",
    ],
)
def test_a_database_with_our_migrations_and_another_schema_is_refused_and_left_untouched(
    tmp_path: Path, change: str
) -> None:
    with started(tmp_path) as daemon:
        home, token = daemon.home, daemon.token("boss")
        daemon.call("envelope.send", token=token, to="agent:nex", text="kept")
    with closing(sqlite3.connect(home.database)) as connection:
        connection.executescript(f"{change}; DROP VIEW envelopes;")
        before = list(connection.iterdump())
    for refused in (
        raised(Answered, RunningDaemon(home).start),
        raised(Answered, lambda: call_once(home, "setup.execute", {})),
        raised(Answered, lambda: end_runs(home, token, None)),
    ):
        assert refused.stable_code == "store_unreleased"
        assert str(home) in refused.message and "hiboss up" in refused.message
    with closing(sqlite3.connect(home.database)) as connection:
        assert list(connection.iterdump()) == before


# --- views ----------------------------------------------------------------------------------------------


def test_views_that_are_missing_are_made_at_the_next_start(home: Home, connection: Connection) -> None:
    expected = schema(connection)
    for kind, name in expected:
        if kind == "view":
            connection.execute(f"DROP VIEW {name}")
    migrate(connection, home)
    assert schema(connection) == expected


def test_old_views_are_replaced_by_those_of_the_program(home: Home, connection: Connection) -> None:
    expected = schema(connection)
    connection.executescript(
        "DROP VIEW envelopes; CREATE VIEW envelopes AS SELECT 1 AS old; CREATE VIEW gone AS SELECT 2 AS old;"
    )
    migrate(connection, home)
    assert schema(connection) == expected


# --- the epoch ---------------------------------------------------------------------------------------------


def test_a_cursor_of_another_store_is_answered_gap(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    with started(tmp_path) as here, running_daemon(tmp_path / "other") as there:
        cursors = [_cursor(daemon) for daemon in (here, there)]
        assert cursors[0].partition("-")[0] != cursors[1].partition("-")[0]
        error = raised(Answered, here.call, "envelope.list", token=here.token("nex"), after=cursors[1])
        assert error.stable_code == "gap" and error.rpc_code == -32011
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


def test_each_migration_has_its_file_and_each_file_its_migration() -> None:
    """A store whose migrations are those of the files is not looked at any further."""
    assert schema_files.migration_names() == [step.name for step in migrations._migrations]
