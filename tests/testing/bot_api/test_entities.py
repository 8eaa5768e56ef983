"""Entities that a bot gives: what is refused, and what is silently mended and told in `api.complaints`."""

from __future__ import annotations

from typing import Any

import pytest

from hiboss.testing.bot_api import BotApi
from hiboss.testing.bot_api.chats import Chat
from hiboss.testing.bot_api.people import Person

from .conftest import Raw


def entity(kind: str, offset: int, length: int, **more: Any) -> dict[str, Any]:
    return {"type": kind, "offset": offset, "length": length, **more}


def link(url: str) -> dict[str, Any]:
    return entity("text_link", 0, 1, url=url)


@pytest.mark.parametrize(
    ("text", "given", "words"),
    [
        ("x", entity("sparkle", 0, 1), "can't parse MessageEntity: Unsupported type specified"),
        ("x", entity("bold", "0", 1), 'can\'t parse MessageEntity: Field "offset" must be of type Number'),  # type: ignore[arg-type]
        ("x", entity("bold", -1, 1), "receive an entity with incorrect offset -1"),
        ("x", entity("bold", 0, -1), "receive an entity with incorrect length -1"),
        ("hello", entity("bold", 6, 1), "entity begins after the end of the text at UTF-16 offset 6"),
        ("😀 x", entity("bold", 1, 2), "entity begins in a middle of a UTF-16 symbol at byte offset 4"),
        (
            "a😀",
            entity("bold", 0, 2),
            "entity beginning at UTF-16 offset 0 ends in a middle of a UTF-16 symbol at byte offset 5",
        ),
        ("x", entity("text_link", 0, 1), "can't parse MessageEntity: Can't find field \"url\""),
        ("x", link(""), "entity URL '' is invalid: URL host is empty"),
        ("x", link("localhost"), "entity URL 'localhost' is invalid: Wrong HTTP URL"),
        ("x", link("../notes.md"), "entity URL '../notes.md' is invalid: Wrong HTTP URL"),
        ("x", link("ftp://a.org"), "entity URL 'ftp://a.org' is invalid: Unsupported URL protocol"),
        ("x", link("tg:http://a.org"), "entity URL 'tg:http://a.org' is invalid: Wrong tg URL"),
        (
            "x",
            entity("custom_emoji", 0, 1, custom_emoji_id="no"),
            'can\'t parse MessageEntity: Field "custom_emoji_id" must be a valid Number',
        ),
    ],
)
def test_what_makes_no_sense_is_refused_and_complained_about(
    api: BotApi, raw: Raw, ada: Person, chat: Chat, text: str, given: Any, words: str
) -> None:
    assert raw.refused("sendMessage", chat_id=ada.id, text=text, entities=[given]) == (
        400,
        f"Bad Request: {words}",
    )
    assert chat.texts == ["/start"]
    assert api.complaints == [f"sendMessage {text!r}: refused: Bad Request: {words}"]


@pytest.mark.parametrize(
    "url", ["https://a.org/?q=1", "a.org", "tg://user?id=17", "mailto:a@b.org", "http://[::1]/"]
)
def test_links_that_lead_somewhere_are_taken(
    api: BotApi, raw: Raw, ada: Person, chat: Chat, url: str
) -> None:
    raw("sendMessage", chat_id=ada.id, text="x", entities=[link(url)])
    assert chat.messages[-1].entities == [link(url)]
    assert api.complaints == []


@pytest.mark.parametrize(
    ("text", "given", "kept", "words"),
    [
        ("abc", [("bold", 0, 0)], [], "an empty bold"),
        ("a  c", [("bold", 1, 2)], [("bold", 1, 2)], "only white space"),
        ("abc", [("italic", 0, 2), ("bold", 1, 2)], [("italic", 0, 1), ("bold", 1, 2), ("italic", 1, 1)], "in part"),
        ("abc", [("pre", 0, 3), ("bold", 1, 1)], [("pre", 0, 3)], "inside code"),
        ("abc", [("bold", 0, 3), ("code", 1, 1)], [("bold", 0, 1), ("code", 1, 1), ("bold", 2, 1)], "inside code"),
        ("abc", [("bold", 0, 2), ("bold", 1, 2)], [("bold", 0, 3)], "in part"),
        ("abc", [("bold", 0, 3), ("bold", 1, 1)], [("bold", 0, 3)], "merged"),
        ("abc", [("blockquote", 0, 3), ("blockquote", 1, 1)], [("blockquote", 0, 3)], "not nested"),
        ("abc", [("pre", 0, 3), ("blockquote", 1, 1)], [("blockquote", 1, 1)], "only one of them"),
        ("abc", [("code", 0, 3), ("pre", 1, 1)], [("code", 0, 3)], "only one of them"),
        ("@abc", [("mention", 0, 3)], [("mention", 0, 4)], "is ignored"),
        ("a\x01b", [], [], "control characters"),
    ],
)  # fmt: skip
def test_what_is_silently_mended_is_kept_so_and_complained_about(
    api: BotApi, raw: Raw, ada: Person, chat: Chat, text: str, given: Any, kept: Any, words: str
) -> None:
    raw("sendMessage", chat_id=ada.id, text=text, entities=[entity(*one) for one in given])
    found = [(one["type"], one["offset"], one["length"]) for one in chat.messages[-1].entities]
    assert sorted(found) == sorted(kept)
    (complaint,) = api.complaints
    assert complaint.startswith("sendMessage ") and words in complaint


