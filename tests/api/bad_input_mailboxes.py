"""Bad input of what a recipient does with a box (snoozing, sessions, claims), and of sends with tags or to a group."""

from __future__ import annotations

from tests.api.bad_input_row import (
    BAD_ADDRESSES,
    BAD_IDS,
    BAD_LENGTHS,
    BAD_TIMES,
    NOBODYS_NAMES,
    NUL,
    RIGHT,
    SEND,
    TIMELESS,
    Row,
    row,
    shown,
)


def _to_group(group: str, code: str, says: str) -> Row:
    words = f"envelope send --to {group} --text x"
    return row("envelope.send", {"to": group, "text": "x"}, code, says, words)


# What both snoozing and its end refuse.
SNOOZED = [
    *[
        each
        for verb in ("snooze", "unsnooze")
        for each in [
            *[
                row(
                    f"envelope.{verb}",
                    {**RIGHT[f"envelope.{verb}"], "ids": ["%pending", value]},
                    "bad_id",
                    f"{shown(value)} is not|e81",
                )
                for value in BAD_IDS
            ],
            *[
                row(
                    f"envelope.{verb}",
                    {**RIGHT[f"envelope.{verb}"], "address": value},
                    "bad_address",
                    "is not a valid address|agent:nex",
                )
                for value in BAD_ADDRESSES
            ],
            *[
                row(
                    f"envelope.{verb}",
                    {**RIGHT[f"envelope.{verb}"], "address": value},
                    "unknown_address",
                    value,
                )
                for value in NOBODYS_NAMES
            ],
            row(
                f"envelope.{verb}",
                {**RIGHT[f"envelope.{verb}"], "ids": ["%pending", "x"]},
                "bad_id",
                "x|e81",
                (f"envelope {verb} %s" + (" --until +1h" if verb == "snooze" else "")) % "%pending x",
            ),
            row(
                f"envelope.{verb}",
                {**RIGHT[f"envelope.{verb}"], "ids": ["%pending", "%others"]},
                "not_found",
                "%others",
                (f"envelope {verb} %s" + (" --until +1h" if verb == "snooze" else "")) % "%pending %others",
            ),
            *[
                row(f"envelope.{verb}", {**RIGHT[f"envelope.{verb}"], "ids": [value]}, "not_found", value)
                for value in ("%deferred", "%sent", "e999999")
            ],
            row(
                f"envelope.{verb}",
                {**RIGHT[f"envelope.{verb}"], "address": "user:boss"},
                "boss_only",
                "address",
            ),
            row(
                f"envelope.{verb}",
                RIGHT[f"envelope.{verb}"],
                "other_box",
                "%pending|agent:nex|--address agent:nex",
                (f"envelope {verb} %s" + (" --until +1h" if verb == "snooze" else "")) % "%pending",
                by="boss",
            ),
            row(
                f"envelope.{verb}",
                {**RIGHT[f"envelope.{verb}"], "address": "agent:nobody-here"},
                "unknown_address",
                "agent:nobody-here",
                by="boss",
            ),
            row(f"envelope.{verb}", {**RIGHT[f"envelope.{verb}"], "ids": []}, "invalid_params", "ids"),
        ]
    ],
]


SNOOZING = [
    *[
        row(
            "envelope.snooze",
            {**RIGHT["envelope.snooze"], "until": value},
            "bad_time",
            f"{shown(value)} is not a valid time|+2h",
        )
        for value in BAD_TIMES
    ],
    *[
        row(
            "envelope.snooze",
            {**RIGHT["envelope.snooze"], "until": value},
            "bad_time",
            f"{value}|years 1 to 9999",
        )
        for value in TIMELESS
    ],
    row(
        "envelope.snooze",
        {**RIGHT["envelope.snooze"], "until": "soon"},
        "bad_time",
        "soon|+2h",
        "envelope snooze %pending --until soon",
    ),
    *[
        row(
            "envelope.snooze",
            {**RIGHT["envelope.snooze"], "until": value},
            "invalid_params",
            f"--until|{value}|in the past|+1h",
        )
        for value in ("-1h", "2001-01-01", "1971-01-01T00:00Z")
    ],
    row(
        "envelope.snooze",
        {**RIGHT["envelope.snooze"], "until": "-1h"},
        "invalid_params",
        "in the past",
        "envelope snooze %pending --until -1h",
    ),
    *[
        row(
            "envelope.snooze",
            {**RIGHT["envelope.snooze"], "ids": ["%pending", value]},
            "too_late",
            f"{value}|snoozed|{state}",
            f"envelope snooze %pending --until +1h {value}",
        )
        for value, state in (
            ("%held", "being delivered"),
            ("%claimed", "claimed"),
            ("%cancelled", "cancelled"),
        )
    ],
]


