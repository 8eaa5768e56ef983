"""The built-in provider: no network, no model. It knows a few words, and says the rest back.

So everything can be tried on a fresh machine: an answer, live output, a reminder, and results
of others that are passed on.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

from ...core import clock, rendering
from ...core.contracts.provider import Answer, OnProgress, OnStart, Progress, Reminder, TurnInput
from ...core.envelope import shorten

PIECES = 12  # of one answer, said one after the other
PAUSE_SECONDS = 0.02
ECHO_CHARACTERS = 2_000
NAME_CHARACTERS = 60
SECOND_MS = 1000
YEAR_MS = 365 * 24 * 3600 * 1000
HELP = """\
I am {agent}, and I think with the demo provider. It has no model and no network; it knows these words:
- remind me in 10m to stretch (also 90s, 2h, 1h30m, in 10 minutes): a message comes at that time
- status: who I am, what time it is, and how to choose another provider
- help: this
Anything else I say back to you."""
STATUS = """\
I am {agent}. It is {now} ({timezone}), and {due} due when this turn began.
I think with the demo provider, which knows a few words (say help). To choose another:
{choose}"""
CHOOSE = 'hiboss agent set --as boss --name {agent} --provider command --command "python agent.py"'
EXAMPLE = "write it like this: remind me in 10m to stretch (90s, 2h and 1h30m are times too)"

_UNIT_MS = {"s": SECOND_MS, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 7 * 86_400_000}
_ASKED = re.compile(r"(?:please\b[,\s]*)?remind\s+me\b", re.IGNORECASE)
_LENGTH = re.compile(
    r"(?:\s*,|\s+and\b)?\s*(\d{1,9}(?:\.\d{1,3})?|\ban?\b)\s*"
    r"(s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?|w|weeks?)(?![^\W\d_])",
    re.IGNORECASE,
)
_IN = re.compile(r"[\s,]*in\b", re.IGNORECASE)
_IN_BETWEEN = re.compile(r"\sin\s", re.IGNORECASE)
_JOINT = re.compile(r"[\s,:.!]*(?:(?:to|that|about|of)\b)?\s*", re.IGNORECASE)
_PLEASE = re.compile(r",?\splease$", re.IGNORECASE)
_GREETINGS = ("hello", "hi", "hey")

Envelope = Mapping[str, Any]


class Said(NamedTuple):
    """The answer to one message."""

    text: str
    later: tuple[Reminder, ...] = ()


class Demo:
    """The contract's provider for trying hiboss out."""

    name: ClassVar[str] = "demo"
    options: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def configure(cls, given: Mapping[str, Any]) -> dict[str, Any]:
        return {}

    def __init__(self, settings: Mapping[str, Any]) -> None:
        """There is nothing to remember."""

    async def take_turn(self, turn: TurnInput, on_progress: OnProgress, on_start: OnStart) -> Answer:
        said = answer(turn)
        for piece in pieces(said.text):
            on_progress(Progress("delta", piece))
            await asyncio.sleep(PAUSE_SECONDS)
        return Answer(text=said.text, later=said.later)


