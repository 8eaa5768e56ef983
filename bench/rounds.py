"""Rounds: all work is measured in short slices, and each slice waits for its turn.

Alone, a turn is only a word of progress. With `--beside` a worker (bench/worker.py) hands the turn to the
same work of the other tree there, so that both see the same machine.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


def say(sentence: str) -> None:
    """Progress, for whoever watches."""
    print(f"bench: {sentence}", file=sys.stderr, flush=True)


@dataclass
class Course:
    """How this process measures: who is asked for a turn, and whether the code may lack something."""

    wait: Callable[[str], None] = field(default=say)
    may_lack: bool = False


COURSE = Course()


@dataclass(frozen=True, kw_only=True)
class Size:
    """How much to measure."""

    rows: int  # envelopes or messages in the large stores
    rounds: int
    seconds: float  # length of one slice of calls that follow one another
    beside: bool = False  # another tree is measured in turns: nothing else need be compared


def rounds(number: int, what: str) -> Iterator[int]:
    """Count to `number`; each slice begins when it is its turn."""
    for one in range(number):
        COURSE.wait(f"{what}, round {one + 1} of {number}")
        yield one


@contextmanager
def if_there(what: str) -> Iterator[None]:
    """What is tried here may be missing in the code of another tree, and then gives no row."""
    try:
        yield
    except Exception as error:
        if not COURSE.may_lack:
            raise
        say(f"the other tree has no {what}: {error}")
