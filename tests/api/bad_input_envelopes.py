"""Bad input of sending, listing and marking envelopes (`bad_input.py`)."""

from __future__ import annotations

from typing import Any

from tests.api.bad_input_row import (
    BAD_ADDRESSES,
    BAD_IDS,
    BAD_LENGTHS,
    BAD_TIMES,
    LONG,
    MARKS,
    NOBODYS_NAMES,
    NUL,
    SEND,
    TAG,
    TIMELESS,
    TO,
    WORDS,
    Row,
    row,
    shown,
)


def _attach(path: str, code: str, says: str, *, cli: bool = False, by: str = "nex") -> Row:
    words = f"envelope send --to agent:ada --attachment {path}" if cli else ""
    return row("envelope.send", {**TO, "attachments": [path]}, code, f"{path}|{says}", words, by=by)


def _look(params: dict[str, Any], code: str, says: str = "", cli: str = "", **more: Any) -> Row:
    return row("envelope.list", params, code, says, f"envelope list {cli}" if cli else "", **more)


# Every parameter that is an address, a time or an id, with everything that is none.
KINDS_OF_VALUES = [
    *[
        each
        for name, param, base, by in (
            ("envelope.send", "to", SEND, "nex"),
            ("envelope.send", "from", SEND, "boss"),
            ("envelope.send", "from", SEND, "nex"),
            *[("envelope.list", name, {}, "nex") for name in ("from", "to", "address")],
            *[(f"envelope.{verb}", "address", {"ids": ["%pending"]}, "nex") for verb in MARKS],
            ("turn.preview", "address", {}, "nex"),
            ("envelope.unread", "address", {}, "nex"),
        )
        for each in [
            *[
                row(name, {**base, param: value}, "bad_address", "is not a valid address|agent:nex", by=by)
                for value in BAD_ADDRESSES
            ],
            *[
                row(
                    name,
                    {**base, param: value},
                    (
                        {"to": "unknown_recipient", "from": "unknown_sender"}
                        if name == "envelope.send"
                        else {}
                    ).get(param, "unknown_address"),
                    value,
                    by=by,
                )
                for value in NOBODYS_NAMES
            ],
        ]
    ],
    *[
        each
        for name, param, base in (
            ("envelope.send", "deliver_at", SEND),
            *[("envelope.list", param, {}) for param in ("created_after", "created_before")],
        )
        for each in [
            *[
                row(name, {**base, param: value}, "bad_time", f"{shown(value)} is not a valid time|+2h")
                for value in BAD_TIMES
            ],
            *[
                row(name, {**base, param: value}, "bad_time", f"{value}|years 1 to 9999")
                for value in TIMELESS
            ],
        ]
    ],
    *[
        each
        for value in BAD_IDS
        for each in [
            *[
                row(name, {**base, param: value}, "bad_id", f"{shown(value)} is not a valid |e81")
                for name, param, base in (
                    ("envelope.send", "reply_to", SEND),
                    ("envelope.list", "thread", {}),
                    ("envelope.get", "id", {}),
                    ("envelope.ack", "up_to", {"all": True}),
                )
            ],
            *[
                row(
                    f"envelope.{verb}",
                    {"ids": ["%pending", value]},
                    "bad_id",
                    f"{shown(value)} is not a valid |e81",
                )
                for verb in (*MARKS, "cancel")
            ],
        ]
    ],
]


