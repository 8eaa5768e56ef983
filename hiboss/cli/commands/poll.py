"""`hiboss poll`"""

from __future__ import annotations

import os

from ...core.errors import EXIT_REFUSED, EXIT_USAGE, HibossError, InvalidParams
from .. import output
from ..call import call, timeout_for
from ..plain_commands import PlainCommands
from ..views import envelopes as views

TYPE_CHECKING = False  # importing typing would cost every command 3 ms
if TYPE_CHECKING:
    from typing import Annotated, Any, Literal

    from ..options import As, Json, Text, Token, flag

app = PlainCommands()
SESSION_VARIABLE = "HIBOSS_SESSION"
SESSION = (
    "A name for one of several sessions of yours; each is shown every envelope. "
    "By default HIBOSS_SESSION, else a session without a name."
)
ALWAYS_BLOCK = (
    "With --format hook: without new mail, tell the agent to poll again instead of letting it stop."
)


@app.command()
def poll(
    wait: Annotated[Text, flag("--wait", "TIME", "Wait for mail this long, like 55s.")] = None,
    session: Annotated[Text, flag("--session", "NAME", SESSION)] = None,
    format_: Annotated[
        Literal["text", "json", "hook"],
        flag("--format", None, "hook: for the Stop hook of a coding agent like Claude Code."),
    ] = "text",
    always_block: Annotated[bool, flag("--always-block", None, ALWAYS_BLOCK)] = False,
    token: Token = None,
    as_: As = None,
    json_: Json = False,
) -> int | None:
    """Get the mail that this session has not been shown yet, and report that you are there.

    Each envelope is shown once per session. It stays in your inbox until you read or
    acknowledge it. hiboss envelope wait and hiboss watch do not remember what they have shown.
    """
    if always_block and format_ != "hook":
        raise InvalidParams(detail="--always-block needs --format hook")
    params = {"wait": wait, "session": session or os.environ.get(SESSION_VARIABLE, "")}
    try:
        result = call("envelope.poll", params, token=token, profile=as_, timeout=timeout_for(wait))
    except HibossError as error:
        if format_ != "hook":
            raise
        # For a harness, 2 means "continue, the reason is on standard error": an error must not wake.
        status = output.fail(error)
        return EXIT_REFUSED if status == EXIT_USAGE else status
    if format_ == "hook":
        _hook(result, always_block)
    elif format_ == "json":
        output.document(result)
    else:
        views.envelopes(result)
    return None


def _hook(result: dict[str, Any], always_block: bool) -> None:
    """Print why the agent must continue; when nothing is printed, the harness lets it stop."""
    found = result["envelopes"]
    if found:
        ids = ", ".join(one["id"] for one in found)
        shown = views.digest(result)
        reason = f"You have new mail ({ids}). Deal with it, then acknowledge it:\n\n{shown}"
        output.document({"decision": "block", "reason": reason})
    elif always_block:
        reason = "No new mail. Continue to wait: hiboss poll --wait 55s --format hook --always-block"
        output.document({"decision": "block", "reason": reason})
