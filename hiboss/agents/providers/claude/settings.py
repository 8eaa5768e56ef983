"""The options of the provider `claude`."""

from __future__ import annotations

import shlex
from typing import Literal

from pydantic import Field, SecretStr, field_validator

from ....core.option_models import Options
from .. import programs

LONGEST_ARGUMENTS = 4_000
# Given by hiboss itself: another value would break the conversation with the program.
OWN = frozenset(
    (
        *("-p", "--print", "--output-format", "--input-format", "--verbose", "--include-partial-messages"),
        *("--replay-user-messages", "--permission-prompt-tool", "--permission-prompts", "--permission-mode"),
        *("--session-id", "-r", "--resume", "-c", "--continue", "--fork-session", "--no-session-persistence"),
        *("--append-system-prompt", "--append-system-prompt-file", "--bg", "--tmux", "--worktree", "-w"),
        *("--model", "--effort", "--max-turns", "--max-budget-usd", "-v", "--version", "-h", "--help"),
    )
)


class ClaudeSettings(Options):
    model: str | None = Field(
        None, description="the model, like opus, sonnet or a full name; else the one that claude chooses"
    )
    effort: Literal["low", "medium", "high", "xhigh", "max"] | None = Field(
        None, description="how long it thinks; else as claude chooses"
    )
    autonomy: Literal["low", "medium", "high"] = Field(
        "medium",
        description="low: it asks before each change; medium: it edits files in its workspace, and asks "
        "before other tools; high: it asks nothing",
    )
    max_turns: int | None = Field(None, ge=1, le=10**6, description="the most model calls of one run")
    max_cost: float | None = Field(
        None, ge=0.000_001, le=10**6, description="the most that one run may cost, in dollars"
    )
    program: str = Field("claude", description="the program: a name on the PATH, or an absolute path")
    arguments: str = Field("", description="more arguments for the program, like '--add-dir /srv/data'")
    api_key: SecretStr | None = Field(
        None, description="a key for the Anthropic API; else the account of `claude auth login`"
    )

    @field_validator("model")
    @classmethod
    def _is_a_name(cls, given: str | None) -> str | None:
        if given is not None and (not given or given.startswith("-") or not given.isprintable()):
            raise ValueError("give the name of a model, like opus")
        return given

    @field_validator("program")
    @classmethod
    def _can_be_found(cls, given: str) -> str:
        relative = "/" in given and not given.startswith(("/", "~/"))
        if not given.strip() or relative or given.startswith("-") or not given.isprintable():
            raise ValueError("give a name, like claude, or an absolute path")
        return given

    @field_validator("arguments")
    @classmethod
    def _can_be_split(cls, given: str) -> str:
        if len(given) > LONGEST_ARGUMENTS or "\x00" in given:
            raise ValueError(f"they are longer than {LONGEST_ARGUMENTS} characters, or contain a NUL")
        try:
            words = shlex.split(given)
        except ValueError as error:
            raise ValueError(f"they cannot be split into words: {error}") from None
        if "--" in words or (words and not words[0].startswith("-")):
            raise ValueError("give only options of claude: the text of the turn comes from hiboss")
        if own := next(filter(None, (programs.own_option(one, OWN) for one in words)), ""):
            raise ValueError(f"{own} is given by hiboss itself")
        return given
