"""`hiboss mcp` and `hiboss mcp …`"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import typer

from ...core.errors import (
    AgentChangesMcpServers,
    AgentNotNamed,
    HibossError,
    McpProfileMissing,
    UnknownAgent,
    WrongUsage,
)
from ...core.paths import Home
from .. import output
from ..call import call
from ..client import Answered
from ..credentials import BOSS, refuse_agents
from ..harness_settings import hook_entries
from ..harness_settings.claude_hooks import CLAUDE
from ..harness_settings.codex_hooks import CODEX
from ..harness_settings.mcp_clients import (
    CLIENTS,
    SERVER,
    McpClient,
    check_ours,
    entry_for,
    merged,
    settings_path,
)
from ..harness_settings.settings_file import SettingsFile
from ..mcp_stdio.program import serve
from ..mcp_stdio.speaker import Options
from ..options import Json, Text, flag
from ..positional import HELP, Commands

app = Commands(
    invoke_without_command=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=False,
    context_settings=HELP,
)

Client = Annotated[
    Literal["claude", "codex", "cursor", "json"],
    flag(
        "--client",
        None,
        "Whose settings: Claude Code, Codex or Cursor; json prints the entry for another one.",
    ),
]
ChangedClient = Annotated[
    Literal["claude", "codex", "cursor"],
    flag("--client", None, "Whose settings: Claude Code, Codex or Cursor."),
]
Scope = Annotated[
    Literal["user", "project"],
    flag(
        "--scope", None, "Your own settings, or those of the project in this directory, which others share."
    ),
]
Token = Annotated[Text, flag("--token", "TOKEN", "Use this token: @FILE reads a file. Or set HIBOSS_TOKEN.")]
SpeakAs = Annotated[Text, flag("--as", "NAME", "Speak as NAME, with the token stored here.")]
OrAs = Annotated[
    Text,
    flag(
        "--or-as", "NAME", "Speak as NAME where nothing else says who speaks: no token, run or open session."
    ),
]
AsBoss = Annotated[bool, flag("--as-boss", None, "Speak as the boss. Without this, nobody does.")]
WhoseChat = Annotated[Text, flag("--agent", "NAME", "Whose chat it is, if the boss speaks.")]
Dotted = Annotated[
    bool, flag("--dotted", None, "Also list the tools with dots in their names; some clients refuse those.")
]
InstalledAgent = Annotated[
    Text,
    flag(
        "--agent",
        "NAME",
        "The client speaks as this agent, but runs and attached sessions as their own; with --as-boss: whose chat.",
    ),
]


@app.callback()
def mcp(
    context: typer.Context,
    token: Token = None,
    as_: SpeakAs = None,
    or_as: OrAs = None,
    as_boss: AsBoss = False,
    agent: WhoseChat = None,
    dotted: Dotted = False,
    json_: Json = False,
) -> None:
    """Serve an MCP client on standard input and output, or put hiboss into the settings of one.

    Clients start it themselves. It goes on when the daemon is restarted. Without a token it is
    refused: name an agent with --as, or let hiboss hooks install attach the sessions.

    Example: hiboss mcp --as nex
    """
    if context.invoked_subcommand is not None:
        if any((token, as_, or_as, as_boss, agent, dotted)):
            detail = f"give the options behind {context.invoked_subcommand}"
            raise WrongUsage(detail=detail, help=f"hiboss mcp {context.invoked_subcommand} --help")
        return
    options = Options()
    options.token, options.as_, options.or_as, options.as_boss = token, as_, or_as, as_boss
    options.agent, options.dotted, options.json = agent, dotted, json_
    raise typer.Exit(serve(options))


@app.command()
def install(
    client: Client,
    agent: InstalledAgent = None,
    as_boss: AsBoss = False,
    scope: Scope = "user",
    json_: Json = False,
) -> None:
    """Put hiboss into the settings of an MCP client.

    No token is written there: the entry names a profile, whose token stays in the home of hiboss.
    Without --agent a session speaks as the agent that hiboss hooks install attached it to. Other
    settings stay as they are. Run it again to change the entry.

    Example: hiboss mcp install --client claude --agent nex
    """
    words = _words(client, agent, as_boss)
    if client == "json":
        output.document({"mcpServers": {SERVER: entry_for(words, {"type": "stdio"})}})
        return
    _refuse_agents()
    known = CLIENTS[client]
    settings = SettingsFile(settings_path(known, scope))
    before = settings.text
    with hook_entries.refusing(settings.path, known.format.title):
        found = known.format.find(before, SERVER)
        if found is not None:
            check_ours(found)
        text = known.format.installed(before, SERVER, merged(found, entry_for(words, known.more)))
    result: dict[str, Any] = {"client": client, "settings_file": settings.path}
    if text == before:
        result["outcome"] = "already installed"
    else:
        result["backup"] = settings.change(text, keep_copy=scope == "user")
        result["outcome"] = "installed" if found is None else "updated"
        result["next"] = known.after_install
    output.answer(result | {"agent": agent} | _advice(client, known, words))


@app.command()
def remove(client: ChangedClient, scope: Scope = "user", json_: Json = False) -> None:
    """Take hiboss out of the settings of an MCP client again.

    Other servers and all other settings stay as they are.

    Example: hiboss mcp remove --client claude
    """
    _refuse_agents()
    known = CLIENTS[client]
    settings = SettingsFile(settings_path(known, scope))
    before = settings.text
    with hook_entries.refusing(settings.path, known.format.title):
        found = known.format.find(before, SERVER)
        if found is not None:
            check_ours(found)
        text = known.format.removed(before, SERVER)
    result: dict[str, Any] = {"client": client, "settings_file": settings.path, "outcome": "not installed"}
    if text != before:
        result["backup"] = settings.change(text, keep_copy=scope == "user")
        result["outcome"] = "removed"
    output.answer(result)


def _words(client: str, agent: str | None, as_boss: bool) -> list[str]:
    """Return the options by which the server knows who speaks. The profile that they name is there."""
    usage = "hiboss mcp install --help"
    if as_boss:
        _check_profile(BOSS)
        return ["--as-boss", *(["--agent", agent] if agent is not None else [])]
    if agent is not None:
        if agent.lower() == BOSS:
            raise WrongUsage(detail="boss is no agent; to speak as the boss give --as-boss", help=usage)
        _check_profile(agent)
        # Not --as: the settings hold for all sessions of the client, also for the runs of other agents.
        return ["--or-as", agent.lower()]
    if client in CLIENTS and CLIENTS[client].attaches:
        return []
    detail = f"--client {client} needs --agent NAME or --as-boss: nothing else says who speaks"
    raise WrongUsage(detail=detail, help=usage)


def _check_profile(name: str) -> None:
    """Raise, with the command that makes it, if there is no profile for this name."""
    if Home().has_profile(name):
        return
    register, rotate = f"hiboss agent register {name}", f"hiboss agent token rotate {name} --profile"
    if name == BOSS:
        raise McpProfileMissing(name=name, command="hiboss up")
    try:
        call("agent.status", {"name": name})
    except HibossError as error:
        unknown = isinstance(error, Answered) and error.stable_code == UnknownAgent.code
        command = register if unknown else f"{register} (or, if it is registered already, {rotate})"
        raise McpProfileMissing(name=name, command=command) from None
    raise McpProfileMissing(name=name, command=f"{rotate} (its old tokens are revoked)")


def _advice(client: str, known: McpClient, words: list[str]) -> dict[str, Any]:
    """Say what is missing where only hooks can tell which agent speaks."""
    if words or _has_hooks(client):
        return {}
    install = f"hiboss hooks install --client {client}"
    return {
        "advice": f"The entry names nobody, and no hooks attach {known.title}: run {install}, or give --agent NAME"
    }


def _has_hooks(client: str) -> bool:
    harness = {one.name: one for one in (CLAUDE, CODEX)}[client]
    try:
        return bool(hook_entries.find(SettingsFile(harness.settings_path()).text, harness))
    except (HibossError, ValueError):
        return False


def _refuse_agents() -> None:
    try:
        refuse_agents()
    except AgentNotNamed as error:
        raise AgentChangesMcpServers(sign=error.sign) from None
