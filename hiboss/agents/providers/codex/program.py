"""Where the program is, and whether somebody is logged in."""

from __future__ import annotations

import os
import shlex
import tomllib
from collections.abc import Mapping
from pathlib import Path

from ....core.contracts.provider import Finding
from .. import programs
from . import failures
from .arguments import environment as own_environment
from .settings import CodexSettings

LEAST = (0, 166, 0)  # the oldest that hiboss was tried with
LEAST_TEXT = ".".join(map(str, LEAST))
STATUS_SECONDS = 3.5


async def find(settings: CodexSettings, environment: Mapping[str, str]) -> Finding:
    """Return what is there: the program, its version, and whether it is logged in."""
    environment = own_environment(environment)
    path = programs.locate(settings.program, environment)
    if path is None:
        return Finding(problem=f"the program {settings.program} was not found", help=failures.INSTALL)
    version = await programs.version(path, environment)
    if not version:
        return Finding(f"codex ({path})", "it does not say its version", f"{shlex.quote(path)} --version")
    found = f"codex {version} ({path})"
    if programs.older(version, LEAST):
        why = f"it is too old: hiboss needs {LEAST_TEXT} or newer"
        return Finding(found, why, f"{failures.INSTALL}@latest")
    home = environment.get("CODEX_HOME")
    if home and not os.path.isdir(home):
        return Finding(found, f"CODEX_HOME is {home}, which does not exist", f"mkdir -p {shlex.quote(home)}")
    return await _login(settings, environment, path, found)


async def _login(settings: CodexSettings, environment: Mapping[str, str], path: str, found: str) -> Finding:
    if settings.api_key is not None:
        return Finding(f"{found}, with the key of the agent")
    if _other_provider(settings, environment):
        return Finding(f"{found}, with a model provider of its own")
    spoken = await programs.call([path, "login", "status"], environment, STATUS_SECONDS)
    if spoken is None:
        return Finding(f"{found}; it did not say whether it is logged in")
    if spoken.status == 0:
        return Finding(f"{found}, logged in")
    return Finding(f"{found}, not logged in", failures.LOGGED_OUT, "codex login")


def _other_provider(settings: CodexSettings, environment: Mapping[str, str]) -> bool:
    """Tell whether a model provider is chosen that may need no login: by arguments, or in config.toml."""
    if any(one.startswith("model_provider=") for one in shlex.split(settings.arguments)):
        return True
    home = environment.get("CODEX_HOME") or os.path.join(environment.get("HOME", "~"), ".codex")
    try:
        config = tomllib.loads((Path(home).expanduser() / "config.toml").read_text())
    except (OSError, ValueError):
        return False
    return bool(config.get("model_provider", "openai") != "openai")
