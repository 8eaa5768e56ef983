"""Operations about messages that were sent: edit one, delete one, restore one."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from ..core import clock, errors, ids
from ..core.envelope import measure
from ..store import own_messages
from ..store.group_commit import Tx
from .auth import Caller
from .context import Context
from .operation import Id, Level, Params, operation
from .param_sizes import Line, Text


class Edit(Params):
    id: Id = Field(description="the message, like m57, or an envelope of it, like e81")
    text: Text = Field(description="its new text; files that it has stay")


class EditedMessage(TypedDict):
    message: Annotated[str, Field(description="its id, like m57")]
    changed: Annotated[bool, Field(description="false: it had this text already")]


class Delete(Params):
    id: Id = Field(description="the message, like m57, or an envelope of it, like e81")
    reason: Line | None = Field(None, description="why: it is shown in place of the content")


class DeletedMessage(TypedDict):
    message: Annotated[str, Field(description="its id, like m57")]
    changed: Annotated[bool, Field(description="false: it was deleted before")]
    cancelled: Annotated[
        int, Field(description="envelopes of it and its new wordings that nobody had yet: cancelled")
    ]
    in_hand: Annotated[
        int, Field(description="envelopes of it that an agent works on: it has read them already")
    ]
    posts: Annotated[
        int, Field(description="chats in which it is taken back; you are told if one cannot do that")
    ]


class Restore(Params):
    id: Id = Field(description="the message, like m57, or an envelope of it, like e81")


class RestoredMessage(TypedDict):
    message: Annotated[str, Field(description="its id, like m57")]
    changed: Annotated[bool, Field(description="false: it was not deleted")]
    posts: Annotated[int, Field(description="chats in which it is still posted, and gets its text again")]


@operation(
    "message.edit",
    level=Level.STANDARD,
    effect="idempotent",
    params=Edit,
    result=EditedMessage,
    errors=(
        errors.Archived,
        errors.AskFixed,
        errors.NotFound,
        errors.BadId,
        errors.BadText,
        errors.EmptyMessage,
        errors.NotAuthor,
        errors.NotMember,
        errors.TooLate,
        errors.TooLarge,
    ),
)
async def edit(context: Context, caller: Caller, params: Edit) -> EditedMessage:
    """Give a message that you wrote another text; also what is posted of it changes. The old text is kept.

    Not in a group that you are not in any more, and not in a conversation that is archived.
    """
    given = ids.parse(params.id, "message", "envelope")
    text, now = measure("text", params.text, context.settings.text_bytes), clock.now()

    def write(tx: Tx) -> EditedMessage:
        row = own_messages.visible(tx, given, caller.sees)
        changed = own_messages.edit(tx, row, text, caller.id, now)
        return {"message": f"m{row['id']}", "changed": changed}

    result = await context.write(caller, write)
    context.changes.added()
    return result


@operation(
    "message.delete",
    level=Level.STANDARD,
    effect="destructive",
    params=Delete,
    result=DeletedMessage,
    errors=(
        errors.AskFixed,
        errors.NotFound,
        errors.BadId,
        errors.BadText,
        errors.NotAuthor,
        errors.TooLarge,
    ),
)
async def delete(context: Context, caller: Caller, params: Delete) -> DeletedMessage:
    """Delete a message that you wrote (the boss: any), for everybody: its content is not shown any more.

    With it go the new wordings that edits made of it, and the notices that quote it. What is posted of it is
    taken back, where the platform can do that.
    """
    given = ids.parse(params.id, "message", "envelope")
    reason, now = measure("reason", params.reason or "", context.settings.subject_bytes), clock.now()

    def write(tx: Tx) -> DeletedMessage:
        row = own_messages.visible(tx, given, caller.sees)
        done = own_messages.delete(tx, row, reason.strip(), caller.id, now, boss=caller.is_boss)
        return {"message": f"m{row['id']}", **done._asdict()}  # type: ignore[typeddict-item]

    result = await context.write(caller, write)
    context.changes.added()
    return result


@operation(
    "message.restore",
    level=Level.STANDARD,
    effect="idempotent",
    params=Restore,
    result=RestoredMessage,
    errors=(errors.NotFound, errors.BadId, errors.NotAuthor),
)
async def restore(context: Context, caller: Caller, params: Restore) -> RestoredMessage:
    """Undo the deletion of a message that you wrote and deleted (the boss: of any).

    Its content is shown again, with what was deleted along with it. What was cancelled stays cancelled, and
    can be retried.
    """
    given, now = ids.parse(params.id, "message", "envelope"), clock.now()

    def write(tx: Tx) -> RestoredMessage:
        row = own_messages.visible(tx, given, caller.sees)
        done = own_messages.restore(tx, row, caller.id, now, boss=caller.is_boss)
        return {"message": f"m{row['id']}", **done._asdict()}  # type: ignore[typeddict-item]

    result = await context.write(caller, write)
    context.changes.added()
    return result
