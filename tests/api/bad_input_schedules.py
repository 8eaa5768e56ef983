"""Bad input of the operations about schedules and waiting (`bad_input.py`)."""

from __future__ import annotations

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


def _both(params: dict[str, Any], code: str, says: str = "", **more: Any) -> list[Row]:
    """Of a new schedule, and of one that there is already."""
    return [
        row(CREATE, {**HOURLY, **params}, code, says, **more),
        row(SET, {"id": "%schedule", **params}, code, says, **more),
    ]


# Everything that is no cron expression, length, time or zone.
TIMES = [
    *[
        each
        for value, says in BAD_CRONS
        for each in [
            row(CREATE, {**TO, "text": "x", "cron": value}, "bad_cron", f"{value.strip()[:40]}|{says}"),
            row(SET, {"id": "%schedule", "cron": value}, "bad_cron", says),
            row("cron.explain", {"cron": value}, "bad_cron", says),
        ]
    ],
    *[
        each
        for value in BAD_LENGTHS
        for each in _both(
            {"every": value}, "bad_duration", f"{shown(value)} is not a valid duration|90s, 10m"
        )
    ],
    *[
        each
        for value in ("0s", "0h0m", "0.999s", "8785h", "999999h")
        for each in _both({"every": value}, "bad_duration", value)
    ],
    *_both({"every": "1s"}, "schedule_quota", "every 1 s|schedules.least_seconds|is asked"),
    *[
        each
        for value in BAD_TIMES
        for each in _both({"at": value}, "bad_time", f"{shown(value)} is not a valid time|+2h")
    ],
    *[each for value in TIMELESS for each in _both({"at": value}, "bad_time", f"{value}|years 1 to 9999")],
    *_both({"at": "+101Y"}, "too_far", "+101Y|100 years"),
    *[
        each
        for value in BAD_ZONES
        for each in [
            *_both({"timezone": value}, "bad_timezone", f"{shown(value)}|Europe/Berlin"),
            row("cron.explain", {"cron": "@daily", "timezone": value}, "bad_timezone", shown(value)),
        ]
    ],
    *[
        each
        for option, value, code, says in (
            ("cron", "60 * * * *", "bad_cron", "60 * * * *|minute"),
            ("cron", "0 0 30 2 *", "bad_cron", "0 0 30 2 *|day-of-month"),
            ("cron", "@dayly", "bad_cron", "@dayly|@daily?"),
            ("every", "0s", "bad_duration", "0s|zero"),
            ("every", "0.5s", "bad_duration", "0.5s|shortest is 1s"),
            ("every", "soon", "bad_duration", "soon|90s, 10m"),
            ("at", "soon", "bad_time", "soon|+2h"),
        )
        for each in [
            row(CREATE, {**TO, "text": "x", option: value}, code, says, f"{MADE} --{option} '{value}'"),
            row(
                SET,
                {"id": "%schedule", option: value},
                code,
                says,
                f"cron set --id %schedule --{option} '{value}'",
            ),
        ]
    ],
]


EXPLAINED = [
    row(
        "cron.explain",
        {"cron": "61 * * * *"},
        "bad_cron",
        "61 * * * *|minute",
        "cron explain --cron '61 * * * *'",
    ),
    row(
        "cron.explain",
        {"cron": "@daily", "timezone": "Europe/Berln"},
        "bad_timezone",
        "did you mean Europe/Berlin?",
        "cron explain --cron @daily --timezone Europe/Berln",
    ),
    *[
        row("cron.explain", {"cron": "@daily", "count": number}, "invalid_params", f"count|{number}|1 to 100")
        for number in (0, -1, 101, 2**31, 2**63)
    ],
    row(
        "cron.explain",
        {"cron": "@daily", "count": 101},
        "invalid_params",
        "--count|101",
        "cron explain --cron @daily --count 101",
    ),
]


