"""The operation that marks messages as read."""

from __future__ import annotations

from typing import Annotated, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from ..core import clock, errors, ids
from ..store import envelope_marks, message_readers, message_rows
from ..store.group_commit import Tx
from .auth import Caller
from .context import Context
from .operation import Ids, Level, Params, operation
from .param_sizes import Word


class MarkRead(Params):
    message_ids: Ids = Field(
        description="messages, like m57, or envelopes of them; all of them, or with one wrong id none"
    )
    session: Word = Field("", description="your session, if it has a name: it is kept in read_by")


class MarkedMessages(TypedDict):
    marked_count: Annotated[int, Field(description="how many of them you had not read before")]
    also_read_by: NotRequired[
        Annotated[
            dict[str, list[str]],
            Field(description="who else has read them, by message: ids as in author; left out: nobody has"),
        ]
    ]


@operation(
    "message.markRead",
    level=Level.RESTRICTED,
    effect="idempotent",
    params=MarkRead,
    result=MarkedMessages,
    errors=(errors.BadId, errors.BadText, errors.NotFound, errors.TooLarge),
)
async def mark_read(context: Context, caller: Caller, params: MarkRead) -> MarkedMessages:
    """Mark messages as read, in your own box. What you only see, and did not get, is not counted."""
    given = [ids.parse(one, "message", "envelope") for one in params.message_ids]
    context.settings.check_word("session", params.session)
    session, now = params.session or caller.session, clock.now()

    own: list[int] = []

    def write(tx: Tx) -> MarkedMessages:
        numbers = list(dict.fromkeys(message_rows.visible(tx, one, caller.sees) for one in given))
        own[:] = message_readers.envelopes_of(tx, numbers, caller.id)
        marked = envelope_marks.mark_read(tx, own, caller.id, now, reader=caller.id, session=session)
        others = message_readers.others(tx, numbers, caller.id)
        result: MarkedMessages = {"marked_count": marked}
        if others:
            result["also_read_by"] = {f"m{number}": names for number, names in others.items()}
        return result

    result = await context.write(caller, write)
    if caller.attached is not None:
        context.runner.attached.turns.fetched(caller.attached, own)
    return result
