"""`hiboss read`"""

from __future__ import annotations

from typing import Annotated

import typer

from ...core.errors import OtherBox
from .. import output
from ..client import Answered
from ..session import As, Json, Token, call_in_person

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
    """Show envelopes in full. Those of your box are marked read; another's box, for the boss, never is."""
    try:
        output.envelopes(call_in_person("envelope.read", {"ids": ids}, token=token, profile=as_))
    except Answered as error:
        if error.stable_code != OtherBox.code:
            raise
        found = [call_in_person("envelope.get", {"id": one}, token=token, profile=as_) for one in ids]
        shown = [one["envelope"] for one in found]
        output.envelopes({"changed": 0, "envelopes": shown, "timezone": found[0]["timezone"]})
