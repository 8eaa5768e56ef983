"""What well-known agents need: how to install them, how to log in, and their environment.

An agent that is not in the table works too. It only gets less exact help in its errors.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from .. import programs


class KnownAgent(NamedTuple):
    """The commands that help with one agent."""

    install: str
    login: str
    cost: bool = False  # it says what a session cost
    of_claude: bool = False  # its sessions are those of Claude Code, which does not notice who has one open


# By a word of the command, or of the name that the agent gives itself.
KNOWN = {
    "claude-agent-acp": KnownAgent(
        "npm install -g @agentclientprotocol/claude-agent-acp", "claude auth login", cost=True, of_claude=True
    ),
    "codex-acp": KnownAgent("npm install -g @agentclientprotocol/codex-acp", "codex login"),
    "gemini": KnownAgent("npm install -g @google/gemini-cli", "gemini"),
    "opencode": KnownAgent("npm install -g opencode-ai", "opencode auth login", cost=True),
    "goose": KnownAgent("brew install block-goose-cli", "goose configure"),
}

# For those behind whom one of these programs works; the others ignore it. What the user set comes first.
DEFAULTS = {
    # claude: without this it repeats a refused call for minutes, and goes on working after its answer.
    "CLAUDE_CODE_MAX_RETRIES": "2",
    "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1",
    # A model call after each answer, for what a person might type next.
    "CLAUDE_CODE_ENABLE_PROMPT_SUGGESTION": "false",
    # codex: a login shell resets PATH, and `hiboss` is gone. And the model may ask questions.
    "CODEX_CONFIG": json.dumps(
        {"allow_login_shell": False, "features": {"default_mode_request_user_input": True}}
    ),
}
# Whatever the user set.
ALWAYS = {
    # claude: else it reads each file that a text names with an @, wherever it is, and asks nobody.
    "CLAUDE_CODE_DISABLE_FILE_MENTIONS": "1",
}
# codex-acp, by autonomy. Its own default lets another model decide what is allowed.
MODES = {"low": "read-only", "medium": "workspace-write", "high": "agent-full-access"}


def known(words: Sequence[str], name: str = "") -> KnownAgent | None:
    """Return what is known about an agent, by its command and the name that it gave itself."""
    parts = [part for word in [*words, name] for part in re.split("[/@]", word.lower())]
    return next((KNOWN[part] for part in parts if part in KNOWN), None)


def environment(given: Mapping[str, str], words: Sequence[str], autonomy: str) -> dict[str, str]:
    """Return the environment for an agent. `words`: its command, with the path of its program."""
    mode = {"INITIAL_AGENT_MODE": MODES[autonomy]}
    found = programs.with_program({**DEFAULTS, **mode, **given, **ALWAYS}, words[0])
    # Another value lets it start a Claude Code that may do anything, and that refuses to run as root.
    if known(words) is KNOWN["claude-agent-acp"] and found.get("IS_SANDBOX") != "1":
        found.pop("IS_SANDBOX", None)
    return found


def own_program(words: Sequence[str]) -> str:
    """Return the program of a command: what follows `env` and its variables."""
    rest = [one for one in words[1:] if "=" not in one]
    is_env = os.path.basename(words[0]) == "env" and rest and not rest[0].startswith("-")
    return rest[0] if is_env else words[0]


def locate(program: str, given: Mapping[str, str], workspace: str) -> str | None:
    """Return the path of the agent's program; a path that is not absolute begins at the workspace."""
    if os.sep in program and not program.startswith("~"):
        program = os.path.join(workspace, program)
    return programs.locate(program, given)
