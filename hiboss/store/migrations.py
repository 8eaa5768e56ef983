"""Bringing a database up to date, under the daemon's lock, after a backup of what was there."""

from __future__ import annotations

import hashlib
import logging
import os
import secrets
import sqlite3
from importlib.resources import files

from sqlite_utils import Database, Migrations

from .. import __version__
from ..core import clock
from ..core.errors import StoreNewer
from ..core.paths import Home, replacing
from .connection import Connection, translate

log = logging.getLogger(__name__)

_SCHEMA = files("hiboss.store") / "schema"
migrations = Migrations("hiboss")


def _sql(name: str) -> str:
    return (_SCHEMA / name).read_text(encoding="utf-8")


@migrations()
def m0001_first_light(db: Database) -> None:
    db.executescript(_sql("0001_first_light.sql"))
    db.execute("INSERT INTO counter (name, value) VALUES ('arrived', 0), ('boot', 0)")
    db.execute("INSERT INTO config (key, value) VALUES ('indexed_upto', '0')")
    db.execute("INSERT INTO config (key, value) VALUES ('epoch', ?)", [secrets.token_hex(4)])


@migrations()
def m0002_delivery(db: Database) -> None:
    db.executescript(_sql("0002_delivery.sql"))


@migrations()
def m0003_schedules(db: Database) -> None:
    db.executescript(_sql("0003_schedules.sql"))


@migrations()
def m0004_turns(db: Database) -> None:
    db.executescript(_sql("0004_turns.sql"))


def migrate(connection: Connection, home: Home, known: Migrations = migrations) -> None:
    """Apply what is missing. Only the holder of the daemon's lock may call this."""
    try:
        # Leaves the connection and its transactions to us.
        db = Database(connection, execute_plugins=False)
        applied = [step.name for step in known.applied(db)]
        _refuse_newer(applied, known, home)
        missing = [step.name for step in known.pending(db)]
        if missing and applied:
            _back_up(connection, home, applied[-1])
        if missing:
            known.apply(db)
            log.info("Database brought to %s.", missing[-1], extra={"action": "migrate"})
        _renew_views(connection)
    except sqlite3.Error as error:
        raise translate(error, home) from error


def _refuse_newer(applied: list[str], known: Migrations, home: Home) -> None:
    ours = {step.name for step in known._migrations}
    unknown = [name for name in applied if name not in ours]
    if unknown:
        raise StoreNewer(path=home.database, unknown=", ".join(unknown), version=__version__)


def _back_up(connection: Connection, home: Home, version: str) -> None:
    stamp = clock.iso(clock.now()).replace(":", "").replace(".", "-")
    path = os.path.join(home.backups, f"hiboss-{version}-{stamp}.db")
    with replacing(path) as temporary:
        os.close(os.open(temporary, os.O_WRONLY | os.O_CREAT, 0o600))
        copy = sqlite3.connect(temporary)
        try:
            connection.backup(copy)
        finally:
            copy.close()
    log.info("Database backed up to %s.", path, extra={"action": "backup"})


def _renew_views(connection: Connection) -> None:
    """Views hold no data, so they follow the program and need no migration."""
    script = _sql("views.sql")
    mark = hashlib.sha256(script.encode()).hexdigest()[:16]
    stored = connection.execute("SELECT value FROM config WHERE key = 'views'").fetchone()
    if stored and stored[0] == mark:
        return
    names = connection.execute("SELECT name FROM sqlite_master WHERE type = 'view'").fetchall()
    drops = "".join(f'DROP VIEW "{row[0]}";\n' for row in names)
    keep = f"INSERT OR REPLACE INTO config (key, value) VALUES ('views', '{mark}');"
    connection.executescript(f"BEGIN IMMEDIATE;\n{drops}{script}\n{keep}\nCOMMIT;")
