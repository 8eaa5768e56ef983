"""`hiboss watch`"""

from __future__ import annotations

from typing import Annotated

import typer

from ...core.errors import EXIT_STOPPED, EXIT_TIMEOUT, HungUp
from .. import output
from ..session import Address, As, Json, Token, call, flag, patience

app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False)


@app.command()
def watch(
    timeout: Annotated[str, flag("--timeout", "TIME", "How long at most, like 55s or 1h.")] = "55s",
    after: Annotated[str | None, flag("--after", "CURSOR", "Only what came after this next-cursor.")] = None,
    address: Address = None,
    token: Token = None,
    as_: As = None,
    json_: Json = False,
) -> None:
    """Wait for mail, print a digest of it, and end. Made to wake an idle agent.

    Ends with 0 when mail came, 4 when the time is up, 5 when somebody watches already, and
    6 when the daemon stopped. Nothing else than mail is ever printed as if it were mail.
    """
    params = {"timeout": timeout, "after": after, "address": address}
    try:
        result = call("envelope.watch", params, token=token, profile=as_, timeout=patience(timeout))
    except HungUp as error:  # it was killed: as if it had said that it stops
        output.fail(error)
        raise typer.Exit(EXIT_STOPPED) from None
    if result["timed_out"]:
        output.answer(result, {"timed-out": True, "next-cursor": result["next"]})
        raise typer.Exit(EXIT_TIMEOUT)
    if output.Mode.json:
        output.document(result)
        return
    output.line(output.shown(result["digest"]))
    output.line()
    output.record({"next-cursor": result["next"]})
