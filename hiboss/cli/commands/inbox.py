"""`hiboss inbox`"""

from __future__ import annotations

from ...core.paths import Home
from .. import output
from ..call import call_as
from ..credentials import find_token
from ..plain_commands import PlainCommands
from ..tag_values import filters
from ..views import envelopes as views

TYPE_CHECKING = False  # importing typing would cost every command 3 ms
if TYPE_CHECKING:
    from typing import Annotated, Any

    from ..options import After, As, Json, Number, Text, Token, flag
    from .filter_options import Mentions, Ref, Scope, Snoozed, Thread

app = PlainCommands()


@app.command()
def inbox(
    unread: Annotated[bool, flag("--unread", None, "Only unread mail; it stays unread.")] = False,
    peek: Annotated[bool, flag("--peek", None, "Mark nothing as read.")] = False,
    from_: Annotated[Text, flag("--from", "NAME", "Only from this sender, like nex.")] = None,
    mentions: Mentions = False,
    scope: Scope = None,
    ref: Ref = None,
    thread: Thread = None,
    snoozed: Snoozed = False,
    number: Number = None,
    after: After = None,
    address: Annotated[
        Text, flag("--address", "ADDRESS", "Whose box (boss only); nothing is marked as read.")
    ] = None,
    token: Token = None,
    as_: As = None,
    json_: Json = False,
) -> None:
    """List your inbox, newest first. What is shown in full is marked as read.

    A table on a terminal cuts long texts; what it cuts stays unread, and hiboss read shows it.
    """
    params: dict[str, Any] = {
        "unread": unread,
        "arrived": True,
        "from": from_,
        **filters(scope, ref, mentions=mentions),
        **({"thread": thread, "box": "inbox"} if thread and not snoozed else {"thread": thread}),
        "snoozed": snoozed,
        "page_size": number,
        "after": after,
        "address": address,
    }
    home = Home()
    found = find_token(home, token, as_)  # once: it may be read from standard input
    result = call_as(home, "envelope.list", params, found)
    whole = views.listed(result)
    if unread or peek or address or snoozed:
        return
    new = [one["id"] for one in result["envelopes"] if one["read_at"] is None]
    if cut := [one for one in new if one not in whole]:
        output.note(f"Not shown in full, still unread: hiboss read {' '.join(cut)}")
    if seen := [one for one in new if one in whole]:
        call_as(home, "envelope.read", {"ids": seen}, found)