RECIPIENTS = [
    *[
        row("envelope.send", params, code, says, f"envelope send {cli}" if cli else "")
        for params, code, says, cli in (
            (
                {"to": ["agent:ada", "x:y"], "text": "x"},
                "bad_address",
                "x:y is no",
                "--to agent:ada --to x:y --text x",
            ),
            ({"to": "%token", "text": "x"}, "bad_address", "is not a valid address", ""),
            (
                {"to": "agent:adda", "text": "x"},
                "unknown_recipient",
                "adda|agent:ada?",
                "--to agent:adda --text x",
            ),
            (
                {"to": "adda", "text": "x"},
                "unknown_recipient",
                "adda|did you mean ada?",
                "--to adda --text x",
            ),
            ({"to": ["agent:ada", "agent:gone"], "text": "x"}, "unknown_recipient", "agent:gone", ""),
            ({"to": ["ada", "gone"], "text": "x"}, "unknown_recipient", "agent:gone", "--to gone --text x"),
            ({"to": "user:nobody", "text": "x"}, "unknown_recipient", "user:nobody", ""),
            ({"to": "group:none", "text": "x"}, "unknown_recipient", "group:none", ""),
            (
                {"to": "channel:telegram:1", "text": "x"},
                "not_bound",
                "telegram",
                "--to channel:telegram:1 --text x",
            ),
            ({"text": "x"}, "no_recipient", "--to|--reply-to", "--text x"),
            ({"to": [], "text": "x"}, "no_recipient", "--to", ""),
        )
    ],
]


CONTENT = [
    *[
        row("envelope.send", params, code, says, f"envelope send {cli}" if cli else "", by=by or "nex")
        for params, code, says, cli, by in (
            (TO, "empty_message", "--text|--attachment", "--to agent:ada", ""),
            ({**TO, "subject": "only this"}, "empty_message", "--text", "", ""),
            ({**TO, "text": ""}, "empty_message", "--text", "", ""),
            ({**TO, "text": " \n\t\u2003"}, "empty_message", "--text", "", ""),
            ({**SEND, "deliver_at": "soon"}, "bad_time", "soon|+2h", f"{WORDS} --deliver-at soon", ""),
            ({**SEND, "deliver_at": "+1h1h"}, "bad_time", "twice", "", ""),
            ({**SEND, "deliver_at": "+2H"}, "bad_time", "Y M D h m s", "", ""),
            ({**SEND, "reply_to": "x1"}, "bad_id", "x1|e81", f"{WORDS} --reply-to x1", ""),
            ({"text": "x", "reply_to": "%others"}, "not_found", "%others", "--text x --reply-to %others", ""),
            *[
                ({**SEND, "reply_to": value}, "not_found", "there is no", "", "")
                for value in ("%others_message", "%deferred", "e999999", 2**63 - 1)
            ],
            *[
                ({**SEND, name: NUL}, "bad_text", f"{name}|NUL", "", "")
                for name in ("text", "subject", "trace_id", "key")
            ],
            ({**SEND, "key": "used"}, "key_reused", "used|%sent", f"{WORDS} --key used", ""),
            ({**SEND, "from": "agent:ada"}, "boss_only", "from", f"{WORDS} --from agent:ada", ""),
            ({**SEND, "from": "agent:nex", "from_boss": True}, "boss_only", "from_boss", "", ""),
            ({**SEND, "from": "user:boss"}, "boss_only", "from", "", ""),
            ({**SEND, "from_boss": True}, "boss_only", "from_boss", "", ""),
            ({**SEND, "from_name": "x"}, "boss_only", "from_name", "", ""),
            ({**SEND, "from": "ada"}, "boss_only", "from", f"{WORDS} --from ada", ""),
            ({**SEND, "from": "adda"}, "unknown_sender", "did you mean ada?", f"{WORDS} --from adda", "boss"),
            ({**SEND, "from": "user:boss", "from_name": NUL}, "bad_text", "from_name", "", "boss"),
            (
                {**SEND, "from": "agent:adda"},
                "unknown_sender",
                "agent:ada?",
                f"{WORDS} --from agent:adda",
                "boss",
            ),
            ({**SEND, "from": "agent:gone"}, "unknown_sender", "agent:gone", "", "boss"),
            ({**SEND, "from": "user:somebody"}, "unknown_sender", "user:somebody", "", "boss"),
            ({**SEND, "from": "group:core-team"}, "unknown_sender", "group:core-team", "", "boss"),
        )
    ],
]


