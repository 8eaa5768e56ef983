"""`hiboss message …`"""

from __future__ import annotations

from typing import Annotated

from ...core.errors import InvalidParams
from .. import output
from ..call import call
from ..options import As, Json, Reason, Token, argument, noun
from ..text_input import SEND_AS_FILE, refuse_input_twice, text_or_input
from .message_options import MessageText

app = noun("Edit or delete a message that was sent.")

MessageId = Annotated[str, argument("ID", "Message or envelope id, like m57 or e81.")]


@app.command()
def edit(
    id_: MessageId, text: MessageText = None, token: Token = None, as_: As = None, json_: Json = False
) -> None:
    """Give a message that you wrote another text. Where it was posted, the post changes too.

    Agents that have read it are told. The old text is kept.

    Example: hiboss message edit e81 "at five, not at four"
    """
    if text is None:
        raise InvalidParams(detail='the text is missing; give one, like "hello", or - for standard input')
    refuse_input_twice(token, text)
    params = {"id": id_, "text": text_or_input(text, SEND_AS_FILE)}
    output.answer(call("message.edit", params, token=token, profile=as_))


@app.command()
def delete(
    id_: MessageId, reason: Reason = None, token: Token = None, as_: As = None, json_: Json = False
) -> None:
    """Delete a message that you wrote, for everybody.

    The boss can delete any message. Its content is not shown any more. Envelopes that nobody had yet are cancelled. Where it was posted, it
    is taken back if the platform can do that.
    """
    output.answer(call("message.delete", {"id": id_, "reason": reason}, token=token, profile=as_))
