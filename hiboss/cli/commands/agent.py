"""`hiboss agent …`"""

from __future__ import annotations

import sys
from typing import Annotated, Any, Literal

import typer

from .. import described_options, output
from ..call import call
from ..options import As, Display, Json, NoProfile, Profile, Reason, Text, Token, Yes, argument, flag, noun
from ..text_input import confirm, refuse_input_twice, text_or_input
from ..views import agents as views
from ..views import daemon as daemon_view
from ..views.times import moment
from .agent_options import (
    Busy,
    DailyCost,
    DailyTokens,
    Description,
    Kind,
    Mode,
    Module,
    Name,
    NewName,
    NewProvider,
    Provider,
    Reply,
    Role,
    SessionContext,
    SessionIdle,
    SessionReset,
    SessionScope,
    Workspace,
    settings_given,
)

app = noun("Register, list, change, pause and delete agents.")

permission_app = noun("Show or change what an agent may do.")
token_app = noun("Replace or revoke an agent's token.")
app.add_typer(permission_app, name="permission")
app.add_typer(token_app, name="token")

Groups = Annotated[
    Literal["mentioned", "replied", "always"] | None,
    flag(
        "--groups",
        None,
        "What of a group is for the agents: what names them or replies to them, only replies, everything.",
    ),
]
Topic = Annotated[
    bool | None,
    flag("--topic/--no-topic", None, "Give the agent a topic of its own in your private chat."),
]
Lead = Annotated[bool, flag("--lead", None, "It gets what is not for another agent of the account.")]
NoCheck = Annotated[bool, flag("--no-check", None, "Do not ask the platform whether the settings work.")]
Platform = Annotated[str, flag("--adapter-type", "TYPE", "The kind of platform, like folder.")]


@app.command(described=True)
def register(
    context: typer.Context,
    name: NewName,
    provider: NewProvider = None,
    mode: Mode = None,
    reply: Reply = None,
    busy: Busy = None,
    workspace: Workspace = None,
    session_scope: SessionScope = None,
    session_reset: SessionReset = None,
    session_idle: SessionIdle = None,
    session_context: SessionContext = None,
    daily_tokens: DailyTokens = None,
    daily_cost: DailyCost = None,
    kind: Kind = None,
    description: Description = None,
    role: Role = None,
    module: Module = None,
    display: Display = None,
    no_profile: NoProfile = False,
    token: Token = None,
    as_: As = None,
    json_: Json = False,
) -> None:
    """Register a new agent. It gets an address and a token; the token is shown only now.

    Options of its provider are given in the same way; hiboss agent providers lists them.

    Example: hiboss agent register kai --workspace "$PWD" --command "python3 agent.py"
    """
    params = settings_given(locals()) | {"name": name, "profile": not no_profile}
    result = call("agent.register", params, token=token, profile=as_)
    facts = {name: result[name] for name in ("token", "profile")} | result.get("secrets", {})
    output.answer(result, {"name": result["agent"]["name"]} | facts | views.found(result))
    _explain_secrets(result)


def _explain_secrets(result: dict[str, Any]) -> None:
    if names := ", ".join(result.get("secrets", {})):
        output.note(f"hiboss made this secret; it is shown only now: {names}. The other side needs it.")


@app.command()
def check(
    name: Name,
    provider: Annotated[
        Text, flag("--provider", "NAME", "Try this one with its default settings, instead of its own.")
    ] = None,
    token: Token = None,
    as_: As = None,
    json_: Json = False,
) -> None:
    """Look for the program and the login that an agent needs.

    Example: hiboss agent check nex
    """
    result = call("agent.check", {"name": name, "provider": provider}, token=token, profile=as_)
    can = ", ".join(result["capabilities"]) or None
    facts = {"name": result["name"], "provider": result["provider"], "can": can}
    output.answer(result, facts | views.found(result))


@app.command()
def providers(token: Token = None, as_: As = None, json_: Json = False) -> None:
    """List who can answer for an agent, and the options of each."""
    views.providers(call("provider.list", {}, token=token, profile=as_))


@app.command("list")
def list_(
    role: Annotated[Text, flag("--role", "TEXT", "Only agents with this role.")] = None,
    module: Annotated[Text, flag("--module", "TEXT", "Only agents with this module.")] = None,
    token: Token = None,
    as_: As = None,
    json_: Json = False,
) -> None:
    """List the agents and their settings."""
    views.agents(call("agent.list", {"role": role, "module": module}, token=token, profile=as_))


