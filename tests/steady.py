"""`make steady`: run a layer of the tests many times and keep a log, to find what fails now and then.

`make steady ARGS="test --runs 20 --busy 5 --shuffled 3 --log steady.log"`: of 20 runs of `make test`, the first 5 have two
busy loops beside them, and the next 3 are in random order. Each run is a line of the log, with the tests that failed; the
output of a run that failed is kept beside the log. It goes on after a failure: every flicker is worth knowing.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).parents[1]
LAYERS = ("test", "slow", "real")
BUSY_LOOPS = 2


@contextmanager
def busy_loops(number: int) -> Iterator[None]:
    """Keep so many cores busy meanwhile."""
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(number)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def commit() -> str:
    command = ["git", "describe", "--always", "--dirty=+", "--exclude=*"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()


def run(layer: str, *, busy: bool, seed: int | None, log: Path) -> bool:
    """Run a layer once and write its line; return whether it passed."""
    begin = time.monotonic()
    order = [] if seed is None else [f"ORDER={seed}"]
    with busy_loops(BUSY_LOOPS if busy else 0):
        done = subprocess.run(
            ["make", layer, *order], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
        )
    output = done.stdout.decode(errors="replace")
    counts = ", ".join(re.findall(r"^=*\s*((?:\d+ \w+,? )+)in [\d.]+s", output, re.M))
    failed = re.findall(r"^(?:FAILED|ERROR) (\S+)", output, re.M)
    way = " beside busy loops" if busy else f" in random order {seed}" if seed is not None else ""
    now = datetime.now(UTC).isoformat(timespec="seconds")
    seconds = time.monotonic() - begin
    line = f"{now} {commit()} make {layer}{way}: exit {done.returncode}, {counts.strip()}, {seconds:.0f} s"
    with log.open("a") as file:
        file.write("\n    ".join([line, *failed]) + "\n")
    print("\n    ".join([line, *failed]), flush=True)  # noqa: T201
    if done.returncode:
        log.with_name(f"{log.stem}-{now}.txt").write_text(output)
    return done.returncode == 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="make steady", description=__doc__)
    parser.add_argument("layer", choices=LAYERS)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--busy", type=int, default=0, help="so many of the runs beside two busy loops")
    parser.add_argument("--shuffled", type=int, default=0, help="so many of the runs in random order")
    parser.add_argument("--log", type=Path, default=ROOT / "steady.log")
    given = parser.parse_args()
    passed = 0
    for number in range(given.runs):
        busy = number < given.busy
        shuffled = given.busy <= number < given.busy + given.shuffled
        seed = int.from_bytes(os.urandom(2)) if shuffled else None  # printed, so it can be given again
        passed += run(given.layer, busy=busy, seed=seed, log=given.log)
    print(f"{passed} of {given.runs} runs passed")  # noqa: T201
    return 0 if passed == given.runs else 1


if __name__ == "__main__":
    sys.exit(main())
