"""`hiboss lane …`"""

from __future__ import annotations

from typing import Annotated

from .. import output
from ..call import call
from ..options import As, Json, Token, argument, noun
from ..views import daemon as views

app = noun("List, retry, pause and resume deliveries to an address.")

Lane = Annotated[str, argument("ADDRESS", "The address, like channel:folder:reports.")]


@app.command("list")
def list_(token: Token = None, as_: As = None, json_: Json = False) -> None:
    """List the lanes: the state of each, and how much is due there."""
    views.lanes(call("lane.list", {}, token=token, profile=as_))


@app.command()
def retry(address: Lane, token: Token = None, as_: As = None, json_: Json = False) -> None:
    """Retry a waiting lane now."""
    output.answer(call("lane.retry", {"address": address}, token=token, profile=as_))


@app.command()
def pause(address: Lane, token: Token = None, as_: As = None, json_: Json = False) -> None:
    """Pause a lane. Its mail waits, in order."""
    output.answer(call("lane.pause", {"address": address}, token=token, profile=as_))


@app.command()
def resume(address: Lane, token: Token = None, as_: As = None, json_: Json = False) -> None:
    """Resume a paused lane, not before a time its platform named."""
    output.answer(call("lane.resume", {"address": address}, token=token, profile=as_))
