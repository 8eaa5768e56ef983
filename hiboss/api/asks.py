"""Operations about asks: ask a question with options, answer it, wait for the answer, take it back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import nullcontext

from ..agents.run_execution import ASK_SECONDS
from ..core import clock, errors, ids
from ..core.address import BACKGROUND, SYSTEM
from ..core.choices import chosen
from ..core.contracts.provider import MOST_OPTIONS, OPTION_CHARACTERS
from ..core.crashpoint import ASK_CREATED, ASK_SETTLED, crashpoint
from ..core.envelope import check_text, measure
from ..core.errors import BadChoice, BadOptions, InvalidParams, UnknownRecipient
from ..core.escaping import name, shows
from ..store import addresses, ask_answers, asks
from ..store.asks import NewAsk
from ..store.connection import Connection, Row
from ..store.group_commit import Tx
from .addresses import resolve
from .ask_shapes import (
    Answer,
    AskList,
    ById,
    Cancel,
    Create,
    CreatedAsk,
    List,
    OneAsk,
    Wait,
    WaitedAsk,
    ask_json,
)
from .auth import Caller
from .context import Context
from .operation import Level, operation
from .request_limits import deadline, fitting, page_size

YES_NO = ("yes", "no")
LONGEST_TIMEOUT_MS = 366 * 24 * 3_600_000
RUN_SECONDS = ASK_SECONDS  # that a call inside a run waits
_ID_ERRORS = (errors.NotFound, errors.BadId)


@operation(
    "ask.create",
    level=Level.STANDARD,
    effect="change",
    params=Create,
    result=CreatedAsk,
    errors=(
        BadOptions,
        BadChoice,
        errors.BadDuration,
        errors.BadAddress,
        errors.BadText,
        errors.EmptyMessage,
        errors.TooLarge,
        UnknownRecipient,
        InvalidParams,
    ),
)
async def create(context: Context, caller: Caller, params: Create) -> CreatedAsk:
    """Ask somebody a question with options; the answer comes as a message. It is on disk when this answers.

    A turn that is repeated finds what it asked before, with the answer if there is one.
    """
    question = measure("question", params.question, context.settings.text_bytes).strip()
    if not question:
        raise errors.EmptyMessage()
    options = _options(params.options)
    fallback = _default(params, options)
    to = resolve(context.store, caller, params.to, UnknownRecipient)
    now = clock.now()
    until = None
    if params.timeout is not None:
        until = now + clock.duration(params.timeout, most=LONGEST_TIMEOUT_MS)

    def write(tx: Tx) -> tuple[Row, bool]:
        entry = tx.cache.live_address(to)
        if entry is None or to.kind not in ("agent", "user") or entry.address in (SYSTEM, BACKGROUND):
            nobody = " (it is hiboss itself, and answers nothing)" if to in (SYSTEM, BACKGROUND) else ""
            raise UnknownRecipient(address=str(to), hint=nobody or addresses.near_address(tx, to))
        if entry.id == caller.id:
            how = "ask somebody else (--to), or ask as an agent (--as NAME)"
            raise InvalidParams(detail=f"{to} cannot ask itself: who asks never answers; {how}")
        new = NewAsk(
            asker=caller.id,
            asked=entry.id,
            question=question,
            options=options,
            fallback=fallback,
            expires_at=until,
            run=caller.run,
        )
        made = asks.create(tx, new, now)
        return asks.need(tx, made.id), made.duplicate

    row, duplicate = await context.write(caller, write)
    crashpoint(ASK_CREATED)
    return {"ask": ask_json(row), "timezone": context.timezone, "duplicate": duplicate}


def _options(given: list[str] | None) -> tuple[str, ...]:
    """Return the options; raise BadOptions if they cannot be asked."""
    options = tuple(YES_NO if given is None else (" ".join(one.split()) for one in given))
    for option in options:
        check_text(option, "options")
    if not 1 <= len(options) <= MOST_OPTIONS:
        raise BadOptions(why=f"there are {len(options)}")
    if not all(options):
        raise BadOptions(why="one is empty")
    if not all(map(shows, options)):
        raise BadOptions(why="one shows nothing")
    if longest := max((one for one in options if len(one) > OPTION_CHARACTERS), key=len, default=""):
        raise BadOptions(why=f"one has {len(longest)} characters")
    if len({one.casefold() for one in options}) < len(options):
        raise BadOptions(why="two are the same (upper and lower case count as the same)")
    return options


def _default(params: Create, options: tuple[str, ...]) -> str | None:
    """Return the option that counts when the time is over."""
    if params.default is None:
        return None
    if params.timeout is None:
        raise InvalidParams(
            detail="default (--default) needs a timeout (--timeout): it counts when that is over"
        )
    option = chosen(options, check_text(params.default, "default"))
    if option is None:
        shown = ", ".join(name(one) for one in options)
        raise BadChoice(id="the question", choice=params.default[:100] or "''", options=shown)
    return option


@operation(
    "ask.answer",
    level=Level.RESTRICTED,
    effect="change",
    params=Answer,
    result=OneAsk,
    errors=(
        *_ID_ERRORS,
        errors.AskSettled,
        errors.OwnAsk,
        BadChoice,
        errors.CannotRemember,
        errors.TooLarge,
        errors.BadText,
    ),
)
async def answer(context: Context, caller: Caller, params: Answer) -> OneAsk:
    """Answer an ask that you are asked (the boss: any that another asked). The first answer counts."""
    number, now = ids.number(params.id, "ask"), clock.now()
    comment = measure("comment", params.comment or "", context.settings.subject_bytes).strip()
    check_text(params.choice, "choice")

    def write(tx: Tx) -> Row:
        scope = params.scope
        return ask_answers.answer(tx, number, params.choice, caller.id, now, comment=comment, scope=scope)

    return await _settle(context, caller, write)


@operation(
    "ask.cancel",
    level=Level.RESTRICTED,
    effect="destructive",
    params=Cancel,
    result=OneAsk,
    errors=(
        *_ID_ERRORS,
        errors.AskSettled,
        errors.AskFixed,
        errors.NotAsker,
        errors.TooLarge,
        errors.BadText,
    ),
)
async def cancel(context: Context, caller: Caller, params: Cancel) -> OneAsk:
    """Take back an ask of yours (the boss: any), so that nobody can answer it any more."""
    number, now = ids.number(params.id, "ask"), clock.now()
    reason = measure("reason", params.reason or "", context.settings.subject_bytes).strip()
    return await _settle(context, caller, lambda tx: ask_answers.cancel(tx, number, caller.id, now, reason))


async def _settle(context: Context, caller: Caller, write: Callable[[Tx], Row]) -> OneAsk:
    row = await context.write(caller, write)
    crashpoint(ASK_SETTLED)
    return {"ask": ask_json(row), "timezone": context.timezone}


@operation("ask.get", level=Level.RESTRICTED, params=ById, result=OneAsk, errors=_ID_ERRORS)
def get(context: Context, caller: Caller, params: ById) -> OneAsk:
    """Show an ask that you asked or are asked (the boss: any)."""
    row = _visible(context, caller, ids.number(params.id, "ask"))
    return {"ask": ask_json(row), "timezone": context.timezone}


def _visible(context: Context, caller: Caller, number: int) -> Row:
    return context.store.read(lambda c: ask_answers.visible(c, number, caller.sees))


@operation(
    "ask.list",
    level=Level.RESTRICTED,
    effect="read",
    params=List,
    result=AskList,
    errors=(InvalidParams,),
)
async def listed(context: Context, caller: Caller, params: List) -> AskList:
    """List the asks that you asked or are asked (the boss: all), newest first."""
    limit = page_size(context, params.page_size)
    state = None if params.state == "all" else params.state
    query = ask_answers.Query(caller.sees, state, params.after, limit + 1)

    def read(connection: Connection) -> AskList:
        rows = ask_answers.listed(connection, query)
        shown, cut = fitting(context, [ask_json(row) for row in rows[:limit]])
        return {
            "asks": shown,
            "next": rows[len(shown) - 1]["id"] if cut or len(rows) > limit else None,
            "timezone": context.timezone,
        }

    return await context.store.read_in_thread(read)


@operation(
    "ask.wait",
    level=Level.RESTRICTED,
    effect="change",
    waits=True,
    params=Wait,
    result=WaitedAsk,
    errors=(*_ID_ERRORS, errors.BadDuration, errors.Stopping),
)
async def wait(context: Context, caller: Caller, params: Wait) -> WaitedAsk:
    """Wait until an ask is settled, or until the time limit.

    A run that waits for what it asked frees its place, and its time limits stand still meanwhile: 50 seconds
    for each ask. The answer comes as a message too, until the asker says that it has it (`received`).
    """
    number, loop = ids.number(params.id, "ask"), asyncio.get_running_loop()
    end = deadline(params.timeout)
    row = _visible(context, caller, number)
    execution = None
    if caller.run is not None:
        end = min(end, loop.time() + RUN_SECONDS)
        execution = context.runner.execution(caller.run) if caller.run == row["run"] else None
    with (
        context.waiters.waiting(row["asker"]) as bell,
        nullcontext() if execution is None else execution.standing_still(number),
    ):
        while (row := _visible(context, caller, number))["state"] == "open" and loop.time() < end:
            if not await context.waiters.wait(bell, end - loop.time()):
                row = _visible(context, caller, number)
                break
            context.auth.recheck(caller)
    if params.received and row["state"] != "open" and caller.id == row["asker"]:
        now = clock.now()
        await context.write(caller, lambda tx: ask_answers.received(tx, number, now))
    return {"ask": ask_json(row), "timezone": context.timezone, "timed_out": row["state"] == "open"}
