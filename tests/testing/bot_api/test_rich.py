"""Rich messages and entities: what people see of them, what is refused, and what is silently mended."""

from __future__ import annotations

from typing import Any

import pytest

from hiboss.testing.bot_api import BotApi
from hiboss.testing.bot_api.chats import Chat
from hiboss.testing.bot_api.people import Person

from .conftest import Raw

TABLE = "<table bordered><tr><th>Name</th><th>Size</th></tr><tr><td>a</td><td><b>1</b></td></tr></table>"


def send(raw: Raw, ada: Person, **rich: Any) -> Any:
    return raw("sendRichMessage", chat_id=ada.id, rich_message=rich)


@pytest.mark.parametrize(
    ("html", "seen", "kinds"),
    [
        ("plain", "plain", ["paragraph"]),
        ("<h2>Title</h2><p>One <b>two</b><br>three</p>", "Title\nOne two\nthree", ["heading", "paragraph"]),
        ("<ul><li>one</li><li><p>two</p></li></ul>", "• one\n• two", ["list"]),
        ('<ol start="3"><li>c<ul><li>x</li></ul></li><li>d</li></ol>', "3. c\n• x\n4. d", ["list"]),
        ('<ul><li><input type="checkbox" checked>done</li></ul>', "☑ done", ["list"]),
        ('<ol start="x"><li value="y">a</li></ol>', "1. a", ["list"]),
        ('<table><tr><td colspan="x">a</td></tr></table>', "a", ["table"]),
        (TABLE, "Name | Size\na | 1", ["table"]),
        ("<details open><summary>More</summary><p>in</p>text</details>", "More\nin\ntext", ["details"]),
        ("<blockquote>q<cite>Ada</cite></blockquote><hr/>x", "q\nAda\nx", ["blockquote", "divider", "paragraph"]),
        ('<pre><code class="language-py">if x:\n  y &lt; 1</code></pre>', "if x:\n  y < 1", ["pre"]),
        ("<p>E: <tg-math>mc^2</tg-math></p><tg-math-block>a\nb</tg-math-block>", "E: mc^2\na\nb",
         ["paragraph", "mathematical_expression"]),
        ('<p><a href="mailto:a@b.org">write</a> <tg-spoiler>s</tg-spoiler> <code>a  b</code></p>', "write s a  b",
         ["paragraph"]),
        ('<p><a name="top"></a><a href="#top">up</a></p>\n<footer>end</footer>', "up\nend", ["paragraph", "footer"]),
    ],
)  # fmt: skip
def test_html_becomes_blocks_and_what_people_see(
    api: BotApi, raw: Raw, ada: Person, chat: Chat, html: str, seen: str, kinds: list[str]
) -> None:
    sent = send(raw, ada, html=html)
    message = chat.messages[-1]
    assert (message.text, message.rich_source) == (seen, html)
    assert [block["type"] for block in sent["rich_message"]["blocks"]] == kinds and "text" not in sent
    assert api.complaints == []


def test_blocks_say_what_the_tags_said(raw: Raw, ada: Person, chat: Chat) -> None:
    (table,) = send(raw, ada, html=TABLE)["rich_message"]["blocks"]
    assert table["is_bordered"] and table["cells"][0][0]["is_header"]
    assert table["cells"][1][1]["text"] == {"type": "bold", "text": "1"}
    (code,) = send(raw, ada, html='<pre><code class="language-py">x</code></pre>')["rich_message"]["blocks"]
    assert code == {"type": "pre", "text": "x", "language": "py"}


