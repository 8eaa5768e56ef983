"""`hiboss --help`, and `hiboss` alone: a text made before (`make docs`), where Typer would print the same."""

from __future__ import annotations

import sys

from ...core.errors import EXIT_USAGE
from .. import output
from .help_text import ROOT

WIDEST = 80  # columns; on a wider terminal Typer prints the same


def is_asked(words: list[str]) -> bool:
    """Whether these words ask for the help of the root, and there is room for it as it was made."""
    asked = words in ([], ["--help"], ["-h"]) and sys.stdout is not None and sys.stderr is not None
    return asked and output.columns(sys.stdout) >= WIDEST


def show(words: list[str]) -> int:
    """Print it; as an error if no word was given. Return the exit status."""
    text = ROOT.removesuffix("\n")
    if words:
        output.line(text)
        return 0
    output.note(text)
    return EXIT_USAGE
