"""The options of the provider `codex`."""

from __future__ import annotations

import shlex
from typing import Literal

from pydantic import Field, SecretStr, field_validator

from ....core.option_models import Options
from .. import programs

LONGEST_ARGUMENTS = 4_000
# Given by hiboss itself, or another way to be called: the conversation would break.
OWN = frozenset(
    ("--listen", "--stdio", "--help", "-h", "--version", "-V", "--print-startup-config", "--startup-sign-out")
)


class CodexSettings(Options):
    model: str | None = Field(
        None, description="the model, like gpt-6.1-sol; else the one that codex chooses"
    )
    effort: str | None = Field(
        None,
        description="how long it thinks, as the model names it: low, medium, high, …; else as codex chooses",
    )
    autonomy: Literal["low", "medium", "high"] = Field(
        "medium",
        description="low: it reads, and asks before it changes anything; medium: it changes files in its "
        "workspace, uses the network, and asks before all else; high: it asks nothing",
    )
    max_tokens: int | None = Field(
        None,
        ge=1,
        le=10**12,
        description="the most tokens of one run, read and written; codex names no costs",
    )
    program: str = Field("codex", description="the program: a name on the PATH, or an absolute path")
    arguments: str = Field(
        "", description="more arguments for `codex app-server`, like '-c web_search=\"disabled\"'"
    )
    api_key: SecretStr | None = Field(
        None, description="a key for the OpenAI API; else the account of `codex login`"
    )

    @field_validator("model", "effort")
    @classmethod
    def _is_a_name(cls, given: str | None) -> str | None:
        if given is not None and (not given.strip() or not given.isprintable()):
            raise ValueError("give a name, as codex lists it under /model")
        return given

    @field_validator("program")
    @classmethod
    def _can_be_found(cls, given: str) -> str:
        relative = "/" in given and not given.startswith(("/", "~/"))
        if not given.strip() or relative or given.startswith("-") or not given.isprintable():
            raise ValueError("give a name, like codex, or an absolute path")
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
            raise ValueError("give only options of `codex app-server`, like -c key=value")
        if own := next(filter(None, (programs.own_option(one, OWN) for one in words)), ""):
            raise ValueError(f"{own} cannot be given: hiboss speaks to it on its standard input")
        return given

    @field_validator("api_key")
    @classmethod
    def _is_a_key(cls, given: SecretStr | None) -> SecretStr | None:
        if given is not None and not given.get_secret_value().strip():
            raise ValueError("give a key, or leave it out")
        return given