READING = [
    row("envelope.read", {}, "invalid_params", "ids|--all", "envelope read"),
    row("envelope.read", {"ids": ["%pending"], "all": True}, "invalid_params", "ids|--all"),
    row("envelope.read", {"up_to": "%pending"}, "invalid_params", "--all"),
    row(
        "envelope.read",
        {"ids": ["%pending"], "up_to": "%own"},
        "invalid_params",
        "--up-to",
        "envelope read %pending --up-to %own",
    ),
    *[
        row("envelope.read", {"all": True, "up_to": value}, "bad_id", f"{shown(value)} is not a valid |e81")
        for value in BAD_IDS
    ],
    *[
        row(
            "envelope.read",
            {"all": True, "up_to": value},
            "not_found",
            value,
            f"envelope read --all --up-to {value}",
        )
        for value in ("%others", "%deferred", "%sent")
    ],
    row("envelope.read", {"all": True, "address": "user:boss"}, "boss_only", "address"),
    row("envelope.read", {"all": True, "address": "x:y"}, "bad_address", "x:y"),
]


SESSIONS = [
    *[
        each
        for name, base in (
            ("envelope.read", {"ids": ["%pending"]}),
            ("envelope.read", {"all": True}),
            ("envelope.ack", {"ids": ["%pending"]}),
            ("envelope.ack", {"all": True}),
            ("envelope.send", SEND),
        )
        for each in [
            row(name, {**base, "session": NUL}, "bad_text", "session|NUL"),
            row(name, {**base, "session": "ü" * 129}, "too_large", "session|258 bytes|256"),
        ]
    ],
    row(
        "envelope.read",
        {"all": True, "session": "s" * 257},
        "too_large",
        "session|257 bytes",
        f"envelope read --all --session {'s' * 257}",
    ),
]


TO_GROUPS = [
    _to_group("group:open-house", "not_member", "open-house|hiboss group join open-house"),
    _to_group("group:lonely", "empty_group", "group:lonely|hiboss group add"),
    _to_group("group:shut", "archived", "group:shut|--undo"),
    _to_group("group:theirs", "unknown_recipient", "group:theirs"),
    _to_group("group:left-house", "unknown_recipient", "group:left-house"),
    _to_group("group:all", "forbidden", "group:all|privileged|standard"),
    *[
        row("envelope.send", {"to": ["group:house", *others], "text": "x"}, "invalid_params", "one group")
        for others in (["agent:ada"], ["group:visited"])
    ],
    row(
        "envelope.send",
        {**SEND, "to": "%lane", "ack_by": "30m"},
        "invalid_params",
        "--ack-by",
        "envelope send --to %lane --text x --ack-by 30m",
    ),
]


IN_CONVERSATIONS = [
    *[
        row("envelope.send", {"conversation": value, "text": "x"}, "bad_id", f"{value} is not|c81")
        for value in ("m1", "group:a b")
    ],
    # which could be groups
    *[
        row("envelope.send", {"conversation": value, "text": "x"}, "bad_id", f"{shown(value)} is not|c81")
        for value in BAD_IDS
        if value not in ("x", "e", "E1")
    ],
    row(
        "envelope.send",
        {"conversation": "x", "text": "x"},
        "unknown_recipient",
        "group:x",
        "envelope send --text x --conversation x",
    ),
    row(
        "envelope.send",
        {"conversation": "c999999", "text": "x"},
        "not_found",
        "conversation c999999",
        "envelope send --text x --conversation c999999",
    ),
    row(
        "envelope.send",
        {**SEND, "conversation": "%conversation"},
        "invalid_params",
        "either conversation, or to",
        "envelope send --text x --conversation %conversation --to ada",
    ),
    row(
        "envelope.send",
        {"conversation": "%conversation", "text": "x", "to_sender": True},
        "invalid_params",
        "either conversation, or to or to_sender",
    ),
]


UPLOADS = [
    *[
        each
        for name in ("envelope.send", "cron.create", "cron.set")
        for each in [
            *[
                row(
                    name,
                    {**RIGHT[name], "uploads": ["%upload", value]},
                    "bad_id",
                    f"{shown(value)} is not|u81",
                )
                for value in BAD_IDS
                if isinstance(value, str)
            ],
            *[
                row(name, {**RIGHT[name], "uploads": ["%upload", gone]}, "not_found", f"upload|{gone}")
                for gone in ("%foreign_upload", "u999999")
            ],
            row(name, {**RIGHT[name], "uploads": ["%upload"] * 21}, "too_large", "uploads|20"),
        ]
    ],
    *[
        row("upload.delete", {"ids": ["%upload", value]}, "bad_id", f"{shown(value)} is not|u81")
        for value in BAD_IDS
    ],
    *[
        row("upload.delete", {"ids": ["%upload", gone]}, "not_found", f"upload|{gone}")
        for gone in ("%foreign_upload", "u999999")
    ],
]


