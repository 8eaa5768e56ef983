"""The one module that prints: records as `key: value`, tables, JSON, errors, and how a wait goes on.

What goes into a pipe or a file is plain and stays as it is; tables, colour and the bar are
for a person at a terminal.
"""

from __future__ import annotations

import io
import json
import os
import sys
import time
from collections.abc import Iterable
from typing import Any

from ..core.errors import HibossError, WrongUsage
from .client import Answered

KEY, HEAD, NEW, WRONG = "36", "2", "1", "1;31"  # cyan, faint, bold, bold red
PATIENCE = 1.0  # seconds until a person is told that something is still going on
BAR = 12
NARROW = 70  # columns; below, a time leaves its year out


class Mode:
    """How this command was asked to print."""

    json = False
    within_line = False  # a piece was printed that did not end its line


def on_terminal(stream: Any) -> bool:
    return stream is not None and bool(stream.isatty())


def _dumb() -> bool:
    """A terminal that does not know escape sequences, or says nothing of itself."""
    return os.environ.get("TERM", "dumb") == "dumb"


def painted(text: str, style: str, stream: Any) -> str:
    """The text in a colour, where colours are wanted (https://no-color.org)."""
    if os.environ.get("NO_COLOR") or not on_terminal(stream) or _dumb():
        return text
    return f"\x1b[{style}m{text}\x1b[0m"


def columns(stream: Any) -> int:
    """How wide the terminal is; COLUMNS says it before the terminal does."""
    try:
        wanted = int(os.environ.get("COLUMNS", ""))
    except ValueError:
        wanted = 0
    try:
        return wanted if wanted > 0 else os.get_terminal_size(stream.fileno()).columns or 80
    except OSError:
        return 80


