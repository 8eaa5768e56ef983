"""A migration that is killed at any of its steps: the next start brings the database up to date.

The test takes a sample of the steps that are like others; migration_soak.py takes all.
"""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from hiboss.core.paths import Home
from hiboss.store.connection import connect
from hiboss.store.invariants import violations
from hiboss.store.migrations import migrate
from tests.store.later_schema import LATER, ROWS, VIEWS, content, tomorrow

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]


def template(path: Path, *, filled: bool) -> Home:
    """A home with today's database and rows in it, or with none."""
    home = Home(str(path))
    home.create()
    if filled:
        with closing(connect(home, wait_seconds=5)) as connection:
            migrate(connection, home)
            connection.executescript(ROWS)
    return home


def killed_at(directory: Path, *, filled: bool, every: int) -> list[str]:
    """Kill a migration at every step, or at every so manyth of those that are like others; return the steps."""
    before = template(directory / "template", filled=filled)
    copies = directory / "copies"
    program = [sys.executable, "-m", "tests.store.killed_migration", str(before), str(copies), str(every)]
    steps = subprocess.run(program, cwd=ROOT, check=True, capture_output=True, text=True).stdout.splitlines()
    assert steps.count("COMMIT") >= 4 and {"DROP TABLE", "ALTER TABLE", "CREATE VIEW"} <= set(steps)
    assert {"rename of the backup", "DROP VIEW"} <= set(steps) or not filled

    whole = Home(str(copies / str(len(steps))))  # the one that nobody killed
    with closing(connect(whole, wait_seconds=5)) as connection:
        expected = content(connection)
    assert (
        "CREATE VIEW" in expected
        and "role" not in expected.partition("CREATE VIEW agents")[2].partition(";")[0]
    )
    old = ""
    if filled:
        with closing(connect(before, wait_seconds=5)) as connection:
            old = content(connection)

    for number, step in enumerate(steps):
        home = Home(str(copies / str(number)))
        with closing(connect(home, wait_seconds=5)) as connection:
            changed = content(connection) != old
            assert not (filled and changed and not os.listdir(home.backups)), step
            migrate(connection, home, tomorrow(*LATER), VIEWS)
            assert content(connection) == expected, step
            assert connection.execute("PRAGMA foreign_keys").fetchone()[0] == 1
            assert violations(connection) == [], step
        backups = sorted(os.listdir(home.backups))
        assert not [name for name in backups if not name.endswith(".db")], step
        if filled and changed:
            with closing(sqlite3.connect(os.path.join(home.backups, backups[0]))) as first:
                assert content(first) == old, step
    return steps


@pytest.mark.parametrize("filled", [True, False], ids=["an upgrade", "the first start"])
def test_a_kill_at_any_step_of_a_migration_is_mended_by_the_next_start(tmp_path: Path, filled: bool) -> None:
    assert {"CREATE TABLE", "CREATE INDEX", "INSERT INTO"} <= set(
        killed_at(tmp_path, filled=filled, every=10)
    )
