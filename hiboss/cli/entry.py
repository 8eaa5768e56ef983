"""Where the program begins. Hooks of a harness and MCP clients do not wait for the command line, which is large."""

from __future__ import annotations

import gc

gc.disable()  # a command lives for milliseconds; collecting during the imports takes 5 % of them

import os
import sys


def main() -> None:
    """Run the command line, answer a harness, or serve an MCP client."""
    words = sys.argv[1:]
    if words[:1] == ["hook"] or words[:2] == ["watch", "--hook"]:
        from .hook.program import main as answer

        sys.exit(answer(words))
    if words[:1] == ["mcp"]:
        from .mcp_stdio.program import main as serve

        if (status := serve(words[1:])) is not None:
            _flush()
            os._exit(status)  # taking everything apart would take a tenth of its short life
    from .main import main as command

    command()


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
