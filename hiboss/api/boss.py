"""Operations about the boss: name, time zone, the chat where he is reached, token."""

from __future__ import annotations

import re
from typing import Annotated, Literal, NamedTuple

from pydantic import Field
from typing_extensions import TypedDict

from ..core import clock, errors, ids
from ..core.address import BOSS, Address, parse_address
from ..core.envelope import Lane
from ..core.errors import BadText, BadTimezone, InvalidParams, NotSetUp, TooLarge
from ..store import bindings, forwarding, identities, overdue, pairing, schedules
from ..store.boss import change_boss, find_boss
from ..store.group_commit import Tx
from .auth import Caller
from .context import Context
from .operation import Level, Nothing, Params, Timezone, operation
from .param_sizes import Size, Word
from .tokens import give_new_token


class Boss(TypedDict):
    name: Annotated[str, Field(description="as people and agents see it")]
    address: Annotated[str, Field(description="always user:boss")]
    timezone: Annotated[str, Field(description="an IANA name, like Europe/Berlin")]
    reach: Annotated[
        str | None,
        Field(description="the chat where mail for the boss is also posted; null: none, or not for you"),
    ]
    reach_binding: Annotated[str | None, Field(description="the account that posts there, like b1")]
    forward: Annotated[
        str | None,
        Field(description="what is posted there: all, important or off; null: not for you to know"),
    ]
    ids: Annotated[
        dict[str, str],
        Field(
            description="the boss's id on platforms, by the type of the adapter; empty: none, or not for you"
        ),
    ]


class BossPairing(TypedDict):
    code: Annotated[
        str, Field(description="send it to the account from your own private chat; shown only here")
    ]
    until: Annotated[str, Field(description="when it ends")]
    accounts: Annotated[list[str], Field(description="the accounts that take it, as people know them")]
    timezone: Timezone


class SetBoss(Params):
    name: Word | None = Field(None, description="as people and agents see it")
    timezone: str | None = Field(None, description="an IANA name, like Europe/Berlin")
    reach: str | None = Field(
        None,
        description="a private chat of the boss, like channel:folder:phone: mail for him is also posted "
        'there, and what is written there is his; "": none',
    )
    reach_binding: str | int | None = Field(
        None, description="the account that posts there, like b1, if there are several"
    )
    forward: Literal["all", "important", "off"] | None = Field(
        None,
        description="what is posted there. important: notices, and mail of the priorities high and critical. "
        "Answers to what he asked there are always posted there",
    )
    ids: Annotated[dict[str, str], Size(text=200)] | None = Field(
        None,
        description='the id of the boss on platforms, like {"telegram": "777"}: whoever has it is the boss '
        'there; "": none. Platforms that are not named keep theirs',
    )


class RotatedBossToken(TypedDict):
    token: Annotated[str, Field(description="shown only here")]
    profile: Annotated[str, Field(description="the file that holds it for --as boss")]
    revoked: Annotated[int, Field(description="how many tokens ended")]


@operation("boss.get", level=Level.RESTRICTED, result=Boss)
def get(context: Context, caller: Caller, params: Nothing) -> Boss:
    """Show the boss's name, address and time zone; to the boss also where he is reached."""
    return _boss(context, caller)


@operation(
    "boss.set",
    level=Level.BOSS,
    effect="idempotent",
    fixed=True,
    params=SetBoss,
    result=Boss,
    errors=(
        BadText,
        BadTimezone,
        TooLarge,
        InvalidParams,
        errors.BadAddress,
        errors.BadId,
        errors.NotBound,
        errors.UnknownAdapter,
    ),
)
async def change(context: Context, caller: Caller, params: SetBoss) -> Boss:
    """Change the boss's name or time zone, or where the boss is reached."""
    if not params.model_dump(exclude_none=True):
        what = (
            "name (--name), timezone (--timezone), reach (--reach), forward (--forward) or ids (--telegram)"
        )
        raise InvalidParams(detail=f"nothing to change: give {what}")
    name = None if params.name is None else check_boss_name(context, params.name)
    zone = None if params.timezone is None else str(clock.zone(params.timezone))
    now = clock.now()
    reach = _reach(params)
    people = _people(context, params.ids or {})

    def write(tx: Tx) -> None:
        change_boss(tx, name, zone)
        for adapter, person in people.items():
            identities.set_boss(tx, adapter, person, now)
        if params.forward is not None:  # first: it says what goes to the new place of what waits
            forwarding.set_forward(tx, params.forward)
        if reach is not None:
            forwarding.set_reach(tx, reach.place(tx), now)

    await context.write(caller, write)
    after: int | None = None if zone is None else 0
    while after is not None:  # in several transactions; the next start does what a crash leaves
        after = await context.store.write_until_done(lambda tx: schedules.follow_boss(tx, now, after or 0))  # noqa: B023 - awaited here
    nearest = context.store.read(overdue.next_wake)
    if nearest is not None:
        context.scheduler.nudge(nearest)
    context.scheduler.look()  # in another zone, the quiet hours end at another moment
    return _boss(context, caller)