@pytest.mark.parametrize(
    "given",
    [
        [("bold", 0, 3), ("italic", 1, 1)],
        [("blockquote", 0, 3), ("pre", 0, 3)],
        [("blockquote", 0, 5), ("bold", 0, 2), ("code", 3, 2)],
        [("bold", 0, 5), ("blockquote", 1, 2)],
        [("bold", 0, 2), ("italic", 2, 2)],
    ],
)
def test_what_nests_well_is_kept_without_a_complaint(
    api: BotApi, raw: Raw, ada: Person, chat: Chat, given: Any
) -> None:
    raw("sendMessage", chat_id=ada.id, text="abcde", entities=[entity(*one) for one in given])
    assert {(one["type"], one["offset"], one["length"]) for one in chat.messages[-1].entities} == set(given)
    assert api.complaints == []


def test_of_more_than_a_hundred_entities_the_rest_is_dropped(
    api: BotApi, raw: Raw, ada: Person, chat: Chat
) -> None:
    raw(
        "sendMessage",
        chat_id=ada.id,
        text="a " * 101,
        entities=[entity("bold", 2 * n, 1) for n in range(101)],
    )
    assert len(chat.messages[-1].entities) == 100
    assert "1 entities of 101 are dropped" in api.complaints[0]


@pytest.mark.parametrize(
    ("mode", "text", "words"),
    [
        ("HTML", "<code><b>x</b></code>", "inside code"),
        ("HTML", '<a href="nowhere">x</a>', "the link to 'nowhere' is dropped: Wrong HTTP URL"),
        ("MarkdownV2", "[x](file:///etc)", "Unsupported URL protocol"),
        ("HTML", "<b> </b>x", "only white space"),
    ],
)
def test_markup_is_held_to_the_same_rules(
    api: BotApi, raw: Raw, ada: Person, chat: Chat, mode: str, text: str, words: str
) -> None:
    raw("sendMessage", chat_id=ada.id, text=text, parse_mode=mode)
    assert words in api.complaints[0]


def test_complaints_can_be_switched_off(api: BotApi, raw: Raw, ada: Person, chat: Chat) -> None:
    api.strict = False
    raw("sendMessage", chat_id=ada.id, text="abc", entities=[entity("bold", 0, 0)])
    assert api.complaints == []


def test_an_indented_first_line_stays_only_in_code(api: BotApi, raw: Raw, ada: Person, chat: Chat) -> None:
    raw("sendMessage", chat_id=ada.id, text="  if x:\n    y  ", entities=[entity("pre", 0, 15)])
    assert chat.messages[-1].text == "  if x:\n    y"
    assert chat.messages[-1].entities == [entity("pre", 0, 13)]
    raw("sendMessage", chat_id=ada.id, text="  if x", entities=[entity("pre", 2, 2)])
    assert (chat.messages[-1].text, chat.messages[-1].entities) == ("if x", [entity("pre", 0, 2)])
    assert api.complaints == []


def test_returns_go_and_entities_move_with_the_text(raw: Raw, ada: Person, chat: Chat) -> None:
    raw(
        "sendMessage",
        chat_id=ada.id,
        text="a\r\n😀\tb",
        entities=[entity("bold", 3, 2), entity("italic", 6, 1)],
    )
    assert chat.messages[-1].text == "a\n😀 b"
    assert chat.messages[-1].entities == [entity("bold", 2, 2), entity("italic", 5, 1)]


def test_captions_are_held_to_the_same_rules(api: BotApi, raw: Raw, ada: Person, chat: Chat) -> None:
    document = ada.sends_document(chat).files[0].id
    bad = [entity("bold", 0, 9)]
    refusal = raw.refused(
        "sendDocument", chat_id=ada.id, document=document, caption="x", caption_entities=bad
    )
    assert refusal[1].startswith("Bad Request: entity beginning at UTF-16 offset 0 ends after the end")
