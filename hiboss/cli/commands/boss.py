"""`hiboss boss …`"""

from __future__ import annotations

import os
from typing import Annotated, Any

from ...core.errors import InvalidParams, NotSetUp
from ...core.paths import Home
from .. import output
from ..call import call
from ..credentials import BOSS, named_token, refuse_agents
from ..daemon_process import call_once, holder
from ..options import As, Json, Text, Token, flag, noun
from ..views.times import moment

app = noun("Show or change your name, your time zone, your chat and your token.")
token_app = noun("Replace your token.")
app.add_typer(token_app, name="token")


@app.command()
def get(token: Token = None, as_: As = None, json_: Json = False) -> None:
    """Show the boss's name, time zone and chat."""
    _show(call("boss.get", {}, token=token, profile=as_))


@app.command("set")
def set_(
    name: Annotated[Text, flag("--name", "NAME", "The name that people and agents see.")] = None,
    timezone: Annotated[
        Text, flag("--timezone", "ZONE", "The zone in which times are shown and read, like Europe/Berlin.")
    ] = None,
    reach: Annotated[
        Text,
        flag("--reach", "ADDRESS", "A private chat of yours, where mail for you is posted too; '' for none."),
    ] = None,
    reach_binding: Annotated[
        Text, flag("--reach-binding", "ID", "The account that posts there, like b1, if there are several.")
    ] = None,
    forward: Annotated[
        Text, flag("--forward", "WHAT", "What is posted there: all, important or off.")
    ] = None,
    telegram: Annotated[
        Text,
        flag("--telegram", "ID", "Your numeric id in Telegram, by which you are known there; '' for none."),
    ] = None,
    token: Token = None,
    as_: As = None,
    json_: Json = False,
) -> None:
    """Change the boss's name, time zone or chat.

    Example: hiboss boss set --timezone Europe/Berlin

    Example: hiboss boss set --reach channel:folder:phone --forward important

    Example: hiboss boss set --telegram 123456789
    """
    asked = {
        "name": name,
        "timezone": timezone,
        "reach": reach,
        "reach_binding": reach_binding,
        "forward": forward,
        "ids": None if telegram is None else {"telegram": telegram},
    }
    _show(call("boss.set", asked, token=token, profile=as_))


def _show(boss: dict[str, Any]) -> None:
    ids = [f"{adapter}:{person}" for adapter, person in boss["ids"].items()]
    output.answer(boss, {**boss, "ids": ids or None})


@app.command()
def pair(token: Token = None, as_: As = None, json_: Json = False) -> None:
    """Get a code to send to your bot: then it knows you as the boss.

    The code counts once, for an hour.
    """
    result = call("boss.pair", {}, token=token, profile=as_)
    shown = {"code": result["code"], "until": moment(result["until"], result["timezone"])}
    output.answer(result, {**shown, "accounts": ", ".join(result["accounts"]) or None})
    if not output.Mode.json and not result["accounts"]:
        output.note(
            "note: no account takes it yet; bind one: "
            "hiboss agent bind NAME --adapter-type telegram --adapter-token @FILE"
        )


@token_app.command()
def rotate(
    offline: Annotated[
        bool, flag("--offline", None, "Without a token, as the owner of the home; only while no daemon runs.")
    ] = False,
    token: Token = None,
    as_: As = None,
    json_: Json = False,
) -> None:
    """Get a new boss token, shown only now. The old one is revoked.

    It is also stored for --as boss. If you have lost the token: hiboss daemon stop, then
    hiboss boss token rotate, then hiboss daemon start. While no daemon runs, no token is
    needed, with --offline and without.
    """
    home = Home()
    if offline and (token is not None or as_ not in (None, BOSS)):
        raise InvalidParams(detail="--offline takes no token: it is for the owner of the home")
    # A token that is given must be checked, and without a daemon nothing checks it.
    unnamed = not offline and holder(home) is None and named_token(home, token, as_) is None
    if offline or unnamed:
        result = _rotate_offline(home, as_)
    else:
        result = call("boss.token.rotate", {}, token=token, profile=as_)
    output.answer(result)


def _rotate_offline(home: Home, as_: str | None) -> Any:
    if as_ is None:
        refuse_agents(home)
    if not os.path.exists(home.database):  # the call would create one
        raise NotSetUp(home=str(home))
    return call_once(home, "boss.token.rotate", {}, "replacing the token")