ATTACHMENTS = [
    _attach("%missing", "attachment_missing", "there is no file", cli=True),
    _attach("%below-a-file", "attachment_unreadable", "Not a directory"),
    _attach("%directory", "attachment_unreadable", "not a regular file", cli=True),
    _attach("%slash", "attachment_unreadable", "it is a directory"),
    _attach("%pipe", "attachment_unreadable", "not a regular file", cli=True),
    _attach("%socket", "attachment_unreadable", "cannot be attached"),
    _attach("%loop", "attachment_unreadable", "symbolic links"),
    _attach("/dev/zero", "attachment_unreadable", "not a regular file", by="boss"),
    _attach("/dev/zero", "attachment_outside", "attachments.roots", cli=True),
    # opens, and cannot be read
    _attach("/proc/self/mem", "attachment_unreadable", "cannot be attached", by="boss"),
    *[
        _attach(path, "attachment_unreadable", "must be absolute")
        for path in ("file", "./file", "~/file", "../file")
    ],
    row("envelope.send", {**TO, "attachments": [""]}, "attachment_unreadable", "must be absolute"),
    *[
        _attach(path, "attachment_forbidden", "only files under", cli=path == "%database")
        for path in ("%database", "%profile", "%link", "%hard-link")
    ],
    _attach("%private", "attachment_private", "attachments.forbidden_paths", cli=True),
    _attach("%to-private", "attachment_private", "attachments.forbidden_paths"),
    row("envelope.send", {**TO, "attachments": ["/" + NUL]}, "bad_text", "attachment path|NUL"),
    row("envelope.send", {**TO, "attachments": ["/" + LONG]}, "attachment_unreadable", "long", by="boss"),
    row("envelope.send", {**TO, "attachments": ["/a" * 2000]}, "attachment_missing", "no file"),
    row("envelope.send", {**TO, "attachments": ["%missing", "%file"]}, "attachment_missing", "%missing"),
]


LIST = [
    *[
        _look({"page_size": size}, "invalid_params", f"page_size|{size}|1 to 100")
        for size in (0, -1, 101, 2**31, 2**63, 2**64 - 1)
    ],
    # JSON's number, no longer a whole one
    _look({"page_size": 2**64}, "invalid_params", "page_size"),
    _look({"page_size": -5}, "invalid_params", "page_size|-5|1 to 100", "-n -5"),
    _look({"page_size": 1000}, "invalid_params", "page_size|1000|1 to 100", "-n 1000"),
    *[
        each
        for name in ("from", "to")
        for each in [
            _look({name: "x:y"}, "bad_address", "x:y is not a valid address", f"--{name} x:y"),
            _look({name: "adda"}, "unknown_address", "adda|did you mean ada?", f"--{name} adda"),
            _look(
                {name: "agent:nobody-here"},
                "unknown_address",
                "agent:nobody-here",
                f"--{name} agent:nobody-here",
            ),
        ]
    ],
    *[
        _look({name: "x"}, "bad_time", "x is not a valid time", f"--{name.replace('_', '-')} x")
        for name in ("created_after", "created_before")
    ],
    _look({"thread": "x1"}, "bad_id", "x1|t81", "--thread x1"),
    _look({"thread": "%others"}, "not_found", "%others", "--thread %others"),
    _look({"thread": "%deferred"}, "not_found", "%deferred"),
    *[
        _look({"after": cursor}, "bad_cursor", f"{cursor} is not a valid cursor")
        for cursor in (
            "x",
            "-",
            "a1",
            "00000000-",
            "00000000-a",
            "00000000-x1",
            "00000000-o1",
            "00000000-a1.1",
            "0-a²",
        )
    ],
    _look({"after": f"0-a{2**63}"}, "bad_cursor", "is not a valid cursor"),
    _look({"after": "x"}, "bad_cursor", "x is not a valid cursor|next", "--after x"),
    _look({"after": "00000000-a1"}, "gap", "an earlier store", "--after 00000000-a1"),
    _look({"address": "user:boss"}, "boss_only", "address|agent:nex", "--address user:boss"),
    row("envelope.unread", {"address": "user:boss"}, "boss_only", "address|agent:nex"),
    _look({"address": "agent:nobody-here"}, "unknown_address", "nobody-here", by="boss"),
    _look({"box": "all"}, "boss_only", "box all|agent:nex", "--box all"),
    _look({"box": "all", "address": "agent:ada"}, "invalid_params", "box all|address", by="boss"),
]


