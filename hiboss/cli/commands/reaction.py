"""`hiboss reaction …`"""

from __future__ import annotations

from typing import Annotated, Any

from .. import output
from ..call import call
from ..options import As, Json, Token, argument, noun

app = noun("Put an emoji on a message, or take it back.")

MessageId = Annotated[str, argument("ID", "Envelope or message id, like e81 or m57.")]


@app.command("set")
def set_(
    id_: MessageId,
    emoji: Annotated[str, argument("EMOJI", "One emoji, like 👍. It replaces the one you have there.")],
    token: Token = None,
    as_: As = None,
    json_: Json = False,
) -> None:
    """Put an emoji on a message that you sent or received.

    The agent that wrote the message sees it in its next turn. If an agent reacts to what somebody else wrote
    in a chat of its account, the account shows the emoji there.

    Example: hiboss reaction set e81 👍
    """
    _answer(call("reaction.set", {"id": id_, "emoji": emoji}, token=token, profile=as_))


@app.command()
def remove(id_: MessageId, token: Token = None, as_: As = None, json_: Json = False) -> None:
    """Take your emoji back from a message."""
    _answer(call("reaction.remove", {"id": id_}, token=token, profile=as_))


def _answer(result: dict[str, Any]) -> None:
    shown = {"message": result["message"], "emoji": result["emoji"], "changed": result["changed"]}
    output.answer(result, {**shown, "shown-in": result["shown_in"] or None})
