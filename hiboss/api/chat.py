"""Operations about the chat of an agent and the boss: what they say in private, by any door (docs/mcp.md).

An agent's token means its own chat; the boss names the agent. Ids of entries are places in the chat, in the
order in which things arrived. The position of a subscriber moves only when it acknowledges, never by reading.
"""

from __future__ import annotations

import json
from typing import Annotated, Literal, NamedTuple, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from ..core import clock, errors
from ..core.address import BOSS
from ..core.envelope import Kind
from ..core.errors import BossOnly, InvalidParams, NotFound, UnknownAgent
from ..store import chat_entries
from ..store.boss import find_boss
from ..store.chat_entries import BEGINNING, Place
from ..store.connection import Connection, Row
from ..store.group_commit import Tx
from . import agent_states
from .addresses import address_id, resolve
from .auth import Caller
from .context import Context
from .operation import Id, Level, Params, operation
from .param_sizes import Text, Word
from .send_shapes import Send
from .sending import send_and_wait

Author = Literal["user", "assistant"]
TYPES = {"text/plain": "text", "text/markdown": "markdown", "application/json": "json", "text/html": "html"}
MIMES = {word: mime for mime, word in TYPES.items()}
SUBSCRIBERS = 1_000  # that one caller may name
NOT_READY = ("paused", "waiting", "deleted")  # states in which what is said now is not read soon


AgentName = Annotated[
    str | None, Field(description="whose chat with the boss, like nex; an agent's own is the default")
]


class Read(Params):
    after_id: Id | None = Field(
        None, description="the entries after this one; default: after what `subscriber` has acknowledged"
    )
    limit: int | None = Field(
        None, ge=1, description="how many at most; more than a page has are not shown at once"
    )
    subscriber: Word = Field("", description="a name for one of several readers of yours")
    newest: bool = Field(False, description="the newest entries, instead of those after a place")
    id: Id | None = Field(None, description="only this entry")
    agent: AgentName = None


class ChatEntry(TypedDict):
    id: Annotated[str, Field(description="its place in the chat; a later entry has a higher one")]
    ts: Annotated[str, Field(description="when it arrived, or was changed")]
    author: Annotated[Author, Field(description="user: the boss; assistant: the agent")]
    mime: Annotated[str, Field(description="like text/markdown")]
    content: Annotated[str, Field(description="the text, in its current wording")]
    message: Annotated[str, Field(description="the id of the message, like m57")]
    subject: NotRequired[Annotated[str, Field(description="the line above the text, if it has one")]]
    reply_to: NotRequired[Annotated[str, Field(description="the entry that it answers")]]
    edits: NotRequired[
        Annotated[str, Field(description="it is the entry named here, which was edited, deleted or restored")]
    ]
    deleted: NotRequired[Annotated[bool, Field(description="true: it was deleted, and has no content")]]
    attachments: NotRequired[Annotated[list[str], Field(description="the names of its files")]]


class ChatPage(TypedDict):
    messages: Annotated[list[ChatEntry], Field(description="oldest first")]
    last_id: Annotated[str, Field(description="the last one shown; with none, the place where it began")]
    more: Annotated[bool, Field(description="whether there are later entries; with newest: earlier ones")]


class Post(Params):
    content: Text = Field(description="what to say")
    mime: str = Field("text/markdown", description=f"one of {', '.join(TYPES)}")
    reply_to: Id | None = Field(None, description="the entry that it answers; it leaves by the door of that")
    author: Author | None = Field(
        None, description="as whom: user needs the boss's token, assistant the agent's; default: who calls"
    )
    key: Word | None = Field(
        None, min_length=1, description="a repeated request with the same key posts nothing"
    )
    agent: AgentName = None


class Posted(TypedDict):
    id: Annotated[str, Field(description="its place in the chat")]
    ts: Annotated[str, Field(description="when it arrived")]
    message: Annotated[str, Field(description="the id of the message, like m57")]
    duplicate: Annotated[bool, Field(description="true: this key was used before, and nothing was posted")]


class Acknowledge(Params):
    id: Id = Field(description="the last entry that you have done your work on")
    subscriber: Word = Field("", description="whose position to move: the name that you read with")
    agent: AgentName = None


class Acknowledged(TypedDict):
    id: Annotated[str, Field(description="the position now; it never goes back")]
    changed: Annotated[bool, Field(description="false: it was there already, or further")]


class ReadyState(TypedDict):
    ready: Annotated[bool, Field(description="false: it does not read what you write now; `why` says more")]


class ChatStatus(TypedDict):
    agent: Annotated[str, Field(description="its name")]
    type: Annotated[Literal["local"], Field(description="local: it lives on this machine")]
    state: Annotated[str, Field(description="as in agent.status, like idle; deleted")]
    why: Annotated[str | None, Field(description="the reason of the state, if there is one")]
    ui: Annotated[ReadyState, Field(description="whether a page should offer to write to it")]
    registered_at: Annotated[
        str, Field(description="since when there is this agent; another one may have its name later")
    ]
    author: Annotated[Author, Field(description="who you are in this chat")]
    last_id: Annotated[str, Field(description="the last entry of the chat; 0: there is none")]
    acknowledged: Annotated[str, Field(description="how far you have acknowledged it; 0: not at all")]


