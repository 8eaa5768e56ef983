"""Bad input of the operations about messages that were sent, reactions, threads, and the chat with the boss (`bad_input.py`)."""

from __future__ import annotations

from typing import Any

from tests.api.bad_input_row import BAD_ADDRESSES, BAD_IDS, LONG, NUL, RIGHT, Row, row, shown

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


def _look_messages(params: dict[str, Any], code: str, says: str = "", cli: str = "", **more: Any) -> Row:
    return row("message.list", params, code, says, f"message list {cli}" if cli else "", **more)


IDS = [
    *[
        each
        for name, command, words, given in (
            ("message.edit", "message edit", " x", {"text": "x"}),
            ("message.delete", "message delete", "", {}),
            ("message.restore", "message restore", "", {}),
            ("reaction.set", "reaction set", " 👍", {"emoji": "👍"}),
            ("reaction.remove", "reaction remove", "", {}),
        )
        for each in [
            *[
                row(name, {"id": value, **given}, "bad_id", f"{shown(value)} is not a valid |e81")
                for value in BAD_IDS
            ],
            row(name, {"id": "x1", **given}, "bad_id", "x1|m81|e81", f"{command} x1{words}"),
            row(name, {"id": "%others", **given}, "not_found", "%others", f"{command} %others{words}"),
            *[
                row(name, {"id": value, **given}, "not_found", "there is no")
                for value in ("%others_message", "%deferred", "m999999", 2**63 - 1)
            ],
        ]
    ],
]


EDITS = [
    *[
        row("message.edit", {"id": "%sent", "text": text}, "empty_message", "--text")
        for text in ("", " \n\t\u2003")
    ],
    row(
        "message.edit",
        {"id": "%sent", "text": " "},
        "empty_message",
        "nothing in it",
        "message edit %sent ' '",
    ),
    row("message.edit", {"id": "%sent", "text": NUL}, "bad_text", "text|NUL"),
    row(
        "message.edit",
        {"id": "%pending", "text": "x"},
        "not_author",
        "agent:ada|only its author can edit",
        "message edit %pending x",
    ),
    row("message.edit", {"id": "%sent", "text": "x"}, "not_author", "agent:nex|only its author", by="boss"),
    row(
        "message.edit",
        {"id": "%removed", "text": "x"},
        "too_late",
        "%removed|edited|deleted",
        "message edit %removed x",
    ),
    row(
        "message.edit",
        {"id": "%left_mail", "text": "y"},
        "not_member",
        "agent:nex|group:left-house",
        "message edit %left_mail y",
    ),
    row(
        "message.edit",
        {"id": "%shut_mail", "text": "y"},
        "archived",
        "group:shut|--undo",
        "message edit %shut_mail y",
    ),
]


DELETIONS = [
    row(
        "message.delete",
        {"id": "%pending"},
        "not_author",
        "agent:ada|only its author or the boss can delete",
        "message delete %pending",
    ),
    row("message.delete", {"id": "%sent", "reason": NUL}, "bad_text", "reason|NUL"),
]


EMOJIS = [
    *[
        row("reaction.set", {"id": "%pending", "emoji": value}, "bad_emoji", "is not one emoji|👍")
        for value in (
            "",
            " ",
            "x",
            "ok",
            "👍👍",
            "👍 ",
            ":+1:",
            "1",
            "ä",
            "🇩",
            "👍x",
            NUL,
            "\u200d",
            "️",
            "字",
        )
    ],
    row("reaction.set", {"id": "%pending", "emoji": "ok"}, "bad_emoji", "ok|👍", "reaction set %pending ok"),
    row(
        "reaction.set",
        {"id": "%removed", "emoji": "👍"},
        "too_late",
        "%removed|deleted",
        "reaction set %removed 👍",
    ),
    row("reaction.remove", {"id": "%removed"}, "too_late", "%removed|deleted"),
    row(
        "reaction.set",
        {"id": "%left_mail", "emoji": "👍"},
        "not_member",
        "agent:nex|group:left-house",
        "reaction set %left_mail 👍",
    ),
]


