"""`hiboss agent …`"""

from __future__ import annotations

import os
import sys
from typing import Annotated, Any, Literal

import typer

from ..errors import WrongUsage
from . import output
from .session import As, Json, Token, call, noun

app = noun("Register, list, change and delete agents.")

permission_app = noun("What an agent may do.")
token_app = noun("An agent's token.")
app.add_typer(permission_app, name="permission")
app.add_typer(token_app, name="token")

Name = Annotated[
    str, typer.Option("--name", metavar="NAME", help="Letters, digits and single dashes, like code-review.")
]
Known = Annotated[
    str, typer.Option("--name", metavar="NAME", help="The agent's name, as agent list shows it.")
]
Kind = Annotated[
    Literal["agent", "service", "bot"] | None,
    typer.Option("--kind", help="What it is: agent (the default), service or bot."),
]
Mode = Annotated[
    Literal["run", "pull"] | None,
    typer.Option(
        "--mode", help="run: the daemon gives it turns (needs a provider). pull: it fetches its mail."
    ),
]
Description = Annotated[str | None, typer.Option("--description", help="What it is for.")]
Role = Annotated[str | None, typer.Option("--role", help="Its part, like reviewer.")]
Module = Annotated[str | None, typer.Option("--module", help="What it looks after, like auth.")]
Display = Annotated[str | None, typer.Option("--display", help="The name people see.")]
Workspace = Annotated[
    str | None, typer.Option("--workspace", metavar="DIR", help="The directory it works in.")
]


@app.command()
def register(
    name: Name,
    kind: Kind = None,
    mode: Mode = None,
    description: Description = None,
    role: Role = None,
    module: Module = None,
    display: Display = None,
    workspace: Workspace = None,
    no_profile: Annotated[
        bool, typer.Option("--no-profile", help="Do not keep the token for --as NAME.")
    ] = False,
    token: Token = None,
    as_: As = None,
    json_: Json = False,
) -> None:
    """Give a new agent an address and a token. The token is shown this once.

    Example: hiboss agent register --as boss --name kai
    """
    params = _fields(kind, mode, description, role, module, display, workspace)
    params |= {"name": name, "profile": not no_profile}
    result = call("agent.register", params, token=token, profile=as_)
    facts = {"name": result["agent"]["name"], "token": result["token"], "profile": result["profile"]}
    output.answer(result, facts)


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
    kind: Kind = None,
    mode: Mode = None,
    description: Description = None,
    role: Role = None,
    module: Module = None,
    display: Display = None,
    workspace: Workspace = None,
    token: Token = None,
    as_: As = None,
    json_: Json = False,
) -> None:
    """Change what is said of an agent.

    An empty text ('') takes a word away.
    """
    params = _fields(kind, mode, description, role, module, display, workspace) | {"name": name}
    result = call("agent.set", params, token=token, profile=as_)
    output.answer(result, {key: value for key, value in result.items() if not key.endswith("_at")})


@app.command()
def delete(
    name: Known,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    token: Token = None,
    as_: As = None,
    json_: Json = False,
) -> None:
    """Take an agent away.

    Its tokens end and mail still waiting for it fails. All mail is kept.
    """
    if not yes:
        if output.Mode.json or not output.on_terminal(sys.stdin):
            detail = f"nobody can be asked here whether to delete agent {name}; give --yes if you are sure"
            raise WrongUsage(detail=detail, help="hiboss agent delete --help")
        typer.confirm(f"Delete agent {name}? Its token ends and mail waiting for it fails", abort=True)
    output.answer(call("agent.delete", {"name": name}, token=token, profile=as_))


@app.command("self")
def self_(token: Token = None, as_: As = None, json_: Json = False) -> None:
    """Say who you are, by your token."""
    result = call("agent.self", {}, token=token, profile=as_)
    output.answer(result, {name: result[name] for name in ("kind", "address", "level", "timezone")})


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
    profile: Annotated[
        bool | None,
        typer.Option("--profile/--no-profile", help="Keep it for --as NAME, or not; by default as before."),
    ] = None,
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


def _fields(
    kind: str | None,
    mode: str | None,
    description: str | None,
    role: str | None,
    module: str | None,
    display: str | None,
    workspace: str | None,
) -> dict[str, Any]:
    return {
        "kind": kind,
        "mode": mode,
        "description": description,
        "role": role,
        "module": module,
        "display": display,
        "workspace": os.path.abspath(os.path.expanduser(workspace)) if workspace else workspace,
    }


def _local(agent: dict[str, Any], zone: str) -> dict[str, Any]:
    times = {name: output.moment(agent[name], zone) for name in ("created_at", "last_seen_at")}
    return agent | times
