"""A program that is killed at every step of a migration, each time in a home of its own.

`python -m tests.store.killed_migration TEMPLATE DIRECTORY EVERY` copies the home TEMPLATE to DIRECTORY/0, /1, …
and migrates each copy to the schema of later_schema.py, in a child that ends itself with SIGKILL: in copy 0
before the first step, in copy 1 before the second, and so on until one comes to the end. Prints the step each
was killed at. A step is a statement that writes and is unlike the one before, or a file that is renamed.
Of each kind that creates or fills, often in one transaction, it is killed at every EVERYth: 1 for all.
"""

from __future__ import annotations

import itertools
import os
import re
import shutil
import signal
import sys
from collections import Counter
from typing import Any

from hiboss.core.paths import Home
from hiboss.store.connection import connect
from hiboss.store.migrations import migrate

from .later_schema import LATER, VIEWS, tomorrow

LIKE = ("CREATE TABLE", "CREATE INDEX", "CREATE UNIQUE", "INSERT INTO")


def main(template: str, directory: str, every: int) -> None:
    first = 0
    for copy in itertools.count():
        home = os.path.join(directory, str(copy))
        shutil.copytree(template, home)
        reader, writer = os.pipe()
        child = os.fork()
        if not child:
            _migrate(home, first, every, writer)
            os._exit(0)
        os.close(writer)
        _, status = os.waitpid(child, 0)
        with os.fdopen(reader) as pipe:
            number, _, step = pipe.read().partition(" ")
        if not os.WIFSIGNALED(status):
            sys.exit(os.waitstatus_to_exitcode(status))
        first = int(number) + 1
        sys.stdout.write(f"{step}\n")


def _migrate(path: str, first: int, every: int, report: int) -> None:
    """Migrate a home, and die before the first chosen step from this number on; report both."""
    steps = itertools.count()
    kinds = Counter[str]()
    last: list[str] = []

    def step(name: str) -> None:
        number = next(steps)
        kinds[name] += 1
        if number >= first and (name not in LIKE or kinds[name] % every == 1 % every):
            os.write(report, f"{number} {name}".encode())
            os.kill(os.getpid(), signal.SIGKILL)

    def statement(sql: str) -> None:
        nonlocal last
        words = re.sub(r"^--.*$", "", sql, flags=re.MULTILINE).split()  # SQLite's own begin like a comment
        if not words or words[0].upper() == "SELECT" or words[:2] == last:
            return
        last = words[:2]
        step(" ".join(last))

    def event(name: str, _: Any) -> None:
        if name == "os.rename":
            step("rename of the backup")

    sys.addaudithook(event)
    home = Home(path)
    connection = connect(home, wait_seconds=5)
    connection.set_trace_callback(statement)
    migrate(connection, home, tomorrow(*LATER), VIEWS)
    connection.close()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