# Said in no way, or in more than one.
WHEN = [
    row(CREATE, {**TO, "text": "x"}, "invalid_params", "--cron|--every|--at", MADE),
    *[
        each
        for given in (
            {"cron": "@daily", "every": "1h"},
            {"cron": "@daily", "at": "+1h"},
            {"every": "1h", "at": "+1h"},
            {"cron": "@daily", "every": "1h", "at": "+1h"},
        )
        for each in [
            row(
                CREATE,
                {**TO, "text": "x", **given},
                "invalid_params",
                "one way",
                f"{MADE} {' '.join((f'--{option} {value}' for option, value in given.items()))}",
            ),
            row(
                SET,
                {"id": "%schedule", **given},
                "invalid_params",
                "one way",
                f"cron set --id %schedule {' '.join((f'--{option} {value}' for option, value in given.items()))}",
            ),
        ]
    ],
]


CONTENT = [
    *[
        each
        for value in BAD_ADDRESSES
        for each in [
            *_both({"to": value}, "bad_address", "is not a valid address|agent:nex"),
            row(CREATE, {**HOURLY, "from": value}, "bad_address", "is not a valid address", by="boss"),
        ]
    ],
    *[
        each
        for value in NOBODYS_NAMES
        for each in [
            *_both({"to": value}, "unknown_recipient", value),
            row(CREATE, {**HOURLY, "from": value}, "unknown_sender", value, by="boss"),
        ]
    ],
    *[
        each
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
            ({"attachments": ["/dev/zero"]}, "attachment_outside", "attachments.roots"),
            ({"attachments": ["%over"]}, "too_large", ""),
            ({"attachments": ["%file"] * 21}, "too_large", "21|20"),
        )
        for each in _both(given, code, says)
    ],
    *[
        row(CREATE, {**given, "every": "1h"}, code, says, f"cron create --every 1h {words}")
        for words, given, code, says in (
            ("--text x", {"text": "x"}, "no_recipient", "--to"),
            ("--to agent:ada", TO, "empty_message", "--text"),
            (
                "--to agent:adda --text x",
                {"to": "agent:adda", "text": "x"},
                "unknown_recipient",
                "agent:ada?",
            ),
            ("--to x:y --text x", {"to": "x:y", "text": "x"}, "bad_address", "x:y is not a valid address"),
            ("--to adda --text x", {"to": "adda", "text": "x"}, "unknown_recipient", "did you mean ada?"),
        )
    ],
    row(
        SET,
        {"id": "%schedule", "to": "agent:adda"},
        "unknown_recipient",
        "agent:ada?",
        "cron set --id %schedule --to agent:adda",
    ),
    # Of a schedule that sends in the name of somebody who has gone nothing can be set right but its end.
    row(SET, {"id": "%orphan", "text": "y"}, "unknown_sender", "agent:left", by="boss"),
]


PEOPLE = [
    row(CREATE, {**HOURLY, "from": "agent:ada"}, "boss_only", "from", f"{MADE} --every 1h --from agent:ada"),
    row(CREATE, {**HOURLY, "from_boss": True}, "boss_only", "from_boss"),
    row(CREATE, {**HOURLY, "from_name": "x"}, "boss_only", "from_name"),
    row(
        CREATE,
        {**HOURLY, "from": "agent:adda"},
        "unknown_sender",
        "agent:ada?",
        f"{MADE} --every 1h --from agent:adda",
        by="boss",
    ),
]


# Whatever is asked about a schedule that is none, is gone, or is another's.
FOREIGN = [
    *[
        row("cron.list", {"after": value}, "bad_id", f"{shown(value)} is not a valid |s81")
        for value in (*BAD_IDS, "e1")
    ],
    *[
        each
        for verb in ("show", "set", "enable", "disable", "delete", "run")
        for each in [
            *[
                row(
                    f"cron.{verb}",
                    {**RIGHT[f"cron.{verb}"], "id": value},
                    "bad_id",
                    f"{shown(value)} is not a valid |s81",
                )
                for value in BAD_IDS
            ],
            *[
                row(
                    f"cron.{verb}",
                    {**RIGHT[f"cron.{verb}"], "id": value},
                    "bad_id",
                    f"{value}|s81",
                    f"{(f'cron {verb} --id' if verb != 'set' else 'cron set --every 2h --id')} {value}",
                )
                for value in ("e1", "m1")
            ],
            *[
                row(
                    f"cron.{verb}",
                    {**RIGHT[f"cron.{verb}"], "id": value},
                    "not_found",
                    f"schedule|{value}",
                    f"{(f'cron {verb} --id' if verb != 'set' else 'cron set --every 2h --id')} {value}",
                )
                for value in ("%foreign", "%deleted", "s999999")
            ],
        ]
    ],
]


