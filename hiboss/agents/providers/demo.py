"""The demo provider: built in, without network and model. It knows a few commands and repeats other messages.

With it everything can be tried on a fresh machine: an answer, live output, a reminder, and results of
other agents that are passed on.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

from ...core import clock
from ...core.contracts.provider import Answer, LiveRun, Progress, Provider, Reminder, TurnInput
from ...core.escaping import visible
from ...core.shortening import shorten

PIECES = 12  # an answer is shown live in at most so many
PAUSE_SECONDS = 0.02
ECHO_CHARACTERS = 2_000
NAME_CHARACTERS = 60
SECOND_MS = 1000
YEAR_MS = 365 * 24 * 3600 * 1000
HELP = """\
I am {agent}. I use the demo provider, which has no AI model and no network. You can write:
- remind me in 10m to stretch (or 90s, 2h, 1h30m, 10 minutes): I send you a message at that time
- status: my name, the time, and how to give me another provider
- help: this list
I repeat every other message back to you."""
STATUS = """\
I am {agent}. It is {now} ({timezone}). {due} due when this turn began.
I use the demo provider, which knows only a few commands (say help). To give me a program of yours:
{choose}"""
CHOOSE = 'hiboss agent set {agent} --workspace "$PWD" --command "python3 agent.py"'
EXAMPLE = "write, for example: remind me in 10m to stretch (90s, 2h and 1h30m work too)"

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


class Reply(NamedTuple):
    """The answer to one message."""

    text: str
    later: tuple[Reminder, ...] = ()


class Demo(Provider):
    """Answers the last message of a turn, and takes reminders of all."""

    name: ClassVar[str] = "demo"
    summary: ClassVar[str] = "a few built-in answers; no network"

    async def take_turn(self, turn: TurnInput, run: LiveRun) -> Answer:
        reply = answer(turn)
        for piece in pieces(reply.text):
            run.progress(Progress("delta", piece))
            await asyncio.sleep(PAUSE_SECONDS)
        return Answer(text=reply.text, later=reply.later)


def pieces(text: str) -> list[str]:
    """Split a text into at most PIECES pieces, between words."""
    words = re.findall(r"\S+\s*|^\s+", text)
    size = -(-len(words) // PIECES) or 1
    return ["".join(words[start : start + size]) for start in range(0, len(words), size)]


def answer(turn: TurnInput) -> Reply:
    """Answer the last message that is not automatic, and every reminder that was asked for before it."""
    messages = [one for one in turn.envelopes if not one["auto"]]
    if not messages:
        return Reply(_passed_on(turn.envelopes))
    replies = [_answer(one, turn) for one in messages]
    kept = [one for one in replies[:-1] if one.later] + replies[-1:]
    return Reply("\n".join(one.text for one in kept), tuple(r for one in kept for r in one.later))


def _passed_on(envelopes: Sequence[Envelope]) -> str:
    """Pass on the results of other agents; notices of the system are left out."""
    results = [one for one in envelopes if one["from"] != "agent:system"]
    return "\n".join(f"{_who(one)} says: {_short(one['text']) or '(nothing)'}" for one in results)


def _answer(one: Envelope, turn: TurnInput) -> Reply:
    text = one["text"].strip()
    if asked := _ASKED.match(text):
        return _reminder(text[asked.end() :], turn)
    words = text.lower().strip("/?!. ").split()[:4] if len(text) < 100 else []
    if words == ["status"]:
        return Reply(_status(turn))
    if words == ["help"]:
        return Reply(HELP.format(agent=turn.agent))
    if 1 <= len(words) <= 3 and words[0].strip(",!.") in _GREETINGS:
        return Reply(f"Hello {_who(one)}! I am {turn.agent}. Say help to see what I can do.")
    return Reply(_echo(one))


def _status(turn: TurnInput) -> str:
    due = "1 message was" if turn.due == 1 else f"{turn.due} messages were"
    now = clock.local(turn.now, clock.zone(turn.timezone))
    choose = CHOOSE.format(agent=turn.agent)
    return STATUS.format(agent=turn.agent, now=now, timezone=turn.timezone, due=due, choose=choose)


def _echo(one: Envelope) -> str:
    files = ", ".join(visible(shorten(file["name"], NAME_CHARACTERS)) for file in one["attachments"])
    lines = [f"You said: {_short(one['text'])}"] if one["text"].strip() else []
    lines += [f"You sent: {files}"] if files else []
    return "\n".join(lines) or "You said nothing."


def _short(text: str) -> str:
    """Cut a text that is very long; its line breaks stay."""
    text = text.strip()
    return text if len(text) <= ECHO_CHARACTERS else shorten(text[: 2 * ECHO_CHARACTERS], ECHO_CHARACTERS)


def _who(one: Envelope) -> str:
    """Return the sender's name: on the platform, as given, or of the address."""
    author = (one["channel"] or {}).get("author") or {}
    chosen = author.get("name") or one["from_name"] or one["from"].rpartition(":")[2]
    return visible(shorten(str(chosen), NAME_CHARACTERS)) or "you"


# --- reminders -------------------------------------------------------------------------


def _reminder(rest: str, turn: TurnInput) -> Reply:
    """Answer `remind me …`; `rest` is what follows these words."""
    length, what = when_and_what(rest)
    if length is None:
        return Reply(f"I did not understand when to remind you; {EXAMPLE}.")
    if not what:
        return Reply(f"I did not understand what to remind you about; {EXAMPLE}.")
    if length < SECOND_MS:
        return Reply(f"The shortest time is one second; {EXAMPLE}.")
    if length > YEAR_MS:
        return Reply(f"The longest time is 365 days; {EXAMPLE}.")
    due = turn.now + length
    when = _moment(due, turn)
    return Reply(
        f"All right, I will remind you {when}: {shorten(what, 200)}",
        (Reminder(text=f"Reminder: {what}", deliver_at=due),),
    )


def _moment(due: int, turn: TurnInput) -> str:
    """Return `at 20:18:45 (Asia/Shanghai)`, with the date when it is not today."""
    zone = clock.zone(turn.timezone)
    there, today = clock.from_ms(due, zone), clock.from_ms(turn.now, zone).date()
    day = "" if there.date() == today else f"on {there.date()} "
    return f"{day}at {there:%H:%M:%S} ({turn.timezone})"


def when_and_what(rest: str) -> tuple[int | None, str]:
    """Read ` in 10m to stretch` or ` to stretch in 10m`: return milliseconds (None: no time) and text."""
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
    """Read a length of time at `start`: return its milliseconds (None: there is none) and where it ends."""
    total, end = None, start
    while found := _LENGTH.match(text, end):
        number = 1.0 if found[1].lower().startswith("a") else float(found[1])
        total = (total or 0) + round(number * _UNIT_MS[found[2][0].lower()])
        end = found.end()
    if text[end : end + 1] not in ("", *" \n\t,:.!"):  # 10-20m, 10m/day
        return None, end
    return total, end


def _thing(text: str) -> str:
    """Return what to remind about, without a leading `to`, `that`, `about`, `of`."""
    found = _JOINT.match(text)
    return text[found.end() if found else 0 :].strip()
