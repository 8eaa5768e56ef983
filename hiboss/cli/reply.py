"""`hiboss reply`"""

from __future__ import annotations

from typing import Annotated

import typer

from .envelope import WHEN, absolute, show_sent
from .everyday import say, spoken
from .session import As, Json, Token, flag

app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False)


@app.command()
def reply(
    id_: Annotated[str, typer.Argument(metavar="ID", help="The envelope to answer, like e81.")],
    text: Annotated[
        str | None, typer.Argument(metavar="TEXT", help="The text; - reads standard input.")
    ] = None,
    attachment: Annotated[
        list[str] | None, flag("--attachment", "FILE", "A file to send along; may be repeated.")
    ] = None,
    deliver_at: Annotated[str | None, flag("--deliver-at", "TIME", WHEN)] = None,
    token: Token = None,
    as_: As = None,
    json_: Json = False,
) -> None:
    """Answer an envelope: to whoever wrote it, in the same thread.

    Example: hiboss reply e81 "yes, do it"
    """
    params = {
        "reply_to": id_,
        "text": spoken(text, bool(attachment)),
        "attachments": [absolute(path) for path in attachment or []],
        "deliver_at": deliver_at,
    }
    show_sent(say(params, token, as_))