LENGTHS = [
    *[
        each
        for name, param, command in (
            ("envelope.wait", "timeout", "envelope wait --timeout"),
            ("envelope.watch", "timeout", "watch --timeout"),
            ("envelope.poll", "wait", "poll --wait"),
        )
        for each in [
            *[
                row(name, {param: value}, "bad_duration", f"{shown(value)} is not a valid duration|90s, 10m")
                for value in BAD_LENGTHS
            ],
            row(name, {param: "soon"}, "bad_duration", "soon|90s, 10m", f"{command} soon"),
            *[
                row(name, {param: value}, "bad_duration", f"{value}|zero", f"{command} {value}")
                for value in ("0s", "0h0m")
            ],
            *[
                row(name, {param: value}, "bad_duration", f"{value}|at most 1h", f"{command} {value}")
                for value in ("2h", "3601s", "999999h")
            ],
        ]
    ],
]


WHOSE = [
    *[
        each
        for verb, command in (("wait", "envelope wait"), ("watch", "watch"))
        for each in [
            *[
                row(f"envelope.{verb}", {"address": value}, "bad_address", "is not a valid address|agent:nex")
                for value in BAD_ADDRESSES
            ],
            *[
                row(f"envelope.{verb}", {"address": value}, "unknown_address", value)
                for value in NOBODYS_NAMES
            ],
            row(
                f"envelope.{verb}",
                {"address": "x:y"},
                "bad_address",
                "x:y is no",
                f"{command} --address x:y",
                by="boss",
            ),
            row(
                f"envelope.{verb}",
                {"address": "adda"},
                "unknown_address",
                "did you mean ada?",
                f"{command} --address adda",
                by="boss",
            ),
            row(
                f"envelope.{verb}",
                {"address": "user:boss"},
                "boss_only",
                "address|agent:nex",
                f"{command} --address user:boss",
            ),
            row(
                f"envelope.{verb}",
                {"address": "agent:nobody-here"},
                "unknown_address",
                "nobody-here",
                f"{command} --address agent:nobody-here",
                by="boss",
            ),
        ]
    ],
    row(
        "envelope.watch",
        {"address": "agent:watched"},
        "already_watched",
        "agent:watched",
        "watch --address agent:watched",
        by="boss",
    ),
    row("envelope.watch", {}, "already_watched", "agent:watched", "watch", by="watched"),
]


CURSORS = [
    *[
        each
        for verb, command in (("wait", "envelope wait"), ("watch", "watch"))
        for each in [
            *[
                row(f"envelope.{verb}", {"after": cursor}, "bad_cursor", f"{cursor} is not a valid cursor")
                for cursor in (
                    "x",
                    "-",
                    "a1",
                    "00000000-",
                    "00000000-a",
                    "00000000-x1",
                    "0-a²",
                    f"0-a{2**63}",
                )
            ],
            row(
                f"envelope.{verb}",
                {"after": "x"},
                "bad_cursor",
                "x is not a valid cursor",
                f"{command} --after x",
            ),
            # One of another list: right in itself, and nothing to wait after.
            row(f"envelope.{verb}", {"after": "%outbox_cursor"}, "bad_cursor", "is not a valid cursor"),
            row(
                f"envelope.{verb}",
                {"after": "00000000-a1"},
                "gap",
                "an earlier store",
                f"{command} --after 00000000-a1",
            ),
        ]
    ],
]


POLLS = [
    row("envelope.poll", {"session": NUL}, "bad_text", "session|NUL"),
    row(
        "envelope.poll",
        {"session": "s" * 257},
        "too_large",
        "session|257 bytes|256",
        f"poll --session {'s' * 257}",
    ),
]

ROWS = [*TIMES, *EXPLAINED, *WHEN, *CONTENT, *PEOPLE, *FOREIGN, *LENGTHS, *WHOSE, *CURSORS, *POLLS]
