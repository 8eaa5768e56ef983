"""Bad input of the operations about messages that were sent, and about reactions (`bad_input.py`)."""

from __future__ import annotations

from collections.abc import Iterator

from tests.api.bad_input_row import BAD_IDS, NUL, Row, row, shown


def messages() -> Iterator[Row]:
    for part in (_ids, _edits, _deletions, _emojis):
        yield from part()


def _ids() -> Iterator[Row]:
    more = {"message.edit": {"text": "x"}, "reaction.set": {"emoji": "👍"}}
    words = {"message.edit": " x", "reaction.set": " 👍"}
    for name in ("message.edit", "message.delete", "reaction.set", "reaction.remove"):
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
