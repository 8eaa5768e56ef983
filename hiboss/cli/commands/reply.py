"""`hiboss reply`"""

from __future__ import annotations

from typing import Annotated

import typer

from ..session import As, Json, Token
from .envelope import show_sent
from .everyday import Files, Text, When, say

app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False)


@app.command()
def reply(
    id_: Annotated[str, typer.Argument(metavar="ID", help="The envelope to answer, like e81.")],
    text: Text = None,
    attachment: Files = None,
    deliver_at: When = None,
    token: Token = None,
    as_: As = None,
    json_: Json = False,
) -> None:
    """Answer an envelope: to whoever wrote it, in the same thread.

    Example: hiboss reply e81 "yes, do it"
    """
    show_sent(say({"reply_to": id_}, text, attachment, deliver_at, token, as_))
