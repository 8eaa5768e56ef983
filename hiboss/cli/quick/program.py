"""The program of the quick way: it calls the functions of plain commands as Typer would, and ends as `main` does."""

from __future__ import annotations

import os

from .. import output
from ..ending import run_to_end
from ..plain_commands import COMPLETE
from . import root_help
from .parsing import read

TYPE_CHECKING = False  # importing typing would cost every command 3 ms
if TYPE_CHECKING:
    from collections.abc import Callable


def main(words: list[str]) -> int | None:
    """Run a command and return its exit status. None: these words are for Typer, and nothing was done."""
    if COMPLETE in os.environ:
        return None
    if root_help.is_asked(words):
        return run_to_end(lambda: root_help.show(words))
    found = read(words)
    if found is None:
        return None
    module, name, values = found
    # What importlib would do, whose import takes a millisecond.
    commands = __import__(f"hiboss.cli.commands.{module}", fromlist=[name])
    function: Callable[..., int | None] = getattr(commands, name)
    output.prepare()
    output.Mode.json = values["json_"]
    return run_to_end(lambda: function(**values))
