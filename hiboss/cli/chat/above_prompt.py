"""What is printed above the prompt of a conversation, and printed again when the window changes its size."""

from __future__ import annotations

import re
import sys
from collections import deque
from collections.abc import Callable
from typing import Any

from prompt_toolkit import PromptSession
from prompt_toolkit.renderer import CPR_Support

from .. import output
from ..text_layout import width

PROMPT_ROWS = 8  # rows that stay free for the live text or the state, and the prompt
KEPT = 100  # blocks that can be printed again
_COLOUR = re.compile("\x1b\\[[0-9;]*m")

Block = Callable[[], list[str]]  # a message or a line of ours, in lines that fit the terminal as it is now


class AbovePrompt:
    """Prints blocks above the prompt, from any thread, in the order of the calls."""

    def __init__(self, session: PromptSession[Any]) -> None:
        self._app = session.app
        self._printed: deque[Block] = deque(maxlen=KEPT)
        # prompt_toolkit erases as many rows as it drew. Most terminals wrap long rows again when the
        # window becomes narrower, so that there are more, and the rest would stay.
        self._app._on_resize = self._resized  # type: ignore[method-assign]
        # Do not ask the terminal where the cursor is: on a slow connection the answer is of a moment
        # before the last print, and the prompt would be drawn over too many rows, which scrolls the window.
        self._app.renderer.cpr_support = CPR_Support.NOT_SUPPORTED

    def print(self, block: Block) -> None:
        if self._app.loop is None or not self._app.is_running:
            self._write(block)
            return
        try:
            self._app.loop.call_soon_threadsafe(lambda: self._write_above(block))
        except RuntimeError:  # the prompt has just ended, and its loop with it
            self._write(block)

    def _write_above(self, block: Block) -> None:
        """Write in place of the prompt, and draw the prompt again below it."""
        # Not by run_in_terminal: it leaves the raw mode of the terminal for a moment. What is typed just
        # then would be shown twice, and its Enter would begin a new line and send nothing.
        self._app.renderer.erase()
        self._write(block)
        self._app.renderer.reset()
        self._app._redraw()

    def _write(self, block: Block) -> None:
        self._printed.append(block)
        self._write_lines(block())

    def _write_lines(self, lines: list[str]) -> None:
        self._app.output.write_raw("".join(f"{line}\r\n" for line in lines))
        self._app.output.flush()

    def _resized(self) -> None:
        """Draw the whole window again: how the terminal has moved the old rows is not known."""
        lines = self._last_lines(max(self._app.output.get_size().rows - PROMPT_ROWS, 1))
        self._app.renderer.erase(leave_alternate_screen=False)
        self._app.output.cursor_goto(0, 0)
        self._app.output.erase_down()
        self._write_lines(lines)
        self._app._redraw()

    def _last_lines(self, rows: int) -> list[str]:
        """The end of what was printed, in so many rows."""
        lines: list[str] = []
        for block in reversed(self._printed):
            lines = [*block(), *lines]
            if _rows(lines) >= rows:
                break
        while _rows(lines) > rows:
            del lines[0]
        return lines


def columns_to_fill() -> int:
    """The width of a line; the last column stays free, since terminals differ in how they wrap there."""
    return output.columns(sys.stdout) - 1


def _rows(lines: list[str]) -> int:
    """How many rows the lines take; the terminal wraps a word that is too long for a line."""
    cells = max(output.columns(sys.stdout), 1)
    return sum(max(1, -(-width(_COLOUR.sub("", line)) // cells)) for line in lines)
