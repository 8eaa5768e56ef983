"""The MCP clients that hiboss can be put into: where their settings are, and the entry of our server."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ...core.errors import InvalidParams
from . import mcp_json, mcp_toml
from .harness import PROGRAM, command_of_this_program

SERVER = "hiboss"  # the name of our server in all settings
# What says who speaks, and where. Codex gives a server only the variables that are named to it.
PASSED = ("HIBOSS_TOKEN", "HIBOSS_TOKEN_FILE", "HIBOSS_RUN", "HIBOSS_AGENT", "HIBOSS_HOME")
STARTUP_SECONDS = 30  # for Codex, which gives a server 10: the daemon may have to start the worker

Entry = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Format:
    """How a client writes its settings. None stands for a file that does not exist."""

    title: str
    installed: Callable[[str | None, str, Entry], str]
    removed: Callable[[str | None, str], str | None]
    find: Callable[[str | None, str], Any]


JSON = Format(
    title="JSON with MCP servers",
    installed=mcp_json.installed,
    removed=mcp_json.removed,
    find=mcp_json.find,
)
TOML = Format(
    title="TOML with MCP servers",
    installed=mcp_toml.installed,
    removed=mcp_toml.removed,
    find=mcp_toml.find,
)


@dataclass(frozen=True, kw_only=True)
class McpClient:
    """A program that starts MCP servers."""

    title: str
    user_file: Callable[[], str]
    project_file: str  # in the directory of the project; others get it with the project
    format: Format
    more: Entry  # further fields of the entry
    attaches: bool = False  # its sessions can be attached by hooks, and then they name the agent
    after_install: str


def _claude_file() -> str:
    # With a directory of its own, its state is in there; else it is beside ~/.claude, not in it.
    return os.path.join(os.environ.get("CLAUDE_CONFIG_DIR") or "~", ".claude.json")


def _codex_file() -> str:
    return os.path.join(os.environ.get("CODEX_HOME") or "~/.codex", "config.toml")


CLIENTS = {
    "claude": McpClient(
        title="Claude Code",
        user_file=_claude_file,
        project_file=".mcp.json",
        format=JSON,
        more={"type": "stdio"},
        attaches=True,
        after_install="Start Claude Code anew; /mcp shows the server there.",
    ),
    "codex": McpClient(
        title="Codex",
        user_file=_codex_file,
        project_file=".codex/config.toml",
        format=TOML,
        more={"startup_timeout_sec": STARTUP_SECONDS, "env_vars": list(PASSED)},
        attaches=True,
        after_install="Start Codex anew; /mcp shows the server there.",
    ),
    "cursor": McpClient(
        title="Cursor",
        user_file=lambda: "~/.cursor/mcp.json",
        project_file=".cursor/mcp.json",
        format=JSON,
        more={"type": "stdio"},
        after_install="Restart Cursor, and switch the server on: Customize in the sidebar, then MCPs.",
    ),
}


def settings_path(client: McpClient, scope: str) -> str:
    chosen = client.project_file if scope == "project" else client.user_file()
    return os.path.abspath(os.path.expanduser(chosen))


def entry_for(words: list[str], more: Entry) -> Entry:
    """Return the entry that starts this hiboss with `mcp` and these words. No token stands in it."""
    command = command_of_this_program(None)
    entry = {**more, "command": command.program, "args": ["mcp", *words]}
    # Codex gives a server hardly any of its variables.
    return entry if command.home is None else {**entry, "env": {"HIBOSS_HOME": command.home}}


def check_ours(found: Any) -> None:
    """Raise if the entry with our name starts another program: it is somebody's own."""
    command = found.get("command") if isinstance(found, dict) else None
    args = found.get("args") if isinstance(found, dict) else None
    ours = isinstance(command, str) and os.path.basename(command) == PROGRAM
    if not (ours and isinstance(args, list) and args[:1] == ["mcp"]):
        detail = f"these settings have another MCP server called {SERVER}, which does not start hiboss mcp;"
        raise InvalidParams(detail=f"{detail} rename it, then try again")


def merged(found: Entry | None, wanted: Entry) -> Entry:
    """Return the entry with what we want; fields and variables that somebody added stay, limits too."""
    if found is None:
        return wanted
    fresh = {name: value for name, value in wanted.items() if name != "startup_timeout_sec"}
    entry = {**found, **fresh}
    env = {name: value for name, value in (found.get("env") or {}).items() if name != "HIBOSS_HOME"}
    env |= wanted.get("env", {})
    entry.pop("env", None)
    if isinstance(found.get("env_vars"), list):
        entry["env_vars"] = list(dict.fromkeys([*found["env_vars"], *wanted.get("env_vars", ())]))
    return {**entry, "env": env} if env else entry
