"""A briefing as text: who somebody is, who else is here, what waits. What others chose is in quotes.

Two parts: `about` does not change from minute to minute, and instructions say it too; `now` does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import tzinfo
from typing import Any, NamedTuple

from ..core.escaping import name, quote, visible
from ..core.rendering import moment
from . import team_lines

BYTES = 4_096  # of a whole briefing
Briefing = Mapping[str, Any]  # the result of agent.briefing


class Size(NamedTuple):
    """How much is shown of each thing."""

    team: int  # agents that are named
    items: int  # of each other list
    characters: int  # of what somebody wrote


# The first that fits: of a large team, or of long texts, less is shown.
SIZES = (Size(20, 5, 80), Size(10, 5, 40), Size(5, 3, 20), Size(0, 1, 10))


def text(found: Briefing, zone: tzinfo) -> str:
    """Return the whole briefing, in at most BYTES."""
    return _fitting(lambda size: [*_about(found, zone, size), *_now(found, zone, size)])


def now(found: Briefing, zone: tzinfo) -> str:
    """Return the part that changes, in at most BYTES: for whoever has the instructions."""
    return _fitting(lambda size: [f"Time: {_time(found, zone)}", *_now(found, zone, size)])


def _fitting(made: Any) -> str:
    for size in SIZES:
        found = "\n".join(made(size))
        if len(found.encode()) <= BYTES:
            return found
    return found.encode()[: BYTES - 3].decode(errors="ignore") + "…"


def _time(found: Briefing, zone: tzinfo) -> str:
    return f"{moment(found['now'], zone)} ({found['timezone']})"


def _about(found: Briefing, zone: tzinfo, size: Size) -> list[str]:
    known = [f"You are {visible(found['address'])}", *team_lines.about(found, size.characters)]
    known += [f"level {found['level']}"] + ([f"mode {found['mode']}"] if found["mode"] else [])
    boss = f"Your boss: {name(found['boss'], size.characters)} (user:boss)."
    if found["address"] == "user:boss":
        known, boss = [f"You are the boss, {name(found['boss'], size.characters)} (user:boss)"], ""
    return [f"{', '.join(known)}.", *([boss] if boss else []), f"Time: {_time(found, zone)}"]


def _now(found: Briefing, zone: tzinfo, size: Size) -> list[str]:
    return [
        *_team(found, size),
        *_groups(found, size),
        *_unread(found, size),
        *_asks("Asks that wait for your answer", found["asked"], "from", size),
        *_asks("Asks of yours that wait", found["asking"], "to", size),
        *_schedules(found, zone, size),
    ]


def _team(found: Briefing, size: Size) -> list[str]:
    shown = found["team"][: size.team]
    number = len(found["team"]) + found["more_team"]
    if not number:
        return ["Team: no other agents."]
    lines = team_lines.lines(shown, size.characters, {one["name"]: one["state"] for one in shown})
    return ["Team:", *lines, *_more(number - len(shown), "hiboss team")]


def _groups(found: Briefing, size: Size) -> list[str]:
    if not found["groups"]:
        return []
    shown = found["groups"][: 4 * size.items]
    known = [f"group:{visible(one['name'])} ({_membership(one)})" for one in shown]
    more = len(found["groups"]) > len(shown) or found["more_groups"]
    return [f"Groups: {', '.join([*known, *(['and more (hiboss group list)'] if more else [])])}"]


def _membership(one: Mapping[str, Any]) -> str:
    return f"{one['role']}, {one['unread']} unread" if one["unread"] else str(one["role"])


def _unread(found: Briefing, size: Size) -> list[str]:
    if not found["unread"]:
        return ["Unread: nothing."]
    shown = found["newest"][: size.items]
    number = f"{found['unread']}{'+' if found['unread_capped'] else ''}"
    lines = [
        f"- {one['id']} from {visible(one['sender'])}: {quote(one['preview'], size.characters)}"
        for one in shown
    ]
    more = found["unread"] - len(shown)
    title = f"Unread: {number}, the newest first (hiboss read {shown[0]['id']} shows one)"
    return [title, *lines, *_more(more, "hiboss inbox --unread")]


def _asks(title: str, asks: Sequence[Mapping[str, Any]], word: str, size: Size) -> list[str]:
    if not asks:
        return []
    shown = asks[: size.items]
    lines = [
        f"- {one['id']} {word} {visible(one['address'])}: {quote(one['question'], size.characters)}"
        for one in shown
    ]
    return [f"{title}:", *lines, *_more(len(asks) - len(shown), "hiboss ask list")]


def _schedules(found: Briefing, zone: tzinfo, size: Size) -> list[str]:
    if not found["schedules"]:
        return []
    shown = found["schedules"][: size.items]
    lines = [
        f"- {one['id']} at {moment(one['next_at'], zone)} to {', '.join(map(visible, one['to'][:3]))}: "
        f"{quote(one['preview'], size.characters)}"
        for one in shown
    ]
    more = int(found["more_schedules"]) + len(found["schedules"]) - len(shown)
    return ["Your next schedules:", *lines, *(["- and more (hiboss cron list)"] if more else [])]


def _more(number: int, command: str) -> list[str]:
    return [f"- and {number} more ({command})"] if number > 0 else []
