"""`hiboss hooks …`"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from ...core.errors import AgentChangesHooks, AgentNotNamed, UnknownAgent
from .. import output
from ..call import call
from ..client import Answered
from ..credentials import refuse_agents
from ..harness_settings import hook_entries, hook_status
from ..harness_settings.claude_hooks import CLAUDE
from ..harness_settings.codex_hooks import CODEX
from ..harness_settings.harness import command_of_this_program, entries_of
from ..harness_settings.settings_file import SettingsFile
from ..options import As, Json, Text, Token, flag, noun

app = noun("Let mail reach the Claude Code or Codex that is open in a terminal.")

HARNESSES = {one.name: one for one in (CLAUDE, CODEX)}
Client = Annotated[
    Literal["claude", "codex"], flag("--client", None, "Whose settings: Claude Code or Codex.")
]
AnyClient = Annotated[
    Literal["claude", "codex"] | None, flag("--client", None, "Only this one; by default both.")
]
Agent = Annotated[
    Text,
    flag(
        "--agent",
        "NAME",
        "Every session is this agent; it is registered if needed. Without it each session gets an agent of its own.",
    ),
]
Asks = Annotated[
    bool,
    flag("--asks", None, "Also send you its permission prompts as asks, so that you can answer anywhere."),
]


@app.command()
def install(
    client: Client,
    agent: Agent = None,
    asks: Asks = False,
    token: Token = None,
    as_: As = None,
    json_: Json = False,
) -> None:
    """Put the hooks of hiboss into the settings of a program.

    Other settings stay as they are, and a copy of the file is kept beside it. Run it again with
    other options to change the hooks; hiboss hooks remove takes them out again.

    Example: hiboss hooks install --client claude

    Example: hiboss hooks install --client codex --agent nex --asks
    """
    _refuse_agents()
    harness = HARNESSES[client]
    settings = SettingsFile(harness.settings_path())
    before = settings.text
    with hook_entries.refusing(settings.path):
        present = hook_entries.find(before, harness)
        command = command_of_this_program(agent)
        text = hook_entries.installed(before, harness, entries_of(harness, command, asks=asks))
    registered = agent is not None and _register(agent, token, as_)
    result: dict[str, Any] = {"client": client, "settings_file": settings.path}
    if text == before:
        result["outcome"] = "already installed"
    else:
        result["backup"] = settings.change(text)
        result["outcome"] = "updated" if present else "installed"
        result["next"] = harness.after_install
    result |= {"agent": agent, "agent_registered": registered or None}
    output.answer(result)


@app.command()
def remove(client: Client, json_: Json = False) -> None:
    """Take the hooks of hiboss out of these settings again.

    Hooks of others and all other settings stay as they are.

    Example: hiboss hooks remove --client claude
    """
    _refuse_agents()
    harness = HARNESSES[client]
    settings = SettingsFile(harness.settings_path())
    before = settings.text
    with hook_entries.refusing(settings.path):
        text = hook_entries.removed(before, harness)
    result: dict[str, Any] = {"client": client, "settings_file": settings.path, "outcome": "not installed"}
    if text != before:
        result["backup"] = settings.change(text)
        result["outcome"] = "removed"
    output.answer(result)


@app.command()
def status(client: AnyClient = None, json_: Json = False) -> None:
    """Show whether the hooks are there, and what one last did.

    For Codex also whether you have trusted them; it runs no other hooks.
    """
    wanted = [HARNESSES[client]] if client else list(HARNESSES.values())
    found = [hook_status.status_of(one) for one in wanted]
    if output.Mode.json:
        output.document({"clients": found})
        return
    words = [one | {"last": hook_status.last_in_words(one["last"])} for one in found]
    output.records(words, empty="no-clients", sentence="There is nothing to show.")


def _refuse_agents() -> None:
    try:
        refuse_agents()
    except AgentNotNamed as error:
        raise AgentChangesHooks(sign=error.sign) from None


def _register(agent: str, token: str | None, as_: str | None) -> bool:
    """Register the agent if there is none; return whether that was done."""
    try:
        call("agent.status", {"name": agent}, token=token, profile=as_)
        return False
    except Answered as error:
        if error.stable_code != UnknownAgent.code:
            raise
    params = {"name": agent, "mode": "pull", "profile": True}
    call("agent.register", params, token=token, profile=as_)
    return True
