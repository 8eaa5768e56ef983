"""Where the program begins. What is called often does not wait for Typer, which is large: hooks of a harness, MCP
clients, plain commands (quick/), and the help of the root.
"""

from __future__ import annotations

import gc

gc.disable()  # a command lives for milliseconds; collecting during the imports takes 5 % of them

import os
import sys

TYPE_CHECKING = False  # importing typing would cost every command 3 ms
if TYPE_CHECKING:
    from typing import NoReturn


def main() -> None:
    """Answer a harness, serve an MCP client, or run the command line: quickly where that can be done."""
    words = sys.argv[1:]
    if words[:1] == ["hook"] or words[:2] == ["watch", "--hook"]:
        from .hook.program import main as answer

        sys.exit(answer(words))
    if words[:1] == ["mcp"]:
        from .mcp_stdio.program import main as serve

        if (status := serve(words[1:])) is not None:
            _flush()
            os._exit(status)  # taking everything apart would take a tenth of its short life
    else:
        from .quick.program import main as run

        if (status := run(words)) is not None:
            _leave(status)
    from .main import main as command

    command()


def _leave(status: int) -> NoReturn:
    """End without taking everything apart; but let Python report what cannot be written."""
    try:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
    except (OSError, ValueError):
        sys.exit(status)
    os._exit(status)


def _flush() -> None:
    """Write what was printed. A stream may be closed, or nobody may read it any more."""
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except OSError:
            pass


if __name__ == "__main__":
    main()