@app.command("set", described=True)
def set_(
    context: typer.Context,
    name: Name,
    provider: Provider = None,
    mode: Mode = None,
    reply: Reply = None,
    busy: Busy = None,
    workspace: Workspace = None,
    session_scope: SessionScope = None,
    session_reset: SessionReset = None,
    session_idle: SessionIdle = None,
    session_context: SessionContext = None,
    daily_tokens: DailyTokens = None,
    daily_cost: DailyCost = None,
    kind: Kind = None,
    description: Description = None,
    role: Role = None,
    module: Module = None,
    display: Display = None,
    token: Token = None,
    as_: As = None,
    json_: Json = False,
) -> None:
    """Change the settings of an agent. An empty text ('') removes a setting.

    Options of its provider are given in the same way; hiboss agent providers lists them.

    Example: hiboss agent set nex --workspace "$PWD" --command "python3 agent.py"
    """
    params = settings_given(locals()) | {"name": name}
    result = call("agent.set", params, token=token, profile=as_)
    output.answer(result, views.settings(result) | result.get("secrets", {}) | views.found(result))
    _explain_secrets(result)


@app.command()
def delete(
    name: Name,
    yes: Yes = False,
    token: Token = None,
    as_: As = None,
    json_: Json = False,
) -> None:
    """Delete an agent.

    Its tokens are revoked, and mail that waits for it fails. No mail is deleted.
    """
    if not yes:
        call("agent.status", {"name": name}, token=token, profile=as_)  # refused if there is none
    question = f"Delete agent {name}? Its tokens are revoked and mail that waits for it fails"
    confirm(yes, f"delete agent {name}", question, "hiboss agent delete --help")
    output.answer(call("agent.delete", {"name": name}, token=token, profile=as_))


@app.command("self")
def self_(token: Token = None, as_: As = None, json_: Json = False) -> None:
    """Show who you are: your address and your level."""
    result = call("agent.self", {}, token=token, profile=as_)
    output.answer(result, {name: result[name] for name in ("kind", "address", "level", "timezone")})


@app.command()
def status(name: Name, token: Token = None, as_: As = None, json_: Json = False) -> None:
    """Show the state of an agent.

    Also the mail that is due, its last run, and the tokens and cost of today.
    """
    views.status(call("agent.status", {"name": name}, token=token, profile=as_))


@app.command()
def instructions(name: Name, token: Token = None, as_: As = None, json_: Json = False) -> None:
    """Show what an agent is told: instructions, memory.

    Example: hiboss agent instructions nex
    """
    views.instructions(call("agent.instructions", {"name": name}, token=token, profile=as_))


@app.command()
def sessions(name: Name, token: Token = None, as_: As = None, json_: Json = False) -> None:
    """List the sessions of an agent.

    A session is the memory of its provider. Each line says whose it is, and why it is not resumed.

    Example: hiboss agent sessions nex
    """
    views.sessions(call("agent.sessions", {"name": name}, token=token, profile=as_))


@app.command()
def refresh(
    name: Name,
    conversation: Annotated[
        Text, flag("--conversation", "ID", "Only the session of this one, like c4; by default all.")
    ] = None,
    token: Token = None,
    as_: As = None,
    json_: Json = False,
) -> None:
    """Begin new sessions with the next turns of an agent.

    The agent forgets what was said. A run under way goes on in its session.

    Example: hiboss agent refresh nex
    """
    params = {"name": name, "conversation": conversation}
    output.answer(call("agent.refresh", params, token=token, profile=as_))


@app.command()
def pause(
    name: Name, reason: Reason = None, token: Token = None, as_: As = None, json_: Json = False
) -> None:
    """Pause an agent: it gets no new turns, and its mail waits. A run that has started continues."""
    params = {"name": name, "reason": reason}
    output.answer(call("agent.pause", params, token=token, profile=as_))


@app.command()
def resume(name: Name, token: Token = None, as_: As = None, json_: Json = False) -> None:
    """Resume a paused agent. What a limit stopped gets the same limit once more."""
    output.answer(call("agent.resume", {"name": name}, token=token, profile=as_))


@app.command()
def detach(name: Name, token: Token = None, as_: As = None, json_: Json = False) -> None:
    """Take an agent's mail back from its open harness.

    Its open Claude Code or Codex gets no more mail. What it has comes back: it waits for the next
    session, or a run works on it (attached.fallback). The session stays open, and is attached
    again at its next start.

    Example: hiboss agent detach nex
    """
    output.answer(call("agent.detach", {"name": name}, token=token, profile=as_))


