"""`hiboss boss …`"""

from __future__ import annotations

from typing import Annotated

from ...core.errors import InvalidParams
from ...core.paths import Home
from .. import output
from ..daemon_process import call_once, holder
from ..session import As, Json, Token, call, find_token, flag, noun

app = noun("Your name, your time zone, your token.")
token_app = noun("Your token.")
app.add_typer(token_app, name="token")


@app.command()
def get(token: Token = None, as_: As = None, json_: Json = False) -> None:
    """Show the boss's name, address and time zone."""
    output.answer(call("boss.get", {}, token=token, profile=as_))


@app.command("set")
def set_(
    name: Annotated[str | None, flag("--name", "NAME", "What people and agents call you.")] = None,
    timezone: Annotated[
        str | None, flag("--timezone", "ZONE", "The zone times are shown and read in, like Europe/Berlin.")
    ] = None,
    token: Token = None,
    as_: As = None,
    json_: Json = False,
) -> None:
    """Change the boss's name or time zone.

    Example: hiboss boss set --as boss --timezone Europe/Berlin
    """
    output.answer(call("boss.set", {"name": name, "timezone": timezone}, token=token, profile=as_))


@token_app.command()
def rotate(
    offline: Annotated[
        bool,
        flag("--offline", None, "Without a token, as the owner of the home; no daemon may run."),
    ] = False,
    token: Token = None,
    as_: As = None,
    json_: Json = False,
) -> None:
    """Get a new boss token, shown this once; the old one ends.

    It is also kept for --as boss. Lost the token? hiboss daemon stop, then
    hiboss boss token rotate --offline, then hiboss daemon start.
    """
    home = Home()
    if offline and (token is not None or as_ is not None):
        raise InvalidParams(detail="--offline takes no token: it is for whoever owns the home")
    # Whoever gives a token is held to it, also while no daemon runs that could check it.
    if offline or (holder(home) is None and find_token(home, token, as_) is None):
        result = call_once(home, "boss.token.rotate", {})
    else:
        result = call("boss.token.rotate", {}, token=token, profile=as_)
    output.answer(result)
