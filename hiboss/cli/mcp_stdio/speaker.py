"""Who speaks over MCP. A client that names nobody is refused; it never speaks as the boss by mistake."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from typing import Any

from ...core.errors import AgentNotNamed, HibossError, InvalidParams, McpSpeakerNotNamed
from ...core.paths import Home
from ..credentials import AGENT_VARIABLE, BOSS, RUN_VARIABLE, named_token, refuse_agents

ATTACH_SECONDS = 10.0  # for the start hook of a session, which runs at the same time as this
LOOK_SECONDS = 0.1
FILE_LOCKS = 10  # RLIMIT_LOCKS, by which the daemon marks processes of a run (agents/process_control.py)


class Options:
    """What the command line says."""

    token: str | None = None
    as_: str | None = None
    or_as: str | None = None
    as_boss = False
    agent: str | None = None
    dotted = False
    json = False


def check(options: Options) -> None:
    """Refuse options that contradict each other."""
    if options.as_boss and (options.token is not None or options.as_ is not None):
        raise InvalidParams(detail="--as-boss takes neither --token nor --as: give one of the three")
    if options.or_as is not None and (
        options.as_boss or options.token is not None or options.as_ is not None
    ):
        raise InvalidParams(detail="--or-as is for where nothing else names who speaks: give it alone")
    if options.token == "-":
        detail = "standard input carries MCP, so it cannot be the token; use --token @FILE or --as"
        raise InvalidParams(detail=detail)


def find_token(home: Home, options: Options, waiting: Callable[[], None] | None = None) -> str:
    """Return the token that options, environment or the open session above name; raise McpSpeakerNotNamed.

    With `waiting`, which is called meanwhile, wait for the start hook of a session that opens just now.
    """
    if options.as_boss:
        refuse_agents(home)
        found = named_token(home, None, BOSS)
    else:
        found = named_token(home, options.token, options.as_) or _of_session_above(home)
        if found is None and waiting is not None and _will_attach():
            found = _wait_for_session(home, waiting)
        if found is None and options.or_as is not None:
            _refuse_agents_of_others(home)
            found = named_token(home, None, options.or_as)
    if found is None:
        profiles = ", ".join(one for one in home.profiles() if one != BOSS)
        raise McpSpeakerNotNamed(profiles=profiles or "none; hiboss agent register NAME makes one")
    return found


def _refuse_agents_of_others(home: Home) -> None:
    """Raise in a run whose token was lost, and below sessions of several agents.

    The settings of a harness name one agent, and hold for all that it runs. It may keep all variables from its
    servers, but not the limit by which processes of a run are known.
    """
    named = [name for name in (RUN_VARIABLE, AGENT_VARIABLE) if os.environ.get(name)]
    if named:
        raise AgentNotNamed(sign=f"{named[0]} is set")
    if _sessions_above(home):
        raise AgentNotNamed(sign="the harness that runs this has open sessions of several agents")
    import resource
    import sys

    if sys.platform == "linux":
        soft, hard = resource.prlimit(0, FILE_LOCKS)
        if soft != hard:
            raise AgentNotNamed(sign="this is a process of a run")


# --- sessions that are open above this process ---------------------------------------


def _of_session_above(home: Home) -> str | None:
    """Return the token of the session whose harness started this; None: there is none, or several agents."""
    here = _sessions_above(home)
    return str(here[0]["token"]) if len({one.get("agent") for one in here}) == 1 else None


def _sessions_above(home: Home) -> list[dict[str, Any]]:
    """Return the sessions of the harness that started this, the newest first: it can have had several.

    A harness gives an MCP server no variable with the id of its session, so that the process must tell.
    """
    known = list(_sessions(home))
    if not known:
        return []
    from ..hook import harness

    for pid, stat in harness.ancestors(os.getppid()):
        here = [one for one in known if (one.get("pid"), one.get("pid_started")) == (pid, stat.started)]
        if here:
            return here
    return []


def _sessions(home: Home) -> Iterator[dict[str, Any]]:
    """Yield what is stored of open sessions, the newest first."""
    directory = os.path.dirname(home.session_file("claude", "any"))
    try:
        files = [one for one in os.scandir(directory) if one.name.endswith(".json")]
        files.sort(key=lambda one: one.stat().st_mtime_ns, reverse=True)
    except OSError:
        return
    for one in files:
        try:
            with open(one.path, encoding="utf-8") as file:
                found = json.load(file)
        except (OSError, ValueError):
            continue
        if isinstance(found, dict) and found.get("token"):
            yield found


def _will_attach() -> bool:
    """Whether a harness started this whose hooks will attach its session."""
    from ..harness_settings import hook_entries
    from ..harness_settings.claude_hooks import CLAUDE
    from ..harness_settings.codex_hooks import CODEX
    from ..harness_settings.settings_file import SettingsFile
    from ..hook import harness

    for one in (CLAUDE, CODEX):
        if (process := harness.process(one.name)) is not None:
            if not harness.may_be_open(one.name, process):
                return False
            # Codex gives a server hardly any of its variables.
            path = one.settings_path(harness.variable_of(process, one.variable))
            try:
                return bool(hook_entries.find(SettingsFile(path).text, one))
            except (HibossError, ValueError):
                return False
    return False


def _wait_for_session(home: Home, waiting: Callable[[], None]) -> str | None:
    end = time.monotonic() + ATTACH_SECONDS
    while time.monotonic() < end:
        if found := _of_session_above(home):
            return found
        waiting()
        time.sleep(LOOK_SECONDS)
    return None
