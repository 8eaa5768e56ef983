"""The migrations of a later hiboss, made up for tests: they drop, rename and rebuild what is there today."""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib.resources import files

from sqlite_utils import Database, Migrations

from hiboss.store.connection import Connection
from hiboss.store.migrations import migrations

Step = Callable[[Database], None]

# The views of today, without the column that `m0003_drop_role` drops.
VIEWS = (files("hiboss.store") / "schema" / "views.sql").read_text().replace("g.role, ", "")

ROWS = """
    INSERT INTO address (id, kind, name, fold)
        VALUES (1, 'user', 'boss', 'user:boss'), (2, 'agent', 'nex', 'agent:nex'),
               (3, 'channel', 'folder:a', 'channel:folder:a');
    INSERT INTO user (address, name, boss, created_at) VALUES (1, 'Ada', 1, 1);
    INSERT INTO agent (address, role, description, created_at) VALUES (2, 'tester', 'from before', 1);
    INSERT INTO conversation (id, kind, key, last_seq, created_at) VALUES (1, 'private', '1,2', 2, 1);
    INSERT INTO participant (conversation, address) VALUES (1, 1), (1, 2);
    INSERT INTO binding (id, adapter, account, created_at) VALUES (1, 'folder', 'a', 1);
    INSERT INTO binding_agent (binding, agent) VALUES (1, 2);
    INSERT INTO contact (binding, platform_id, address, state, created_at) VALUES (1, 'a', 3, 'allowed', 1);
    INSERT INTO run (id, agent, status, provider, boot, started_at, ended_at) VALUES (7, 2, 'completed', 'demo', 1, 1, 1);
    INSERT INTO token (hash, kind, holder, run, created_at, revoked_at) VALUES (x'00', 'run', 2, 7, 1, 1);
    INSERT INTO message (id, conversation, seq, sender, from_boss, text, created_at, arrived_at)
        VALUES (1, 1, 1, 1, 1, 'hello', 1, 1);
    INSERT INTO message (id, conversation, seq, thread, reply_to, sender, run, auto, text, created_at, arrived_at)
        VALUES (2, 1, 2, 1, 1, 2, 7, 1, 'hello yourself', 1, 1);
    INSERT INTO envelope (id, message, recipient, status, arrived, done_at) VALUES (1, 1, 2, 1, 1, 1), (2, 2, 1, 1, 2, 1);
    INSERT INTO run_envelope (run, envelope) VALUES (7, 1);
    INSERT INTO thread (conversation, id, messages, last, arrived) VALUES (1, 1, 2, 2, 2);
    INSERT INTO reading (envelope, reader, at) VALUES (1, 2, 1);
    INSERT INTO tag (message, kind, name) VALUES (1, 'mention', 'agent:nex');
    UPDATE run SET reply_conversation = 1, reply_message = 1, answer = 2, final_text = 'hello yourself';
    UPDATE counter SET value = 2 WHERE name = 'arrived';
    INSERT INTO config (key, value) VALUES ('old', 'data');
"""


def tomorrow(*steps: Step) -> Migrations:
    """Return the migrations of a later hiboss: ours, and some more."""
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


def m0003_drop_role(db: Database) -> None:
    db.executescript("ALTER TABLE agent DROP COLUMN role;")


def m0004_widen_run(db: Database) -> None:
    rebuild(db, "run", ("'interrupted')", "'interrupted', 'asked')"))


LATER = (m0002_pets, m0003_drop_role, m0004_widen_run)


def rebuild(db: Database, table: str, change: tuple[str, str] = ("", "")) -> None:
    """Change a table as SQLite advises: create a new one, copy, drop the old one, rename."""
    created = db.execute("SELECT sql FROM sqlite_master WHERE name = ?", [table]).fetchone()[0]
    indexes = db.execute(
        "SELECT sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL AND tbl_name = ?", [table]
    ).fetchall()
    new = re.sub(rf'^CREATE TABLE "?{table}"?', f"CREATE TABLE {table}_new", created).replace(*change)
    assert new.startswith(f"CREATE TABLE {table}_new") and change[1] in new
    db.execute(new)
    db.executescript(
        f"INSERT INTO {table}_new SELECT * FROM {table}; DROP TABLE {table};"
        f"ALTER TABLE {table}_new RENAME TO {table};"
    )
    for (sql,) in indexes:
        db.execute(sql)


def content(connection: Connection) -> str:
    """Return all a database holds, but for its name (epoch) and when it was migrated."""
    lines = (line for line in connection.iterdump() if "VALUES('epoch'," not in line)
    return "\n".join(re.sub(r"'[^']*\+00:00'", "'a time'", line) for line in lines)
