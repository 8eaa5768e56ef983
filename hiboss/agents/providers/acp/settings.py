"""The options of the provider `acp`."""

from __future__ import annotations

import shlex
from typing import Literal

from pydantic import Field, field_validator

from ....core.option_models import Options

LONGEST_COMMAND = 4_000


class AcpSettings(Options):
    command: str = Field(
        description='the agent and its arguments, like "gemini --acp"; split into words, run without a shell'
    )
    model: str | None = Field(
        None, description="the model, by a name that the agent knows; else the one that it chooses"
    )
    autonomy: Literal["low", "medium", "high"] = Field(
        "medium",
        description="low, medium: what the agent wants to be allowed is asked; high: it is allowed at once",
    )

    @field_validator("command")
    @classmethod
    def _can_be_split(cls, given: str) -> str:
        command = given.strip()
        if len(command) > LONGEST_COMMAND or "\x00" in command:
            raise ValueError(f"the command is longer than {LONGEST_COMMAND} characters, or contains a NUL")
        try:
            words = shlex.split(command)
        except ValueError as error:
            raise ValueError(f"the command cannot be split into words: {error}") from None
        if not words or not words[0]:
            raise ValueError('give a program, like --command "gemini --acp"')
        return command

    @field_validator("model")
    @classmethod
    def _is_a_name(cls, given: str | None) -> str | None:
        if given is not None and (not given.strip() or not given.isprintable()):
            raise ValueError("give the name of a model")
        return given
