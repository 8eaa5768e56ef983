"""Bad input of the operations about the chat of an agent and the boss (`bad_input.py`)."""

from __future__ import annotations

from collections.abc import Iterator

from tests.api.bad_input_row import BAD_ADDRESSES, LONG, NUL, RIGHT, Row, row, shown

VERBS = ("read", "post", "ack", "status")
BAD_ENTRIES = (
    "x",
    "",
    " ",
    "e1",
    "-1",
    "1.",
    ".1",
    "1.2.3",
    "1,5",
    "²",
    "٣",
    str(2**63),
    "9" * 40,
    -1,
    2**63,
    NUL,
)
ENTRIES = (("chat.read", "after_id"), ("chat.read", "id"), ("chat.post", "reply_to"), ("chat.ack", "id"))


def chats() -> Iterator[Row]:
    yield from _whose()
    yield from _entries()
    yield from _words()


def _whose() -> Iterator[Row]:
    for verb in VERBS:
        name, right = f"chat.{verb}", RIGHT.get(f"chat.{verb}", {})
        yield row(name, {**right, "agent": "ada"}, "boss_only", "another agent|agent:nex")
        yield row(name, right, "boss_only", "the chat with an agent", by="ann")
        yield row(name, right, "invalid_params", "name the agent|nex", by="boss")
        for value in BAD_ADDRESSES[2:]:
            if ":" in value:
                yield row(name, {**right, "agent": value}, "bad_address", "is not a valid address", by="boss")
        yield row(name, {**right, "agent": "adda"}, "unknown_address", "adda", by="boss")
        yield row(name, {**right, "agent": "user:boss"}, "unknown_agent", "user:boss", by="boss")
    yield row("chat.post", {"content": "x", "agent": "gone"}, "unknown_recipient", "agent:gone", by="boss")


def _entries() -> Iterator[Row]:
    for name, param in ENTRIES:
        right = RIGHT.get(name, {})
        for value in BAD_ENTRIES:
            said = f"{shown(value)} is not a valid chat entry id|57"
            yield row(name, {**right, param: value}, "bad_id", said)
        for value in ("999999", 999999, "999999.0001"):
            yield row(name, {**right, param: value}, "not_found", "there is no chat entry|chat_read_since")


def _words() -> Iterator[Row]:
    for value in (0, -1, -(2**63)):
        yield row("chat.read", {"limit": value}, "invalid_params", "limit")
    for name in ("chat.read", "chat.ack", "chat.status"):
        right = RIGHT.get(name, {})
        yield row(name, {**right, "subscriber": NUL}, "bad_text", "subscriber|NUL")
        yield row(name, {**right, "subscriber": LONG}, "too_large", "subscriber")
    for value in ("image/png", "", "text", NUL):
        yield row("chat.post", {"content": "x", "mime": value}, "invalid_params", "mime|text/markdown")
    for value in ("", " \n"):
        yield row("chat.post", {"content": value}, "empty_message")
    yield row("chat.post", {"content": NUL}, "bad_text", "NUL")
    yield row("chat.post", {"content": "x", "key": NUL}, "bad_text", "key|NUL")
    yield row("chat.post", {"content": "x", "key": "used"}, "key_reused", "used|%sent")
    yield row("chat.post", {"content": "x", "author": "user"}, "invalid_params", "the boss's token|agent:nex")
    as_agent = {"content": "x", "author": "assistant", "agent": "nex"}
    yield row("chat.post", as_agent, "invalid_params", "the token of the agent", by="boss")
