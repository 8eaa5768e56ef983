"""`hiboss send`"""

from __future__ import annotations

from ..message_params import recipients, send_message
from ..plain_commands import PlainCommands
from ..views import envelopes as views

TYPE_CHECKING = False  # importing typing would cost every command 3 ms
if TYPE_CHECKING:
    from typing import Annotated

    from ..options import As, Json, Token, argument
    from .message_options import Attachments, DeliverAt, MessageText

app = PlainCommands()


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
