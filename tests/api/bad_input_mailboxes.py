"""Bad input of what a recipient does with a box (snoozing, sessions), and of sends with tags or to a group."""

from __future__ import annotations

from collections.abc import Iterator

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
    WORDS,
    Row,
    row,
    shown,
)

TAG = {"type": "module", "value": "auth"}


def mailboxes() -> Iterator[Row]:
    for part in (
        _snoozed,
        _snoozing,
        _reading,
        _sessions,
        _to_groups,
        _in_conversations,
        _uploads,
        _deadlines,
        _tags,
    ):
        yield from part()


def _snoozed() -> Iterator[Row]:
    """What both snoozing and its end refuse."""
    for verb in ("snooze", "unsnooze"):
        name, right = f"envelope.{verb}", RIGHT[f"envelope.{verb}"]
        command = f"envelope {verb} %s" + (" --until +1h" if verb == "snooze" else "")
        for value in BAD_IDS:
            yield row(name, {**right, "ids": ["%pending", value]}, "bad_id", f"{shown(value)} is not|e81")
        for value in BAD_ADDRESSES:
            yield row(name, {**right, "address": value}, "bad_address", "is not a valid address|agent:nex")
        for value in NOBODYS_NAMES:
            yield row(name, {**right, "address": value}, "unknown_address", value)
        yield row(name, {**right, "ids": ["%pending", "x"]}, "bad_id", "x|e81", command % "%pending x")
        foreign = {**right, "ids": ["%pending", "%others"]}
        yield row(name, foreign, "not_found", "%others", command % "%pending %others")
        for value in ("%deferred", "%sent", "e999999"):
            yield row(name, {**right, "ids": [value]}, "not_found", value)
        yield row(name, {**right, "address": "user:boss"}, "boss_only", "address")
        whose = "%pending|agent:nex|--address agent:nex"
        yield row(name, right, "other_box", whose, command % "%pending", by="boss")
        nobody = {**right, "address": "agent:nobody-here"}
        yield row(name, nobody, "unknown_address", "agent:nobody-here", by="boss")
        yield row(name, {**right, "ids": []}, "invalid_params", "ids")


def _snoozing() -> Iterator[Row]:
    name, command = "envelope.snooze", "envelope snooze %pending --until"
    right = RIGHT[name]
    for value in BAD_TIMES:
        yield row(name, {**right, "until": value}, "bad_time", f"{shown(value)} is not a valid time|+2h")
    for value in TIMELESS:
        yield row(name, {**right, "until": value}, "bad_time", f"{value}|years 1 to 9999")
    yield row(name, {**right, "until": "soon"}, "bad_time", "soon|+2h", f"{command} soon")
    for value in ("-1h", "2001-01-01", "1971-01-01T00:00Z"):
        yield row(name, {**right, "until": value}, "invalid_params", f"--until|{value}|in the past|+1h")
    yield row(name, {**right, "until": "-1h"}, "invalid_params", "in the past", f"{command} -1h")
    for value, state in (("%held", "being delivered"), ("%claimed", "claimed"), ("%cancelled", "cancelled")):
        wrong = {**right, "ids": ["%pending", value]}
        yield row(name, wrong, "too_late", f"{value}|snoozed|{state}", f"{command} +1h {value}")


def _reading() -> Iterator[Row]:
    name = "envelope.read"
    yield row(name, {}, "invalid_params", "ids|--all", "envelope read")
    yield row(name, {"ids": ["%pending"], "all": True}, "invalid_params", "ids|--all")
    wrong = "envelope read %pending --up-to %own"
    yield row(name, {"ids": ["%pending"], "up_to": "%own"}, "invalid_params", "--up-to", wrong)
    for value in BAD_IDS:
        yield row(name, {"all": True, "up_to": value}, "bad_id", f"{shown(value)} is not a valid |e81")
    for value in ("%others", "%deferred", "%sent"):
        command = f"envelope read --all --up-to {value}"
        yield row(name, {"all": True, "up_to": value}, "not_found", value, command)
    yield row(name, {"all": True, "address": "user:boss"}, "boss_only", "address")
    yield row(name, {"all": True, "address": "x:y"}, "bad_address", "x:y")


def _sessions() -> Iterator[Row]:
    ids = {"ids": ["%pending"]}
    for name, base in (
        ("envelope.read", ids),
        ("envelope.read", {"all": True}),
        ("envelope.ack", ids),
        ("envelope.ack", {"all": True}),
        ("envelope.send", SEND),
    ):
        yield row(name, {**base, "session": NUL}, "bad_text", "session|NUL")
        yield row(name, {**base, "session": "ü" * 129}, "too_large", "session|258 bytes|256")
    words = f"envelope read --all --session {'s' * 257}"
    yield row("envelope.read", {"all": True, "session": "s" * 257}, "too_large", "session|257 bytes", words)


