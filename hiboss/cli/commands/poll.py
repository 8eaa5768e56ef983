"""`hiboss poll`"""

from __future__ import annotations

import os
from typing import Annotated, Any, Literal

import typer

from ...core.errors import EXIT_REFUSED, EXIT_USAGE, HibossError, InvalidParams
from .. import output
from ..session import As, Json, Token, call, flag, patience

app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False)
SESSION_VARIABLE = "HIBOSS_SESSION"


@app.command()
def poll(
    wait: Annotated[str | None, flag("--wait", "TIME", "Wait so long for mail, like 55s.")] = None,
    session: Annotated[
        str | None, flag("--session", "NAME", "Which of your sessions; or HIBOSS_SESSION.")
    ] = None,
    format_: Annotated[
        Literal["text", "json", "hook"], flag("--format", None, "hook: what a harness's Stop hook reads.")
    ] = "text",
    always_block: Annotated[
        bool, flag("--always-block", None, "In hook format: say to go on also without mail.")
    ] = False,
    token: Token = None,
    as_: As = None,
    json_: Json = False,
) -> None:
    """Say that you are there, and get the mail you were not told of yet.

    Each piece is announced once per session; it stays in your inbox until you read or
    acknowledge it.
    """
    if always_block and format_ != "hook":
        raise InvalidParams(detail="--always-block goes with --format hook")
    params = {"wait": wait, "session": session or os.environ.get(SESSION_VARIABLE, "")}
    try:
        result = call("envelope.poll", params, token=token, profile=as_, timeout=patience(wait))
    except HibossError as error:
        if format_ != "hook":
            raise
        # A harness takes 2 for "go on, the reason is on standard error": an error must not wake.
        status = output.fail(error)
        raise typer.Exit(EXIT_REFUSED if status == EXIT_USAGE else status) from None
    if format_ == "hook":
        _hook(result, always_block)
    elif format_ == "json":
        output.document(result)
    else:
        output.envelopes(result)


def _hook(result: dict[str, Any], always_block: bool) -> None:
    """A harness lets an agent stop when nothing is printed, and goes on with the reason else."""
    found = result["envelopes"]
    if found:
        ids = ", ".join(one["id"] for one in found)
        shown = output.rendered(result)
        reason = f"You have new mail ({ids}). Deal with it, then acknowledge it:\n\n{shown}"
        output.document({"decision": "block", "reason": reason})
    elif always_block:
        reason = "No new mail. Go on waiting: hiboss poll --wait 55s --format hook --always-block"
        output.document({"decision": "block", "reason": reason})
