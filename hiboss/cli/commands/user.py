"""`hiboss user …`"""

from __future__ import annotations

from typing import Annotated

from ...core.errors import UnknownUser
from ...core.quoting import nearest
from .. import output
from ..call import call
from ..options import As, Display, Json, NoProfile, Profile, Token, Yes, argument, noun
from ..text_input import confirm
from ..views import agents as views

app = noun("Register, list and delete other people who have a box here.")
token_app = noun("Replace a person's token.")
app.add_typer(token_app, name="token")

NewName = Annotated[str, argument("NAME", "Letters, digits and single dashes, like ann.")]
Name = Annotated[str, argument("NAME", "The person's name; hiboss user list shows them.")]


@app.command()
def register(
    name: NewName,
    display: Display = None,
    no_profile: NoProfile = False,
    token: Token = None,
    as_: As = None,
    json_: Json = False,
) -> None:
    """Give a person a box and a token. The token is shown only now.

    Example: hiboss user register ann
    """
    params = {"name": name, "display": display, "profile": not no_profile}
    result = call("user.register", params, token=token, profile=as_)
    facts = {"address": result["user"]["address"], "token": result["token"], "profile": result["profile"]}
    output.answer(result, facts)


@app.command("list")
def list_(token: Token = None, as_: As = None, json_: Json = False) -> None:
    """List the people who have a box."""
    views.users(call("user.list", {}, token=token, profile=as_))


@app.command()
def delete(
    name: Name,
    yes: Yes = False,
    token: Token = None,
    as_: As = None,
    json_: Json = False,
) -> None:
    """Delete a person's box. The token is revoked; no mail is deleted."""
    if not yes:
        _check_known(name, token, as_)
    question = f"Delete user {name}? The token is revoked"
    confirm(yes, f"delete user {name}", question, "hiboss user delete --help")
    output.answer(call("user.delete", {"name": name}, token=token, profile=as_))


def _check_known(name: str, token: str | None, profile: str | None) -> None:
    """Raise before the question is asked, if nobody has this name."""
    users = call("user.list", {}, token=token, profile=profile)["users"]
    known = [one["name"] for one in users if not one["boss"]]
    if name.lower().removeprefix("user:") not in [one.lower() for one in known]:
        raise UnknownUser(name=name, hint=nearest(name, known))


@token_app.command()
def rotate(
    name: Name,
    profile: Profile = None,
    token: Token = None,
    as_: As = None,
    json_: Json = False,
) -> None:
    """Give a person a new token, shown only now. The old one is revoked at once."""
    params = {"name": name, "profile": profile}
    output.answer(call("user.token.rotate", params, token=token, profile=as_))
