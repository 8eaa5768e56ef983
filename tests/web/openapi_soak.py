"""Many requests of every kind that /openapi.json describes, 1,000 for each noun, as boss and as agent.

`make soak SOAK=tests.web.openapi_soak ARGS="--cases 1000 --noun envelope"` prints the seed. Every answer that is a 5xx,
or is not described, is shown once, with the request that got it.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tests.support.openapi_cases import MODES, Explored, explored_daemon


def soak(explored: Explored, noun: str, cases: int, number: int) -> dict[str, str]:
    """Make so many requests of a noun; return what is wrong, by the first line of each kind."""
    operations = explored.operations(noun)
    each = max(1, -(-cases // max(1, len(operations) * len(MODES) * 2)))
    wrong: dict[str, str] = {}
    for operation in operations:
        for mode in MODES:
            for one in explored.explore(operation, mode, each, number):
                wrong.setdefault(" ".join(one.split()[:12]), one)
    return wrong


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=1000, help="of each noun")
    parser.add_argument("--noun", action="append", help="only this one")
    parser.add_argument("--seed", type=int, default=random.randrange(2**32))
    given = parser.parse_args(arguments)
    _say(f"seed: {given.seed}")
    failed = 0
    with tempfile.TemporaryDirectory() as directory, explored_daemon(Path(directory)) as explored:
        for noun in given.noun or explored.nouns:
            begin = time.monotonic()
            wrong = soak(explored, noun, given.cases, given.seed)
            failed += len(wrong)
            _say(f"{noun}: {len(wrong)} wrong, {time.monotonic() - begin:.0f} s")
            for one in wrong.values():
                _say(one)
        _say("\n".join(f"{status}: {number}" for status, number in sorted(explored.answers.items())))
    _say(f"wrong: {failed}")
    return min(failed, 1)


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
