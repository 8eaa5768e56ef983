"""Where the program begins: hooks of a harness are answered without the command line, which is large."""

from __future__ import annotations

import gc

gc.disable()  # a command lives for milliseconds; collecting during the imports takes 5 % of them

import sys


def main() -> None:
    """Run the command line, or answer a harness."""
    words = sys.argv[1:]
    if words[:1] == ["hook"] or words[:2] == ["watch", "--hook"]:
        from .hook.program import main as answer

        sys.exit(answer(words))
    from .main import main as command

    command()


if __name__ == "__main__":
    main()