MARKED = [
    *[
        each
        for verb in (*MARKS, "cancel")
        for each in [
            row(
                f"envelope.{verb}",
                {"ids": ["%sent" if verb == "cancel" else "%pending", "x"]},
                "bad_id",
                "x|e81",
                f"envelope {verb} --id {('%sent' if verb == 'cancel' else '%pending')} --id x",
            ),
            row(
                f"envelope.{verb}",
                {"ids": ["%sent" if verb == "cancel" else "%pending", "%others"]},
                "not_found",
                "%others",
                f"envelope {verb} --id {('%sent' if verb == 'cancel' else '%pending')} --id %others",
            ),
            row(f"envelope.{verb}", {"ids": ["e999999"]}, "not_found", "e999999"),
            *(
                [
                    row(
                        f"envelope.{verb}",
                        {"ids": ["%pending"]},
                        "other_box",
                        "%pending|agent:nex|--address agent:nex",
                        f"envelope {verb} --id %pending",
                        by="boss",
                    ),
                    row(f"envelope.{verb}", {"ids": ["%deferred"]}, "not_found", "%deferred"),
                    row(
                        f"envelope.{verb}",
                        {"ids": ["%pending"], "address": "user:boss"},
                        "boss_only",
                        "address",
                    ),
                    row(
                        f"envelope.{verb}",
                        {"ids": ["%own"], "address": "agent:ada"},
                        "not_found",
                        "%own",
                        by="boss",
                    ),
                    row(
                        f"envelope.{verb}",
                        {"ids": ["%own"], "address": "agent:nobody-here"},
                        "unknown_address",
                        "agent:nobody-here",
                        by="boss",
                    ),
                ]
                if verb != "cancel"
                else []
            ),
            *(
                [
                    row(f"envelope.{verb}", {"ids": ["%held"]}, "too_late", "%held|being delivered"),
                ]
                if verb in ("archive", "trash", "restore", "cancel")
                else []
            ),
        ]
    ],
    row("envelope.ack", {"ids": ["%cancelled"]}, "too_late", "cancelled", "envelope ack --id %cancelled"),
    row("envelope.cancel", {"ids": ["%own"]}, "too_late", "%own|done", "envelope cancel --id %own"),
    row("envelope.ack", {}, "invalid_params", "ids|--all", "envelope ack"),
    row("envelope.ack", {"ids": ["%pending"], "all": True}, "invalid_params", "ids|--all"),
    *[row("envelope.ack", given, "invalid_params", "--all") for given in ({"all": False}, {"up_to": "%own"})],
    row("envelope.ack", {"ids": ["%pending"], "up_to": "%own"}, "invalid_params", "--up-to"),
    row("envelope.ack", {"all": True, "claim": "k1"}, "invalid_params", "--claim"),
    row("envelope.ack", {"ids": ["%claimed"], "claim": "k999999"}, "too_late", "another session"),
    *[
        row("envelope.ack", {"all": True, "up_to": value}, "not_found", value)
        for value in ("%others", "%deferred", "%sent")
    ],
    row("envelope.get", {"id": "m1"}, "bad_id", "m1|e81", "envelope get --id m1"),
    row("envelope.get", {"id": "%others"}, "not_found", "%others", "envelope get --id %others"),
    *[
        row("envelope.get", {"id": value}, "not_found", "there is no envelope")
        for value in ("%deferred", 2**63 - 1)
    ],
]