def _to_groups() -> Iterator[Row]:
    name = "envelope.send"

    def to(group: str, code: str, says: str) -> Row:
        words = f"envelope send --to {group} --text x"
        return row(name, {"to": group, "text": "x"}, code, says, words)

    yield to("group:open-house", "not_member", "open-house|hiboss group join open-house")
    yield to("group:lonely", "empty_group", "group:lonely|hiboss group add")
    yield to("group:shut", "archived", "group:shut|--undo")
    yield to("group:theirs", "unknown_recipient", "group:theirs")
    yield to("group:left-house", "unknown_recipient", "group:left-house")
    yield to("group:all", "forbidden", "group:all|privileged|standard")
    for others in (["agent:ada"], ["group:visited"]):
        wrong = {"to": ["group:house", *others], "text": "x"}
        yield row(name, wrong, "invalid_params", "one group")
    in_vain = {**SEND, "to": "%lane", "ack_by": "30m"}
    yield row(name, in_vain, "invalid_params", "--ack-by", "envelope send --to %lane --text x --ack-by 30m")


def _in_conversations() -> Iterator[Row]:
    name, words = "envelope.send", "envelope send --text x --conversation"
    for value in BAD_IDS:
        if value not in ("x", "e"):  # which could be groups
            yield row(name, {"conversation": value, "text": "x"}, "bad_id", f"{shown(value)} is not|c81")
    yield row(name, {"conversation": "x", "text": "x"}, "unknown_recipient", "group:x", f"{words} x")
    foreign = {"conversation": "c999999", "text": "x"}
    yield row(name, foreign, "not_found", "conversation c999999", f"{words} c999999")
    both = {**SEND, "conversation": "%conversation"}
    yield row(name, both, "invalid_params", "either conversation, or to", f"{words} %conversation --to ada")
    answer = {"conversation": "%conversation", "text": "x", "to_sender": True}
    yield row(name, answer, "invalid_params", "either conversation, or to or to_sender")


def _uploads() -> Iterator[Row]:
    for name in ("envelope.send", "cron.create", "cron.set"):
        for value in BAD_IDS:
            if isinstance(value, str):
                wrong = {**RIGHT[name], "uploads": ["%upload", value]}
                yield row(name, wrong, "bad_id", f"{shown(value)} is not|u81")
        for gone in ("%foreign_upload", "u999999"):
            yield row(name, {**RIGHT[name], "uploads": ["%upload", gone]}, "not_found", f"upload|{gone}")
        many = {**RIGHT[name], "uploads": ["%upload"] * 21}
        yield row(name, many, "too_large", "uploads|20")
    for value in BAD_IDS:
        yield row("upload.delete", {"ids": ["%upload", value]}, "bad_id", f"{shown(value)} is not|u81")
    for gone in ("%foreign_upload", "u999999"):
        yield row("upload.delete", {"ids": ["%upload", gone]}, "not_found", f"upload|{gone}")


def _deadlines() -> Iterator[Row]:
    name = "envelope.send"
    for value in BAD_LENGTHS:
        if value != "+10m":  # here it means the same as 10m
            wrong = {**SEND, "ack_by": value}
            yield row(name, wrong, "bad_duration", f"{shown(value)} is not a valid duration|90s, 10m")
    yield row(name, {**SEND, "ack_by": "0s"}, "bad_duration", "0s|zero")
    yield row(name, {**SEND, "ack_by": "9601h"}, "bad_duration", "9601h|at most 9600h")
    soon = {**SEND, "ack_by": "soon"}
    yield row(name, soon, "bad_duration", "soon|90s, 10m", f"envelope send {WORDS} --ack-by soon")
    reply = {"reply_to": "%pending", "text": "x", "ack_by": "soon"}
    yield row(name, reply, "bad_duration", "soon|90s, 10m", "reply %pending x --ack-by soon")


def _tags() -> Iterator[Row]:
    name = "envelope.send"
    for param in ("scopes", "refs"):
        flag = f"--{param[:-1]}"
        for wrong in (
            {},
            {"type": "module"},
            {"value": "auth"},
            {**TAG, "more": 1},
            {**TAG, "type": ""},
            {**TAG, "value": ""},
            {**TAG, "value": 5},
            {**TAG, "value": "v" * 201},
        ):
            yield row(name, {**SEND, param: [TAG, wrong]}, "invalid_params", param)
        yield row(name, {**SEND, param: [TAG] * 21}, "invalid_params", param)
        for key in ("type", "value"):
            yield row(name, {**SEND, param: [{**TAG, key: NUL}]}, "bad_text", f"{key}|NUL")
        words = f"envelope send {WORDS} {flag} auth"
        yield row(name, {**SEND, param: ["auth"]}, "invalid_params", param[:-1], words)
    mention = {**SEND, "refs": [{"type": "mention", "value": "ada"}]}
    yield row(name, mention, "invalid_params", "@name", f"envelope send {WORDS} --ref mention:ada")
