"""`hiboss inbox`"""

from __future__ import annotations

from typing import Annotated, Any

import typer

from .. import output
from ..session import As, Json, Token, call_in_person, flag
from .everyday import addressed

app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False)


@app.command()
def inbox(
    unread: Annotated[
        bool, flag("--unread", None, "Only what was not read yet; and it stays unread.")
    ] = False,
    peek: Annotated[bool, flag("--peek", None, "Mark nothing as read.")] = False,
    from_: Annotated[str | None, flag("--from", "NAME", "Only from this sender, like nex.")] = None,
    number: Annotated[int | None, flag("-n", "N", "How many, 1 to 100; by default 10.", "--number")] = None,
    after: Annotated[
        str | None, flag("--after", "CURSOR", "Go on after the page that ended with this next-cursor.")
    ] = None,
    address: Annotated[
        str | None, flag("--address", "ADDRESS", "Whose box, for the boss; it is never marked.")
    ] = None,
    token: Token = None,
    as_: As = None,
    json_: Json = False,
) -> None:
    """Look into your inbox, newest first. What it shows is marked as read.

    Not so with --unread or --peek, and never in somebody else's box.
    """
    params: dict[str, Any] = {
        "unread": unread,
        "arrived": True,
        "from": addressed(from_) if from_ else None,
        "page_size": number,
        "after": after,
        "address": addressed(address) if address else None,
    }
    result = call_in_person("envelope.list", params, token=token, profile=as_)
    output.envelopes(result, as_table=True)
    seen = [one["id"] for one in result["envelopes"] if one["read_at"] is None]
    if seen and not (unread or peek or address):
        call_in_person("envelope.read", {"ids": seen}, token=token, profile=as_)
