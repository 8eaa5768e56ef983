"""Bad input of the operations about schedules and waiting (`bad_input.py`)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.api.bad_input_row import (
    BAD_ADDRESSES,
    BAD_IDS,
    BAD_LENGTHS,
    BAD_TIMES,
    LONG,
    NOBODYS_NAMES,
    NUL,
    RIGHT,
    TIMELESS,
    TO,
    Row,
    row,
    shown,
)

CREATE, SET = "cron.create", "cron.set"
HOURLY = {**TO, "text": "x", "every": "1h"}
MADE = "cron create --to agent:ada --text x"  # all but when
BAD_CRONS = (
    ("", "0 fields instead of 5"),
    (" ", "0 fields instead of 5"),
    ("x", "instead of 5"),
    ("* * * *", "4 fields"),
    ("* * * * * *", "6 fields"),
    ("60 * * * *", "minute"),
    ("-1 * * * *", "minute"),
    ("* 24 * * *", "hour"),
    ("* * 0 * *", "day"),
    ("* * 32 * *", "day"),
    ("* * * 13 *", "month"),
    ("* * * * 8", "day-of-week"),
    ("*/0 * * * *", "minute"),
    ("5-1 * * * *", "minute"),
    ("0 0 30 2 *", "day-of-month"),
    ("0 0 31 4,6,9,11 *", "is not a valid cron expression"),
    ("0 0 * * MOO", "day-of-week"),
    ("@dayly", "there is no @dayly|@daily?"),
    ("@reboot", "there is no @reboot"),
    (NUL, "instead of 5"),
    (LONG, "longer than 1000 bytes"),
    ("* " * 1_000, "longer than 1000 bytes"),
    ("* " * 100, "100 fields"),
)
BAD_ZONES = ("Europe", "Mars/Base", "../../etc/passwd", "/etc/passwd", NUL, "UTC+1", LONG)


def schedules() -> Iterator[Row]:
    for part in (_times, _explained, _when, _content, _people, _foreign):
        yield from part()


def waiting() -> Iterator[Row]:
    for part in (_lengths, _whose, _cursors, _polls):
        yield from part()


def _both(params: dict[str, Any], code: str, says: str = "", **more: Any) -> Iterator[Row]:
    """Of a new schedule, and of one that there is already."""
    yield row(CREATE, {**HOURLY, **params}, code, says, **more)
    yield row(SET, {"id": "%schedule", **params}, code, says, **more)


def _times() -> Iterator[Row]:
    """Everything that is no cron expression, length, time or zone."""
    for value, says in BAD_CRONS:
        yield row(CREATE, {**TO, "text": "x", "cron": value}, "bad_cron", f"{value.strip()[:40]}|{says}")
        yield row(SET, {"id": "%schedule", "cron": value}, "bad_cron", says)
        yield row("cron.explain", {"cron": value}, "bad_cron", says)
    for value in BAD_LENGTHS:
        yield from _both({"every": value}, "bad_duration", f"{shown(value)} is not a valid duration|90s, 10m")
    for value in ("0s", "0h0m", "0.999s", "8785h", "999999h"):
        yield from _both({"every": value}, "bad_duration", value)
    for value in BAD_TIMES:
        yield from _both({"at": value}, "bad_time", f"{shown(value)} is not a valid time|+2h")
    for value in TIMELESS:
        yield from _both({"at": value}, "bad_time", f"{value}|years 1 to 9999")
    yield from _both({"at": "+101Y"}, "too_far", "+101Y|100 years")
    for value in BAD_ZONES:
        yield from _both({"timezone": value}, "bad_timezone", f"{shown(value)}|Europe/Berlin")
        yield row("cron.explain", {"cron": "@daily", "timezone": value}, "bad_timezone", shown(value))
    for option, value, code, says in (
        ("cron", "60 * * * *", "bad_cron", "60 * * * *|minute"),
        ("cron", "0 0 30 2 *", "bad_cron", "0 0 30 2 *|day-of-month"),
        ("cron", "@dayly", "bad_cron", "@dayly|@daily?"),
        ("every", "0s", "bad_duration", "0s|zero"),
        ("every", "0.5s", "bad_duration", "0.5s|shortest is 1s"),
        ("every", "soon", "bad_duration", "soon|90s, 10m"),
        ("at", "soon", "bad_time", "soon|+2h"),
    ):
        given = {**TO, "text": "x", option: value}
        yield row(CREATE, given, code, says, f"{MADE} --{option} '{value}'")
        words = f"cron set --id %schedule --{option} '{value}'"
        yield row(SET, {"id": "%schedule", option: value}, code, says, words)


def _explained() -> Iterator[Row]:
    name, command = "cron.explain", "cron explain --cron"
    yield row(name, {"cron": "61 * * * *"}, "bad_cron", "61 * * * *|minute", f"{command} '61 * * * *'")
    zone = {"cron": "@daily", "timezone": "Europe/Berln"}
    words = f"{command} @daily --timezone Europe/Berln"
    yield row(name, zone, "bad_timezone", "did you mean Europe/Berlin?", words)
    for number in (0, -1, 101, 2**31, 2**63):
        yield row(name, {"cron": "@daily", "count": number}, "invalid_params", f"count|{number}|1 to 100")
    words = f"{command} @daily --count 101"
    yield row(name, {"cron": "@daily", "count": 101}, "invalid_params", "--count|101", words)


def _when() -> Iterator[Row]:
    """Said in no way, or in more than one."""
    content = {**TO, "text": "x"}
    yield row(CREATE, content, "invalid_params", "--cron|--every|--at", MADE)
    for given in (
        {"cron": "@daily", "every": "1h"},
        {"cron": "@daily", "at": "+1h"},
        {"every": "1h", "at": "+1h"},
        {"cron": "@daily", "every": "1h", "at": "+1h"},
    ):
        words = " ".join(f"--{option} {value}" for option, value in given.items())
        yield row(CREATE, {**content, **given}, "invalid_params", "one way", f"{MADE} {words}")
        named = f"cron set --id %schedule {words}"
        yield row(SET, {"id": "%schedule", **given}, "invalid_params", "one way", named)


def _content() -> Iterator[Row]:
    for value in BAD_ADDRESSES:
        yield from _both({"to": value}, "bad_address", "is not a valid address|agent:nex")
        yield row(CREATE, {**HOURLY, "from": value}, "bad_address", "is not a valid address", by="boss")
    for value in NOBODYS_NAMES:
        yield from _both({"to": value}, "unknown_recipient", value)
        yield row(CREATE, {**HOURLY, "from": value}, "unknown_sender", value, by="boss")
    for given, code, says in (
        ({"to": []}, "no_recipient", "--to"),
        ({"to": "agent:adda"}, "unknown_recipient", "adda|agent:ada?"),
        ({"to": ["agent:ada", "agent:gone"]}, "unknown_recipient", "agent:gone"),
        ({"to": "group:none"}, "unknown_recipient", "group:none"),
        ({"to": "channel:telegram:1"}, "not_bound", "telegram"),
        ({"to": ["agent:ada"] * 101}, "too_large", "101|100"),
        ({"text": ""}, "empty_message", "--text"),
        ({"text": " \n\t"}, "empty_message", "--text"),
        ({"text": NUL}, "bad_text", "text|NUL"),
        ({"text": "x" * (1024 * 1024 + 1)}, "too_large", "text|1048577 bytes"),
        ({"subject": NUL}, "bad_text", "subject|NUL"),
        ({"subject": "s" * 1025}, "too_large", "subject|1025 bytes"),
        ({"name": NUL}, "bad_text", "name|NUL"),
        ({"name": "n" * 257}, "too_large", "name|257 bytes"),
        ({"attachments": ["%missing"]}, "attachment_missing", "%missing"),
        ({"attachments": ["%directory"]}, "attachment_unreadable", "%directory"),
        ({"attachments": ["file"]}, "attachment_unreadable", "absolute"),
        ({"attachments": ["%database"]}, "attachment_forbidden", "%database"),
        ({"attachments": ["%private"]}, "attachment_private", "%private"),
        ({"attachments": ["%over"]}, "too_large", ""),
        ({"attachments": ["%file"] * 21}, "too_large", "21|20"),
    ):
        yield from _both(given, code, says)
    every = "cron create --every 1h"
    for words, given, code, says in (
        ("--text x", {"text": "x"}, "no_recipient", "--to"),
        ("--to agent:ada", TO, "empty_message", "--text"),
        ("--to agent:adda --text x", {"to": "agent:adda", "text": "x"}, "unknown_recipient", "agent:ada?"),
        ("--to x:y --text x", {"to": "x:y", "text": "x"}, "bad_address", "x:y is not a valid address"),
        ("--to adda --text x", {"to": "adda", "text": "x"}, "unknown_recipient", "did you mean ada?"),
    ):
        yield row(CREATE, {**given, "every": "1h"}, code, says, f"{every} {words}")
    words = "cron set --id %schedule --to agent:adda"
    yield row(SET, {"id": "%schedule", "to": "agent:adda"}, "unknown_recipient", "agent:ada?", words)
    # Of a schedule that sends in the name of somebody who has gone nothing can be set right but its end.
    yield row(SET, {"id": "%orphan", "text": "y"}, "unknown_sender", "agent:left", by="boss")


def _people() -> Iterator[Row]:
    words = f"{MADE} --every 1h"
    yield row(CREATE, {**HOURLY, "from": "agent:ada"}, "boss_only", "from", f"{words} --from agent:ada")
    yield row(CREATE, {**HOURLY, "from_boss": True}, "boss_only", "from_boss")
    yield row(CREATE, {**HOURLY, "from_name": "x"}, "boss_only", "from_name")
    wrong = {**HOURLY, "from": "agent:adda"}
    yield row(CREATE, wrong, "unknown_sender", "agent:ada?", f"{words} --from agent:adda", by="boss")


def _foreign() -> Iterator[Row]:
    """Whatever is asked about a schedule that is none, is gone, or is another's."""
    for value in (*BAD_IDS, "e1"):
        yield row("cron.list", {"after": value}, "bad_id", f"{shown(value)} is not a valid |s81")
    for verb in ("show", "set", "enable", "disable", "delete", "run"):
        name, more = f"cron.{verb}", RIGHT[f"cron.{verb}"]
        words = f"cron {verb} --id" if verb != "set" else "cron set --every 2h --id"
        for value in BAD_IDS:
            yield row(name, {**more, "id": value}, "bad_id", f"{shown(value)} is not a valid |s81")
        for value in ("e1", "m1"):
            yield row(name, {**more, "id": value}, "bad_id", f"{value}|s81", f"{words} {value}")
        for value in ("%foreign", "%deleted", "s999999"):
            yield row(name, {**more, "id": value}, "not_found", f"schedule|{value}", f"{words} {value}")


