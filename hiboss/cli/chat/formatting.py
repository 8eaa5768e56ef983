"""How a conversation looks: messages, notices, and what is going on just now. Nothing here prints.

Every text in it is somebody's: none may steer the terminal, or pass for a header of ours.
"""

from __future__ import annotations

import re
from typing import Any

from ...core import clock, rendering
from ..table_layout import LONGEST, Column, cut, flat, tame, width
from .conversation import Envelope, Line, Live

LIVE_LINES = 4  # of what an agent says while it works
# A line that reads like `nex  14:03`, whatever stands before or behind it.
_BLANK = r"[^\S\n]"
_TIME = rf"(?:\d{{4}}-\d\d-\d\d{_BLANK}+)?\d{{1,2}}:\d\d"
_HEADER = re.compile(
    rf"^(?=(?:{_BLANK}|>)*[^\s>]\S{{0,79}}(?:{_BLANK}{{2,}}{_TIME}(?!\S)|{_BLANK}{_TIME}{_BLANK}*$))",
    re.MULTILINE,
)


def header(one: Envelope, line: Line) -> str:
    """nex  14:03: who said it, and when, in the boss's zone."""
    zone = clock.zone(line.timezone)
    said, today = rendering.moment(one["created_at"], zone), clock.local(clock.now(), zone)
    when = said[11:16] if said[:10] == today[:10] else said[:16].replace("T", " ")
    subject = f"  {rendering.line(one['subject'])}" if one["subject"] else ""
    return tame(f"{who(one['from'], line)}  {when}{subject}")


def who(address: str, line: Line) -> str:
    if address == line.own:
        return "you"
    return address.removeprefix("agent:")


def content(one: Envelope) -> str:
    """The text and the files, as they are shown below the header."""
    text = _HEADER.sub("> ", rendering.body(one["text"].rstrip()))
    lines = [text] if text else []
    if one["attachments"]:
        lines += ["attachments:", *files(one)]
    return tame("\n".join(lines) or "(nothing)")


def files(one: Envelope) -> list[str]:
    """- [file] name (path)"""
    number = len(one["attachments"])
    return rendering.content(one, clock.zone("UTC"))[-number:] if number else []


def elsewhere(one: Envelope, line: Line) -> str:
    """One line about mail of another conversation."""
    sender, text = one["from"], flat(one["subject"] or one["text"])
    name = flat(who(sender, line))
    if sender == "agent:system":
        whole = told_in_full(one)
        return f"notice: {one['text'].rstrip()}" if whole else f"notice: {text}… (hiboss read {one['id']})"
    plain = one["group"] is None and sender.startswith(("agent:", "user:"))
    how = f"hiboss chat {name}" if plain and one["channel"] is None else f"hiboss read {one['id']}"
    return f"{name} wrote to you: {cut(text, 200)} ({how})"


def told_in_full(one: Envelope) -> bool:
    """Whether the line about it says all there is to read."""
    return bool(one["from"] == "agent:system" and len(one["text"]) <= LONGEST and not one["attachments"])


def state(line: Line) -> str:
    """What keeps the other one from answering now, and how to go on; nothing when nothing does."""
    name, resume = line.other.name, f"hiboss agent resume --as boss --name {line.other.name}"
    why = f": {flat(line.why)}" if line.why else ""
    if line.live is not None:
        return ""
    if line.state == "paused":
        return f"{name} is paused{why} ({resume})"
    if line.state == "waiting":
        return f"{name} cannot answer now{why}; it is tried again (at once: {resume})"
    return f"{name} is at work on something else" if line.is_elsewhere else ""


def fetches(line: Line) -> str:
    return f"{line.other.name} is given no turns; it answers when it fetches its mail"


def working(live: Live, name: str, cells: int) -> list[str]:
    """`nex is working, 3 s`, and the end of what it has said so far."""
    paused = f" (paused: hiboss run resume --id {live.id})" if live.paused else ""
    tool = f"; {flat(live.tool)}" if live.tool else ""
    first = f"{name} is working, {live.seconds} s{paused}{tool}"
    return [cut(first, cells), *(f"  {text}" for text in tail(live.said, cells - 2))]


def tail(text: str, cells: int, number: int = LIVE_LINES) -> list[str]:
    """The last lines of a text on a terminal of this width."""
    return wrapped("\n".join(text.rstrip().splitlines()[-number:]), cells)[-number:]


def wrapped(text: str, cells: int, *, whole_words: bool = False) -> list[str]:
    """The text in lines that fit, broken between words where that is possible.

    `whole_words`: one that is too long for a line stays whole, so that an address can be copied.
    """
    lines: list[str] = []
    for whole in tame(text.expandtabs(4)).splitlines():
        lines += _broken(whole, max(cells, 2), whole_words)
    return lines


def _broken(text: str, cells: int, whole_words: bool) -> list[str]:
    lines = [""]
    for word in re.findall(r"\s*\S+", text):
        if width(lines[-1] + word) <= cells:
            lines[-1] += word
        else:
            lines += [word.lstrip()] if whole_words else _pieces(word.lstrip(), cells)
    return [line for line in lines if line] or [""]


def _pieces(word: str, cells: int) -> list[str]:
    """A word in pieces that fit."""
    pieces, used = [""], 0
    for letter in word:
        size = width(letter)
        if used + size > cells:
            pieces, used = [*pieces, ""], 0
        pieces[-1] += letter
        used += size
    return pieces


def status(found: dict[str, Any], timezone: str) -> dict[str, Any]:
    """An agent's standing, as a record."""
    zone = clock.zone(timezone)
    times = {
        name: found[name] and rendering.moment(found[name], zone)
        for name in ("until", "oldest_unanswered_at")
    }
    return {
        "agent": found["address"],
        "state": found["state"],
        "why": found["why"],
        "until": times["until"],
        "provider": found["provider"] or "none",
        "due": found["due"],
        "oldest-unanswered-at": times["oldest_unanswered_at"],
        "running": ", ".join(one["id"] for one in found["running"]) or None,
        "last-run": None if found["running"] else _ended(found["last_run"]),
        "tokens-today": found["tokens_today"] or None,
        "cost-today": found["cost_today"] or None,
    }


def _ended(run: dict[str, Any] | None) -> str | None:
    if run is None:
        return None
    return f"{run['id']} {run['status']}" + (f": {run['error']}" if run["error"] else "")


def team(found: list[dict[str, Any]]) -> tuple[list[Column], list[list[str]]]:
    """All agents, as a table."""
    headed = [
        Column(title="agent", least=8),
        Column(title="state", least=7),
        Column(title="due", least=3, leaves=2),
        Column(title="provider", least=7, leaves=3),
        Column(title="why", least=8, leaves=1),
    ]
    rows = [
        [one["name"], one["state"], str(one["due"] or ""), one["provider"] or "", one["why"] or ""]
        for one in found
    ]
    return headed, rows