@pytest.mark.parametrize(
    ("html", "why"),
    [
        ("<div>x</div>", "<div> is not known"),
        ("<p>x", "<p> is not closed"),
        ("x</p>", "</p> stands where no end tag is expected"),
        ("<b><i>x</b></i>", "</b> stands where </i> is expected"),
        ("<li>x</li>", "<li> stands outside of <ul> and <ol>"),
        ("<tr><td>x</td></tr>", "<tr> stands outside of <table>"),
        ("<table><td>x</td></table>", "<td> stands outside of <tr>"),
        ("<table><tr><td><p>x</p></td></tr></table>", "<p> cannot stand in a text"),
        ("<table>x<tr><td>y</td></tr></table>", "text stands in <table>"),
        ("<table></table>", "<table> has no cells"),
        ("<ul><p>x</p></ul>", "<p> stands in <ul>"),
        ("<details>x<summary>y</summary></details>", "<details> does not begin with <summary>"),
        ("<summary>x</summary>", "<summary> stands outside of <details>"),
        ("<h1><p>x</p></h1>", "<p> cannot stand in a text"),
        ("<!-- x -->y", "there is a comment"),
        ("<tg-thinking>x</tg-thinking>", "<tg-thinking> can stand in a draft only"),
    ],
)
def test_html_that_makes_no_sense_is_refused_and_complained_about(
    api: BotApi, raw: Raw, ada: Person, chat: Chat, html: str, why: str
) -> None:
    refusal = raw.refused("sendRichMessage", chat_id=ada.id, rich_message={"html": html})
    assert refusal == (400, "Bad Request: RICH_MESSAGE_HTML_INVALID")
    assert why in api.complaints[0]
    assert chat.texts == ["/start"]


@pytest.mark.parametrize(
    ("rich", "words"),
    [
        ({"markdown": "openai:ada@example.org"}, "RICH_MESSAGE_EMAIL_INVALID"),
        ({}, "rich message must be non-empty"),
        ({"html": ""}, "rich message must be non-empty"),
        ({"blocks": []}, "rich message must be non-empty"),
        ({"html": "<p> </p><hr/>"}, "RICH_MESSAGE_EMPTY"),
        ({"html": "x" * 32769}, "RICH_MESSAGE_TEXT_TOO_LONG"),
        ({"html": "<hr/>" * 500 + "x"}, "RICH_MESSAGE_BLOCKS_TOO_MANY"),
        ({"html": "<blockquote>" * 16 + "x" + "</blockquote>" * 16}, "RICH_MESSAGE_DEPTH_INVALID"),
        ({"html": f"<table><tr>{'<td>x</td>' * 21}</tr></table>"}, "RICH_MESSAGE_TABLE_COLS_TOO_MANY"),
        ({"html": '<a href="file:///etc">x</a>'}, "RICH_MESSAGE_URL_INVALID"),
        ({"html": '<tg-emoji emoji-id="1">word</tg-emoji>'}, "RICH_MESSAGE_EMOJI_INVALID"),
        ({"html": '<img src="https://a.org/x.png"/>'}, "RICH_MESSAGE_PHOTO_NO_MEDIA_FOUND"),
        ({"blocks": [{"text": "x"}]}, 'can\'t parse InputRichBlock: Can\'t find field "type"'),
        ({"blocks": [{"type": "quote", "text": "x"}]}, 'can\'t parse InputRichBlock: type "quote" is unsupported'),
        ({"blocks": [{"type": "table"}]}, 'can\'t parse InputRichBlock: Can\'t find field "cells"'),
        ({"blocks": [{"type": "list", "items": []}]}, "list must be non-empty"),
        ({"blocks": [{"type": "heading", "text": "x", "size": 7}]}, "invalid section heading size specified"),
        ({"blocks": [{"type": "paragraph", "text": {"type": "plain"}}]}, "unsupported rich text type"),
    ],
)  # fmt: skip
def test_a_rich_message_is_refused_in_words_that_were_seen(
    raw: Raw, ada: Person, chat: Chat, rich: Any, words: str
) -> None:
    assert raw.refused("sendRichMessage", chat_id=ada.id, rich_message=rich) == (400, f"Bad Request: {words}")


def test_the_largest_rich_message_is_taken(raw: Raw, ada: Person, chat: Chat) -> None:
    send(raw, ada, html="x" * 32768)
    send(raw, ada, html="<hr/>" * 499 + "x")
    send(raw, ada, html="<blockquote>" * 15 + "x" + "</blockquote>" * 15)
    send(raw, ada, html=f"<table><tr>{'<td>x</td>' * 20}</tr></table>")
    send(raw, ada, markdown="openai:ada@example.org", skip_entity_detection=True)


