"""The files of the schema, and what of them is in a database: migrations, views and triggers.

A store that is up to date needs only this; what brings it up to date is in migrations.py.
"""

from __future__ import annotations

import re
import sqlite3
from importlib.resources import files

from .connection import Connection

SCHEMA = files("hiboss.store") / "schema"
_MIGRATION = re.compile(r"[0-9]{4}_\w+")  # the name of its file; its function has an m in front


def read(name: str) -> str:
    """Return the content of a file of the schema."""
    return (SCHEMA / name).read_text(encoding="utf-8")


def is_current(connection: Connection) -> bool:
    """Tell whether a database has exactly the migrations of this program. It may have other views."""
    table = "SELECT 1 FROM sqlite_master WHERE name = '_sqlite_migrations'"
    if connection.execute(table).fetchone() is None:
        return False
    rows = connection.execute(
        "SELECT name FROM _sqlite_migrations WHERE migration_set = 'hiboss' ORDER BY rowid"
    )
    return [row[0] for row in rows] == migration_names()


def migration_names() -> list[str]:
    """Return the names of all migrations, in their order."""
    stems = [one.name.removesuffix(".sql") for one in SCHEMA.iterdir()]
    return sorted(f"m{stem}" for stem in stems if _MIGRATION.fullmatch(stem))


def renew_derived(connection: Connection) -> None:
    """Make the views and triggers those of this program."""
    renew(connection, read("views.sql"), read("triggers.sql"))


def renew(connection: Connection, *scripts: str) -> None:
    """Make the views and triggers those of the program; they hold no data, so they need no migration.

    They themselves are compared, not a mark kept beside them: a crash cannot make it wrong.
    """
    wanted = {name: sql for script in scripts for name, sql in _declared(script).items()}
    if _derived(connection) == wanted:
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        drop_derived(connection)
        for statement in wanted.values():
            connection.execute(statement)
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def _declared(script: str) -> dict[tuple[str, str], str]:
    """Return the views and triggers of a script by kind and name, with their SQL as SQLite keeps it."""
    found, statement = {}, ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement) and (match := _CREATE.search(statement)):
            sql = statement[match.start() :].rstrip().removesuffix(";")
            found[match[1].lower(), match[2]] = sql
            statement = ""
    return found


_CREATE = re.compile(r"^CREATE (VIEW|TRIGGER) (\w+)", re.MULTILINE)


def _derived(connection: Connection) -> dict[tuple[str, str], str]:
    """Return the views and triggers that there are, by kind and name, with their SQL."""
    rows = connection.execute(
        "SELECT type, name, sql FROM sqlite_master WHERE type IN ('view', 'trigger') ORDER BY rowid"
    )
    return {(row[0], row[1]): row[2] for row in rows}


def drop_derived(connection: Connection) -> None:
    for kind, name in _derived(connection):
        quoted = name.replace('"', '""')
        connection.execute(f'DROP {kind.upper()} "{quoted}"')
