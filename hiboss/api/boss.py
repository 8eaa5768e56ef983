"""Operations about the boss: name, time zone, token."""

from __future__ import annotations

from pydantic import Field
from typing_extensions import TypedDict

from ..core import clock
from ..core.address import BOSS
from ..core.errors import BadText, BadTimezone, InvalidParams, NotSetUp, TooLarge
from ..store import overdue, schedules
from ..store.boss import change_boss, find_boss
from ..store.group_commit import Tx
from .auth import Caller
from .context import Context
from .operation import Level, Nothing, Params, operation
from .param_sizes import Word
from .tokens import give_new_token


class Boss(TypedDict):
    name: str
    address: str
    timezone: str


class SetBoss(Params):
    name: Word | None = None
    timezone: str | None = Field(None, description="an IANA name, like Europe/Berlin")


class RotatedBossToken(TypedDict):
    token: str  # shown only here
    profile: str  # the file that holds it for --as boss
    revoked: int  # how many tokens ended


@operation("boss.get", level=Level.RESTRICTED, result=Boss)
def get(context: Context, caller: Caller, params: Nothing) -> Boss:
    """Show the boss's name, address and time zone."""
    return _boss(context)


@operation(
    "boss.set",
    level=Level.BOSS,
    fixed=True,
    params=SetBoss,
    result=Boss,
    errors=(BadText, BadTimezone, TooLarge, InvalidParams),
)
async def change(context: Context, caller: Caller, params: SetBoss) -> Boss:
    """Change the boss's name or time zone."""
    if params.name is None and params.timezone is None:
        raise InvalidParams(detail="nothing to change: give name (--name) or timezone (--timezone)")
    name = None if params.name is None else check_boss_name(context, params.name)
    zone = None if params.timezone is None else str(clock.zone(params.timezone))
    now = clock.now()

    await context.write(caller, lambda tx: change_boss(tx, name, zone))
    after: int | None = None if zone is None else 0
    while after is not None:  # in several transactions; the next start does what a crash leaves
        after = await context.store.write_until_done(lambda tx: schedules.follow_boss(tx, now, after or 0))  # noqa: B023 - awaited here
    nearest = context.store.read(overdue.next_wake)
    if nearest is not None:
        context.scheduler.nudge(nearest)
    return _boss(context)


@operation(
    "boss.token.rotate",
    level=Level.BOSS,
    fixed=True,
    offline=True,
    result=RotatedBossToken,
    errors=(NotSetUp,),
)
async def rotate(context: Context, caller: Caller, params: Nothing) -> RotatedBossToken:
    """Give the boss a new token, shown only in this answer; the old ones end at the same moment."""

    def holder(tx: Tx) -> int:
        boss = find_boss(tx)
        if boss is None:
            raise NotSetUp(home=str(context.home))
        return int(boss["address"])

    found = await give_new_token(context, caller, "boss", BOSS.name, holder, profile=True)
    assert found["profile"] is not None
    return {"token": found["token"], "profile": found["profile"], "revoked": found["revoked"]}


def check_boss_name(context: Context, given: str) -> str:
    """Return the name without spaces around it; raises when it is empty or too long."""
    name = context.settings.check_word("name", given.strip())
    if not name:
        raise InvalidParams(detail="name is empty; give the name that people call you")
    return name


def _boss(context: Context) -> Boss:
    row = context.store.read(find_boss)
    assert row is not None  # before set-up nobody has a token
    return {"name": row["name"], "address": str(BOSS), "timezone": row["timezone"] or "UTC"}
