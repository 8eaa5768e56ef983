"""Operations about people beside the boss: each has a box, and a token to use it."""

from __future__ import annotations

from contextlib import nullcontext

from pydantic import Field
from typing_extensions import TypedDict

from ..core import clock
from ..core.address import check_agent_name
from ..core.errors import BadName, BadText, NameTaken, TooLarge, UnknownUser
from ..store import tokens, users
from ..store.connection import Row
from ..store.group_commit import Tx
from .auth import Caller
from .context import Context
from .operation import Level, Nothing, Params, operation
from .tokens import Rotated, give_new_token


class Named(Params):
    name: str


class Register(Named):
    display: str | None = Field(None, description="the name people see")
    profile: bool = Field(False, description="keep the token in the home for --as NAME")


class Rotate(Named):
    profile: bool | None = Field(None, description="keep the token for --as NAME; by default as before")


class User(TypedDict):
    name: str
    address: str
    display: str
    boss: bool
    created_at: str
    last_seen_at: str | None


class Registered(TypedDict):
    user: User
    token: str
    profile: str | None


class Listed(TypedDict):
    users: list[User]
    timezone: str


class Deleted(TypedDict):
    name: str
    deleted: bool


@operation(
    "user.register",
    level=Level.BOSS,
    params=Register,
    result=Registered,
    errors=(BadName, BadText, NameTaken, TooLarge),
)
async def register(context: Context, caller: Caller, params: Register) -> Registered:
    """Give a person a box and a token, which is shown this once."""
    name = check_agent_name(params.name)
    display = context.settings.check_word("display", (params.display or "").strip()) or name
    token, now = tokens.new("user"), clock.now()
    if context.home.has_profile(name) and params.profile:
        raise NameTaken(name=name)  # an agent's profile must not become a person's

    def write(tx: Tx) -> Row:
        tokens.insert(tx, token, "user", users.register(tx, name, display, now), now)
        return users.get(tx, name)

    with context.home.keeping(name, token) if params.profile else nullcontext() as profile:
        row = await context.write(caller, write)
    return {"user": _user(context, row), "token": token, "profile": profile}


@operation("user.list", level=Level.RESTRICTED, result=Listed)
async def listed(context: Context, caller: Caller, params: Nothing) -> Listed:
    """The people who have a box here."""
    rows = context.store.read(users.listed)
    return {"users": [_user(context, row) for row in rows], "timezone": context.timezone}


@operation("user.token.rotate", level=Level.BOSS, params=Rotate, result=Rotated, errors=(UnknownUser,))
async def rotate(context: Context, caller: Caller, params: Rotate) -> Rotated:
    """Give a person a new token, shown this once; the one before ends in the same moment."""
    name = str(context.store.read(lambda c: users.get(c, params.name, but_boss=True))["login"])

    def holder(tx: Tx) -> int:
        return int(users.get(tx, name, but_boss=True)["id"])

    return await give_new_token(context, caller, "user", name, holder, params.profile)


@operation("user.delete", level=Level.BOSS, params=Named, result=Deleted, errors=(UnknownUser,))
async def delete(context: Context, caller: Caller, params: Named) -> Deleted:
    """Take a person's box away; the token ends, all mail is kept."""
    now = clock.now()

    def write(tx: Tx) -> str:
        row = users.get(tx, params.name, but_boss=True)
        context.auth.recheck_holder(row["id"])
        users.delete(tx, row, now)
        return str(row["login"])

    name = await context.write(caller, write)
    context.auth.forget()
    context.home.forget_profile(name)
    return {"name": name, "deleted": True}


def _user(context: Context, row: Row) -> User:
    return {
        "name": row["login"],
        "address": f"user:{row['login']}",
        "display": row["name"],
        "boss": bool(row["boss"]),
        "created_at": clock.iso(row["created_at"]),
        "last_seen_at": clock.iso_or_none(context.presence.last_seen(row["id"], row["last_seen_at"])),
    }
