"""`hiboss send`"""

from __future__ import annotations

from typing import Annotated

import typer

from ..session import As, Json, Token
from .envelope import show_sent
from .everyday import Files, Text, When, addressed, say

app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False)


@app.command()
def send(
    to: Annotated[
        str, typer.Argument(metavar="TO", help="nex, or an address like user:ann; several: nex,kai.")
    ],
    text: Text = None,
    attachment: Files = None,
    deliver_at: When = None,
    token: Token = None,
    as_: As = None,
    json_: Json = False,
) -> None:
    """Send a message, as the boss unless a token says otherwise.

    Example: hiboss send nex "hello". Everything else that can be said: hiboss envelope send --help
    """
    where = {"to": [addressed(name.strip()) for name in to.split(",")]}
    show_sent(say(where, text, attachment, deliver_at, token, as_))
