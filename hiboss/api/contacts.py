"""Operations about contacts: the chats that wrote to an account, and what the boss decides about them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field
from typing_extensions import TypedDict

from ..core import clock, ids
from ..core.address import parse_address
from ..core.errors import BadAddress, BadId, InvalidParams, NotBound, NotFound, UnknownAgent
from ..store import agent_routing, agents, buttons, contacts, places
from ..store.connection import Row
from ..store.group_commit import Tx
from .auth import Caller
from .context import Context
from .operation import Level, Params, Timezone, operation

PAGE = 100


class ListContacts(Params):
    state: Literal["asking", "allowed", "blocked", "boss"] | None = Field(
        None, description="only those in this state"
    )
    after: int = Field(0, ge=0, le=2**62, description="continue behind this one: `next` of the last answer")


class OneContact(Params):
    contact: str = Field(description="its address, like channel:telegram:777, or the code that it was given")
    binding: str | int | None = Field(None, description="which account, like b1, if several know the chat")


class RouteContact(Params):
    contact: str = Field(description="the address of a chat or a topic, like channel:telegram:-100/7")
    agent: str = Field(description='who gets what is written there; "": the agent that leads the account')
    binding: str | int | None = Field(None, description="which account, like b1, if several know the chat")


class ContactJson(TypedDict):
    address: Annotated[str, Field(description="of the chat; as contact.route answers it, of the topic")]
    kind: Annotated[str, Field(description="private, group or channel")]
    name: Annotated[str | None, Field(description="of the person, or the title of the group")]
    username: Annotated[str | None, Field(description="the short name of the person there, without @")]
    state: Annotated[
        str,
        Field(description="asking: not decided, what comes is held; allowed; blocked; boss: the boss's own"),
    ]
    code: Annotated[str | None, Field(description="that was given to the person, while it is valid")]
    code_until: Annotated[str | None, Field(description="when the code ends")]
    held: Annotated[int, Field(description="how many messages wait for the decision")]
    agent: Annotated[
        str | None, Field(description="who gets what is written there; null: who leads the account")
    ]
    binding: Annotated[str, Field(description="the account that knows the chat, like b1")]
    account: Annotated[str, Field(description="the account as people know it, like @nexbot")]
    created_at: Annotated[str, Field(description="when it was met")]
    decided_at: Annotated[str | None, Field(description="when the boss decided")]


class ContactList(TypedDict):
    contacts: Annotated[list[ContactJson], Field(description="of all accounts, oldest first")]
    next: Annotated[
        int | None, Field(description="give it as `after` for the next page; null: there is none")
    ]
    timezone: Timezone


class ContactChange(TypedDict):
    contact: Annotated[ContactJson, Field(description="as it is now")]
    changed: Annotated[bool, Field(description="false: it was so already")]


_ERRORS: Any = (NotFound, BadId, InvalidParams)


@operation("contact.list", level=Level.BOSS, effect="read", params=ListContacts, result=ContactList)
def listed(context: Context, caller: Caller, params: ListContacts) -> ContactList:
    """List the chats that an account has met, and what was decided about each."""
    rows = context.store.read(lambda c: contacts.listed(c, params.state, PAGE + 1, params.after))
    now = clock.now()
    return {
        "contacts": [_to_json(row, now) for row in rows[:PAGE]],
        "next": rows[PAGE - 1]["id"] if len(rows) > PAGE else None,
        "timezone": context.timezone,
    }


@operation(
    "contact.approve",
    level=Level.BOSS,
    effect="idempotent",
    fixed=True,
    params=OneContact,
    result=ContactChange,
    errors=_ERRORS,
)
async def approve(context: Context, caller: Caller, params: OneContact) -> ContactChange:
    """Let a person or a group write to the agents of an account. What was held comes in now, in order."""
    now = clock.now()

    def write(tx: Tx) -> tuple[int, ContactChange]:
        row = _find(tx, params, now)
        changed = contacts.approve(tx, row, now)
        return int(row["id"]), _changed(tx, row, changed, now)

    number, result = await context.write(caller, write)
    _remove_buttons(context, number)
    return result


@operation(
    "contact.block",
    level=Level.BOSS,
    effect="destructive",
    fixed=True,
    params=OneContact,
    result=ContactChange,
    errors=_ERRORS,
)
async def block(context: Context, caller: Caller, params: OneContact) -> ContactChange:
    """Let nothing from a chat come in, and nothing go there. What was held is dropped."""
    now = clock.now()

    def write(tx: Tx) -> tuple[Row, ContactChange]:
        row = _find(tx, params, now)
        changed = contacts.block(tx, row, now)
        return row, _changed(tx, row, changed, now)

    row, result = await context.write(caller, write)
    _remove_buttons(context, row["id"])
    binding, chat = row["binding"], row["platform_id"]
    while await context.store.timed_write_until_done(
        lambda tx, moment: places.fail_left(tx, binding, chat, moment, places.BLOCKED)
    ):
        pass  # in slices: other writes go between them
    return result


@operation(
    "contact.route",
    level=Level.BOSS,
    effect="idempotent",
    params=RouteContact,
    result=ContactChange,
    errors=(*_ERRORS, UnknownAgent, NotBound, BadAddress),
)
async def route(context: Context, caller: Caller, params: RouteContact) -> ContactChange:
    """Let what is written in a chat, or in a topic of a chat, go to one agent of the account."""
    now = clock.now()

    def write(tx: Tx) -> ContactChange:
        row = _find(tx, params, now)
        by_code = not params.contact.strip().startswith("channel:")
        given = row["full_address"] if by_code else params.contact.strip()
        address = parse_address(given)
        entry = tx.cache.live_address(address)
        agent = _agent(tx, row, params.agent) if params.agent else None
        number = None if agent is None else agent["id"]
        changed = None if entry is None else contacts.route(tx, entry.id, row["binding"], number)
        if changed is None:
            raise NotFound(what="topic", value=given[:100], where=contacts.WHERE)
        result = _changed(tx, row, changed, now)
        # Of a topic, what was routed is more than the chat that is listed.
        result["contact"]["address"] = str(address)
        result["contact"]["agent"] = None if agent is None else agent["name"]
        return result

    return await context.write(caller, write)


def _agent(tx: Tx, contact: Row, name: str) -> Row:
    row = agents.get(tx, name)
    if row["id"] not in [one["id"] for one in agent_routing.served(tx, contact["binding"])]:
        raise NotBound(
            sender=f"agent:{row['name']}", adapter=contact["adapter"], address=contact["full_address"]
        )
    return row


def _remove_buttons(context: Context, contact: int) -> None:
    """Take the buttons away that would decide what is decided now."""
    for message in context.store.read(lambda c: buttons.about(c, "contact.", str(contact))):
        context.chat_setup.remove_buttons(message)


def _find(tx: Tx, params: OneContact | RouteContact, now: int) -> Row:
    binding = None if params.binding is None else ids.number(params.binding, "binding")
    return contacts.find(tx, params.contact, binding, now)


def _changed(tx: Tx, row: Row, changed: bool, now: int) -> ContactChange:
    found = contacts.get(tx, row["id"])
    assert found is not None
    return {"contact": _to_json(found, now), "changed": changed}


def _to_json(row: Row, now: int) -> ContactJson:
    live = row["state"] == "asking" and row["pairing_until"] is not None and row["pairing_until"] > now
    return {
        "address": row["full_address"],
        "kind": row["kind"],
        "name": row["name"],
        "username": row["person"],
        "state": row["state"],
        "code": row["pairing"] if live else None,
        "code_until": clock.iso(row["pairing_until"]) if live else None,
        "held": row["held"],
        "agent": row["agent"],
        "binding": f"b{row['binding']}",
        "account": row["account_name"] or row["account"],
        "created_at": clock.iso(row["created_at"]),
        "decided_at": clock.iso_or_none(row["decided_at"]),
    }