CLAIMS = [
    *[
        row(
            "envelope.claim",
            {"lease": value},
            "bad_duration",
            f"{shown(value)} is not a valid duration|90s, 10m",
        )
        for value in BAD_LENGTHS
    ],
    row("envelope.claim", {"lease": "soon"}, "bad_duration", "soon|90s, 10m", "envelope claim --lease soon"),
    *[
        row(
            "envelope.claim",
            {"lease": value},
            "bad_duration",
            f"{value}|zero",
            f"envelope claim --lease {value}",
        )
        for value in ("0s", "0h0m", "0.000s")
    ],
    *[
        row("envelope.claim", {"lease": value}, "bad_duration", f"{value}|at most 24h")
        for value in ("25h", "999999h", "86401s")
    ],
    *[
        row("envelope.claim", {"limit": number}, "invalid_params", f"limit|{number}|1 to 100")
        for number in (0, -1, 101, 2**31, 2**63)
    ],
    *[
        row(
            "envelope.claim",
            {"limit": number},
            "invalid_params",
            f"-n|{number}|1 to 100",
            f"envelope claim -n {number}",
        )
        for number in (0, -5, 1000)
    ],
    *[
        row("envelope.claim", {"address": value}, "bad_address", "is not a valid address|agent:nex")
        for value in BAD_ADDRESSES
    ],
    *[row("envelope.claim", {"address": value}, "unknown_address", value) for value in NOBODYS_NAMES],
    row(
        "envelope.claim",
        {"address": "user:boss"},
        "boss_only",
        "address|agent:nex",
        "envelope claim --address user:boss",
    ),
    row(
        "envelope.claim",
        {"address": "agent:nobody-here"},
        "unknown_address",
        "nobody-here",
        "envelope claim --address agent:nobody-here",
        by="boss",
    ),
    # Nothing was taken in hand on the way to the refusal.
    row(
        "envelope.claim",
        {"limit": 5, "lease": "soon", "address": "agent:nex"},
        "bad_duration",
        "soon",
        by="boss",
    ),
]


RELEASES = [
    *[
        row("envelope.release", {"ids": ["%claimed", value]}, "bad_id", f"{shown(value)} is not a valid |e81")
        for value in BAD_IDS
    ],
    *[
        row(
            "envelope.release",
            {"ids": ["%claimed"], "address": value},
            "bad_address",
            "is not a valid address|agent:nex",
        )
        for value in BAD_ADDRESSES
    ],
    *[
        row("envelope.release", {"ids": ["%claimed"], "address": value}, "unknown_address", value)
        for value in NOBODYS_NAMES
    ],
    row(
        "envelope.release",
        {"ids": ["%claimed", "x"]},
        "bad_id",
        "x|e81",
        "envelope release --id %claimed --id x",
    ),
    row(
        "envelope.release",
        {"ids": ["%claimed"], "claim": "e1"},
        "bad_id",
        "e1 is not a valid claim|k81",
        "envelope release --id %claimed --claim e1",
    ),
    row(
        "envelope.release",
        {"ids": ["%claimed"], "claim": "k999999"},
        "too_late",
        "%claimed|another session",
        "envelope release --id %claimed --claim k999999",
    ),
    *[
        row("envelope.release", {"ids": ["%claimed", value]}, "not_found", value)
        for value in ("%others", "%deferred", "e999999", "%sent")
    ],
    row("envelope.release", {"ids": ["%others"]}, "not_found", "%others", "envelope release --id %others"),
    # All of it or nothing: the claimed one stays claimed.
    *[
        row("envelope.release", {"ids": ["%claimed", value]}, "too_late", f"{value}|{state}")
        for value, state in (("%pending", "not claimed"), ("%own", "done"), ("%cancelled", "cancelled"))
    ],
    row("envelope.release", {"ids": ["%held"]}, "too_late", "%held"),
    row(
        "envelope.release",
        {"ids": ["%pending"]},
        "too_late",
        "%pending|released",
        "envelope release --id %pending",
    ),
    row("envelope.release", {"ids": ["%claimed"], "address": "user:boss"}, "boss_only", "address"),
    row(
        "envelope.release", {"ids": ["%claimed"], "address": "agent:ada"}, "not_found", "%claimed", by="boss"
    ),
    row(
        "envelope.release",
        {"ids": ["%claimed"], "address": "agent:nobody-here"},
        "unknown_address",
        "agent:nobody-here",
        by="boss",
    ),
]


RETRIES = [
    *[
        row("envelope.retry", {"ids": ["%failed", value]}, "bad_id", f"{shown(value)} is not a valid |e81")
        for value in BAD_IDS
    ],
    row("envelope.retry", {"ids": ["%failed", "x"]}, "bad_id", "x|e81", "envelope retry --id %failed --id x"),
    # others sent these
    *[
        row("envelope.retry", {"ids": ["%failed", value]}, "not_found", value)
        for value in ("%others", "%pending", "%deferred", "e999999")
    ],
    row("envelope.retry", {"ids": ["%others"]}, "not_found", "%others", "envelope retry --id %others"),
    *[
        row("envelope.retry", {"ids": ["%failed", value]}, "too_late", f"{value}|retried|{state}")
        for value, state in (("%sent", "pending"), ("%own", "done"), ("%lost", "agent:left|no longer exists"))
    ],
    row("envelope.retry", {"ids": ["%sent"]}, "too_late", "%sent|pending", "envelope retry --id %sent"),
]

ROWS = [
    *SNOOZED,
    *SNOOZING,
    *READING,
    *SESSIONS,
    *TO_GROUPS,
    *IN_CONVERSATIONS,
    *UPLOADS,
    *CLAIMS,
    *RELEASES,
    *RETRIES,
]
