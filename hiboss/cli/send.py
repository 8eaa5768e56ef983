"""`hiboss send`"""

from __future__ import annotations

from typing import Annotated

import typer

from .envelope import WHEN, absolute, show_sent
from .everyday import addressed, say, spoken
from .session import As, Json, Token, flag

app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False)


@app.command()
def send(
    to: Annotated[
        str, typer.Argument(metavar="TO", help="nex, or an address like user:ann; several: nex,kai.")
    ],
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
    """Send a message, as the boss unless a token says otherwise.

    Example: hiboss send nex "hello". Everything else that can be said: hiboss envelope send --help
    """
    params = {
        "to": [addressed(name.strip()) for name in to.split(",")],
        "text": spoken(text, bool(attachment)),
        "attachments": [absolute(path) for path in attachment or []],
        "deliver_at": deliver_at,
    }
    show_sent(say(params, token, as_))
