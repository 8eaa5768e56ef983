"""A failure explains itself: the log of the daemons of that time, the seeds, and the command that runs the test again.

After a failure nothing that tests share is kept: the fixtures of the module end, and the next test starts its own daemon.
"""

from __future__ import annotations

import os
import random
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

LINES = 80  # of each log: the last ones
NOTED = 50  # logs: those of the daemons that were started last

_logs: dict[str, int] = {}  # log file -> its size when the test began, for daemons that run or ran in it
_failed = pytest.StashKey[bool]()
_seeds: list[str] = []


def seeded(seed: int, name: str = "seed") -> random.Random:
    """Return a generator of random numbers with a fixed seed. A failed test shows the seed."""
    _seeds.append(f"{name} {seed}")
    return random.Random(seed)


def note_log(path: str) -> None:
    """Show what a daemon writes to this log when the test fails."""
    _logs.setdefault(path, 0)
    if len(_logs) > NOTED:
        del _logs[next(iter(_logs))]


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    _seeds.clear()
    for path in list(_logs):
        _logs[path] = os.path.getsize(path) if os.path.exists(path) else 0


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, Any]:
    report: pytest.TestReport = yield
    if report.failed:
        item.stash[_failed] = True
        report.sections += list(_told(item))
    return report


def _told(item: pytest.Item) -> Iterator[tuple[str, str]]:
    for path, size in _logs.items():
        if lines := _written(path, size):
            yield f"log of a daemon, {path}", "\n".join(lines)
    if _seeds:
        yield "seeds", "\n".join(_seeds)
    layer = "real" if "/real/" in item.nodeid else "slow" if item.get_closest_marker("slow") else "test"
    yield "run it again", f"make {layer} ARGS={item.nodeid!r}"


def _written(path: str, size: int) -> list[str]:
    """Return the last lines that were written to a log since it had this size."""
    try:
        with Path(path).open("rb") as log:
            log.seek(size if os.path.getsize(path) >= size else 0)
            return log.read().decode(errors="replace").splitlines()[-LINES:]
    except OSError:
        return []


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, Any, Any]:
    try:
        return (yield)
    finally:
        if item.stash.get(_failed, False):
            item.session._setupstate.teardown_exact(None)
