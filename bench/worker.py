"""`python -m bench.worker PART DIRECTORY SIZE`: measures a part with one tree, a slice at a time.

`bench` is ours and `hiboss` that of the tree, by PYTHONPATH. Standard output has a line of JSON for each turn
that is waited for, and at the end one with the figures, or with what failed. Each line of standard input is
a turn.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from . import parts
from .rounds import COURSE, Size


def main() -> None:
    part, directory, size, may_lack = sys.argv[1:]
    # What this process starts must not write, or read, between our lines.
    turns, answers = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)

    def tell(**answer: Any) -> None:
        answers.write(json.dumps(answer) + "\n")
        answers.flush()

    def wait(what: str) -> None:
        tell(turn=what)
        if not turns.readline():
            raise SystemExit("nobody waits for this any more")

    wait(f"{part}: getting ready")
    COURSE.wait, COURSE.may_lack = wait, may_lack == "may-lack"
    try:
        figures = parts.measure(part, Path(directory), Size(**json.loads(size)))
        facts = [
            {"key": one.key, "work": one.work, "unit": one.unit, "taken": list(one.taken), "grain": one.grain}
            for one in figures
        ]
    except Exception as error:
        tell(failed=f"{type(error).__name__}: {error}")
        if not COURSE.may_lack:
            raise
    else:
        tell(figures=facts)


if __name__ == "__main__":
    main()
