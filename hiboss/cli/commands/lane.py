"""`hiboss lane …`"""

from __future__ import annotations

from typing import Annotated

from .. import output
from ..session import As, Json, Token, call, flag, noun

app = noun("What does not get through to a channel, and letting it.")

Place = Annotated[str, flag("--address", "ADDRESS", "The place, like channel:folder:reports.")]


@app.command("list")
def list_(token: Token = None, as_: As = None, json_: Json = False) -> None:
    """List the lanes: how each stands and what is due there."""
    output.lanes(call("lane.list", {}, token=token, profile=as_))


@app.command()
def retry(address: Place, token: Token = None, as_: As = None, json_: Json = False) -> None:
    """Try a waiting lane now, instead of at its time."""
    output.answer(call("lane.retry", {"address": address}, token=token, profile=as_))


@app.command()
def pause(address: Place, token: Token = None, as_: As = None, json_: Json = False) -> None:
    """Hold a lane. What is for there waits, in order."""
    output.answer(call("lane.pause", {"address": address}, token=token, profile=as_))


@app.command()
def resume(address: Place, token: Token = None, as_: As = None, json_: Json = False) -> None:
    """Let a paused lane go on, at once."""
    output.answer(call("lane.resume", {"address": address}, token=token, profile=as_))