class StatusOf(Params):
    subscriber: Word = Field("", description="whose position to show")
    agent: AgentName = None


class _Chat(NamedTuple):
    """A chat, and who the caller is in it."""

    agent: int
    name: str
    since: int  # when the agent was registered
    boss: int
    author: Author
    conversation: int | None  # None: nothing was said yet


_ERRORS = (UnknownAgent, errors.UnknownAddress, errors.BadAddress, BossOnly, InvalidParams)
_ENTRY_ERRORS = (errors.BadId, NotFound, errors.TooLarge, errors.BadText)


@operation(
    "chat.read", level=Level.RESTRICTED, params=Read, result=ChatPage, errors=(*_ERRORS, *_ENTRY_ERRORS)
)
def read(context: Context, caller: Caller, params: Read) -> ChatPage:
    """Show what an agent and the boss said in private, by any door; it marks and acknowledges nothing."""
    subscriber = context.settings.check_word("subscriber", params.subscriber)
    limit = min(params.limit or context.settings.page_size_limit, context.settings.page_size_limit)
    given = None if params.after_id is None else Place.parse(params.after_id)
    return context.store.read(lambda c: _page(context, c, caller, params, (given, subscriber, limit)))


def _page(
    context: Context,
    connection: Connection,
    caller: Caller,
    params: Read,
    wanted: tuple[Place | None, str, int],
) -> ChatPage:
    given, subscriber, limit = wanted
    chat = _chat(context, connection, caller, params.agent)
    if params.id is not None:
        place = Place.parse(params.id)
        return {
            "messages": [_entry(_at(connection, chat, place), chat)],
            "last_id": str(place),
            "more": False,
        }
    start = BEGINNING if given is None else given
    if chat.conversation is None:
        _check_there(start, BEGINNING)
        return {"messages": [], "last_id": str(start), "more": False}
    _check_there(start, chat_entries.last(connection, chat.conversation))
    if params.newest:
        rows = chat_entries.newest(connection, chat.conversation, limit + 1)
        shown = _fitting(context, rows[::-1][:limit])[::-1]
    else:
        if given is None:
            start = chat_entries.position(connection, caller.id, chat.conversation, subscriber)
        rows = chat_entries.after(connection, chat.conversation, start, limit + 1)
        shown = _fitting(context, rows[:limit])
    last = chat_entries.place_of(shown[-1]) if shown else start
    return {
        "messages": [_entry(row, chat) for row in shown],
        "last_id": str(last),
        "more": len(rows) > len(shown),
    }


def _check_there(place: Place, last: Place) -> None:
    """Raise for a place after the last entry: the store that it is from is not this one."""
    if place > last:
        raise NotFound(what="chat entry", value=str(place), where="chat_read_since without after_id")


def _fitting(context: Context, rows: list[Row]) -> list[Row]:
    """Return the first of these rows that fit into a page, at least one."""
    size = 0
    for number, row in enumerate(rows):
        size += len(row["text"].encode())
        if number and size > context.settings.page_bytes:
            return rows[:number]
    return rows


def _entry(row: Row, chat: _Chat) -> ChatEntry:
    place, deleted = chat_entries.place_of(row), row["deleted_at"] is not None
    found: ChatEntry = {
        "id": str(place),
        "ts": clock.iso(row["at"]),
        "author": "user" if row["sender"] == chat.boss or row["from_boss"] else "assistant",
        "mime": MIMES[Kind(row["type"]).word],
        "content": "" if deleted else row["text"],
        "message": f"m{row['id']}",
    }
    if row["subject"] and not deleted:
        found["subject"] = row["subject"]
    if row["reply_seq"] is not None:
        found["reply_to"] = str(Place(row["reply_seq"]))
    if place.number:
        found["edits"] = str(Place(row["seq"]))
    if deleted:
        found["deleted"] = True
    elif row["attachments"]:
        found["attachments"] = [one["name"] for one in json.loads(row["attachments"])]
    return found


@operation(
    "chat.post",
    level=Level.STANDARD,
    effect="change",
    params=Post,
    result=Posted,
    errors=(
        *_ERRORS,
        *_ENTRY_ERRORS,
        errors.EmptyMessage,
        errors.KeyReused,
        errors.Archived,
        errors.UnknownRecipient,
        errors.NotBound,
        errors.Busy,
        errors.StoreFull,
    ),
)
async def post(context: Context, caller: Caller, params: Post) -> Posted:
    """Say something in the chat of an agent and the boss; it is on disk when this answers."""
    chat = context.store.read(lambda c: _chat(context, c, caller, params.agent))
    if params.author is not None and params.author != chat.author:
        whose = "the boss's token" if params.author == "user" else "the token of the agent"
        raise InvalidParams(detail=f"to post as {params.author} needs {whose}, and {caller.name} is not that")
    mime = params.mime.partition(";")[0].strip().lower()
    if mime not in TYPES:
        raise InvalidParams(detail=f"mime must be one of {', '.join(TYPES)}")
    given: dict[str, object] = {"text": params.content, "type": TYPES[mime], "key": params.key}
    if params.reply_to is None:
        given["to"] = f"agent:{chat.name}" if chat.author == "user" else str(BOSS)
    else:
        place = Place.parse(params.reply_to)
        given["reply_to"] = context.store.read(lambda c: f"m{_at(c, chat, place)['id']}")
    sent = await send_and_wait(context, caller, Send.model_validate(given))
    number = int(sent["message"][1:])
    row = context.store.read(lambda c: chat_entries.of_message(c, number))
    assert row is not None, sent  # it arrived in the transaction that accepted it
    return {
        "id": str(Place(row["seq"])),
        "ts": clock.iso(row["arrived_at"]),
        "message": sent["message"],
        "duplicate": sent["duplicate"],
    }


