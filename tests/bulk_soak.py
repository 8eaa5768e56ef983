"""Every row of the tests in bulk, of which `make test` takes some of each kind (see tests/support/bulk.py).

`make soak SOAK=tests.bulk_soak ARGS="-k rest"` gives the arguments to pytest.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.support import bulk

ROOT = Path(__file__).parents[1]


def modules() -> list[str]:
    """Return the test modules that take some of their rows."""
    found = sorted((ROOT / "tests").rglob("test_*.py"))
    users = [
        path for path in found if "\nfrom tests.support import bulk\n" in path.read_text(encoding="utf-8")
    ]
    return [path.relative_to(ROOT).as_posix() for path in users]


def main(arguments: list[str]) -> int:
    command = [sys.executable, "-m", "pytest", "-n", "3", "--dist", "worksteal", *modules(), *arguments]
    return subprocess.run(
        command, cwd=ROOT, env={**os.environ, bulk.VARIABLE: "whole"}, check=False
    ).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