@app.command()
def background(
    task: Annotated[str, flag("--task", "TEXT", "What to do; - reads standard input.")],
    name: Annotated[
        Text, argument("[NAME]", "The agent that does it (boss only); by default yourself.")
    ] = None,
    subject: Annotated[Text, flag("--subject", "TEXT", "A line above the text.")] = None,
    token: Token = None,
    as_: As = None,
    json_: Json = False,
) -> None:
    """Give an agent a task to do beside its turns. The result comes in the same thread.

    Example: hiboss agent background nex --task "Read the logs and list the errors"
    """
    refuse_input_twice(token, task)
    params = {"task": text_or_input(task), "subject": subject, "agent": name}
    result = call("agent.background", params, token=token, profile=as_)
    output.answer(result, {"id": result["ids"][0], "thread": result["thread"]})


@app.command()
def heartbeat(token: Token = None, as_: As = None, json_: Json = False) -> None:
    """Report that you are there. Every other command reports it too."""
    result = call("agent.heartbeat", {}, token=token, profile=as_)
    seen = moment(result["at"], result["timezone"])
    output.answer(result, {"address": result["address"], "seen-at": seen})


@app.command()
def adapters(token: Token = None, as_: As = None, json_: Json = False) -> None:
    """List the kinds of platforms, and the options of each."""
    views.adapters(call("adapter.list", {}, token=token, profile=as_))


@app.command(described=True)
def bind(
    context: typer.Context,
    name: Name,
    adapter_type: Platform,
    groups: Groups = None,
    topic: Topic = None,
    lead: Lead = False,
    no_check: NoCheck = False,
    token: Token = None,
    as_: As = None,
    json_: Json = False,
) -> None:
    """Connect an agent to a place on a platform.

    Options of the platform are given in the same way; hiboss agent adapters lists them.

    Example: hiboss agent bind kai --adapter-type folder --path ~/reports

    Example: hiboss agent bind nex --adapter-type telegram --adapter-token @token.txt
    """
    kinds = call("adapter.list", {}, token=token, profile=as_)["adapters"]
    settings = described_options.settings(context, kinds, adapter_type)
    params = {
        "name": name,
        "adapter_type": adapter_type,
        "settings": settings,
        "groups": groups,
        "leads": lead or None,
        "topic": topic,
        "connect": False if no_check else None,
    }
    result = call("agent.bind", params, token=token, profile=as_)
    output.answer(result, {key: value for key, value in result.items() if key not in ("notes", "paired")})
    if output.Mode.json:
        return
    for note in result["notes"]:
        output.note(f"note: {output.shown(output.word(note), sys.stderr)}")
    if not result["paired"]:
        output.note(f"Next: hiboss boss pair, and send the code to {result['name'] or 'the account'}.")


@app.command()
def unbind(
    name: Name,
    adapter_type: Platform,
    account: Annotated[Text, flag("--account", "NAME", "Which account, if it has several.")] = None,
    token: Token = None,
    as_: As = None,
    json_: Json = False,
) -> None:
    """Disconnect an agent from a place on a platform.

    The binding ends with its last agent; then mail that waits for the place fails.
    """
    params = {"name": name, "adapter_type": adapter_type, "account": account}
    output.answer(call("agent.unbind", params, token=token, profile=as_))


@app.command()
def bindings(token: Token = None, as_: As = None, json_: Json = False) -> None:
    """List the places that agents are bound to."""
    result = call("agent.bindings", {}, token=token, profile=as_)
    daemon_view.bindings(result)


@permission_app.command("get")
def get_permission(name: Name, token: Token = None, as_: As = None, json_: Json = False) -> None:
    """Show an agent's level and the operations it may call."""
    output.answer(call("agent.permission.get", {"name": name}, token=token, profile=as_))


@permission_app.command("set")
def set_permission(
    name: Name,
    level: Annotated[
        Literal["restricted", "standard", "privileged"],
        flag("--level", None, "The new level; it applies at once."),
    ],
    token: Token = None,
    as_: As = None,
    json_: Json = False,
) -> None:
    """Change an agent's level.

    Example: hiboss agent permission set kai --level restricted
    """
    params = {"name": name, "level": level}
    output.answer(call("agent.permission.set", params, token=token, profile=as_))


@token_app.command()
def rotate(
    name: Name,
    profile: Profile = None,
    token: Token = None,
    as_: As = None,
    json_: Json = False,
) -> None:
    """Give an agent a new token, shown only now. Its old tokens are revoked at once."""
    params = {"name": name, "profile": profile}
    output.answer(call("agent.token.rotate", params, token=token, profile=as_))


@token_app.command()
def revoke(name: Name, token: Token = None, as_: As = None, json_: Json = False) -> None:
    """Revoke an agent's tokens. The agent and its mail stay; rotate gives it a new token."""
    output.answer(call("agent.token.revoke", {"name": name}, token=token, profile=as_))
