"""Operations about what was said in a conversation: its messages, what is new, and how far it is read."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from ..core import clock, envelope_json, errors, ids
from ..core.contracts.provider import Progress
from ..core.errors import InvalidParams
from ..core.ids import LARGEST
from ..store import agents, conversation_reading, conversations, groups, run_history
from ..store.connection import Connection, Row
from ..store.conversations import Guest, Piece, Stretch
from ..store.group_delivery import ALL
from . import agent_states, runs
from .addresses import acting_for, address_id, resolve
from .auth import Caller
from .context import Context
from .conversation_shapes import is_all, reference
from .conversations import OF_REFERENCE
from .envelopes import envelopes_json
from .operation import Id, Level, Params, Timezone, operation
from .param_sizes import Word
from .request_limits import page_size


class Parties(Params):
    other: str = Field(alias="with", description="the other party, like agent:nex or nex")
    address: str | None = Field(None, description="whose conversation (only for the boss)")


class Messages(Params):
    conversation: Id | None = Field(None, description="like c12, or a group, like core-team; or give `with`")
    other: str | None = Field(None, alias="with", description="the other party, like agent:nex or nex")
    after_seq: int | None = Field(
        None, ge=0, le=LARGEST, description="the first messages after this sequence number, not the latest"
    )
    before_seq: int | None = Field(
        None, ge=0, le=LARGEST, description="only messages before this sequence number"
    )
    before: int | None = Field(None, ge=0, le=LARGEST, description="the same as before_seq")
    page_size: int | None = Field(None, description="how many at most, 1 to 100; default 10")
    address: str | None = Field(None, description="whose conversation (only for the boss)")


class SeqRange(TypedDict):
    first: Annotated[int, Field(description="the sequence number where it begins")]
    last: Annotated[int, Field(description="and where it ends")]


class ConversationMessages(TypedDict):
    conversation: Annotated[str | None, Field(description="null: they have not written to each other yet")]
    envelopes: Annotated[
        list[envelope_json.EnvelopeJson], Field(description="one for each message, oldest first")
    ]
    last: Annotated[int, Field(description="the sequence number of the last message; 0: there is none")]
    more: Annotated[bool, Field(description="whether there are earlier messages; with after_seq: later ones")]
    first_seq: Annotated[int, Field(description="the lowest sequence number that you may see")]
    last_seq: Annotated[
        int, Field(description="the highest one: if you have less than all between them, read the rest")
    ]
    visible: Annotated[
        list[SeqRange],
        Field(description="the parts that you may see, one for each stay in a group; each is without a gap"),
    ]
    timezone: Timezone


class MarkRead(Params):
    conversation: Id = Field(description="like c12, or a group, like core-team")
    up_to_seq: int | None = Field(
        None, ge=0, le=LARGEST, description="up to this sequence number; without it, all that was said so far"
    )
    session: Word = Field("", description="your session, if it has a name: it is kept in read_by")
    address: str | None = Field(None, description="whose envelopes (only for the boss)")


class MarkedConversation(TypedDict):
    changed: Annotated[int, Field(description="how many envelopes were unread")]
    last_read_seq: Annotated[int, Field(description="up to which number it is read; it never goes back")]
    unread: Annotated[int, Field(description="how many envelopes are still unread there")]


class News(Parties):
    after: int = Field(
        0, ge=0, le=LARGEST, description="the `last` of the previous answer; 0: from the first message"
    )
    run: str | None = Field(None, description="the `id` of the run in the previous answer")
    parts: int = Field(0, ge=0, le=LARGEST, description="the `next` of that run")


class LiveRun(TypedDict):
    """A run of the other party for this conversation that is under way."""

    id: Annotated[str, Field(description="like r9")]
    started_at: Annotated[str, Field(description="when its turn began")]
    paused: Annotated[bool, Field(description="true: its program stands still")]
    parts: Annotated[list[runs.OutputPart], Field(description="its output since the previous answer")]
    next: Annotated[int, Field(description="to be given as `parts` in the next call")]


class ConversationNews(TypedDict):
    conversation: Annotated[str | None, Field(description="null: they have not written to each other yet")]
    envelopes: Annotated[list[envelope_json.EnvelopeJson], Field(description="the messages after `after`")]
    last: Annotated[int, Field(description="to be given as `after` in the next call")]
    more: Annotated[
        bool, Field(description="whether there may be later messages that this answer has no room for")
    ]
    run: Annotated[
        LiveRun | None,
        Field(description="the run of the other party for this conversation; null: none is under way"),
    ]
    state: Annotated[
        str | None, Field(description="of an agent: running, stuck, asks, idle, retrying, paused, waiting")
    ]
    why: Annotated[
        str | None,
        Field(description="the reason of the state; null for others than the boss and the agent itself"),
    ]
    timezone: Timezone


_OWNER_ERRORS = (errors.UnknownAddress, errors.BossOnly)


@operation(
    "conversation.messages",
    level=Level.RESTRICTED,
    params=Messages,
    result=ConversationMessages,
    errors=(*OF_REFERENCE, *_OWNER_ERRORS, errors.InvalidParams),
)
def messages(context: Context, caller: Caller, params: Messages) -> ConversationMessages:
    """List the latest messages of a conversation, or those after a number; it marks nothing as read."""
    own = acting_for(context.store, caller, params.address)
    limit = page_size(context, params.page_size)
    return context.store.read(lambda c: _message_page(context, c, caller, own, params, limit))


def _message_page(
    context: Context, connection: Connection, caller: Caller, own: int, params: Messages, limit: int
) -> ConversationMessages:
    row, guest = _asked_for(context, connection, caller, own, params)
    whole = caller.is_boss and (params.address is None or params.conversation is None)
    viewer = None if whole else own
    parts = [] if row is None else conversations.stretches(connection, row, viewer)
    if row is not None and viewer is None and guest is not None:  # the boss stands in for an agent there
        parts = [Stretch(max(row["first_seq"], guest.since), row["last_seq"], got_only=True)]
        viewer = own
    before = min(LARGEST if one is None else one for one in (params.before, params.before_seq))
    found: list[tuple[int, int]] = []
    if row is not None:
        wanted = Piece(row["id"], parts, viewer, params.after_seq, before)
        found = conversations.piece(connection, wanted, limit + 1)
    forward = params.after_seq is not None
    page = found[:limit] if forward else found[-limit:][::-1]
    # From the last one back: if a page cannot show all, it leaves out the first ones.
    shown = envelopes_json(context, [envelope for _, envelope in page], caller)
    last = page[len(shown) - 1 if forward else 0][0] if page else 0
    return {
        "conversation": None if row is None else f"c{row['id']}",
        "envelopes": shown if forward else shown[::-1],
        "last": last,
        "more": len(found) > len(shown),
        "first_seq": parts[0].first if parts else 1,
        "last_seq": parts[-1].last if parts else 0,
        "visible": [{"first": one.first, "last": one.last} for one in parts],
        "timezone": context.timezone,
    }


def _asked_for(
    context: Context, connection: Connection, caller: Caller, own: int, params: Messages
) -> tuple[Row | None, Guest | None]:
    """Return the conversation that a request names, itself or by the other party; None: there is none."""
    if (params.conversation is None) == (params.other is None):
        raise InvalidParams(detail="give either conversation, or with: the other party")
    if params.conversation is not None:
        which = reference(params.conversation)
    else:
        other = resolve(context.store, caller, str(params.other))
        if other.kind != "group":
            found, guest = conversations.shared(
                connection, own, address_id(context.store, caller, str(params.other))
            )
            return None if found is None else groups.by_id(connection, found["id"]), guest
        which = other.name
    if is_all(which):
        return groups.by_name(connection, ALL.name), None
    return groups.visible(connection, which, None if caller.is_boss and params.address is None else own), None


@operation(
    "conversation.news",
    level=Level.RESTRICTED,
    params=News,
    result=ConversationNews,
    errors=(*_OWNER_ERRORS, errors.BadAddress, errors.BadId, errors.UnknownGroup),
)
def news(context: Context, caller: Caller, params: News) -> ConversationNews:
    """Show what is new between two: messages, output of a run of the other party, its state.

    event.subscribe tells when to ask again.
    """
    own = acting_for(context.store, caller, params.address)
    named = resolve(context.store, caller, params.other)
    if named.kind == "group":
        return _group_news(context, caller, own, params, str(named))
    other = address_id(context.store, caller, params.other)
    seen = None if params.run is None else ids.number(params.run, "run")
    found, guest = context.store.read(lambda c: conversations.shared(c, own, other))
    arrived: list[tuple[int, int]] = []  # sequence number and envelope id
    live: LiveRun | None = None
    if found is not None:
        limit = context.settings.page_size_limit
        arrived = context.store.read(
            lambda c: conversations.after(c, found["id"], params.after, limit, guest, caller.sees)
        )
        live = _live_run(context, caller, other, found["id"], params.parts, seen)
    state, why = context.store.read(lambda c: agent_states.state_of(c, other, agent_states.live_of(context)))
    shown = envelopes_json(context, [envelope for _, envelope in arrived], caller)
    return {
        "conversation": None if found is None else f"c{found['id']}",
        "envelopes": shown,
        "last": arrived[len(shown) - 1][0] if shown else params.after,
        "more": len(shown) < len(arrived) or len(arrived) == context.settings.page_size_limit,
        "run": live,
        "state": state,
        # It may quote what a run is about, so it is only for the agent itself and the boss.
        "why": why if caller.is_boss or caller.id == other else None,
        "timezone": context.timezone,
    }


def _group_news(context: Context, caller: Caller, own: int, params: News, group: str) -> ConversationNews:
    """Return what is new in a group: its messages. Which runs answer there is not told."""
    asked = {"conversation": group, "after_seq": params.after, "address": params.address}
    wanted = Messages.model_validate(asked)
    limit = context.settings.page_size_limit
    page = context.store.read(lambda c: _message_page(context, c, caller, own, wanted, limit))
    return {
        "conversation": page["conversation"],
        "envelopes": page["envelopes"],
        "last": page["last"] or params.after,
        "more": page["more"],
        "run": None,
        "state": None,
        "why": None,
        "timezone": page["timezone"],
    }


@operation(
    "conversation.markRead",
    level=Level.RESTRICTED,
    effect="idempotent",
    params=MarkRead,
    result=MarkedConversation,
    errors=(*OF_REFERENCE, *_OWNER_ERRORS, errors.BadText, errors.TooLarge),
)
async def mark_read(context: Context, caller: Caller, params: MarkRead) -> MarkedConversation:
    """Mark your envelopes of a conversation as read, up to a number. What comes meanwhile stays unread."""
    owner = acting_for(context.store, caller, params.address)
    which, session = reference(params.conversation), context.settings.check_word("session", params.session)
    session = session or caller.session
    row, done, last = context.store.read(lambda c: _to_mark(c, which, owner))
    upto = last if params.up_to_seq is None else min(params.up_to_seq, last)
    changed, mark = 0, partial(conversation_reading.mark, reader=caller.id, session=session)
    while done < upto:  # in slices: other writes go between them
        step = (row["id"], owner, done, upto, clock.now())
        more, done = await context.write(caller, lambda tx: mark(tx, *step))  # noqa: B023 - awaited here
        changed += more
    changed += await _mark_back(context, caller, owner, row["id"], upto, session)
    unread, position = context.store.read(
        lambda c: (
            conversation_reading.unread(c, row["id"], owner),
            conversation_reading.position(c, row["id"], owner),
        )
    )
    return {"changed": changed, "last_read_seq": position, "unread": unread}


async def _mark_back(
    context: Context, caller: Caller, owner: int, conversation: int, upto: int, session: str
) -> int:
    """Mark what came back to the inbox of what was read before; return how many."""
    back = await context.store.read_in_thread(
        lambda c: conversation_reading.came_back(c, conversation, owner, upto)
    )
    changed, at_once = 0, conversation_reading.AT_ONCE
    for start in range(0, len(back), at_once):
        some, now = back[start : start + at_once], clock.now()
        mark = partial(conversation_reading.mark_back, reader=caller.id, session=session)
        changed += await context.write(caller, lambda tx: mark(tx, some, owner, now))  # noqa: B023 - as above
    return changed


def _to_mark(connection: Connection, which: int | str, owner: int) -> tuple[Row, int, int]:
    """Return a conversation that somebody may see, how far it is read, and the last number of it to see."""
    if is_all(which) and groups.by_name(connection, ALL.name) is None:
        raise errors.UnknownGroup(name=f"{ALL.name} (nothing was said there yet)")
    row = groups.visible(connection, which, owner)
    parts = conversations.stretches(connection, row, owner)
    last = parts[-1].last if parts else 0
    return row, conversation_reading.position(connection, row["id"], owner), last


def _live_run(
    context: Context, caller: Caller, other: int, conversation: int, after: int, seen: int | None
) -> LiveRun | None:
    """Return the run of the other party for this conversation, with its output after what was seen.

    The output of an agent that sends its answers itself is for nobody but the boss.
    """
    row = context.store.read(lambda c: run_history.in_conversation(c, other, conversation))
    if row is None:
        return None
    execution = context.runner.execution(row["id"])  # none yet: it has just been stored
    agent = context.store.read(lambda c: agents.with_provider(c, other, any_mode=True))
    reply = execution.turn.reply if execution is not None else agent and agent["reply"]
    if not (caller.is_boss or reply == "auto"):
        return None
    position = after if seen == row["id"] else 0
    parts: list[Progress] = []
    if execution is not None:
        parts, position = execution.live_output.after(position)
    return {
        "id": f"r{row['id']}",
        "started_at": clock.iso(row["started_at"]),
        "paused": row["paused_at"] is not None,
        "parts": [{"kind": part.kind, "text": part.text} for part in parts],
        "next": position,
    }
