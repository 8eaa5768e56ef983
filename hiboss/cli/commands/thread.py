"""`hiboss thread …`"""

from __future__ import annotations

from typing import Annotated

from ..call import call
from ..options import After, As, Json, Number, Text, Token, argument, flag, noun
from ..tag_values import tag
from ..views import threads as views

app = noun("List threads, and show one with its messages.")

ThreadId = Annotated[str, argument("ID", "The thread: t57, or any message or envelope in it.")]


@app.command("list")
def list_(
    scope: Annotated[
        Text, flag("--scope", "TYPE:VALUE", "Only threads with a message about this, like module:auth.")
    ] = None,
    number: Number = None,
    page: Annotated[int | None, flag("--page", "N", "Which page, from 1.")] = None,
    after: After = None,
    address: Annotated[Text, flag("--address", "ADDRESS", "Whose threads (boss only).")] = None,
    token: Token = None,
    as_: As = None,
    json_: Json = False,
) -> None:
    """List the threads of your conversations, the last active first.

    A thread is a message with at least one answer.
    """
    params = {
        "scope": tag(scope, "--scope"),
        "page_size": number,
        "page": page,
        "cursor": after,
        "address": address,
    }
    views.threads(call("thread.list", params, token=token, profile=as_))


@app.command()
def show(
    id_: ThreadId,
    newest_first: Annotated[bool, flag("--newest-first", None, "Turn the order around.")] = False,
    number: Number = None,
    page: Annotated[int | None, flag("--page", "N", "Which page, from 1.")] = None,
    after: After = None,
    token: Token = None,
    as_: As = None,
    json_: Json = False,
) -> None:
    """Show a thread and its messages, the oldest first. Nothing is marked as read."""
    params = {
        "thread_id": id_,
        "sort_order": "desc" if newest_first else None,
        "page_size": number,
        "page": page,
        "cursor": after,
    }
    views.thread(call("thread.get", params, token=token, profile=as_))
