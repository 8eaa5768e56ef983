"""Bad input of the operations about messages that were sent, and about reactions (`bad_input.py`)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.api.bad_input_row import BAD_ADDRESSES, BAD_IDS, NUL, Row, row, shown


def messages() -> Iterator[Row]:
    for part in (_ids, _edits, _deletions, _emojis, _lists, _marks, _threads):
        yield from part()


def _ids() -> Iterator[Row]:
    more = {"message.edit": {"text": "x"}, "reaction.set": {"emoji": "👍"}}
    words = {"message.edit": " x", "reaction.set": " 👍"}
    for name in ("message.edit", "message.delete", "message.restore", "reaction.set", "reaction.remove"):
        given, command = more.get(name, {}), name.replace(".", " ")
        for value in BAD_IDS:
            yield row(name, {"id": value, **given}, "bad_id", f"{shown(value)} is not a valid |e81")
        yield row(name, {"id": "x1", **given}, "bad_id", "x1|m81|e81", f"{command} x1{words.get(name, '')}")
        unseen = f"{command} %others{words.get(name, '')}"
        yield row(name, {"id": "%others", **given}, "not_found", "%others", unseen)
        for value in ("%others_message", "%deferred", "m999999", 2**63 - 1):
            yield row(name, {"id": value, **given}, "not_found", "there is no")


def _edits() -> Iterator[Row]:
    name = "message.edit"
    for text in ("", " \n\t\u2003"):
        yield row(name, {"id": "%sent", "text": text}, "empty_message", "--text")
    yield row(name, {"id": "%sent", "text": " "}, "empty_message", "nothing in it", "message edit %sent ' '")
    yield row(name, {"id": "%sent", "text": NUL}, "bad_text", "text|NUL")
    foreign = "agent:ada|only its author can edit"
    yield row(name, {"id": "%pending", "text": "x"}, "not_author", foreign, "message edit %pending x")
    yield row(name, {"id": "%sent", "text": "x"}, "not_author", "agent:nex|only its author", by="boss")
    gone = {"id": "%removed", "text": "x"}
    yield row(name, gone, "too_late", "%removed|edited|deleted", "message edit %removed x")
    left, shut = ({"id": one, "text": "y"} for one in ("%left_mail", "%shut_mail"))
    yield row(name, left, "not_member", "agent:nex|group:left-house", "message edit %left_mail y")
    yield row(name, shut, "archived", "group:shut|--undo", "message edit %shut_mail y")


def _deletions() -> Iterator[Row]:
    name = "message.delete"
    foreign = "agent:ada|only its author or the boss can delete"
    yield row(name, {"id": "%pending"}, "not_author", foreign, "message delete %pending")
    yield row(name, {"id": "%sent", "reason": NUL}, "bad_text", "reason|NUL")


def _emojis() -> Iterator[Row]:
    name = "reaction.set"
    wrong = ("", " ", "x", "ok", "👍👍", "👍 ", ":+1:", "1", "ä", "🇩", "👍x", NUL, "\u200d", "\ufe0f", "字")
    for value in wrong:
        yield row(name, {"id": "%pending", "emoji": value}, "bad_emoji", "is not one emoji|👍")
    yield row(name, {"id": "%pending", "emoji": "ok"}, "bad_emoji", "ok|👍", "reaction set %pending ok")
    gone = {"id": "%removed", "emoji": "👍"}
    yield row(name, gone, "too_late", "%removed|deleted", "reaction set %removed 👍")
    yield row("reaction.remove", {"id": "%removed"}, "too_late", "%removed|deleted")
    left = {"id": "%left_mail", "emoji": "👍"}
    yield row(name, left, "not_member", "agent:nex|group:left-house", "reaction set %left_mail 👍")


def _lists() -> Iterator[Row]:
    def look(params: dict[str, Any], code: str, says: str = "", cli: str = "", **more: Any) -> Row:
        return row("message.list", params, code, says, f"message list {cli}" if cli else "", **more)

    for size in (0, -1, 101, 2**31, 2**63):
        yield look({"page_size": size}, "invalid_params", f"page_size|{size}|1 to 100")
    yield look({"page_size": -5}, "invalid_params", "page_size|-5|1 to 100", "-n -5")
    yield look({"page": 0}, "invalid_params", "page is 0", "--page 0")
    yield look({"page": 11, "page_size": 100}, "invalid_params", "page 11|cursor", "--page 11 -n 100")
    yield look({"page": 1, "cursor": "x"}, "invalid_params", "page or cursor")
    yield look({"cursor": "x"}, "bad_cursor", "x is not a valid cursor", "--after x")
    yield look({"cursor": "00000000-a1"}, "gap", "an earlier store", "--after 00000000-a1")
    yield look({"type": "text"}, "too_broad", "type alone|thread_id|unread", "--type text")
    yield look({"author_id": "ada"}, "too_broad", "author_id alone|scope", "--from ada")
    yield look({"meta": {"a": 1}}, "too_broad", "meta alone", "--meta a=1")
    yield look({"trace_id": "m1"}, "too_broad", "trace_id alone", "--trace m1")
    yield look({"created_after": "-1h"}, "too_broad", "created_after alone", "--created-after -1h")
    yield look({"sort_by": "updated_at"}, "too_broad", "sort_by|thread_id", "--by-change")
    yield look({"unread": True, "created_after": "x"}, "bad_time", "x is not", "--unread --created-after x")
    yield look({"unread": True, "author_id": "adda"}, "unknown_address", "ada?", "--unread --from adda")
    yield look({"thread_id": "%others"}, "not_found", "%others", "--thread %others")
    yield look({"conversation_id": "c999999"}, "not_found", "c999999", "--conversation c999999")
    yield look({"unread_for_agent": "ada"}, "boss_only", "unread_for_agent|agent:nex", "--unread-for ada")
    yield look({"address": "user:boss"}, "boss_only", "address|agent:nex", "--address user:boss")
    yield look({"scope": {"type": "module"}}, "invalid_params", "scope")
    yield look({"scope": {"type": "", "value": "x"}}, "invalid_params", "scope")
    differ = {"address": "ada", "unread_for_agent": "nex"}
    yield look(differ, "invalid_params", "address|unread_for_agent", by="boss")
    yield look({"scope": "auth"}, "invalid_params", "scope", "--scope auth")


def _marks() -> Iterator[Row]:
    name = "message.markRead"
    for value in BAD_IDS:
        yield row(name, {"message_ids": ["%pending", value]}, "bad_id", f"{shown(value)} is not a valid |e81")
        yield row("message.get", {"message_id": value}, "bad_id", f"{shown(value)} is not a valid |e81")
    for value in ("%others", "%others_message", "%deferred", "m999999"):
        yield row(name, {"message_ids": ["%pending", value]}, "not_found", "there is no")
        yield row("message.get", {"message_id": value}, "not_found", "there is no")
    yield row(name, {"message_ids": ["%others"]}, "not_found", "%others", "message read %others")
    yield row("message.get", {"message_id": "%others"}, "not_found", "%others", "message get %others")
    yield row(
        "message.restore", {"id": "%pending"}, "not_author", "agent:ada|restore", "message restore %pending"
    )


def _threads() -> Iterator[Row]:
    for value in BAD_IDS:
        yield row("thread.get", {"thread_id": value}, "bad_id", f"{shown(value)} is not a valid ")
        yield row("thread.chain", {"id": value}, "bad_id", f"{shown(value)} is not a valid ")
    for value in ("%others", "%deferred"):
        yield row("thread.get", {"thread_id": value}, "not_found", value, f"thread show {value}")
        yield row("thread.chain", {"id": value}, "not_found", value, f"envelope thread {value}")
    for name, command in (("thread.list", "thread list"), ("thread.get", "thread show %sent")):
        given = {"thread_id": "%sent"} if name == "thread.get" else {}
        yield row(name, {**given, "page_size": 0}, "invalid_params", "page_size|0", f"{command} -n 0")
        yield row(name, {**given, "page": 0}, "invalid_params", "page is 0", f"{command} --page 0")
        yield row(name, {**given, "cursor": "x"}, "bad_cursor", "x is not a valid", f"{command} --after x")
        yield row(name, {**given, "cursor": "00000000-a1"}, "gap", "an earlier store")
    yield row(
        "thread.list", {"address": "user:boss"}, "boss_only", "agent:nex", "thread list --address user:boss"
    )
    for address in BAD_ADDRESSES:
        yield row("thread.list", {"address": address}, "bad_address", "is not a valid address", by="nex")
    yield row("thread.list", {"address": "nobody-here"}, "unknown_address", "nobody-here", by="boss")
    yield row("thread.list", {"scope": {"type": "module"}}, "invalid_params", "scope")
