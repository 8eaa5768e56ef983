"""`hiboss user …`"""

from __future__ import annotations

from typing import Annotated

import typer

from .. import output
from ..session import As, Json, Profile, Token, Yes, call, make_sure, noun

app = noun("People beside you who have a box here.")
token_app = noun("A person's token.")
app.add_typer(token_app, name="token")

Name = Annotated[str, typer.Option("--name", metavar="NAME", help="Letters, digits and single dashes.")]


@app.command()
def register(
    name: Name,
    display: Annotated[str | None, typer.Option("--display", help="The name people see.")] = None,
    no_profile: Annotated[
        bool, typer.Option("--no-profile", help="Do not keep the token for --as NAME.")
    ] = False,
    token: Token = None,
    as_: As = None,
    json_: Json = False,
) -> None:
    """Give a person a box and a token. The token is shown this once.

    Example: hiboss user register --as boss --name ann
    """
    params = {"name": name, "display": display, "profile": not no_profile}
    result = call("user.register", params, token=token, profile=as_)
    facts = {"address": result["user"]["address"], "token": result["token"], "profile": result["profile"]}
    output.answer(result, facts)


@app.command("list")
def list_(token: Token = None, as_: As = None, json_: Json = False) -> None:
    """List the people who have a box."""
    result = call("user.list", {}, token=token, profile=as_)
    if output.Mode.json:
        output.document(result)
        return
    zone = result["timezone"]
    times = ("created_at", "last_seen_at")
    blocks = (one | {name: output.moment(one[name], zone) for name in times} for one in result["users"])
    output.records(blocks, empty="no-users")


@app.command()
def delete(
    name: Name,
    yes: Yes = False,
    token: Token = None,
    as_: As = None,
    json_: Json = False,
) -> None:
    """Take a person's box away. The token ends; all mail is kept."""
    question = f"Delete user {name}? The token ends"
    make_sure(yes, f"delete user {name}", question, "hiboss user delete --help")
    output.answer(call("user.delete", {"name": name}, token=token, profile=as_))


@token_app.command()
def rotate(
    name: Name,
    profile: Profile = None,
    token: Token = None,
    as_: As = None,
    json_: Json = False,
) -> None:
    """Give a person a new token, shown this once. The one before ends at once."""
    params = {"name": name, "profile": profile}
    output.answer(call("user.token.rotate", params, token=token, profile=as_))
