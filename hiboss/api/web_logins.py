"""Operations by which people use the HTTP door with a browser: a one-time link, and the end of a login."""

from __future__ import annotations

from typing import Annotated, NamedTuple

from pydantic import Field
from typing_extensions import TypedDict

from ..core import clock
from ..core.address import BOSS
from ..core.errors import BossOnly, LoginRefused, NotAPerson, UnknownUser, WebUnavailable
from ..store import tokens, users
from ..store.group_commit import Tx
from .auth import Caller
from .context import Context
from .login_codes import LIVES_MS
from .operation import Level, Params, Timezone, operation

DAY_MS = 24 * 3_600_000


class Link(Params):
    name: str | None = Field(None, description="for this person (only for the boss); default: for you")


class LinkJson(TypedDict):
    url: Annotated[str, Field(description="open it in a browser: it logs in once, and is shown only here")]
    address: Annotated[str, Field(description="who is logged in by it")]
    expires_at: Annotated[str, Field(description="until when it can be used")]
    timezone: Timezone


class Logout(Params):
    all: bool = Field(False, description="every browser of yours; default: the one that asks")


class LoggedOut(TypedDict):
    changed: Annotated[int, Field(description="how many browsers were logged out")]


class Login(NamedTuple):
    """What a browser gets: the two halves of its token."""

    cookie: str
    tab: str  # begins with the store's own word, which is in the name of the cookie too
    address: str
    seconds: int  # for how long


@operation(
    "web.link",
    level=Level.RESTRICTED,
    params=Link,
    result=LinkJson,
    errors=(BossOnly, NotAPerson, UnknownUser, WebUnavailable),
    effect="change",
)
def link(context: Context, caller: Caller, params: Link) -> LinkJson:
    """Make a link that logs a person in with a browser: once, within five minutes."""
    if not caller.is_person or caller.address is None:
        raise NotAPerson(what="web.link", caller=caller.name)
    name = caller.address.name if params.name is None else params.name.removeprefix("user:")
    if name.casefold() != caller.address.name.casefold() and not caller.is_boss:
        raise BossOnly(what="web.link for others", caller=caller.name)
    row = context.store.read(lambda c: users.get(c, name))
    url = context.gateway.url
    if url is None:
        raise WebUnavailable(why=context.gateway.why_not)
    code, expires_at = context.login_codes.create(row["id"])
    return {
        "url": f"{url}/login#{code}",
        "address": f"user:{row['login']}",
        "expires_at": clock.iso(expires_at),
        "timezone": context.timezone,
    }


@operation(
    "web.logout",
    level=Level.RESTRICTED,
    params=Logout,
    result=LoggedOut,
    errors=(NotAPerson,),
    effect="idempotent",
)
async def logout(context: Context, caller: Caller, params: Logout) -> LoggedOut:
    """Log browsers of yours out: the one that asks, or all of them."""
    if not caller.is_person:
        raise NotAPerson(what="web.logout", caller=caller.name)
    now = clock.now()

    def write(tx: Tx) -> int:
        context.auth.recheck_holder(caller.id)
        only = None if params.all else caller.token if caller.browser else 0
        return tokens.end_browsers(tx, caller.id, now, only)

    changed = await context.write(caller, write)
    if params.all:
        context.login_codes.forget(caller.id)
    context.auth.forget()
    return {"changed": changed}


async def log_in(context: Context, code: str) -> Login:
    """Log a browser in by the code of a link. It is on disk when this returns."""
    holder = context.login_codes.take(code)
    cookie, secret = tokens.halves()
    tab, now = f"{context.store.epoch}.{secret}", clock.now()
    lives = int(context.settings.web_session_days * DAY_MS)

    def write(tx: Tx) -> str:
        row = next((one for one in users.list_all(tx) if one["id"] == holder), None)
        if row is None:  # deleted since the link was made
            raise LoginRefused()
        tokens.insert(tx, tokens.joined(cookie, tab), "web", holder, now, expires_at=now + lives)
        return str(row["login"])

    name = await context.store.write(write)
    return Login(cookie, tab, str(BOSS) if name == BOSS.name else f"user:{name}", lives // 1000)


def token_of_halves(cookie: str, tab: str) -> str:
    """Return the token that the two halves of a browser make."""
    return tokens.joined(cookie, tab)


async def end_expired(context: Context) -> None:
    """Log out the browsers whose time is over, and delete the pages of links that have ended."""
    now = clock.now()
    context.home.forget_login_pages((now - LIVES_MS) / 1000)
    if not context.store.read(lambda c: tokens.has_expired(c, now)):
        return

    def write(tx: Tx) -> None:
        for holder in tokens.end_expired(tx, now):
            context.auth.recheck_holder(holder)

    await context.store.write(write)
    context.auth.forget()
