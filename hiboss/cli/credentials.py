"""Which token a command speaks with. Every command asks here."""

from __future__ import annotations

import os
from functools import cache

from ..core.errors import AgentNotNamed, BadToken, InvalidParams, NotUtf8, UnknownProfile
from ..core.paths import Home
from ..core.quoting import nearest
from .text_input import read_file

BOSS = "boss"
TOKEN_VARIABLE = "HIBOSS_TOKEN"
FILE_VARIABLE = "HIBOSS_TOKEN_FILE"
RUN_VARIABLE = "HIBOSS_RUN"
AGENT_VARIABLE = "HIBOSS_AGENT"
# In which each harness gives its tools the id of its session.
SESSION_VARIABLES = (
    ("claude", "CLAUDE_CODE_SESSION_ID"),
    ("codex", "CODEX_THREAD_ID"),
    ("codex", "CODEX_SESSION_ID"),
)
# Set in the environment of a run (the first two) and of commands that a known harness starts.
AGENT_VARIABLES = (
    RUN_VARIABLE,
    "HIBOSS_AGENT",
    "AI_AGENT",
    "AUGMENT_AGENT",
    "CLAUDECODE",
    # Not all that begin with CLAUDE_CODE_: people have some of them in their own shell.
    "CLAUDE_CODE_CHILD_SESSION",
    "CLAUDE_CODE_ENTRYPOINT",
    "CLAUDE_CODE_MESSAGING_SOCKET",
    "CLAUDE_CODE_SESSION_ID",
    "CLAUDE_CODE_SSE_PORT",
    "CLAUDE_PID",
    "CODEX_SESSION_ID",
    "CODEX_THREAD_ID",
    "CURSOR_AGENT",
    "GEMINI_CLI",
    "OPENCODE",
)
AGENT_PREFIXES = ("CODEX_SANDBOX",)


class Unnamed(str):
    """The boss's token, because nobody was named. The daemon refuses it below an open session."""


def find_token(home: Home, token: str | None, profile: str | None) -> str | None:
    """--token, else --as, else HIBOSS_TOKEN, else the token file of the run or of the open session, else the boss's.

    None when no boss token is stored here: then the daemon says what is missing.
    """
    found = named_token(home, token, profile)
    if found is not None or not home.has_profile(BOSS):
        return found
    refuse_agents(home)
    return Unnamed(_from_profile(home, BOSS))


def named_token(home: Home, token: str | None, profile: str | None) -> str | None:
    """The token that options or environment name; None when they name nobody."""
    if token is not None and profile is not None:
        raise InvalidParams(detail="give --token or --as, not both")
    if profile is not None:
        return _from_profile(home, profile)
    if token is not None:
        return _from_option(token)
    if given := os.environ.get(TOKEN_VARIABLE, "").strip():
        return given
    # A harness may keep every variable called *TOKEN* from its tools, but not the name of the run.
    file = os.environ.get(FILE_VARIABLE) or home.run_token_file(os.environ.get(RUN_VARIABLE, ""))
    return _from_file(file) if file else _of_open_session(home)


def _of_open_session(home: Home) -> str | None:
    """The token of the open session whose tool runs this: by HIBOSS_AGENT, else by the harness's own id."""
    if os.environ.get(RUN_VARIABLE):
        return None
    own = [
        home.known_session(client, os.environ[name])
        for client, name in SESSION_VARIABLES
        if os.environ.get(name)
    ]
    if agent := os.environ.get(AGENT_VARIABLE):
        named = [
            one for one in (own or home.known_sessions()) if str(one.get("agent")).lower() == agent.lower()
        ]
        own = named or [
            one for one in home.known_sessions() if str(one.get("agent")).lower() == agent.lower()
        ]
    tokens = [str(one["token"]) for one in own if one.get("token")]
    return tokens[0] if tokens else None


def refuse_agents(home: Home | None = None) -> None:
    """Raise where an agent runs this command: an agent that lost its token must not speak as the boss.

    An agent is known by its variables; and where they are all gone, by the process above it.
    """
    named = [name for name in AGENT_VARIABLES if os.environ.get(name)]
    named += [name for name, value in os.environ.items() if name.startswith(AGENT_PREFIXES) and value]
    if named:
        raise AgentNotNamed(sign=f"{named[0]} is set")
    if pid := _harness_above(home or Home()):
        raise AgentNotNamed(sign=f"a harness that is attached as an agent runs this (process {pid})")


def _harness_above(home: Home) -> int | None:
    """Return the pid of the open session below whose harness this command runs; None: there is none."""
    known = {(one.get("pid"), one.get("pid_started")) for one in home.known_sessions()}
    if not known:
        return None
    from .hook.harness import ancestors

    return next((pid for pid, stat in ancestors(os.getppid()) if (pid, stat.started) in known), None)


def _from_option(token: str) -> str:
    if token == "-" or token.startswith("@"):
        return _from_input(token.removeprefix("@"))
    from . import output

    output.note("warning: a token on the command line shows in the process list; use --token @FILE or --as")
    if not token.strip():
        raise BadToken()
    return token.strip()


@cache
def _from_input(path: str) -> str:
    """Return the token that standard input or a file gives. A command that asks again gets it again: a pipe ends."""
    return _from_file(path)


def _from_file(path: str) -> str:
    try:
        found = read_file(path).strip()
    except NotUtf8:
        raise BadToken() from None
    if not found:
        raise BadToken()
    return found


def _from_profile(home: Home, name: str) -> str:
    known = home.profiles()
    if name.lower() not in known:
        listed = ", ".join(known) or "none (run: hiboss up)"
        raise UnknownProfile(name=name, hint=nearest(name, known), profiles=listed)
    return read_file(home.profile(name.lower())).strip()