def _people(context: Context, given: dict[str, str]) -> dict[str, str | None]:
    """Return the boss's ids on platforms as they are stored; raise if one cannot be an id."""
    for adapter, person in given.items():
        form = getattr(context.supervisor.kind(adapter), "person_id", None)
        if person and not _can_be_person(adapter, person, form):
            raise InvalidParams(
                detail=f"{person} cannot be the id of a person on {adapter}; "
                "hiboss boss pair gives you a code instead, which needs no id"
            )
    return {adapter: person or None for adapter, person in given.items()}


def _can_be_person(adapter: str, given: str, form: str | None) -> bool:
    if form is not None:
        return re.fullmatch(form, given) is not None
    try:
        chat = parse_address(f"channel:{adapter}:{given}").name.partition(":")[2]
    except errors.BadAddress:
        return False
    return chat == given and "/" not in given


@operation("boss.pair", level=Level.BOSS, effect="change", fixed=True, result=BossPairing)
async def pair(context: Context, caller: Caller, params: Nothing) -> BossPairing:
    """Make a code by which the boss is known in a chat: the private chat that sends it is his.

    The code counts once, for an hour. Another one ends it.
    """
    now = clock.now()
    code = await context.write(caller, lambda tx: pairing.new_boss_code(tx, now))
    rows = context.store.read(bindings.list_all)
    return {
        "code": code,
        "until": clock.iso(now + pairing.LIFETIME),
        "accounts": [row["name"] or row["account"] for row in rows if row["closed"]],
        "timezone": context.timezone,
    }


class _Reach(NamedTuple):
    """The chat that was given as `reach`."""

    address: Address | None  # None: none
    binding: int | None  # None: the only one

    def place(self, tx: Tx) -> Lane | None:
        """Return the chat and the account that posts there; raise if there is none, or more than one."""
        if self.address is None:
            return None
        entry = tx.cache.live_address(self.address)
        found = forwarding.places(tx, entry.id) if entry else []
        fitting = [lane for lane in found if self.binding in (None, lane.binding)]
        if not fitting:
            raise errors.NotBound(sender="hiboss", adapter=self.address.adapter, address=str(self.address))
        if len(fitting) > 1:
            accounts = ", ".join(f"b{lane.binding}" for lane in fitting)
            detail = f"several accounts post to {self.address}, {accounts}: give one as reach_binding"
            raise InvalidParams(detail=f"{detail} (--reach-binding)")
        return fitting[0]


def _reach(params: SetBoss) -> _Reach | None:
    """Return the chat that is given as reach; None: it stays as it is."""
    binding = None if params.reach_binding is None else ids.number(params.reach_binding, "binding")
    if params.reach is None:
        if binding is not None:
            raise InvalidParams(detail="reach_binding (--reach-binding) needs reach (--reach)")
        return None
    if not params.reach:
        return _Reach(None, None)
    address = parse_address(params.reach)
    if address.kind != "channel":
        raise InvalidParams(detail="reach must be a private chat, like channel:folder:phone")
    return _Reach(address, binding)


@operation(
    "boss.token.rotate",
    level=Level.BOSS,
    effect="destructive",
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


def _boss(context: Context, caller: Caller) -> Boss:
    row = context.store.read(find_boss)
    assert row is not None  # before set-up nobody has a token
    return {
        "name": row["name"],
        "address": str(BOSS),
        "timezone": row["timezone"] or "UTC",
        "reach": row["reach"] if caller.is_boss else None,
        "reach_binding": f"b{row['reach_by']}" if caller.is_boss and row["reach_by"] is not None else None,
        "forward": row["forward"] if caller.is_boss else None,
        "ids": context.store.read(identities.boss_ids) if caller.is_boss else {},
    }