# --- waiting ---------------------------------------------------------------------------


def _lengths() -> Iterator[Row]:
    for name, param, command in (
        ("envelope.wait", "timeout", "envelope wait --timeout"),
        ("envelope.watch", "timeout", "watch --timeout"),
        ("envelope.poll", "wait", "poll --wait"),
    ):
        for value in BAD_LENGTHS:
            yield row(
                name, {param: value}, "bad_duration", f"{shown(value)} is not a valid duration|90s, 10m"
            )
        yield row(name, {param: "soon"}, "bad_duration", "soon|90s, 10m", f"{command} soon")
        for value in ("0s", "0h0m"):
            yield row(name, {param: value}, "bad_duration", f"{value}|zero", f"{command} {value}")
        for value in ("2h", "3601s", "999999h"):
            yield row(name, {param: value}, "bad_duration", f"{value}|at most 1h", f"{command} {value}")


def _whose() -> Iterator[Row]:
    for verb, command in (("wait", "envelope wait"), ("watch", "watch")):
        name = f"envelope.{verb}"
        for value in BAD_ADDRESSES:
            yield row(name, {"address": value}, "bad_address", "is not a valid address|agent:nex")
        for value in NOBODYS_NAMES:
            yield row(name, {"address": value}, "unknown_address", value)
        yield row(name, {"address": "x:y"}, "bad_address", "x:y is no", f"{command} --address x:y", by="boss")
        words = f"{command} --address adda"
        yield row(name, {"address": "adda"}, "unknown_address", "did you mean ada?", words, by="boss")
        words = f"{command} --address user:boss"
        yield row(name, {"address": "user:boss"}, "boss_only", "address|agent:nex", words)
        nobody = "agent:nobody-here"
        words = f"{command} --address {nobody}"
        yield row(name, {"address": nobody}, "unknown_address", "nobody-here", words, by="boss")
    armed = {"address": "agent:watched"}
    words = "watch --address agent:watched"
    yield row("envelope.watch", armed, "already_watched", "agent:watched", words, by="boss")
    yield row("envelope.watch", {}, "already_watched", "agent:watched", "watch", by="watched")


def _cursors() -> Iterator[Row]:
    for verb, command in (("wait", "envelope wait"), ("watch", "watch")):
        name = f"envelope.{verb}"
        for cursor in ("x", "-", "a1", "00000000-", "00000000-a", "00000000-x1", "0-a²", f"0-a{2**63}"):
            yield row(name, {"after": cursor}, "bad_cursor", f"{cursor} is not a valid cursor")
        yield row(name, {"after": "x"}, "bad_cursor", "x is not a valid cursor", f"{command} --after x")
        # One of another list: right in itself, and nothing to wait after.
        yield row(name, {"after": "%outbox_cursor"}, "bad_cursor", "is not a valid cursor")
        yield row(name, {"after": "00000000-a1"}, "gap", "an earlier store", f"{command} --after 00000000-a1")


def _polls() -> Iterator[Row]:
    name = "envelope.poll"
    yield row(name, {"session": NUL}, "bad_text", "session|NUL")
    long = "s" * 257
    yield row(name, {"session": long}, "too_large", "session|257 bytes|256", f"poll --session {long}")
