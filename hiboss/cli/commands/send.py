"""`hiboss send`"""

from __future__ import annotations

from typing import Annotated

from ..options import As, Json, Token, argument, single_command
from ..views import envelopes as views
from .message_options import Attachments, DeliverAt, MessageText, recipients, send_message

app = single_command()


@app.command()
def send(
    to: Annotated[str, argument("TO", "A name or an address: nex, user:ann; several: nex,kai.")],
    text: MessageText = None,
    attachment: Attachments = None,
    deliver_at: DeliverAt = None,
    token: Token = None,
    as_: As = None,
    json_: Json = False,
) -> None:
    """Send a message. For more options: hiboss envelope send --help.

    Example: hiboss send nex "hello"
    """
    views.sent(send_message({"to": recipients([to])}, text, attachment, deliver_at, token, as_))
