"""`hiboss agent …`"""

from __future__ import annotations

import os
from typing import Annotated, Any, Literal

import typer

from .. import output, views
from ..session import As, Json, Profile, Token, Yes, call, make_sure, noun, read_file
from .agent_options import (
    Busy,
    Command,
    DailyCost,
    DailyTokens,
    Description,
    Display,
    Kind,
    Known,
    Mode,
    Module,
    Name,
    Provider,
    Reply,
    Role,
    Url,
    Workspace,
    given,
)

app = noun("Register, list, change and delete agents.")

permission_app = noun("What an agent may do.")
token_app = noun("An agent's token.")
app.add_typer(permission_app, name="permission")
app.add_typer(token_app, name="token")


@app.command()
def register(
    name: Name,
    provider: Provider = None,
    command: Command = None,
    url: Url = None,
    mode: Mode = None,
    reply: Reply = None,
    busy: Busy = None,
    workspace: Workspace = None,
    daily_tokens: DailyTokens = None,
    daily_cost: DailyCost = None,
    kind: Kind = None,
    description: Description = None,
    role: Role = None,
    module: Module = None,
    display: Display = None,
    no_profile: Annotated[
        bool, typer.Option("--no-profile", help="Do not keep the token for --as NAME.")
    ] = False,
    token: Token = None,
    as_: As = None,
    json_: Json = False,
) -> None:
    """Give a new agent an address and a token. The token is shown this once.

    Example: hiboss agent register --as boss --name kai --provider command --command "python agent.py"
    """
    params = given(locals()) | {"name": name, "profile": not no_profile}
    result = call("agent.register", params, token=token, profile=as_)
    facts = {name: result[name] for name in ("token", "profile", "webhook_secret") if name in result}
    output.answer(result, {"name": result["agent"]["name"]} | facts)
    _show_secret(result)


def _show_secret(result: dict[str, Any]) -> None:
    if "webhook_secret" in result:
        output.note("The webhook secret is shown this once; your server checks signatures with it.")


@app.command("list")
def list_(
    role: Role = None, module: Module = None, token: Token = None, as_: As = None, json_: Json = False
) -> None:
    """List the agents."""
    result = call("agent.list", {"role": role, "module": module}, token=token, profile=as_)
    if output.Mode.json:
        output.document(result)
    else:
        zone = result["timezone"]
        output.agents([_local(agent, zone) for agent in result["agents"]])


