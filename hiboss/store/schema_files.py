"""The files of the schema, and what of them is in a database: migrations, views and triggers.

A store that is up to date needs only this; what brings it up to date is in migrations.py.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Sequence
from hashlib import sha256
from importlib.resources import files

from .. import __version__
from ..core.errors import StoreNewer, StoreUnreleased
from ..core.paths import Home
from .connection import Connection, about_a_statement

SCHEMA = files("hiboss.store") / "schema"
_MIGRATION = re.compile(r"[0-9]{4}_\w+")  # the name of its file; its function has an m in front


def read(name: str) -> str:
    """Return the content of a file of the schema."""
    return (SCHEMA / name).read_text(encoding="utf-8")


def is_current(connection: Connection) -> bool:
    """Tell whether a database has exactly the schema of this program. It may have other views."""
    applied = _applied(connection)
    return applied == migration_names() and _stored_fingerprint(connection) == fingerprint(applied)


def check(connection: Connection, home: Home) -> None:
    """Raise for a database of another hiboss."""
    refuse_unknown(connection, home, _applied(connection), migration_names())


def refuse_unknown(connection: Connection, home: Home, applied: list[str], ours: list[str]) -> None:
    """Raise for a database of another hiboss: a newer one only has more migrations, at the end."""
    facts = {"path": home.database, "version": __version__}
    if applied == ours[: len(applied)]:
        is_ours = _stored_fingerprint(connection) == fingerprint(applied)
        if not (is_ours if applied else _is_empty(connection)):
            raise StoreUnreleased(**facts, unknown="another schema", home=str(home))
        return
    unknown = ", ".join(name for name in applied if name not in ours)
    if ours == applied[: len(ours)]:
        raise StoreNewer(**facts, unknown=unknown)
    raise StoreUnreleased(**facts, unknown=unknown, home=str(home))


def _applied(connection: Connection) -> list[str]:
    """Return the names of the migrations of a database."""
    table = "SELECT 1 FROM sqlite_master WHERE name = '_sqlite_migrations'"
    if connection.execute(table).fetchone() is None:
        return []
    rows = connection.execute(
        "SELECT name FROM _sqlite_migrations WHERE migration_set = 'hiboss' ORDER BY rowid"
    )
    return [row[0] for row in rows]


def _is_empty(connection: Connection) -> bool:
    """Tell whether a database has no tables but those that keep the migrations."""
    query = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
    return all(row[0].startswith("_sqlite_migrations") for row in connection.execute(query))


def fingerprint(migrations: Sequence[str]) -> str:
    """Return what tells the schema that these migrations make from any other, whatever their comments say."""
    digest = sha256()
    for name in migrations:
        file = SCHEMA / f"{name[1:]}.sql"
        text = file.read_text(encoding="utf-8") if file.is_file() else name  # its function does all
        for line in text.splitlines():
            if words := line.partition("--")[0].split():
                digest.update(f"{' '.join(words)}\n".encode())
    return digest.hexdigest()[:16]


def _stored_fingerprint(connection: Connection) -> str | None:
    """Return the fingerprint of the migrations that made a database; None: it has none."""
    try:
        row = connection.execute("SELECT value FROM config WHERE key = 'schema'").fetchone()
    except sqlite3.OperationalError as error:
        if about_a_statement(error):  # there is no such table or column
            return None
        raise
    return None if row is None else str(row[0])


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