@pytest.mark.parametrize(
    ("rich", "words"),
    [
        ({"html": "<p>one\ntwo</p>"}, "only <br> makes a new line"),
        ({"html": "<b>one</b>\ntwo"}, "only <br> makes a new line"),
        ({"html": '<a href="#gone">x</a>'}, "the link to #gone leads nowhere"),
        ({"html": "<p>&copy; x</p>"}, "&copy; is shown as it is"),
        ({"html": "<p><b></b>x</p>"}, "<b> covers no visible text"),
        ({"html": "x", "markdown": "y"}, "only markdown is taken"),
        ({"markdown": "```\n\tx\n```"}, "a tab in code is shown as one space"),
        ({"html": "<ul>" + "<li>x</li>" * 251 + "</ul>"}, "503 blocks, items and rows"),
    ],
)
def test_what_gets_lost_silently_is_complained_about(
    api: BotApi, raw: Raw, ada: Person, chat: Chat, rich: Any, words: str
) -> None:
    send(raw, ada, **rich)
    assert words in api.complaints[0]


def test_markdown_is_seen_without_its_signs(api: BotApi, raw: Raw, ada: Person, chat: Chat) -> None:
    source = (
        "# Title\n\nSome **bold** and _italic_ `a*b` [link](https://a.org).\n\n- [x] done\n- open\n  - inner\n\n"
        "1. first\n2. second\n\n| A | B |\n|---|---|\n| 1 | x\\|y |\n\n> quoted\n> more\n\n---\n\n```py\nx = 1\n```\n"
        "<details><summary>More</summary>\nhidden\n</details>"
    )
    sent = send(raw, ada, markdown=source)
    assert chat.messages[-1].text.split("\n") == [
        *("Title", "Some bold and italic a*b link.", "☑ done", "• open", "• inner", "1. first", "2. second"),
        *("A | B", "1 | x|y", "quoted more", "x = 1", "More", "hidden"),
    ]
    assert [block["type"] for block in sent["rich_message"]["blocks"]] == [
        "heading",
        "paragraph",
        "list",
        "list",
        "table",
        "blockquote",
        "divider",
        "pre",
        "details",
    ]
    assert api.complaints == []


def test_a_server_that_is_too_old_for_blocks_does_not_see_them() -> None:
    with BotApi(version="10.1") as api:
        bot, ada = api.add_bot(), api.add_person()
        chat = ada.starts(bot)
        raw = Raw(api, bot)
        rich = {"blocks": [{"type": "paragraph", "text": ["a", {"type": "bold", "text": "b"}]}]}
        refusal = raw.refused("sendRichMessage", chat_id=ada.id, rich_message=rich)
        assert refusal == (400, "Bad Request: rich message must be non-empty")
        api.world.version = (10, 2)
        raw("sendRichMessage", chat_id=ada.id, rich_message=rich)
        assert chat.messages[-1].text == "ab"
        raw.close()


def test_a_rich_message_is_edited_into_another_and_into_text_and_back(
    api: BotApi, raw: Raw, ada: Person, chat: Chat
) -> None:
    here = {"chat_id": ada.id, "message_id": send(raw, ada, markdown="# Title")["message_id"]}
    message = chat.messages[-1]
    same = {"html": "<h1>Title</h1>"}  # another source of the same blocks
    assert "not modified" in raw.refused("editMessageText", **here, rich_message=same)[1]
    raw("editMessageText", **here, rich_message={"html": "<h1>Other</h1>"})
    assert (message.text, message.rich_source) == ("Other", "<h1>Other</h1>")
    assert raw("editMessageText", **here, text="plain")["text"] == "plain"
    assert message.rich_source is None
    assert "rich_message" in raw("editMessageText", **here, rich_message={"html": "<h1>Again</h1>"})
    assert message.texts == ["Title", "Other", "plain", "Again"]


def test_a_file_cannot_be_edited_into_a_rich_message(raw: Raw, ada: Person, chat: Chat) -> None:
    sent = raw("sendDocument", chat_id=ada.id, document=ada.sends_document(chat).files[0].id, caption="x")
    here = {"chat_id": ada.id, "message_id": sent["message_id"]}
    refusal = raw.refused("editMessageText", **here, rich_message={"html": "y"})
    assert refusal == (400, "Bad Request: there is no text in the message to edit")


def test_a_rich_draft_may_think(raw: Raw, ada: Person, chat: Chat) -> None:
    rich = {"html": "<p>So far</p><tg-thinking>Looking it up</tg-thinking>"}
    raw("sendRichMessageDraft", chat_id=ada.id, draft_id=1, rich_message=rich)
    assert chat.draft and chat.draft.rich
    assert (chat.draft.text, chat.draft.rich_source) == ("So far\nLooking it up", rich["html"])


# --- entities that a bot gives --------------------------------------------------------


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
