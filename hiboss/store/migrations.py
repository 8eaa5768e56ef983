"""Bring a database up to date: under the daemon's lock, after a backup, each migration in one transaction.

To change the schema, add `schema/000N_name.sql` and a function `m000N_name` at the end of the list below.
A migration may drop columns and rebuild tables (create a new one, copy the rows, drop the old one, rename):
while it runs there are no views and no triggers, and foreign keys are off. The references are checked before
its COMMIT.
"""

from __future__ import annotations

import glob
import logging
import os
import secrets
import sqlite3
from contextlib import closing

from sqlite_utils import Database, Migrations

from ..core import clock
from ..core.errors import StoreError
from ..core.paths import Home, replacing
from . import schema_files
from .connection import Connection, translate

log = logging.getLogger(__name__)

migrations = Migrations("hiboss")


def _execute(db: Database, name: str) -> None:
    """Execute the statements of a file in the open transaction; each must end at the end of a line.

    `db.executescript` would look for the end of a statement after every character: 80 ms for the first file.
    """
    statement = ""
    for line in schema_files.read(name).splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            db.execute(statement)
            statement = ""
    assert not statement.strip(), f"{name} ends within a statement"


@migrations()
def m0001_initial(db: Database) -> None:
    _execute(db, "0001_initial.sql")
    db.execute(
        "INSERT INTO counter (name, value) VALUES ('arrived', 0), ('boot', 0), ('claim', 0), ('stop', 0)"
    )
    db.execute("INSERT INTO config (key, value) VALUES ('indexed_upto', '0')")
    db.execute("INSERT INTO config (key, value) VALUES ('epoch', ?)", [secrets.token_hex(4)])


def migrate(
    connection: Connection, home: Home, known: Migrations = migrations, views: str | None = None
) -> None:
    """Apply the missing migrations, make the views and triggers. Only the holder of the daemon's lock may.

    A crash at any point leaves a database that the next call brings up to date.
    """
    try:
        # Leaves the connection and its transactions to us.
        db = Database(connection, execute_plugins=False)
        applied = [step.name for step in known.applied(db)]
        schema_files.refuse_unknown(connection, home, applied, [step.name for step in known._migrations])
        missing = [step.name for step in known.pending(db)]
        if missing and applied:
            _back_up(connection, home, applied[-1])
        if missing:
            _apply(db, known, home)
            log.info("Database brought to %s.", missing[-1], extra={"action": "migrate"})
        schema_files.renew(
            connection,
            schema_files.read("views.sql") if views is None else views,
            schema_files.read("triggers.sql"),
        )
    except sqlite3.Error as error:
        raise translate(error, home) from error


def _back_up(connection: Connection, home: Home, version: str) -> None:
    stamp = clock.iso(clock.now()).replace(":", "").replace(".", "-")
    path = os.path.join(home.backups, f"hiboss-{version}-{stamp}.db")
    # A kill during an earlier backup left a copy that is not whole.
    for unfinished in glob.glob(os.path.join(glob.escape(home.backups), "hiboss-*.part*")):
        os.unlink(unfinished)
    with replacing(path) as temporary:
        os.close(os.open(temporary, os.O_WRONLY | os.O_CREAT, 0o600))
        with closing(sqlite3.connect(temporary)) as copy:
            connection.backup(copy)
    log.info("Database backed up to %s.", path, extra={"action": "backup"})


# --- one migration -------------------------------------------------------------------


def _apply(db: Database, known: Migrations, home: Home) -> None:
    """Apply the missing migrations, with foreign keys off.

    With foreign keys on, dropping a table deletes its rows first, which fails when other rows refer to them.
    DANGER: inside a transaction SQLite ignores this PRAGMA without a word.
    """
    with db.atomic():
        # Both at once: the library does not add the index to a table that a crash left without one.
        known.ensure_migrations_table(db)
    db.conn.execute("PRAGMA foreign_keys = OFF")
    try:
        _guarded(known, home).apply(db)
    finally:
        db.conn.execute("PRAGMA foreign_keys = ON")


def _guarded(known: Migrations, home: Home) -> Migrations:
    """Return the same migrations, each with what must happen before and after it in its transaction."""
    guarded = Migrations(known.name)
    names = [step.name for step in known._migrations]
    for number, step in enumerate(known._migrations, 1):
        schema = schema_files.fingerprint(names[:number])

        def run(db: Database, step: Migrations._Migration = step, schema: str = schema) -> None:
            # Takes the write lock while SQLite still waits for it: after a read it would not.
            db.conn.execute(f"DELETE FROM {known.migrations_table} WHERE false")
            schema_files.drop_derived(db.conn)
            last_ids = _last_ids(db.conn)
            step.fn(db)
            db.execute("INSERT OR REPLACE INTO config (key, value) VALUES ('schema', ?)", [schema])
            _restore_last_ids(db.conn, last_ids)
            _check_references(db.conn, step.name, home)

        guarded(name=step.name)(run)
    return guarded


def _last_ids(connection: Connection) -> dict[str, int]:
    """Return the highest id each table with AUTOINCREMENT has given out."""
    if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'sqlite_sequence'").fetchone():
        return {}
    return {row[0]: row[1] for row in connection.execute("SELECT name, seq FROM sqlite_sequence")}


def _restore_last_ids(connection: Connection, last_ids: dict[str, int]) -> None:
    """Let no table count from less than before: a rebuilt one would give out ids of deleted rows again."""
    for table, last in last_ids.items():
        counted = connection.execute(
            "UPDATE sqlite_sequence SET seq = max(seq, ?) WHERE name = ?", (last, table)
        )
        if not counted.rowcount:  # it has no row yet, or is gone
            connection.execute(
                """
                INSERT INTO sqlite_sequence (name, seq)
                SELECT name, ? FROM sqlite_master WHERE type = 'table' AND name = ?
                """,
                (last, table),
            )


def _check_references(connection: Connection, migration: str, home: Home) -> None:
    """Raise when a row or a table refers to one that does not exist; this rolls the migration back."""
    rows = connection.execute(
        'SELECT "table", parent, count(*) FROM pragma_foreign_key_check GROUP BY "table", parent'
    ).fetchall()
    tables = connection.execute(
        """
        SELECT DISTINCT t.name, f."table" FROM sqlite_master t JOIN pragma_foreign_key_list(t.name) f
        WHERE t.type = 'table'
          AND lower(f."table") NOT IN (SELECT lower(name) FROM sqlite_master WHERE type = 'table')
        """
    ).fetchall()
    wrong = [
        f"{count} rows of {table} refer to a {parent} that does not exist" for table, parent, count in rows
    ]
    wrong += [f"the table {table} refers to a table {parent} that does not exist" for table, parent in tables]
    if wrong:
        detail = f"after {migration}, {' and '.join(wrong)}. It was rolled back; use the version before it"
        raise StoreError(path=home.database, detail=detail)
