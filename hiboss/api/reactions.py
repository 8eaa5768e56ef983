"""Operations about reactions: put an emoji on a message, or take it back."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field
from typing_extensions import TypedDict

from ..core import clock, emojis, errors, ids
from ..store import own_messages, reaction_changes, reactions
from ..store.group_commit import Tx
from ..store.reaction_changes import Shown
from .auth import Caller
from .context import Context
from .operation import Id, Level, Params, operation
from .param_sizes import Word


class SetReaction(Params):
    id: Id = Field(description="the message, like m57, or an envelope of it, like e81")
    emoji: Word = Field(description="one emoji, like 👍; it replaces the one you have on it")


class RemoveReaction(Params):
    id: Id = Field(description="the message, like m57, or an envelope of it, like e81")


class ReactionChange(TypedDict):
    message: Annotated[str, Field(description="its id, like m57")]
    emoji: Annotated[str | None, Field(description="what you have on it now; null: nothing")]
    changed: Annotated[bool, Field(description="false: it was so already")]
    shown_in: Annotated[list[str], Field(description="the chats in which the account of this agent shows it")]


_ERRORS: Any = (errors.NotFound, errors.BadId, errors.TooLate)


@operation(
    "reaction.set",
    level=Level.STANDARD,
    effect="idempotent",
    params=SetReaction,
    result=ReactionChange,
    errors=(*_ERRORS, errors.BadEmoji, errors.EmojiRefused, errors.NotMember, errors.TooLarge),
)
async def set_(context: Context, caller: Caller, params: SetReaction) -> ReactionChange:
    """Put an emoji on a message that you sent or received.

    The agent that wrote it sees it in its next turn. If it is in a chat of your account, it is shown there.
    """
    if not emojis.is_emoji(params.emoji):
        raise errors.BadEmoji(value=params.emoji[:40])
    return await _change(context, caller, params.id, params.emoji)


@operation(
    "reaction.remove",
    level=Level.STANDARD,
    effect="idempotent",
    params=RemoveReaction,
    result=ReactionChange,
    errors=_ERRORS,
)
async def remove(context: Context, caller: Caller, params: RemoveReaction) -> ReactionChange:
    """Take your emoji back from a message."""
    return await _change(context, caller, params.id, None)


async def _change(context: Context, caller: Caller, given: Id, emoji: str | None) -> ReactionChange:
    which, now = ids.parse(given, "envelope", "message"), clock.now()
    # What people set is only stored: a reaction of the account would look like that of its agent.
    is_agent = caller.address is not None and caller.address.kind == "agent"

    def write(tx: Tx) -> ReactionChange:
        row = own_messages.visible(tx, which, caller.sees)
        own_messages.check_there(row, "given a reaction")
        if emoji is not None:
            own_messages.check_member(tx, row, caller.id, "given a reaction")
        shown = reaction_changes.shown_to(tx, row["id"], caller.id) if is_agent else []
        for one in shown:
            _check_taken(context, one, emoji)
        changed = reactions.set_own(tx, row["id"], caller.id, emoji, now)
        if changed and shown:
            reaction_changes.add(tx, row["id"], caller.id)
        places = sorted({one.address for one in shown if _shows(context, one)})
        return {"message": f"m{row['id']}", "emoji": emoji, "changed": changed, "shown_in": places}

    result = await context.write(caller, write)
    context.changes.added()
    return result


def _check_taken(context: Context, shown: Shown, emoji: str | None) -> None:
    """Raise EmojiRefused if the platform of a message does not take an emoji."""
    adapter = _adapter(context, shown)
    taken = getattr(adapter, "emojis", None)
    if emoji is not None and _shows(context, shown) and emojis.taken_as(emoji, taken) is None:
        raise errors.EmojiRefused(adapter=adapter.type, emoji=emoji, some=emojis.some_of(taken or ()))


def _shows(context: Context, shown: Shown) -> bool:
    return "react" in getattr(_adapter(context, shown), "capabilities", ())


def _adapter(context: Context, shown: Shown) -> Any:
    """Return the adapter of an account, or its class while it does not run."""
    slot = context.supervisor.slots.get(shown.lane.binding or 0)
    if slot is None:
        return None
    return slot.adapter or context.supervisor.kind(slot.type)
