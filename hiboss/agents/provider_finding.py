"""An agent's provider as it is set, without a turn: what it can do, and what it finds of what it needs."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from ..core import bounded_calls, option_models
from ..core.contracts.failures import Refused
from ..core.contracts.provider import Finding, Provider
from ..core.paths import Home
from ..core.plugins import no_exit
from ..core.quoting import storable
from . import process_control, survivors, turn_input

log = logging.getLogger(__name__)
FIND_SECONDS = 8.0
CHARACTERS = 1_000  # of each text of a finding


def made(kind: type[Provider], settings: Mapping[str, Any], secrets: Mapping[str, str]) -> Provider | None:
    """Return a provider with these settings; None if it cannot be made, which its turns will tell."""
    try:
        with no_exit():
            return kind(option_models.load(kind.Settings, settings, secrets))
    except Refused:
        return None
    except Exception:  # of a module of somebody else
        log.exception("The provider %s cannot be made.", kind.name, extra={"action": "find"})
        return None


async def find(
    provider: Provider, home: Home, agent: str, workspace: str | None, deny: Sequence[str]
) -> Finding | None:
    """Let a provider look for what it needs, as a run of this agent would have it; at most some seconds."""
    if type(provider).find is Provider.find:
        return None
    try:
        environment = await asyncio.to_thread(turn_input.environment_of_agent, home, agent, deny)
        directory = await asyncio.to_thread(turn_input.workspace, home, agent, workspace)
    except OSError as error:
        return Finding(problem=f"its workspace cannot be made: {error}")
    # No run has this mark. By it everything is found that the search started, whatever it did.
    mark = environment[process_control.MARK] = f"find-{uuid.uuid4().hex}"
    try:
        found = await bounded_calls.call(
            _guarded(provider, environment, directory), f"The search of {provider.name}", FIND_SECONDS
        )
    except bounded_calls.TookTooLong:
        return Finding(problem=f"{provider.name} could not be looked at in {FIND_SECONDS:g} seconds")
    except Exception as error:  # of a module of somebody else
        log.exception("The provider %s could not look.", provider.name, extra={"action": "find"})
        return Finding(problem=f"it could not be found out: {type(error).__name__}")
    finally:
        await process_control.end(process_control.RunProcesses(marks=frozenset({mark})))
        survivors.forget(mark)
    return _checked(found)


async def _guarded(provider: Provider, environment: Mapping[str, str], workspace: str) -> object:
    with no_exit():
        return await provider.find(environment, workspace)


def _checked(found: object) -> Finding | None:
    """Return a finding as it can be shown; whatever else a provider returns is none."""
    if not isinstance(found, Finding) or not all(isinstance(one, str) for one in found):
        return None
    return Finding(*(storable(one, CHARACTERS) for one in found))
