"""`hiboss presence`"""

from __future__ import annotations

from typing import Annotated

from ..call import call
from ..options import As, Json, Token, argument, single_command
from ..views import presence as views

app = single_command()

Who = Annotated[
    str | None, argument("[ADDRESS]", "An agent or a person, like nex or user:ann; without it all.")
]


@app.command()
def presence(address: Who = None, token: Token = None, as_: As = None, json_: Json = False) -> None:
    """Show who is here: online, away, idle, running, typing, waiting, stuck or offline.

    Example: hiboss presence nex
    """
    if address is None:
        views.everybody(call("presence.list", {}, token=token, profile=as_))
    else:
        views.one(call("presence.get", {"address": address}, token=token, profile=as_))
