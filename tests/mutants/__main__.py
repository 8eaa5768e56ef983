"""`make mutants`: put defects in on purpose, one by one, and see which of them the tests find.

Each file `*.patch` beside this one is one defect: lines of `#` that say what is wrong then, and a diff against the package.
The work is done in a clone with a virtual environment of its own. For each patch the tests of the changed floor run first,
then all of `make test`, then `make slow`, until one fails: then the defect is caught. ARGS: names of patches, and
`--least N`: fail if fewer are caught (default: nine of ten).
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
MEMORY = Path("/dev/shm")
SECONDS = 1_200  # a defect may let a test hang; pytest-timeout ends each test long before


def say(words: str) -> None:
    print(words, flush=True)  # noqa: T201


def clone(directory: Path) -> Path:
    """Return a clone of the last commit, with what its tests need."""
    tree = directory / "tree"
    subprocess.run(["git", "clone", "--quiet", ROOT, tree], check=True)
    subprocess.run(["make", "--silent", ".venv/rewritten"], cwd=tree, check=True)
    return tree


def stages(tree: Path, patch: str) -> list[list[str]]:
    """Return the arguments of pytest for each step: the nearest tests first."""
    floors = {f"tests/{name}" for name in re.findall(r"^\+\+\+ b/hiboss/(\w+)/", patch, re.M)}
    near = sorted(name for name in floors if (tree / name).is_dir())
    if "tests/channels" in near:
        near.append("tests/telegram")
    quick = [["-m", "not slow", *near]] if near else []
    return [
        *quick,
        ["-m", "not slow", "--ignore=tests/real", "tests"],
        ["-m", "slow", "--ignore=tests/real", "tests"],
    ]


def catch(tree: Path, patch: Path) -> str | None:
    """Return the first test that fails with the defect in; None if all pass."""
    text = patch.read_text()
    apply = ["git", "apply", "--whitespace=nowarn", "-"]
    subprocess.run(apply, cwd=tree, input=text, text=True, check=True)
    try:
        for arguments in stages(tree, text):
            if caught := first_failure(tree, arguments):
                return caught
    finally:
        subprocess.run(["git", "checkout", "--quiet", "--", "."], cwd=tree, check=True)
    return None


def first_failure(tree: Path, arguments: list[str]) -> str | None:
    command = [
        tree / ".venv/bin/pytest",
        "-x",
        "-n",
        "5",
        "--dist",
        "worksteal",
        "-p",
        "no:cacheprovider",
        *arguments,
    ]
    environment = {**os.environ, **({"TMPDIR": str(MEMORY)} if MEMORY.is_dir() else {})}
    try:
        done = subprocess.run(
            command, cwd=tree, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return f"nothing ended within {SECONDS} s"
    if done.returncode in (0, 5):  # 5: no test in this step
        return None
    found = re.search(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.M)
    return found[1] if found else f"pytest ended with {done.returncode}: {(done.stdout + done.stderr)[-300:]}"


def main() -> int:
    parser = argparse.ArgumentParser(prog="make mutants", description=__doc__)
    parser.add_argument("names", nargs="*", help="patches, without .patch; all of them if none is named")
    parser.add_argument("--least", type=int, help="how many must be caught")
    given = parser.parse_args()
    patches = [HERE / f"{name}.patch" for name in given.names] or sorted(HERE.glob("*.patch"))
    least = (len(patches) * 9 + 9) // 10 if given.least is None else given.least
    directory = Path(tempfile.mkdtemp(prefix="hiboss-mutants-", dir=MEMORY if MEMORY.is_dir() else None))
    missed = []
    try:
        tree = clone(directory)
        for patch in patches:
            begin = time.monotonic()
            caught = catch(tree, patch)
            outcome = f"caught by {caught}" if caught else "NOT CAUGHT"
            say(f"{patch.stem}: {outcome} ({time.monotonic() - begin:.0f} s)")
            missed += [] if caught else [patch.stem]
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    say(
        f"{len(patches) - len(missed)} of {len(patches)} caught"
        + (f"; not: {', '.join(missed)}" if missed else "")
    )
    return 0 if len(patches) - len(missed) >= least else 1


if __name__ == "__main__":
    sys.exit(main())
