"""The one module that prints: records as `key: value`, JSON, errors, and a person's times."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterable
from typing import Any

from ..errors import HibossError
from ..rpc.client import Answered


class Mode:
    """How this command was asked to print."""

    json = False


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
        print(text)
    sys.stdout.flush()


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
            print(f"{key.replace('_', '-')}: {word(value)}")


def records(blocks: Iterable[dict[str, Any]], *, empty: str) -> None:
    """Blocks with a blank line between them, or `no-things: true`."""
    first = True
    for block in blocks:
        if not first:
            print()
        first = False
        record(block)
    if first:
        print(f"{empty}: true")


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


def fail(error: HibossError) -> int:
    """Say what went wrong, on standard error; the exit status it stands for."""
    answered = isinstance(error, Answered)
    code = error.stable_code if isinstance(error, Answered) else error.code
    if Mode.json:
        body = {"code": code, "message": error.message, "data": error.facts}
        print(json.dumps({"error": body}, ensure_ascii=False, default=str), file=sys.stderr)
    else:
        print(f"error: {error.message}\ncode: {code}", file=sys.stderr)
    return error.exit_status if answered else error.exit


def misused(error: Any, *, json_: bool) -> int:
    """Wrong usage, as Typer found it."""
    if json_:
        body = {"code": "usage", "message": error.format_message(), "data": {}}
        print(json.dumps({"error": body}, ensure_ascii=False), file=sys.stderr)
    else:
        error.show()
    return int(error.exit_code)


# --- envelopes -----------------------------------------------------------------------


def envelopes(result: dict[str, Any]) -> None:
    """A page of envelopes, then where to go on."""
    if Mode.json:
        document(result)
        return
    found = result["envelopes"]
    for index, envelope_ in enumerate(found):
        if index:
            print()
        envelope(envelope_, result["timezone"])
    if not found:
        print("no-envelopes: true")
    if result.get("next"):
        print(f"\nnext-cursor: {result['next']}")
    if "total" in result:
        print(f"{'' if result.get('next') else chr(10)}total: {result['total']}")


def envelope(one: dict[str, Any], timezone: str) -> None:
    record(
        {
            "envelope-id": one["id"],
            "from": one["from"] + (" [boss]" if one["from_boss"] else ""),
            "from-name": one["from_name"],
            "to": one["to"],
            "subject": one["subject"],
            "status": one["status"],
            "box": None if one["box"] == "inbox" else one["box"],
            "priority": None if one["priority"] == "normal" else one["priority"],
            "type": None if one["type"] == "text" else one["type"],
            "thread": one["thread"],
            "in-reply-to": one["reply_to"],
            "created-at": moment(one["created_at"], timezone),
            "deliver-at": moment(one["deliver_at"], timezone),
            "read-at": moment(one["read_at"], timezone),
            "acked-at": moment(one["acked_at"], timezone),
            "redelivered": True if one["redelivered"] else None,
            "last-delivery-error": one["last_error"]["text"] if one["last_error"] else None,
            "metadata": json.dumps(one["metadata"], ensure_ascii=False) if one["metadata"] else None,
        }
    )
    print("text:")
    print(shown(one["text"]) or "(none)")
    if one["attachments"]:
        print("attachments:")
        for attachment in one["attachments"]:
            print(f"- [{_medium(attachment['mime'])}] {attachment['name']} ({attachment['path']})")


def shown(text: str) -> str:
    """The text; on a terminal without what could steer it (escape sequences, bells)."""
    if not sys.stdout.isatty():
        return text
    return "".join(c if c.isprintable() or c in "\n\t" else f"\\x{ord(c):02x}" for c in text)


def _medium(mime: str) -> str:
    kind = mime.partition("/")[0]
    return kind if kind in ("image", "audio", "video") else "file"


def moment(utc: str | None, timezone: str) -> str | None:
    """2026-01-28T20:08:45+08:00 from the API's UTC."""
    if utc is None:
        return None
    from datetime import datetime
    from zoneinfo import ZoneInfo

    return datetime.fromisoformat(utc).astimezone(ZoneInfo(timezone)).isoformat(timespec="seconds")