@app.command("set")
def set_(
    name: Known,
    provider: Provider = None,
    command: Command = None,
    url: Url = None,
    mode: Mode = None,
    reply: Reply = None,
    busy: Busy = None,
    workspace: Workspace = None,
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
    """Change how an agent thinks and what is said of it. An empty text ('') takes a word away.

    Example: hiboss agent set --as boss --name nex --provider command --command "python agent.py"
    """
    params = given(locals()) | {"name": name}
    result = call("agent.set", params, token=token, profile=as_)
    output.answer(result, {key: value for key, value in result.items() if not key.endswith("_at")})
    _show_secret(result)


@app.command()
def delete(
    name: Known,
    yes: Yes = False,
    token: Token = None,
    as_: As = None,
    json_: Json = False,
) -> None:
    """Take an agent away.

    Its tokens end and mail still waiting for it fails. All mail is kept.
    """
    question = f"Delete agent {name}? Its token ends and mail waiting for it fails"
    make_sure(yes, f"delete agent {name}", question, "hiboss agent delete --help")
    output.answer(call("agent.delete", {"name": name}, token=token, profile=as_))


@app.command("self")
def self_(token: Token = None, as_: As = None, json_: Json = False) -> None:
    """Say who you are, by your token."""
    result = call("agent.self", {}, token=token, profile=as_)
    output.answer(result, {name: result[name] for name in ("kind", "address", "level", "timezone")})


@app.command()
def status(name: Known, token: Token = None, as_: As = None, json_: Json = False) -> None:
    """Show how an agent stands.

    Its state, what waits for it, its last run, what it has used up today.
    """
    views.standing(call("agent.status", {"name": name}, token=token, profile=as_))


@app.command()
def pause(
    name: Known,
    reason: Annotated[
        str | None, typer.Option("--reason", metavar="TEXT", help="Why, for the record.")
    ] = None,
    token: Token = None,
    as_: As = None,
    json_: Json = False,
) -> None:
    """Give an agent no more turns. What it has under way goes on; its mail waits."""
    params = {"name": name, "reason": reason}
    output.answer(call("agent.pause", params, token=token, profile=as_))


@app.command()
def resume(name: Known, token: Token = None, as_: As = None, json_: Json = False) -> None:
    """Let a paused agent go on, whoever paused it. What a guard has stopped may go as far again."""
    output.answer(call("agent.resume", {"name": name}, token=token, profile=as_))


@app.command()
def background(
    task: Annotated[
        str, typer.Option("--task", metavar="TEXT", help="What is to be done; - reads standard input.")
    ],
    subject: Annotated[str | None, typer.Option("--subject", metavar="TEXT", help="A line above it.")] = None,
    name: Annotated[
        str | None,
        typer.Option("--name", metavar="NAME", help="Whose task, for the boss; by default your own."),
    ] = None,
    token: Token = None,
    as_: As = None,
    json_: Json = False,
) -> None:
    """Have a task done beside your turns, by your own provider. The result comes in the same thread.

    Example: hiboss agent background --as nex --task "Read the logs and say what is odd"
    """
    params = {"task": read_file("-") if task == "-" else task, "subject": subject, "agent": name}
    result = call("agent.background", params, token=token, profile=as_)
    output.answer(result, {"id": result["ids"][0], "thread": result["thread"]})


@app.command()
def heartbeat(token: Token = None, as_: As = None, json_: Json = False) -> None:
    """Say that you are there; every other command says it too."""
    result = call("agent.heartbeat", {}, token=token, profile=as_)
    seen = output.moment(result["at"], result["timezone"])
    output.answer(result, {"address": result["address"], "seen-at": seen})


@app.command()
def bind(
    name: Known,
    adapter_type: Annotated[
        str, typer.Option("--adapter-type", metavar="TYPE", help="The kind of platform, like folder.")
    ],
    path: Annotated[
        str | None, typer.Option("--path", metavar="DIR", help="For a folder: the directory.")
    ] = None,
    token: Token = None,
    as_: As = None,
    json_: Json = False,
) -> None:
    """Let an agent use a place on a platform.

    Example: hiboss agent bind --as boss --name kai --adapter-type folder --path ~/reports
    """
    where = os.path.abspath(os.path.expanduser(path)) if path else None
    params = {"name": name, "adapter_type": adapter_type, "path": where}
    output.answer(call("agent.bind", params, token=token, profile=as_))


@app.command()
def unbind(
    name: Known,
    adapter_type: Annotated[
        str, typer.Option("--adapter-type", metavar="TYPE", help="The kind of platform, like folder.")
    ],
    account: Annotated[
        str | None, typer.Option("--account", metavar="NAME", help="Which of its accounts, if several.")
    ] = None,
    token: Token = None,
    as_: As = None,
    json_: Json = False,
) -> None:
    """Take a place on a platform away from an agent.

    With its last agent the binding ends, and what still waits for the place fails.
    """
    params = {"name": name, "adapter_type": adapter_type, "account": account}
    output.answer(call("agent.unbind", params, token=token, profile=as_))


@app.command()
def bindings(token: Token = None, as_: As = None, json_: Json = False) -> None:
    """List which agent has which place, and whether it works."""
    result = call("agent.bindings", {}, token=token, profile=as_)
    if output.Mode.json:
        output.document(result)
    else:
        output.records(result["bindings"], empty="no-bindings")


@permission_app.command("get")
def get_permission(name: Known, token: Token = None, as_: As = None, json_: Json = False) -> None:
    """Show an agent's level and the operations it may call with it."""
    output.answer(call("agent.permission.get", {"name": name}, token=token, profile=as_))


@permission_app.command("set")
def set_permission(
    name: Known,
    level: Annotated[
        Literal["restricted", "standard", "privileged"],
        typer.Option("--level", help="Its new level, in force at once."),
    ],
    token: Token = None,
    as_: As = None,
    json_: Json = False,
) -> None:
    """Give an agent another level.

    Example: hiboss agent permission set --as boss --name kai --level restricted
    """
    params = {"name": name, "level": level}
    output.answer(call("agent.permission.set", params, token=token, profile=as_))


@token_app.command()
def rotate(
    name: Known,
    profile: Profile = None,
    token: Token = None,
    as_: As = None,
    json_: Json = False,
) -> None:
    """Give an agent a new token, shown this once. Those it had end at once."""
    params = {"name": name, "profile": profile}
    output.answer(call("agent.token.rotate", params, token=token, profile=as_))


@token_app.command()
def revoke(name: Known, token: Token = None, as_: As = None, json_: Json = False) -> None:
    """End an agent's tokens. The agent and its mail stay; rotate gives it a new token."""
    output.answer(call("agent.token.revoke", {"name": name}, token=token, profile=as_))


def _local(agent: dict[str, Any], zone: str) -> dict[str, Any]:
    times = {name: output.moment(agent[name], zone) for name in ("created_at", "last_seen_at")}
    return agent | times
