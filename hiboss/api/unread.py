"""How much somebody has not read: a number that doors ask for whenever something has changed."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from ..core import errors
from ..store import unread_counts
from .addresses import acting_for
from .auth import Caller
from .context import Context
from .operation import Level, Params, operation


class Whose(Params):
    address: str | None = Field(None, description="whose inbox (only for the boss)")


class UnreadCount(TypedDict):
    unread: Annotated[
        int, Field(description="how many envelopes in the inbox are unread, counted up to 1000")
    ]
    unread_capped: Annotated[bool, Field(description="true: there are more than `unread`")]


def unread_count(context: Context, caller: Caller, address: str | None = None) -> UnreadCount:
    """Return how much is unread in an inbox: the caller's own, or for the boss the one named.

    It raises BadAddress, UnknownAddress and BossOnly.
    """
    owner, exact_to = acting_for(context.store, caller, address), context.settings.count_exact_to
    found = context.store.read(lambda c: unread_counts.of_box(c, owner, exact_to))
    return {"unread": found.number, "unread_capped": found.capped}


@operation(
    "envelope.unread",
    level=Level.RESTRICTED,
    params=Whose,
    result=UnreadCount,
    errors=(errors.BadAddress, errors.UnknownAddress, errors.BossOnly),
)
def unread(context: Context, caller: Caller, params: Whose) -> UnreadCount:
    """Count what is unread in an inbox; it marks nothing."""
    return unread_count(context, caller, params.address)