LISTS = [
    *[
        _look_messages({"page_size": size}, "invalid_params", f"page_size|{size}|1 to 100")
        for size in (0, -1, 101, 2**31, 2**63)
    ],
    _look_messages({"page_size": -5}, "invalid_params", "page_size|-5|1 to 100", "-n -5"),
    _look_messages({"page": 0}, "invalid_params", "page is 0", "--page 0"),
    _look_messages({"page": 11, "page_size": 100}, "invalid_params", "page 11|cursor", "--page 11 -n 100"),
    _look_messages({"page": 1, "cursor": "x"}, "invalid_params", "page or cursor"),
    _look_messages({"cursor": "x"}, "bad_cursor", "x is not a valid cursor", "--after x"),
    _look_messages({"cursor": "00000000-a1"}, "gap", "an earlier store", "--after 00000000-a1"),
    _look_messages({"type": "text"}, "too_broad", "type alone|thread_id|unread", "--type text"),
    _look_messages({"author_id": "ada"}, "too_broad", "author_id alone|scope", "--from ada"),
    _look_messages({"meta": {"a": 1}}, "too_broad", "meta alone", "--meta a=1"),
    _look_messages({"trace_id": "m1"}, "too_broad", "trace_id alone", "--trace m1"),
    _look_messages({"created_after": "-1h"}, "too_broad", "created_after alone", "--created-after -1h"),
    _look_messages({"sort_by": "updated_at"}, "too_broad", "sort_by|thread_id", "--by-change"),
    _look_messages(
        {"unread": True, "created_after": "x"}, "bad_time", "x is not", "--unread --created-after x"
    ),
    _look_messages({"unread": True, "author_id": "adda"}, "unknown_address", "ada?", "--unread --from adda"),
    _look_messages({"thread_id": "%others"}, "not_found", "%others", "--thread %others"),
    _look_messages({"conversation_id": "c999999"}, "not_found", "c999999", "--conversation c999999"),
    _look_messages(
        {"unread_for_agent": "ada"}, "boss_only", "unread_for_agent|agent:nex", "--unread-for ada"
    ),
    _look_messages({"address": "user:boss"}, "boss_only", "address|agent:nex", "--address user:boss"),
    *[
        _look_messages(given, code, says)
        for given, code, says in (
            *(({"page": page}, "invalid_params", "page") for page in (-1, -(2**63), 101, 2**63)),
            ({"scope": {"type": "module"}}, "invalid_params", "scope"),
            ({"scope": {"type": "module", "value": "a", "more": "b"}}, "invalid_params", "scope"),
            ({"box": "archived", "snoozed": True}, "invalid_params", "box"),
            ({"box": "outbox", "unread": True}, "invalid_params", "box"),
            ({"unread": True, "meta": {"a": [1]}}, "invalid_params", "meta"),
            ({"unread": True, "author_id": "two words"}, "bad_address", "two words"),
            ({"unread": True, "trace_id": NUL}, "bad_text", "trace_id"),
            ({"mention_role": "x" * 300}, "too_large", "mention_role"),
            ({"thread_id": "c1"}, "bad_id", "c1"),
            ({"thread_id": "t999999"}, "not_found", "999999"),
            ({"run_id": "m1"}, "bad_id", "m1|r81"),
        )
    ],
    _look_messages({"scope": {"type": "", "value": "x"}}, "invalid_params", "scope"),
    _look_messages(
        {"address": "ada", "unread_for_agent": "nex"}, "invalid_params", "address|unread_for_agent", by="boss"
    ),
    _look_messages({"scope": "auth"}, "invalid_params", "scope", "--scope auth"),
]


MARKS = [
    *[
        each
        for value in BAD_IDS
        for each in [
            row(
                "message.markRead",
                {"message_ids": ["%pending", value]},
                "bad_id",
                f"{shown(value)} is not a valid |e81",
            ),
            row("message.get", {"message_id": value}, "bad_id", f"{shown(value)} is not a valid |e81"),
        ]
    ],
    *[
        each
        for value in ("%others", "%others_message", "%deferred", "m999999")
        for each in [
            row("message.markRead", {"message_ids": ["%pending", value]}, "not_found", "there is no"),
            row("message.get", {"message_id": value}, "not_found", "there is no"),
        ]
    ],
    row("message.markRead", {"message_ids": ["%others"]}, "not_found", "%others", "message read %others"),
    row("message.get", {"message_id": "%others"}, "not_found", "%others", "message get %others"),
    row("message.restore", {"id": "%pending"}, "not_author", "agent:ada|restore", "message restore %pending"),
]


