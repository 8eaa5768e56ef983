"""`hiboss reply`"""

from __future__ import annotations

from ...core.errors import NotFound
from ...core.paths import Home
from ..call import call_as
from ..client import Answered
from ..credentials import find_token
from ..message_params import message_params
from ..plain_commands import PlainCommands
from ..views import envelopes as views

TYPE_CHECKING = False  # importing typing would cost every command 3 ms
if TYPE_CHECKING:
    from typing import Annotated

    from ..options import As, Json, Token, argument
    from .message_options import AckBy, Attachments, DeliverAt, Key, MessageText, ToSender

app = PlainCommands()


@app.command()
def reply(
    id_: Annotated[str, argument("ID", "The envelope to answer, like e81.")],
    text: MessageText = None,
    attachment: Attachments = None,
    to_sender: ToSender = False,
    deliver_at: DeliverAt = None,
    ack_by: AckBy = None,
    key: Key = None,
    token: Token = None,
    as_: As = None,
    json_: Json = False,
) -> None:
    """Answer an envelope, to all others of its thread, and mark it as read.

    If others were added to the thread, the answer begins a conversation of all of them, and says so
    (other-conversation). Whom you may not write to is named (skipped).

    Example: hiboss reply e81 "yes, do it"
    """
    where = {"reply_to": id_, "to_sender": to_sender, "ack_by": ack_by, "key": key}
    params = message_params(where, text, attachment, deliver_at, token)
    home = Home()
    found = find_token(home, token, as_)  # once: it may be read from standard input
    sent = call_as(home, "envelope.send", params, found)
    views.sent(sent)
    _mark_as_read(home, id_, sent["message"], found)


def _mark_as_read(home: Home, answered: str, reply: str, token: str | None) -> None:
    """Mark what was answered. It may be named by the envelope of another recipient, which is not ours."""
    try:
        call_as(home, "message.markRead", {"message_ids": [answered]}, token)
    except Answered as error:
        if error.stable_code != NotFound.code:
            raise
        parent = call_as(home, "message.get", {"message_id": reply}, token)["message"]["reply_to"]
        call_as(home, "message.markRead", {"message_ids": [parent]}, token)