TURNS = [
    row("turn.preview", {}, "invalid_params", "--address", "envelope list --as-turn", by="boss"),
    *[
        row(
            "turn.preview",
            {"address": value},
            code,
            says,
            f"envelope list --as-turn --address {value}",
            by="boss",
        )
        for value, code, says in (
            ("x:y", "bad_address", "x:y is no"),
            ("adda", "unknown_address", "adda|ada?"),
        )
    ],
    row("turn.preview", {"address": "user:boss"}, "invalid_params", "user:boss is not an agent", by="boss"),
    row("turn.preview", {"address": "agent:nobody-here"}, "unknown_address", "nobody-here", by="boss"),
    row("turn.preview", {"address": "agent:gone"}, "unknown_agent", "gone", by="boss"),
    row("turn.preview", {"address": "channel:telegram:404"}, "unknown_address", "telegram:404", by="boss"),
    row(
        "turn.preview",
        {"address": "agent:ada"},
        "boss_only",
        "agent:nex",
        "envelope list --as-turn --address agent:ada",
    ),
]


TRACES = [
    *[
        row("envelope.trace", {"id": value}, "bad_id", f"{shown(value)} is not a valid |e81")
        for value in BAD_IDS
    ],
    row("envelope.trace", {"id": "x1"}, "bad_id", "x1|e81|m81", "trace x1"),
    row("envelope.trace", {"id": "%others"}, "not_found", "%others", "trace %others"),
    *[
        row("envelope.trace", {"id": value}, "not_found", "there is no")
        for value in ("%others_message", "%deferred", "m999999", 2**63 - 1)
    ],
]

DEADLINES = [
    # here it means the same as 10m
    *[
        row(
            "envelope.send",
            {**SEND, "ack_by": value},
            "bad_duration",
            f"{shown(value)} is not a valid duration|90s, 10m",
        )
        for value in BAD_LENGTHS
        if value != "+10m"
    ],
    row("envelope.send", {**SEND, "ack_by": "0s"}, "bad_duration", "0s|zero"),
    row("envelope.send", {**SEND, "ack_by": "9601h"}, "bad_duration", "9601h|at most 9600h"),
    row(
        "envelope.send",
        {**SEND, "ack_by": "soon"},
        "bad_duration",
        "soon|90s, 10m",
        f"envelope send {WORDS} --ack-by soon",
    ),
    row(
        "envelope.send",
        {"reply_to": "%pending", "text": "x", "ack_by": "soon"},
        "bad_duration",
        "soon|90s, 10m",
        "reply %pending x --ack-by soon",
    ),
]

TAGS = [
    *[
        each
        for param in ("scopes", "refs")
        for each in [
            *[
                row("envelope.send", {**SEND, param: [TAG, wrong]}, "invalid_params", param)
                for wrong in (
                    {},
                    {"type": "module"},
                    {"value": "auth"},
                    {**TAG, "more": 1},
                    {**TAG, "type": ""},
                    {**TAG, "value": ""},
                    {**TAG, "value": 5},
                    {**TAG, "value": "v" * 201},
                )
            ],
            row("envelope.send", {**SEND, param: [TAG] * 21}, "invalid_params", param),
            *[
                row("envelope.send", {**SEND, param: [{**TAG, key: NUL}]}, "bad_text", f"{key}|NUL")
                for key in ("type", "value")
            ],
            row(
                "envelope.send",
                {**SEND, param: ["auth"]},
                "invalid_params",
                param[:-1],
                f"envelope send {WORDS} --{param[:-1]} auth",
            ),
        ]
    ],
    row(
        "envelope.send",
        {**SEND, "refs": [{"type": "mention", "value": "ada"}]},
        "invalid_params",
        "@name",
        f"envelope send {WORDS} --ref mention:ada",
    ),
]

ROWS = [
    *KINDS_OF_VALUES,
    *RECIPIENTS,
    *CONTENT,
    *ATTACHMENTS,
    *LIST,
    *MARKED,
    *TURNS,
    *TRACES,
    *DEADLINES,
    *TAGS,
]