THREADS = [
    *[
        each
        for value in BAD_IDS
        for each in [
            row("thread.get", {"thread_id": value}, "bad_id", f"{shown(value)} is not a valid "),
            row("thread.chain", {"id": value}, "bad_id", f"{shown(value)} is not a valid "),
        ]
    ],
    *[
        each
        for value in ("%others", "%deferred")
        for each in [
            row("thread.get", {"thread_id": value}, "not_found", value, f"thread show {value}"),
            row("thread.chain", {"id": value}, "not_found", value, f"envelope thread {value}"),
        ]
    ],
    *[
        each
        for name, command in (("thread.list", "thread list"), ("thread.get", "thread show %sent"))
        for each in [
            row(
                name,
                {**({"thread_id": "%sent"} if name == "thread.get" else {}), "page_size": 0},
                "invalid_params",
                "page_size|0",
                f"{command} -n 0",
            ),
            row(
                name,
                {**({"thread_id": "%sent"} if name == "thread.get" else {}), "page": 0},
                "invalid_params",
                "page is 0",
                f"{command} --page 0",
            ),
            row(
                name,
                {**({"thread_id": "%sent"} if name == "thread.get" else {}), "cursor": "x"},
                "bad_cursor",
                "x is not a valid",
                f"{command} --after x",
            ),
            row(
                name,
                {**({"thread_id": "%sent"} if name == "thread.get" else {}), "cursor": "00000000-a1"},
                "gap",
                "an earlier store",
            ),
        ]
    ],
    row("thread.list", {"address": "user:boss"}, "boss_only", "agent:nex", "thread list --address user:boss"),
    row("thread.get", {"thread_id": "%sent", "address": "user:boss"}, "boss_only", "agent:nex"),
    *[
        each
        for name, given in (("thread.list", {}), ("thread.get", {"thread_id": "%sent"}))
        for each in (
            *(
                row(name, {**given, "address": address}, "bad_address", "is not a valid address", by="nex")
                for address in BAD_ADDRESSES
            ),
            row(name, {**given, "address": "nobody-here"}, "unknown_address", "nobody-here", by="boss"),
        )
    ],
    row("thread.list", {"scope": {"type": "module"}}, "invalid_params", "scope"),
    *[
        row("thread.list", {param: value}, "invalid_params", param)
        for param, values in (("page_size", (-1, 101, 2**64)), ("page", (-1, 101, 2**64)))
        for value in values
    ],
]


WHOSE_CHAT = [
    *[
        each
        for verb in VERBS
        for each in [
            row(
                f"chat.{verb}",
                {**RIGHT.get(f"chat.{verb}", {}), "agent": "ada"},
                "boss_only",
                "another agent|agent:nex",
            ),
            row(
                f"chat.{verb}", RIGHT.get(f"chat.{verb}", {}), "boss_only", "the chat with an agent", by="ann"
            ),
            row(
                f"chat.{verb}",
                RIGHT.get(f"chat.{verb}", {}),
                "invalid_params",
                "name the agent|nex",
                by="boss",
            ),
            *[
                row(
                    f"chat.{verb}",
                    {**RIGHT.get(f"chat.{verb}", {}), "agent": value},
                    "bad_address",
                    "is not a valid address",
                    by="boss",
                )
                for value in BAD_ADDRESSES[2:]
                if ":" in value
            ],
            row(
                f"chat.{verb}",
                {**RIGHT.get(f"chat.{verb}", {}), "agent": "adda"},
                "unknown_address",
                "adda",
                by="boss",
            ),
            row(
                f"chat.{verb}",
                {**RIGHT.get(f"chat.{verb}", {}), "agent": "user:boss"},
                "unknown_agent",
                "user:boss",
                by="boss",
            ),
        ]
    ],
    row("chat.post", {"content": "x", "agent": "gone"}, "unknown_recipient", "agent:gone", by="boss"),
]


CHAT_ENTRIES = [
    *[
        each
        for name, param in ENTRIES
        for each in [
            *[
                row(
                    name,
                    {**RIGHT.get(name, {}), param: value},
                    "bad_id",
                    f"{shown(value)} is not a valid chat entry id|57",
                )
                for value in BAD_ENTRIES
            ],
            *[
                row(
                    name,
                    {**RIGHT.get(name, {}), param: value},
                    "not_found",
                    "there is no chat entry|chat_read_since",
                )
                for value in ("999999", 999999, "999999.0001")
            ],
        ]
    ],
]


CHAT_WORDS = [
    *[row("chat.read", {"limit": value}, "invalid_params", "limit") for value in (0, -1, -(2**63))],
    *[
        each
        for name in ("chat.read", "chat.ack", "chat.status")
        for each in [
            row(name, {**RIGHT.get(name, {}), "subscriber": NUL}, "bad_text", "subscriber|NUL"),
            row(name, {**RIGHT.get(name, {}), "subscriber": LONG}, "too_large", "subscriber"),
        ]
    ],
    *[
        row("chat.post", {"content": "x", "mime": value}, "invalid_params", "mime|text/markdown")
        for value in ("image/png", "", "text", NUL)
    ],
    *[row("chat.post", {"content": value}, "empty_message") for value in ("", " \n")],
    row("chat.post", {"content": NUL}, "bad_text", "NUL"),
    row("chat.post", {"content": "x", "key": NUL}, "bad_text", "key|NUL"),
    row("chat.post", {"content": "x", "key": "used"}, "key_reused", "used|%sent"),
    row("chat.post", {"content": "x", "author": "user"}, "invalid_params", "the boss's token|agent:nex"),
    row(
        "chat.post",
        {"content": "x", "author": "assistant", "agent": "nex"},
        "invalid_params",
        "the token of the agent",
        by="boss",
    ),
]

ROWS = [*IDS, *EDITS, *DELETIONS, *EMOJIS, *LISTS, *MARKS, *THREADS, *WHOSE_CHAT, *CHAT_ENTRIES, *CHAT_WORDS]
