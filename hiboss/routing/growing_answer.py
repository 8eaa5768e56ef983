"""The text of an answer that grows in a chat, from the live output of its run.

The boss also sees, below it, what the agent does at this moment: that may tell of files and commands, so
others do not. It is never a part of the answer.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..core.contracts.provider import Progress
from ..core.shortening import shorten

TOOL, THINKS = "⚙️", "💭"
TOOL_CHARACTERS = 120


class GrowingAnswer:
    """What a run has written so far, and what it does now."""

    def __init__(self) -> None:
        self.text = ""
        self._doing = ""

    def add(self, parts: Iterable[Progress]) -> None:
        for part in parts:
            if part.kind == "delta":
                self.text += part.text
                self._doing = ""
            elif part.kind == "tool":
                line = shorten(" ".join(part.text.split()), TOOL_CHARACTERS).replace("`", "'")
                self._doing = f"{TOOL} `{line}`" if line else ""
            elif part.kind == "thinking":
                self._doing = THINKS

    def shown(self, *, details: bool, alone: bool) -> str:
        """Return what a chat shows now.

        `details`: with what it does; `alone`: also if it has written nothing yet.
        """
        text = self.text.strip()
        if not details or not self._doing or not (text or alone):
            return text
        return f"{text}\n\n{self._doing}".strip()
