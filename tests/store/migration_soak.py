"""A migration that is killed at each of its steps, also at those that are like others (test_migration_kills.py).

`make soak SOAK=tests.store.migration_soak` takes a minute and prints the steps.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.store.test_migration_kills import killed_at


def main() -> None:
    for filled in (True, False):
        with tempfile.TemporaryDirectory() as made:
            steps = killed_at(Path(made), filled=filled, every=1)
        sys.stdout.write(
            "\n".join([f"{'an upgrade' if filled else 'the first start'}: {len(steps)}", *steps, ""])
        )


if __name__ == "__main__":
    main()