def pieces(text: str) -> list[str]:
    """The text in a few pieces that end between words."""
    words = re.findall(r"\S+\s*|^\s+", text)
    size = -(-len(words) // PIECES) or 1
    return ["".join(words[start : start + size]) for start in range(0, len(words), size)]


def answer(turn: TurnInput) -> Said:
    """The last message that somebody wrote is answered; of those before it, what asks for a reminder."""
    told = [one for one in turn.envelopes if not one["auto"]]
    if not told:
        return Said(_passed_on(turn.envelopes))
    said = [_answer(one, turn) for one in told]
    kept = [one for one in said[:-1] if one.later] + said[-1:]
    return Said("\n".join(one.text for one in kept), tuple(r for one in kept for r in one.later))


def _passed_on(envelopes: Sequence[Envelope]) -> str:
    results = [one for one in envelopes if one["from"] != "agent:system"]
    return "\n".join(f"{_who(one)} says: {_short(one['text']) or '(nothing)'}" for one in results)


def _answer(one: Envelope, turn: TurnInput) -> Said:
    text = one["text"].strip()
    if asked := _ASKED.match(text):
        return _reminder(text[asked.end() :], turn)
    words = text.lower().strip("/?!. ").split()[:4] if len(text) < 100 else []
    if words == ["status"]:
        return Said(_status(turn))
    if words == ["help"]:
        return Said(HELP.format(agent=turn.agent))
    if 1 <= len(words) <= 3 and words[0].strip(",!.") in _GREETINGS:
        return Said(f"Hello {_who(one)}! I am {turn.agent}. Say help to see what I can do.")
    return Said(_echo(one))


def _status(turn: TurnInput) -> str:
    due = "1 message was" if turn.due == 1 else f"{turn.due} messages were"
    now = clock.local(turn.now, clock.zone(turn.timezone))
    choose = CHOOSE.format(agent=turn.agent)
    return STATUS.format(agent=turn.agent, now=now, timezone=turn.timezone, due=due, choose=choose)


def _echo(one: Envelope) -> str:
    files = ", ".join(shorten(rendering.line(file["name"]), NAME_CHARACTERS) for file in one["attachments"])
    lines = [f"You said: {_short(one['text'])}"] if one["text"].strip() else []
    lines += [f"You sent: {files}"] if files else []
    return "\n".join(lines) or "You said nothing."


def _short(text: str) -> str:
    """A text as it is said back: its lines stay, only a very long one is cut."""
    text = text.strip()
    return text if len(text) <= ECHO_CHARACTERS else shorten(text[: 2 * ECHO_CHARACTERS], ECHO_CHARACTERS)


def _who(one: Envelope) -> str:
    author = (one["channel"] or {}).get("author") or {}
    chosen = author.get("name") or one["from_name"] or one["from"].rpartition(":")[2]
    return shorten(rendering.name(str(chosen)), NAME_CHARACTERS) or "you"


# --- reminders -------------------------------------------------------------------------


def _reminder(rest: str, turn: TurnInput) -> Said:
    """What came of `remind me …`."""
    length, what = when_and_what(rest)
    if length is None:
        return Said(f"I did not understand when to remind you; {EXAMPLE}.")
    if not what:
        return Said(f"I did not understand what to remind you of; {EXAMPLE}.")
    if length < SECOND_MS:
        return Said(f"That is no time at all; a second is the least. For example, {EXAMPLE}.")
    if length > YEAR_MS:
        return Said(f"That is too far away; 365 days are the most. For example, {EXAMPLE}.")
    due = turn.now + length
    when = _moment(due, turn)
    return Said(
        f"All right, I will remind you {when}: {shorten(what, 200)}",
        (Reminder(text=f"Reminder: {what}", deliver_at=due),),
    )


def _moment(due: int, turn: TurnInput) -> str:
    """at 20:18:45 (Asia/Shanghai): with the day when it is not today."""
    zone = clock.zone(turn.timezone)
    there, today = clock.from_ms(due, zone), clock.from_ms(turn.now, zone).date()
    day = "" if there.date() == today else f"on {there.date()} "
    return f"{day}at {there:%H:%M:%S} ({turn.timezone})"


def when_and_what(rest: str) -> tuple[int | None, str]:
    """Of ` in 10m to stretch` or ` to stretch in 10m`: the milliseconds, if it says when, and what."""
    if found := _IN.match(rest):
        length, end = span(rest, found.end())
        return length, _thing(rest[end:])
    places = list(_IN_BETWEEN.finditer(rest))
    if not places:
        return None, _thing(rest)
    tail = _PLEASE.sub("", rest[places[-1].end() :].rstrip(" .!"))
    length, end = span(tail, 0)
    return (length if end == len(tail) else None), _thing(rest[: places[-1].start()])


def span(text: str, start: int) -> tuple[int | None, int]:
    """The milliseconds of a length of time that begins here, and where it ends; None for no such."""
    total, end = None, start
    while found := _LENGTH.match(text, end):
        number = 1.0 if found[1].lower().startswith("a") else float(found[1])
        total = (total or 0) + round(number * _UNIT_MS[found[2][0].lower()])
        end = found.end()
    if text[end : end + 1] not in ("", *" \n\t,:.!"):  # 10-20m, 10m/day
        return None, end
    return total, end


def _thing(text: str) -> str:
    found = _JOINT.match(text)
    return text[found.end() if found else 0 :].strip()
