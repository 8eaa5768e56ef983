"""Tests in bulk: of rows that repeat a kind of fact, some of each kind; all of them in a soak.

`make soak SOAK=tests.bulk_soak` runs the modules that use this with every row. Whoever writes a row of a new kind has it
in every run. Which rows of a kind are taken depends on the rows alone: all workers of pytest must find the same.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

VARIABLE = "HIBOSS_TESTS_IN_BULK"  # "whole": every row

Row = TypeVar("Row")


def is_whole() -> bool:
    return os.environ.get(VARIABLE) == "whole"


def some(rows: Iterable[Row], kind: Callable[[Row], Hashable], each: int = 1) -> list[Row]:
    """Return so many rows of every kind, in the order of the rows; in a soak, all of them."""
    every = list(rows)
    if is_whole():
        return every
    kinds: dict[Hashable, list[int]] = {}
    for place, row in enumerate(every):
        kinds.setdefault(kind(row), []).append(place)
    taken: set[int] = set()
    for number, places in enumerate(kinds.values()):
        taken.update(random.Random(number).sample(places, min(each, len(places))))
    return [every[place] for place in sorted(taken)]


def number(usual: int, whole: int) -> int:
    """Return how often something random is tried: `whole` times in a soak."""
    return whole if is_whole() else usual
