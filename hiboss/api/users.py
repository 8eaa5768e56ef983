"""Operations about people besides the boss: each has a box, and a token to use it."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from ..core import clock
from ..core.address import check_agent_name
from ..core.errors import BadName, BadText, NameTaken, TooLarge, UnknownUser
from ..store import ask_answers, tokens, users
from ..store.connection import Row
from ..store.group_commit import Tx
from .auth import Caller
from .context import Context
from .operation import ByName, Level, Nothing, Timezone, operation
from .param_sizes import Word
from .tokens import Rotate, RotatedToken, give_new_token


class Register(ByName):
    display: Word | None = Field(None, description="the name people see")
    profile: bool = Field(False, description="keep the token in the home for --as NAME")


class User(TypedDict):
    name: Annotated[str, Field(description="unique whatever the case, and never changed")]
    address: Annotated[str, Field(description="where mail reaches them, like user:mia")]
    display: Annotated[str, Field(description="the name people see")]
    boss: Annotated[bool, Field(description="true: this is the boss")]
    created_at: Annotated[str, Field(description="when they were registered")]
    presence: Annotated[str, Field(description="online, away or offline")]
    last_seen_at: Annotated[str | None, Field(description="when they last called an operation; null: never")]


class RegisteredUser(TypedDict):
    user: Annotated[User, Field(description="as stored now")]
    token: Annotated[str, Field(description="proves who they are; shown only here")]
    profile: Annotated[str | None, Field(description="the file that holds it for --as NAME")]


class UserList(TypedDict):
    users: Annotated[list[User], Field(description="the boss, and everybody registered")]
    timezone: Timezone


class DeletedUser(TypedDict):
    name: Annotated[str, Field(description="free for another person or agent now")]
    deleted: Annotated[bool, Field(description="always true")]


@operation(
    "user.register",
    level=Level.BOSS,
    effect="change",
    params=Register,
    result=RegisteredUser,
    errors=(BadName, BadText, NameTaken, TooLarge),
)
async def register(context: Context, caller: Caller, params: Register) -> RegisteredUser:
    """Register a person, with a box and a token that is shown only in this answer."""
    name = check_agent_name(params.name)
    display = context.settings.check_word("display", (params.display or "").strip()) or name
    token, now = tokens.new("user"), clock.now()
    if context.home.has_profile(name) and params.profile:
        raise NameTaken(name=name)  # the profile of an agent must not be replaced

    def write(tx: Tx) -> Row:
        tokens.insert(tx, token, "user", users.register(tx, name, display, now), now)
        return users.get(tx, name)

    with context.home.keeping(name, token) if params.profile else nullcontext() as profile:
        row = await context.write(caller, write)
    return {"user": _user(context, row), "token": token, "profile": profile}


@operation("user.list", level=Level.RESTRICTED, result=UserList)
def listed(context: Context, caller: Caller, params: Nothing) -> UserList:
    """List the people who have a box."""
    rows = context.store.read(users.list_all)
    return {"users": [_user(context, row) for row in rows], "timezone": context.timezone}


@operation(
    "user.token.rotate",
    level=Level.BOSS,
    effect="destructive",
    params=Rotate,
    result=RotatedToken,
    errors=(UnknownUser,),
    changes="user",
)
async def rotate(context: Context, caller: Caller, params: Rotate) -> RotatedToken:
    """Give a person a new token, shown only in this answer; the old one ends at the same moment."""
    name = str(context.store.read(lambda c: users.get(c, params.name, but_boss=True))["login"])

    def holder(tx: Tx) -> int:
        return int(users.get(tx, name, but_boss=True)["id"])

    return await give_new_token(context, caller, "user", name, holder, params.profile)


@operation(
    "user.delete",
    level=Level.BOSS,
    effect="destructive",
    params=ByName,
    result=DeletedUser,
    errors=(UnknownUser,),
    changes="user",
)
async def delete(context: Context, caller: Caller, params: ByName) -> DeletedUser:
    """Delete a person: the token ends, and mail still waiting fails. All mail is kept."""
    now = clock.now()

    def write(tx: Tx) -> str:
        row = users.get(tx, params.name, but_boss=True)
        context.auth.recheck_holder(row["id"])
        users.delete(tx, row, now)
        ask_answers.end_of_party(tx, row["id"], f"user:{row['login']} was deleted", now)
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
        "presence": context.user_presence.state(row["id"]),
        "last_seen_at": clock.iso_or_none(context.presence.last_seen(row["id"], row["last_seen_at"])),
    }
