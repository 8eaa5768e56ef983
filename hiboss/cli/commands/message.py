"""`hiboss message …`"""

from __future__ import annotations

from typing import Annotated, Literal

from ...core.errors import InvalidParams
from ...core.paths import Home
from .. import output
from ..call import call, call_as
from ..credentials import find_token
from ..key_values import key_values
from ..options import (
    After,
    As,
    Json,
    Number,
    Reason,
    Text,
    Texts,
    Token,
    argument,
    flag,
    noun,
)
from ..tag_values import filters
from ..text_input import SEND_AS_FILE, refuse_input_twice, text_or_input, unrepeated
from ..views import messages as views
from .filter_options import (
    CreatedAfter,
    CreatedBefore,
    Mentions,
    Ref,
    Scope,
    Snoozed,
    Thread,
)
from .message_options import MessageText

app = noun("List and show messages; edit, delete and restore those that you sent.")

MessageId = Annotated[str, argument("ID", "Message or envelope id, like m57 or e81.")]
MessageIds = Annotated[list[str], argument("ID…", "Message or envelope ids, like m57 e81.")]
TYPE = Literal["text", "markdown", "json", "html", "event"]
BOX = Literal["inbox", "outbox", "archived", "trash", "snoozed"]
InBox = Annotated[BOX | None, flag("--box", None, "Only what is in this box; outbox: what you sent.")]
MentionRole = Annotated[Text, flag("--mention-role", "ROLE", "Only what mentions this role, like reviewer.")]
UnreadFor = Annotated[
    Text, flag("--unread-for", "NAME", "Only what this agent has not read (others: boss only).")
]
Meta = Annotated[
    Texts, flag("--meta", "KEY=VALUE", "Only with this in the sender's own data. May be repeated.")
]
ByChange = Annotated[
    bool, flag("--by-change", None, "The last changed first (with --thread or --conversation).")
]
PageNumber = Annotated[int | None, flag("--page", "N", "Which page, from 1; further on than 1000: --after.")]


@app.command("list")
def list_(
    box: InBox = None,
    thread: Thread = None,
    conversation: Annotated[Text, flag("--conversation", "ID", "Only this conversation, like c4.")] = None,
    from_: Annotated[Text, flag("--from", "ADDRESS", "Only from this sender.")] = None,
    type_: Annotated[TYPE | None, flag("--type", None, "Only texts of this format.")] = None,
    scope: Scope = None,
    ref: Ref = None,
    mentions: Mentions = False,
    mention_role: MentionRole = None,
    unread: Annotated[bool, flag("--unread", None, "Only what you have not read.")] = False,
    unread_for: UnreadFor = None,
    snoozed: Snoozed = False,
    run: Annotated[Text, flag("--run", "ID", "Only what was sent in this run, like r9.")] = None,
    trace: Annotated[Text, flag("--trace", "ID", "Only this trace, like m57, or a name you gave it.")] = None,
    meta: Meta = None,
    created_after: CreatedAfter = None,
    created_before: CreatedBefore = None,
    by_change: ByChange = False,
    oldest_first: Annotated[bool, flag("--oldest-first", None, "Turn the order around.")] = False,
    number: Number = None,
    page: PageNumber = None,
    after: After = None,
    address: Annotated[Text, flag("--address", "ADDRESS", "Whose messages (boss only).")] = None,
    token: Token = None,
    as_: As = None,
    json_: Json = False,
) -> None:
    """List messages, newest first. Nothing is marked as read.

    Without a filter: those in your inbox. With a thread, a conversation, a tag, a run or a sender: what you
    received and what you sent. Some filters need another one beside them; the error says which.

    Example: hiboss message list --scope module:auth --unread
    """
    params = {
        **filters(scope, ref, mentions=mentions),
        "box": box,
        "thread_id": thread,
        "conversation_id": conversation,
        "author_id": from_,
        "type": type_,
        "mention_role": mention_role,
        "unread": unread,
        "unread_for_agent": unread_for,
        "snoozed": snoozed,
        "run_id": run,
        "trace_id": trace,
        "meta": key_values(meta) or None,
        "created_after": created_after,
        "created_before": created_before,
        "sort_by": "updated_at" if by_change else None,
        "sort_order": "asc" if oldest_first else None,
        "page_size": number,
        "page": page,
        "cursor": after,
        "address": address,
    }
    views.messages(call("message.list", params, token=token, profile=as_))


@app.command()
def get(
    id_: MessageId,
    peek: Annotated[bool, flag("--peek", None, "Do not mark it as read.")] = False,
    token: Token = None,
    as_: As = None,
    json_: Json = False,
) -> None:
    """Show one message in full. In your own box it is marked as read."""
    home = Home()
    found = find_token(home, token, as_)  # once: it may be read from standard input
    result = call_as(home, "message.get", {"message_id": id_}, found)
    if output.Mode.json:
        output.document(result)
    else:
        views.message(result["message"], result["timezone"])
    if not peek and not result["message"]["is_read"]:
        call_as(home, "message.markRead", {"message_ids": [result["message"]["message_id"]]}, found)


@app.command()
def read(ids: MessageIds, token: Token = None, as_: As = None, json_: Json = False) -> None:
    """Mark messages in your own box as read, without showing them."""
    result = call("message.markRead", {"message_ids": unrepeated(ids)}, token=token, profile=as_)
    if output.Mode.json:
        output.document(result)
        return
    output.record({"marked-count": result["marked_count"]})
    for message, readers in result.get("also_read_by", {}).items():
        output.record({"also-read-by": f"{message} {', '.join(readers)}"})


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


@app.command()
def restore(id_: MessageId, token: Token = None, as_: As = None, json_: Json = False) -> None:
    """Undo the deletion of a message that you wrote.

    Its content is shown again. The boss can restore any message. Envelopes that were cancelled stay so: hiboss envelope retry sends them.
    """
    output.answer(call("message.restore", {"id": id_}, token=token, profile=as_))
