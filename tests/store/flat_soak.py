"""The tests of flat costs with 100,000 rows: the same tests, which take five times as long (test_flat.py).

`make soak SOAK=tests.store.flat_soak` takes two minutes; ARGS="-k lists" chooses among them.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

FILES = sorted(str(one) for one in Path(__file__).parent.glob("test_flat*.py"))


def main() -> int:
    os.environ["FLAT_ROWS"] = "100000"
    return pytest.main([*FILES, "-n", "2", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
