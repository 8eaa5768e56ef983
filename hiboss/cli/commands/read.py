"""`hiboss read`"""

from __future__ import annotations

from ...core.errors import OtherBox
from ..call import call
from ..client import Answered
from ..plain_commands import PlainCommands
from ..text_input import unrepeated
from ..views import envelopes as views

TYPE_CHECKING = False  # importing typing would cost every command 3 ms
if TYPE_CHECKING:
    from ..options import As, EnvelopeIds, Json, Token

app = PlainCommands()


@app.command()
def read(ids: EnvelopeIds, token: Token = None, as_: As = None, json_: Json = False) -> None:
    """Show envelopes in full and mark them as read.

    The boss can also read the mail of others; it is not marked as read.
    """
    wanted = unrepeated(ids)
    try:
        views.envelopes(call("envelope.read", {"ids": wanted}, token=token, profile=as_))
    except Answered as error:
        if error.stable_code != OtherBox.code:
            raise
        found = [call("envelope.get", {"id": one}, token=token, profile=as_) for one in wanted]
        shown = [one["envelope"] for one in found]
        views.envelopes({"changed": 0, "envelopes": shown, "timezone": found[0]["timezone"]})
