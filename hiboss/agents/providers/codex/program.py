"""Where the program is, and whether somebody is logged in."""

from __future__ import annotations

import os
import shlex
import shutil
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path

from ....core.contracts.provider import Finding
from .. import programs
from . import failures
from .arguments import environment as own_environment
from .settings import CodexSettings

LEAST = (0, 166, 0)  # the oldest that hiboss was tried with
LEAST_TEXT = ".".join(map(str, LEAST))
STATUS_SECONDS = 3.5
UNBOXED = "high"  # the autonomy without a sandbox
MOVED = 'CODEX_HOME="$HOME/.codex" hiboss daemon restart'


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
    finding = await _login(settings, environment, path, found)
    if finding.problem or settings.autonomy == UNBOXED:
        return finding
    return _sandbox(environment, finding)


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


def _sandbox(environment: Mapping[str, str], finding: Finding) -> Finding:
    """Return the finding with why no command would run in a sandbox that codex makes with bubblewrap, if so.

    Codex keeps the helper that it starts there in its home, unless that is a temporary directory; and the
    sandbox has a /dev of its own. Without bubblewrap on the PATH it needs no helper.
    """
    if shutil.which("bwrap", path=environment.get("PATH", os.defpath)) is None:
        return finding
    places = (environment.get("TMPDIR") or "/tmp", "/dev")
    home = os.path.realpath(_home(environment))
    place = _below(home, places)
    if not place:
        return finding
    problem = f"its home (CODEX_HOME) is {home}: below {place} its sandbox runs no command, with bubblewrap"
    usual = os.path.join(environment.get("HOME", "~"), ".codex")
    return Finding(finding.found, problem, "" if _below(usual, places) else MOVED)


def _below(path: str, places: Sequence[str]) -> str:
    return next((one for one in places if Path(path).is_relative_to(one)), "")


def _other_provider(settings: CodexSettings, environment: Mapping[str, str]) -> bool:
    """Tell whether a model provider is chosen that may need no login: by arguments, or in config.toml."""
    if any(one.startswith("model_provider=") for one in shlex.split(settings.arguments)):
        return True
    try:
        config = tomllib.loads((_home(environment) / "config.toml").read_text())
    except (OSError, ValueError):
        return False
    return bool(config.get("model_provider", "openai") != "openai")


def _home(environment: Mapping[str, str]) -> Path:
    home = environment.get("CODEX_HOME") or os.path.join(environment.get("HOME", "~"), ".codex")
    return Path(home).expanduser()
