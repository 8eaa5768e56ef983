"""A request for an answer of the model, read from either API; and how one is refused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


class Refusal(Exception):
    """The API refuses a request."""

    def __init__(self, status: int, kind: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.kind = kind  # the type of error, as the API names it
        self.message = message


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """A request for an answer."""

    api: str  # messages or responses
    model: str
    system: str  # all that the harness says to the model: system prompt, reminders, environment
    texts: list[str]  # what the user said, in order
    tool_results: list[str]  # what tools returned, in order
    tools: dict[str, dict[str, Any]]  # the tools that the model may use, by name
    streams: bool
    # The same for every repetition of a request by the client, and different for all others.
    identity: tuple[object, ...]
    body: dict[str, Any] = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)  # names in lower case

    @property
    def last_user(self) -> str:
        """The last text of the user."""
        return self.texts[-1] if self.texts else ""

    @property
    def is_main(self) -> bool:
        """Whether it is a request of a turn. One without tools is for a title, a summary or a check."""
        return bool(self.tools)

    @property
    def everything(self) -> str:
        """All texts of the request: whatever the model would read."""
        return "\n".join((self.system, *self.texts, *self.tool_results))


def is_made_by_harness(text: str) -> bool:
    """Tell whether a text in the place of the user's is one that the harness added."""
    return text.lstrip().startswith(
        ("<system-reminder>", "<environment_context>", "# AGENTS.md instructions")
    )
