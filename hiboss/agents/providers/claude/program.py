"""Look for the program: where it is, its version, and whether somebody is logged in."""

from __future__ import annotations

import json
from collections.abc import Mapping

from ....core.contracts.failures import LaneError
from ....core.contracts.provider import Finding
from .. import programs
from . import arguments
from .failures import INSTALL, LOGIN, UPDATE
from .settings import ClaudeSettings

LEAST = (2, 1)  # older ones lack options that hiboss needs
STATUS_SECONDS = 3.5


def located(settings: ClaudeSettings, environment: Mapping[str, str]) -> str:
    """Return the path of the program; raise LaneError if it is not there."""
    path = programs.locate(settings.program, environment)
    if path is None:
        raise LaneError("no_program", f"the program {settings.program} was not found; {INSTALL}")
    return path


async def find(settings: ClaudeSettings, given: Mapping[str, str]) -> Finding:
    """Say what was found. It asks the program itself; no model is called."""
    environment = arguments.environment(settings, given)
    path = programs.locate(settings.program, environment)
    if path is None:
        return Finding(problem=f"the program {settings.program} was not found", help=INSTALL)
    version = await programs.version(path, environment)
    if not version:
        return Finding(f"claude ({path})", "it does not say its version", INSTALL)
    found = f"claude {version} ({path})"
    if programs.older(version, LEAST):
        least = ".".join(map(str, LEAST))
        return Finding(found, f"it is too old: hiboss needs {least} or newer", UPDATE)
    if settings.api_key is not None:
        return Finding(f"{found}, with the API key of the agent")
    logged_in, how = await _login(path, environment)
    if logged_in is False:
        return Finding(f"{found}, not logged in", "claude is not logged in", LOGIN)
    return Finding(f"{found}, logged in{how}" if logged_in else found)


async def _login(path: str, environment: Mapping[str, str]) -> tuple[bool | None, str]:
    """Return whether somebody is logged in, and how; None if the program does not say so."""
    spoken = await programs.call([path, "auth", "status", "--json"], environment, STATUS_SECONDS)
    try:
        status = json.loads(spoken.output) if spoken is not None else None
    except ValueError:
        return None, ""
    if not isinstance(status, dict) or not isinstance(status.get("loggedIn"), bool):
        return None, ""
    how = status.get("apiKeySource") or status.get("authMethod")
    return status["loggedIn"], f" ({how})" if isinstance(how, str) and how.isprintable() else ""
