"""`hiboss conversation …`"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from ...core.paths import Home
from .. import output
from ..call import call, call_as
from ..credentials import find_token
from ..key_values import key_values
from ..options import (
    Address,
    After,
    As,
    Json,
    Number,
    Reason,
    Text,
    Texts,
    Token,
    Yes,
    argument,
    flag,
    noun,
)
from ..text_input import confirm
from ..views import conversations as views

app = noun("List and read conversations, and mark them as read.")

Which = Annotated[str, argument("ID", "A conversation, like c12, or a group, like core-team.")]
Description = Annotated[Text, flag("--description", "TEXT", "What it is about.")]
Meta = Annotated[Texts, flag("--meta", "KEY=VALUE", "Your own data about it. May be repeated.")]
Title = Annotated[Text, flag("--title", "TEXT", "A name for a conversation that is no group.")]


@app.command()
def create(
    with_: Annotated[str, argument("ADDRESS", "The other one, like nex or user:ann.")],
    title: Title = None,
    description: Description = None,
    meta: Meta = None,
    token: Token = None,
    as_: As = None,
    json_: Json = False,
) -> None:
    """Begin the private conversation with somebody. If there is one already, show it.

    Example: hiboss conversation create nex --meta ticket=42
    """
    params: dict[str, Any] = {"type": "private", "participants": [with_], "name": title}
    params["description"] = description
    params["metadata"] = key_values(meta) or None
    views.detail(call("conversation.create", params, token=token, profile=as_))


@app.command("list")
def list_(
    type_: Annotated[
        Literal["private", "adhoc", "group"] | None, flag("--type", None, "Only of this type.")
    ] = None,
    archived: Annotated[
        bool | None, flag("--archived/--active", None, "Only archived ones, or none.")
    ] = None,
    past: Annotated[bool, flag("--past", None, "Also those you left, and deleted ones.")] = False,
    number: Number = None,
    after: After = None,
    count: Annotated[bool, flag("--count", None, "Also count all of them.")] = False,
    address: Address = None,
    token: Token = None,
    as_: As = None,
    json_: Json = False,
) -> None:
    """List your conversations, newest first, and what is unread.

    Example: hiboss conversation list --type group
    """
    params: dict[str, Any] = {"type": type_, "archived": archived, "past": past, "page_size": number}
    params |= {"after": after, "count": count, "address": address}
    views.listed(call("conversation.list", params, token=token, profile=as_))


@app.command()
def show(id_: Which, token: Token = None, as_: As = None, json_: Json = False) -> None:
    """Show a conversation, and who is in it."""
    views.detail(call("conversation.get", {"conversation": id_}, token=token, profile=as_))


@app.command()
def messages(
    id_: Which,
    after_seq: Annotated[
        int | None, flag("--after-seq", "N", "The first messages after this number.")
    ] = None,
    before_seq: Annotated[int | None, flag("--before-seq", "N", "Only messages before this number.")] = None,
    number: Number = None,
    address: Address = None,
    token: Token = None,
    as_: As = None,
    json_: Json = False,
) -> None:
    """Print the latest messages of a conversation, oldest first. Nothing is marked as read.

    Example: hiboss conversation messages core-team --after-seq 12
    """
    params = {"conversation": id_, "after_seq": after_seq, "before_seq": before_seq}
    params |= {"page_size": number, "address": address}
    views.messages(call("conversation.messages", params, token=token, profile=as_))


@app.command()
def read(
    id_: Which,
    up_to_seq: Annotated[
        int | None, flag("--up-to-seq", "N", "Up to this number; by default all that was said so far.")
    ] = None,
    address: Address = None,
    token: Token = None,
    as_: As = None,
    json_: Json = False,
) -> None:
    """Mark your mail of a conversation as read, without showing it.

    Example: hiboss conversation read core-team --up-to-seq 12
    """
    params = {"conversation": id_, "up_to_seq": up_to_seq, "address": address}
    output.answer(call("conversation.markRead", params, token=token, profile=as_))


@app.command("set")
def set_(
    id_: Which,
    title: Title = None,
    description: Description = None,
    meta: Meta = None,
    token: Token = None,
    as_: As = None,
    json_: Json = False,
) -> None:
    """Change what is said about a conversation. --meta replaces all of its data."""
    params: dict[str, Any] = {"conversation": id_, "name": title, "description": description}
    params |= {"metadata": key_values(meta) or None}
    views.detail(call("conversation.set", params, token=token, profile=as_))


@app.command()
def archive(
    id_: Which,
    undo: Annotated[bool, flag("--undo", None, "Let it take messages again.")] = False,
    token: Token = None,
    as_: As = None,
    json_: Json = False,
) -> None:
    """Let a conversation take no messages any more; it stays readable. --undo opens it again."""
    params = {"conversation": id_, "archived": not undo}
    views.detail(call("conversation.archive", params, token=token, profile=as_))


@app.command()
def delete(
    id_: Which,
    reason: Reason = None,
    yes: Yes = False,
    token: Token = None,
    as_: As = None,
    json_: Json = False,
) -> None:
    """Delete a conversation. What was said stays readable; the next mail begins another one."""
    home = Home()
    found = find_token(home, token, as_)  # once: it may be read from standard input
    if not yes:  # first: nobody is asked about one that is not there
        call_as(home, "conversation.get", {"conversation": id_}, found)
    confirm(yes, f"delete {id_}", f"Delete {id_}? It cannot be undone", "hiboss conversation delete --help")
    result = call_as(home, "conversation.delete", {"conversation": id_, "reason": reason}, found)
    facts = {"id": result["conversation"]["id"], "deleted": True}
    output.answer(result, facts | {"failed-envelopes": result["failed_envelopes"]})