def _at(connection: Connection, chat: _Chat, place: Place) -> Row:
    """Return the entry at a place; raises NotFound."""
    row = None if chat.conversation is None else chat_entries.at(connection, chat.conversation, place)
    if row is None:
        raise NotFound(what="chat entry", value=str(place), where="chat_read_since")
    return row


@operation(
    "chat.ack",
    level=Level.RESTRICTED,
    effect="idempotent",
    params=Acknowledge,
    result=Acknowledged,
    errors=(*_ERRORS, *_ENTRY_ERRORS, errors.Busy),
)
async def ack(context: Context, caller: Caller, params: Acknowledge) -> Acknowledged:
    """Move your position in a chat up to an entry: what you have done your work on. It never goes back."""
    subscriber = context.settings.check_word("subscriber", params.subscriber)
    place, now = Place.parse(params.id), clock.now()
    chat = context.store.read(lambda c: _chat(context, c, caller, params.agent))
    if chat.conversation is None:
        _check_there(place, BEGINNING)
        return {"id": str(BEGINNING), "changed": False}
    conversation = chat.conversation
    context.store.read(lambda c: _check_there(place, chat_entries.last(c, conversation)))

    def write(tx: Tx) -> tuple[Place, bool]:
        before = chat_entries.position(tx, caller.id, conversation, subscriber)
        if before == BEGINNING and chat_entries.subscribers(tx, caller.id) >= SUBSCRIBERS:
            raise errors.Busy(what=f"you have {SUBSCRIBERS} subscribers; use one of them")
        changed = chat_entries.advance(tx, caller.id, conversation, subscriber, place, now)
        return max(before, place), changed

    position, changed = await context.write(caller, write)
    return {"id": str(position), "changed": changed}


@operation(
    "chat.status",
    level=Level.RESTRICTED,
    params=StatusOf,
    result=ChatStatus,
    errors=(*_ERRORS, errors.TooLarge, errors.BadText),
)
def status(context: Context, caller: Caller, params: StatusOf) -> ChatStatus:
    """Show whether an agent reads what is written to it, and how far the chat and your position in it are."""
    live = agent_states.live_of(context)
    subscriber = context.settings.check_word("subscriber", params.subscriber)

    def find(connection: Connection) -> ChatStatus:
        chat = _chat(context, connection, caller, params.agent)
        state, why = agent_states.state_and_reason(connection, chat.agent, live)
        last = acknowledged = BEGINNING
        if chat.conversation is not None:
            last = chat_entries.last(connection, chat.conversation)
            acknowledged = chat_entries.position(connection, caller.id, chat.conversation, subscriber)
        return {
            "agent": chat.name,
            "type": "local",
            "state": state,
            "why": why,
            "ui": {"ready": state not in NOT_READY},
            "registered_at": clock.iso(chat.since),
            "author": chat.author,
            "last_id": str(last),
            "acknowledged": str(acknowledged),
        }

    return context.store.read(find)


def _chat(context: Context, connection: Connection, caller: Caller, named: str | None) -> _Chat:
    """Return the chat that a request is about; raises if it is none of the caller's."""
    agent = _agent(context, caller, named)
    row, chief = chat_entries.agent(connection, agent), find_boss(connection)
    assert chief is not None  # a caller has a token, which exists only after setup
    if row is None:
        raise UnknownAgent(name=str(named)[:100], hint="")
    found = chat_entries.between(connection, agent, chief["address"])
    author: Author = "user" if caller.is_boss else "assistant"
    conversation = None if found is None else found["id"]
    return _Chat(agent, row["name"], row["created_at"], chief["address"], author, conversation)


def _agent(context: Context, caller: Caller, named: str | None) -> int:
    if caller.address is not None and caller.address.kind == "agent":
        own = named is None or resolve(context.store, caller, named).fold == caller.address.fold
        if not own:
            raise BossOnly(what="the chat of another agent", caller=caller.name)
        return caller.id
    if not caller.is_boss:
        raise BossOnly(what="the chat with an agent", caller=caller.name)
    if named is None:
        raise InvalidParams(detail="name the agent whose chat it is (agent), like nex")
    return address_id(context.store, caller, named if ":" in named else f"agent:{named}")