def prepare() -> None:
    """A terminal that cannot show a character gets it escaped, instead of us an error."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def line(text: str = "") -> None:
    print(text)


def lines(texts: list[str]) -> None:
    """At once, also into a pipe: somebody may be following."""
    for text in texts:
        print(shown(text))
    sys.stdout.flush()


def piece(text: str) -> None:
    """A part of what somebody is saying, at once and without an end of line."""
    print(shown(text), end="", flush=True)
    Mode.within_line = not text.endswith("\n")


def fresh_line() -> None:
    """End the line that a piece has left open."""
    if Mode.within_line:
        print(flush=True)
        Mode.within_line = False


def note(text: str) -> None:
    """A word to the person, beside the output; a program that asked for JSON gets JSON alone."""
    if not Mode.json:
        print(text, file=sys.stderr)


def document(value: Any) -> None:
    print(json.dumps(value, ensure_ascii=False, indent=2))


def record(facts: dict[str, Any]) -> None:
    """One block of `kebab-key: value`; what is None is left out."""
    for key, value in facts.items():
        if value is not None:
            print(painted(f"{key.replace('_', '-')}:", KEY, sys.stdout), shown(word(value)))


def records(blocks: Iterable[dict[str, Any]], *, empty: str) -> None:
    """Blocks with a blank line between them, or `no-things: true`."""
    first = True
    for block in blocks:
        if not first:
            print()
        first = False
        record(block)
    if first:
        record({empty: True})


def answer(result: Any, facts: dict[str, Any] | None = None) -> None:
    """A result as JSON when that was asked for, else the facts a person wants of it."""
    if Mode.json:
        document(result)
    else:
        record(result if facts is None else facts)


def word(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return " ".join(str(value).splitlines())  # one record, one line


def table(headed: list[Any], rows: list[list[str]], *, bold: Iterable[int] = ()) -> None:
    """Rows for a person, one line each, as wide as the terminal; those numbered in `bold` stand out."""
    from .table_layout import lines as fitted

    encoding = sys.stdout.encoding or "utf-8"
    if "utf" not in encoding.lower():  # counted as it will be printed
        rows = [[cell.encode(encoding, "backslashreplace").decode(encoding) for cell in row] for row in rows]
    printed = fitted(headed, rows, columns(sys.stdout))
    if "utf" not in encoding.lower():
        printed = [text.replace("…", ".") for text in printed]
    head, *body = printed
    print(painted(head, HEAD, sys.stdout))
    for number, text in enumerate(body):
        print(painted(text, NEW, sys.stdout) if number in bold else text)


class Progress:
    """A bar on a terminal's standard error, once something takes longer than a second.

    Whoever waits calls it again and again; at the end it is wiped away.
    """

    def __init__(self, what: str) -> None:
        self.what = what
        self.begun = time.monotonic()
        self.drawn = False

    def __call__(self) -> None:
        lasted = time.monotonic() - self.begun
        if lasted < PATIENCE or Mode.json or not on_terminal(sys.stderr) or _dumb():
            return
        place = int(lasted * 10) % (2 * BAR - 6)
        before = min(place, 2 * BAR - 6 - place)
        bar = f"[{' ' * before}==={' ' * (BAR - 3 - before)}]"
        text = f"{bar} {self.what}, {int(lasted)} s"[: columns(sys.stderr) - 1]
        self.drawn = True  # before it is: an interrupt may come in between
        print(f"\r{text}\x1b[K", end="", file=sys.stderr, flush=True)

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        if self.drawn:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


# --- what went wrong -----------------------------------------------------------------


def fail(error: HibossError) -> int:
    """Say what went wrong, on standard error; the exit status it stands for."""
    answered = isinstance(error, Answered)
    code = error.stable_code if isinstance(error, Answered) else error.code
    if Mode.json:
        facts = {
            name: value for name, value in error.facts.items() if name != "code"
        }  # a daemon's say it again
        body = {"code": code, "message": error.message, "data": facts}
        print(json.dumps({"error": body}, ensure_ascii=False, default=str), file=sys.stderr)
    else:
        start = painted("error:", WRONG, sys.stderr)
        # On one line: what is quoted in it must not pass for a line of ours.
        print(f"{start} {shown(word(error.message), sys.stderr)}\ncode: {code}", file=sys.stderr)
        if code == WrongUsage.code:
            print(f"help: {error.help}", file=sys.stderr)
    return error.exit_status if answered else error.exit


def ended(why: str, status: int) -> int:
    """A program that asked for JSON hears of every end in the one shape; a person saw it happen."""
    if Mode.json:
        body = {"code": HibossError.code, "message": why, "data": {}}
        print(json.dumps({"error": body}, ensure_ascii=False), file=sys.stderr)
    return status


def misused(error: Any) -> int:
    """Wrong usage, as Typer found it."""
    from .usage_errors import asks_for_help, explained

    if asks_for_help(error) and not Mode.json:
        error.show()
        return WrongUsage.exit
    return fail(explained(error))


def settings(result: dict[str, Any]) -> None:
    """The settings, one block each."""
    if Mode.json:
        document(result)
        return
    if on_terminal(sys.stdout) and result["settings"]:
        _settings_table(result["settings"])
        return
    shown = ("setting", "value", "source", "variable")
    blocks = ({name: one[name] for name in shown} | _next_start(one) for one in result["settings"])
    records(blocks, empty="no-settings")


def _settings_table(found: list[dict[str, Any]]) -> None:
    from .table_layout import Column

    headed = [
        Column(title="setting", least=12),
        Column(title="value", least=8, most=40),
        Column(title="from", least=7, most=40, leaves=1),
        Column(title="next start", least=4, leaves=2),
    ]
    rows = [
        [
            one["setting"],
            word(one["value"]),
            one["source"],
            word(one["next_value"]) if one["next_start"] else "",
        ]
        for one in found
    ]
    table(headed, rows)


def _next_start(one: dict[str, Any]) -> dict[str, Any]:
    return {"next-start": one["next_value"]} if one["next_start"] else {}


def status(result: dict[str, Any]) -> None:
    """The daemon, then each lane and adapter that has something to say."""
    if Mode.json:
        document(result)
        return
    zone = result["timezone"]
    times = {name: moment(result[name], zone) for name in ("started_at", "next_wake_at", "oldest_due_at")}
    record({name: value for name, value in (result | times).items() if name not in ("lanes", "adapters")})
    for lane in result["lanes"]:
        print()
        record({"lane": lane["address"]} | _lane(lane, zone))
    for adapter in result["adapters"]:
        print()
        record({"adapter": adapter["address"]} | {k: adapter[k] for k in ("state", "agents", "last_error")})


def lanes(result: dict[str, Any]) -> None:
    if Mode.json:
        document(result)
        return
    blocks = ({"address": one["address"]} | _lane(one, result["timezone"]) for one in result["lanes"])
    records(blocks, empty="no-lanes")


def _lane(one: dict[str, Any], zone: str) -> dict[str, Any]:
    times = {
        name: moment(one[name], zone)
        for name in ("next_try_at", "failing_since", "last_error_at")
        if one[name]
    }
    return {k: v for k, v in (one | times).items() if k != "address" and (k != "failures" or v)}


# --- envelopes -----------------------------------------------------------------------


def envelopes(result: dict[str, Any], *, as_table: bool = False, sent: bool = False) -> None:
    """A page of envelopes, then where to go on; a list is a table for a person at a terminal."""
    if Mode.json:
        document(result)
        return
    found = result["envelopes"]
    if as_table and found and on_terminal(sys.stdout):
        _envelope_table(found, result["timezone"], sent)
    else:
        for index, envelope_ in enumerate(found):
            if index:
                print()
            envelope(envelope_, result["timezone"])
    if not found:
        record({"no-envelopes": True})
    if result.get("next") or "total" in result:
        print()
        record({"next-cursor": result.get("next"), "total": result.get("total")})


def _envelope_table(found: list[dict[str, Any]], timezone: str, sent: bool) -> None:
    """In an outbox who wrote goes without saying; in a box, whose it is."""
    from .table_layout import Column

    several = len({one["to"] for one in found}) > 1
    start = 5 if columns(sys.stdout) < NARROW else 0
    rows = [
        [
            one["id"],
            "" if sent else one["from"] + (" [boss]" if one["from_boss"] else ""),
            one["to"] if sent or several else "",
            str(moment(one["created_at"], timezone))[start:16].replace("T", " "),
            _state(one),
            one["subject"] or one["text"] or ", ".join(file["name"] for file in one["attachments"]),
        ]
        for one in found
    ]
    headed = [
        Column(title="id", least=2),
        Column(title="from", least=8, most=24, leaves=1),
        Column(title="to", least=8, most=24, leaves=1 if sent else 3),
        Column(title="created", least=11),
        Column(title="status", least=4, leaves=2),
        Column(title="subject or text", least=8),
    ]
    unread = [] if sent else [number for number, one in enumerate(found) if one["read_at"] is None]
    table(headed, rows, bold=unread)


def _state(one: dict[str, Any]) -> str:
    """What is worth a column: pending mail that is due says nothing new."""
    return str(one["waits"] or "") if one["status"] == "pending" else str(one["status"])


def envelope(one: dict[str, Any], timezone: str) -> None:
    from zoneinfo import ZoneInfo

    from ..core import rendering

    zone = ZoneInfo(timezone)
    record(dict(rendering.facts(one, zone)))
    print(shown("\n".join(rendering.content(one, zone))))


def agents(found: list[dict[str, Any]]) -> None:
    """The agents, with times already local: a table for a person at a terminal, else blocks."""
    if not found or not on_terminal(sys.stdout):
        records(found, empty="no-agents")
        return
    from .table_layout import Column

    start = 5 if columns(sys.stdout) < NARROW else 0
    rows = [
        [
            one["name"],
            f"{one['kind']}/{one['mode']}",
            one["level"] or "",
            one["role"] or "",
            one["module"] or "",
            (one["last_seen_at"] or "")[start:16].replace("T", " "),
        ]
        for one in found
    ]
    headed = [
        Column(title="name", least=8),
        Column(title="kind/mode", least=9, leaves=3),
        Column(title="level", least=5, leaves=4),
        Column(title="role", least=6, most=24, leaves=1),
        Column(title="module", least=6, most=24, leaves=2),
        Column(title="last seen", least=11, leaves=1),
    ]
    table(headed, rows)


def rendered(result: dict[str, Any]) -> str:
    """Envelopes as one text, as agents see them."""
    from zoneinfo import ZoneInfo

    from ..core import rendering

    return rendering.digest(result["envelopes"], ZoneInfo(result["timezone"]))


def shown(text: str, stream: Any = None) -> str:
    """The text; on a terminal without what could steer it (escape sequences, bells, bidi overrides)."""
    if not on_terminal(stream or sys.stdout):
        return text
    from .table_layout import tame

    return tame(text)


def moment(utc: str | None, timezone: str) -> str | None:
    """2026-01-28T20:08:45+08:00 from the API's UTC."""
    if utc is None:
        return None
    from datetime import datetime
    from zoneinfo import ZoneInfo

    return datetime.fromisoformat(utc).astimezone(ZoneInfo(timezone)).isoformat(timespec="seconds")
