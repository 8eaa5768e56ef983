"""`hiboss trace`"""

from __future__ import annotations

from typing import Annotated

from ..call import call
from ..options import As, Json, Token, argument, single_command
from ..views import traces as views

app = single_command()


@app.command()
def trace(
    id_: Annotated[str, argument("ID", "Envelope or message id, like e81 or m57.")],
    token: Token = None,
    as_: As = None,
    json_: Json = False,
) -> None:
    """Follow a message: how far it got, who worked on it, and what came of it.

    Example: hiboss trace e81
    """
    views.trace(call("envelope.trace", {"id": id_}, token=token, profile=as_))
