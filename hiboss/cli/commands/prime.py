"""`hiboss prime`"""

from __future__ import annotations

from typing import Annotated

from .. import output
from ..call import call
from ..options import As, Json, Token, argument, single_command

app = single_command()

Who = Annotated[str | None, argument("[NAME]", "Whose briefing (boss only); by default your own.")]


@app.command()
def prime(name: Who = None, token: Token = None, as_: As = None, json_: Json = False) -> None:
    """Show who you are, your team, and what waits for you: mail, questions, schedules.

    Example: hiboss prime --as nex
    """
    result = call("agent.briefing", {"name": name}, token=token, profile=as_)
    if output.Mode.json:
        output.document(result)
        return
    output.rendered(result["text"])
