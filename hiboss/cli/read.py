"""`hiboss read`"""

from __future__ import annotations

from typing import Annotated

import typer

from . import output
from .session import As, Json, Token, call_in_person

app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False)


@app.command()
def read(
    ids: Annotated[
        list[str], typer.Argument(metavar="ID…", help="One or more envelopes of your box, like e81.")
    ],
    token: Token = None,
    as_: As = None,
    json_: Json = False,
) -> None:
    """Show envelopes of your box in full and mark them read."""
    output.envelopes(call_in_person("envelope.read", {"ids": ids}, token=token, profile=as_))
