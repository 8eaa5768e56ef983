"""A sweep: the same check for many rows inside one test, which names each row that fails.

with sweep() as row:
    for name in NAMES:
        with row(name):
            assert check(name)
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

SHOWN = 5  # failures that are shown whole; of the others, the names

Row = Callable[[object], AbstractContextManager[None]]


@contextmanager
def sweep() -> Iterator[Row]:
    """Give a context for each row; fail at the end, with every row that failed. Without any row it fails too."""
    failures: dict[str, Exception] = {}
    seen = 0

    @contextmanager
    def row(name: object) -> Iterator[None]:
        nonlocal seen
        seen += 1
        try:
            yield
        except Exception as error:  # noqa: BLE001 # told below
            failures[f"{name} (row {seen})"] = error

    yield row
    if not seen:
        raise AssertionError("the sweep had no rows")
    if failures:
        raise AssertionError(_told(failures, seen))


def _told(failures: dict[str, Exception], seen: int) -> str:
    lines = [f"{len(failures)} of {seen} rows failed:", *(f"  {name}" for name in failures)]
    for name, error in list(failures.items())[:SHOWN]:
        lines += [f"--- {name} ---", "".join(traceback.format_exception(error)).rstrip()]
    return "\n".join(lines)
