"""`hiboss reply`"""

from __future__ import annotations

from typing import Annotated

from ..options import As, Json, Token, argument, single_command
from ..views import envelopes as views
from .message_options import Attachments, DeliverAt, MessageText, send_message

app = single_command()


@app.command()
def reply(
    id_: Annotated[str, argument("ID", "The envelope to answer, like e81.")],
    text: MessageText = None,
    attachment: Attachments = None,
    deliver_at: DeliverAt = None,
    token: Token = None,
    as_: As = None,
    json_: Json = False,
) -> None:
    """Answer an envelope. The answer goes to its sender, in the same thread.

    Example: hiboss reply e81 "yes, do it"
    """
    views.sent(send_message({"reply_to": id_}, text, attachment, deliver_at, token, as_))
