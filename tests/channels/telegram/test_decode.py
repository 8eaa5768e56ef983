"""What raw updates mean: a table of them, also of those that no program should send."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hiboss.channels.telegram import decode
from hiboss.channels.telegram.message_facts import Me
from hiboss.channels.telegram.message_text import RemoteFile, file
from hiboss.core.contracts.inbound import NOBODY, Author, Inbound

ME = Me(99, "NexBot")
ADA = {"id": 7, "is_bot": False, "first_name": "Ada", "last_name": "L.", "username": "ada"}
NEX = {"id": 99, "is_bot": True, "first_name": "Nex", "username": "NexBot"}
PRIVATE = {"id": 7, "type": "private", "first_name": "Ada"}
GROUP = {"id": -1005, "type": "supergroup", "title": "Team"}
CHANNEL = {"id": -1009, "type": "channel", "title": "News", "username": "news"}


def message(**fields: Any) -> dict[str, Any]:
    known = {"message_id": 3, "date": 1700000000, "chat": PRIVATE, "from": ADA}
    return {"update_id": 1, "message": {**known, **fields}}


def means(raw: Any) -> Inbound:
    return decode.meaning(raw, ME)


def entity(kind: str, text: str, words: str, **more: Any) -> dict[str, Any]:
    before = text.partition(words)[0]
    size = [len(one.encode("utf-16-le")) // 2 for one in (before, words)]
    return {"type": kind, "offset": size[0], "length": size[1], **more}


def command(text: str, words: str, **fields: Any) -> dict[str, Any]:
    return message(text=text, entities=[entity("bot_command", text, words)], **fields)


# --- text -----------------------------------------------------------------------------------


def test_a_text_comes_with_who_where_and_when() -> None:
    assert means(message(text=" two  spaces\nkept ")) == Inbound(
        chat="7",
        author=Author("7", "Ada L.", "ada"),
        message="3",
        text=" two  spaces\nkept ",
        sent_at=1700000000000,
    )


def test_a_group_has_a_title_and_a_private_chat_has_none() -> None:
    found = means(message(chat=GROUP, text="x"))
    assert (found.chat, found.chat_kind, found.title) == ("-1005", "group", "Team")
    assert means(message(text="x")).title is None


def test_an_edit_is_about_the_message_that_it_edits() -> None:
    raw = {"update_id": 1, "edited_message": {**message(text="new")["message"], "edit_date": 1700000009}}
    found = means(raw)
    assert (found.kind, found.message, found.text, found.sent_at) == ("edit", "3", "new", 1700000009000)
    raw["edited_channel_post"] = {**raw.pop("edited_message"), "chat": CHANNEL}  # type: ignore[dict-item]
    assert (means(raw).kind, means(raw).chat_kind) == ("edit", "channel")


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"photo": [], "caption": "look"}, "look"),
        ({"sticker": {"file_id": "s", "emoji": "😀"}}, "😀"),
        ({"location": {"latitude": 52.5, "longitude": 13.4}}, "location: 52.5, 13.4"),
        (
            {
                "location": {"latitude": 1, "longitude": 2},
                "venue": {"title": "Cafe", "address": "Main St"},
            },
            "location: 1, 2 (Cafe, Main St)",
        ),
        (
            {"contact": {"first_name": "Bo", "last_name": "B", "phone_number": "+49"}},
            "contact: Bo B, +49",
        ),
        ({"poll": {"question": "Lunch?", "options": []}}, "[poll: Lunch?]"),
        ({"dice": {"emoji": "🎲", "value": 4}}, "[dice: 🎲 4]"),
        ({"story": {"id": 1}}, "[story]"),
        ({"hologram": {"title": "of tomorrow"}}, "[hologram: of tomorrow]"),
        ({}, "[a message of a kind that hiboss does not know]"),
        ({"voice": {"file_id": "v"}}, ""),
        ({"text": "half \ud83d of a pair"}, "half \ufffd of a pair"),
    ],
)
def test_what_is_no_text_is_put_into_words(fields: dict[str, Any], text: str) -> None:
    found = means(message(**fields))
    assert (found.kind, found.text) == ("message", text)


@pytest.mark.parametrize(
    "fields",
    [
        {"new_chat_members": [ADA]},
        {"left_chat_member": ADA},
        {"pinned_message": {"message_id": 1, "text": "x"}},
        {"forum_topic_created": {"name": "plans"}},
        {"new_chat_title": "Team 2"},
        {"migrate_from_chat_id": -5},
        {"video_chat_started": {}},
    ],
)
def test_what_only_happened_in_the_chat_is_ignored(fields: dict[str, Any]) -> None:
    assert means(message(chat=GROUP, **fields)).kind == "ignored"


# --- who ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "author"),
    [
        ({"from": NEX}, Author("99", "Nex", "NexBot", bot=True)),
        ({"from": {"id": 1087968824, "is_bot": True}, "sender_chat": GROUP}, Author(name="Team")),
        ({"from": {"id": 777000}, "sender_chat": CHANNEL}, Author(name="News", username="news")),
        ({"from": None}, NOBODY),
        ({"from": {"first_name": "Nobody"}}, NOBODY),
        ({"from": {"id": "7", "first_name": "Text"}}, NOBODY),
        ({"from": {"id": 7}}, Author("7")),
    ],
)
def test_only_a_person_has_an_id(fields: dict[str, Any], author: Author) -> None:
    assert means(message(chat=GROUP, text="x", **fields)).author == author


def test_a_channel_post_is_written_by_the_channel() -> None:
    post = {"message_id": 4, "date": 1, "chat": CHANNEL, "sender_chat": CHANNEL, "text": "news"}
    found = means({"update_id": 1, "channel_post": post})
    assert (found.kind, found.chat_kind, found.author) == (
        "message",
        "channel",
        Author(name="News", username="news"),
    )


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ({"forward_origin": {"type": "user", "sender_user": ADA}}, "Ada L."),
        ({"forward_origin": {"type": "hidden_user", "sender_user_name": "H"}}, "H"),
        ({"forward_origin": {"type": "chat", "sender_chat": GROUP}}, "Team"),
        ({"forward_origin": {"type": "channel", "chat": CHANNEL}}, "News"),
        ({"forward_origin": {"type": "of the future"}}, "somebody"),
        ({"forward_date": 1, "forward_from": ADA}, "Ada L."),
        ({"forward_date": 1, "forward_sender_name": "H"}, "H"),
        ({"forward_date": 1}, "somebody"),
        ({"forward_origin": {}}, "somebody"),
        ({"via_bot": {"id": 9, "is_bot": True, "first_name": "Gif"}}, "Gif"),
        ({"via_bot": {"is_bot": True}}, "a bot"),
    ],
)
def test_a_forward_names_who_first_wrote_it(fields: dict[str, Any], name: str) -> None:
    assert means(message(text="x", **fields)).forwarded == name


# --- where, and in reply to what ------------------------------------------------------------


def test_a_topic_counts_only_if_the_message_is_marked_as_of_a_topic() -> None:
    assert means(message(text="x", message_thread_id=5, is_topic_message=True)).place == "7/5"
    assert means(message(text="x", message_thread_id=5)).place == "7"


@pytest.mark.parametrize(
    ("fields", "reply_to", "replied"),
    [
        ({"reply_to_message": {"message_id": 2, "from": NEX}}, "2", True),
        ({"reply_to_message": {"message_id": 2, "from": ADA}}, "2", False),
        ({"reply_to_message": {"message_id": 2}}, "2", False),
        ({"reply_to_message": {"message_id": 5, "from": NEX, "forum_topic_created": {}}}, None, False),
        (
            {
                "reply_to_message": {"message_id": 5, "from": NEX},
                "message_thread_id": 5,
                "is_topic_message": True,
            },
            None,
            False,
        ),
        ({"reply_to_message": {"message_id": 5, "from": NEX}, "message_thread_id": 5}, "5", True),
        ({"reply_to_message": []}, None, False),
    ],
)
def test_a_reply_is_told_from_the_start_of_a_topic(
    fields: dict[str, Any], reply_to: str | None, replied: bool
) -> None:
    found = means(message(chat=GROUP, text="x", **fields))
    assert (found.reply_to, found.replied) == (reply_to, replied)


@pytest.mark.parametrize(
    ("fields", "quote"),
    [
        ({"quote": {"text": "those words", "position": 0}}, "those words"),
        ({"external_reply": {"origin": {}, "text": "elsewhere"}}, "elsewhere"),
        ({"external_reply": {"origin": {}}}, None),
        ({}, None),
    ],
)
def test_quoted_words_are_kept_apart_from_the_text(fields: dict[str, Any], quote: str | None) -> None:
    found = means(message(text="x", **fields))
    assert (found.text, found.quote) == ("x", quote)


@pytest.mark.parametrize(
    ("text", "words", "kind", "mentioned"),
    [
        ("hi @nexbot", "@nexbot", "mention", True),
        ("😀😀 @NEXBOT, hi", "@NEXBOT", "mention", True),
        ("hi @nexbot2", "@nexbot2", "mention", False),
        ("hi @nexbot", "hi", "bold", False),
        ("/stop@nexbot", "/stop@nexbot", "bot_command", True),
        ("mail a@nexbot.com", "a@nexbot.com", "email", False),
    ],
)
def test_the_bot_is_mentioned_by_its_name(text: str, words: str, kind: str, mentioned: bool) -> None:
    assert means(message(text=text, entities=[entity(kind, text, words)])).mentioned is mentioned
    raw = message(photo=[], caption=text, caption_entities=[entity(kind, text, words)])
    assert means(raw).mentioned is mentioned


def test_the_bot_is_mentioned_by_its_id() -> None:
    for user, mentioned in ((NEX, True), (ADA, False)):
        marks = [entity("text_mention", "hi Nex", "Nex", user=user)]
        assert means(message(text="hi Nex", entities=marks)).mentioned is mentioned


def test_odd_entities_mention_nobody() -> None:
    odd: list[Any] = [None, 5, {}, {"type": "mention", "offset": -1, "length": 9}, {"type": "mention"}]
    odd += [{"type": "mention", "offset": 900, "length": 10**9}, {"type": 4, "offset": 0, "length": 3}]
    assert means(message(text="@nexbot", entities=odd)).mentioned is False


# --- commands -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "words", "name", "arguments"),
    [
        ("/stop", "/stop", "stop", ""),
        ("/stop now  please", "/stop", "stop", "now  please"),
        ("/stop@nexbot now", "/stop@nexbot", "stop", "now"),
        ("/new\nline", "/new", "new", "line"),
    ],
)
def test_a_command_at_the_start_acts(text: str, words: str, name: str, arguments: str) -> None:
    found = decode.update(command(text, words), 0, ME)
    assert found.act is not None and found.act == found.about
    act = found.act
    assert (act.kind, act.command, act.arguments, act.text) == ("command", name, arguments, text)


@pytest.mark.parametrize(
    "raw",
    [
        command("/stop@otherbot", "/stop@otherbot"),
        command("please /stop", "/stop"),
        command("/stop", "/stop", forward_origin={"type": "user", "sender_user": ADA}),
        command("/stop", "/stop", forward_origin={}),
        command("/stop", "/stop", via_bot=NEX),
        message(text="/stop"),
        message(text="/stop", entities=[entity("code", "/stop", "/stop")]),
        message(text="/usr/bin", entities=[entity("bot_command", "/usr/bin", "/usr")]),
        message(photo=[], caption="/stop", caption_entities=[entity("bot_command", "/stop", "/stop")]),
        message(
            text="/stop",
            entities=[entity("blockquote", "/stop", "/stop"), entity("bot_command", "/stop", "/stop")],
        ),
        {"update_id": 1, "edited_message": command("/stop", "/stop")["message"]},
    ],
)
def test_what_only_looks_like_a_command_does_not_act(raw: dict[str, Any]) -> None:
    found = decode.update(raw, 0, ME)
    assert found.act is None and found.about is not None
    assert found.about.kind in ("message", "edit")


# --- presses, reactions, memberships --------------------------------------------------------


@pytest.mark.parametrize("more", [{"from": NEX, "date": 1}, {"date": 0}])
def test_a_press_names_the_post_also_an_old_one(more: dict[str, Any]) -> None:
    query = {"id": "5", "from": ADA, "data": "yes", "message": {"message_id": 8, "chat": PRIVATE, **more}}
    act = decode.update({"update_id": 1, "callback_query": query}, 0, ME).act
    assert act is not None
    assert (act.kind, act.message, act.button, act.chat) == ("press", "8", "yes", "7")
    assert act.author == Author("7", "Ada L.", "ada")


@pytest.mark.parametrize(
    "query",
    [{"id": "5", "data": "yes", "inline_message_id": "x"}, {"id": "5", "message": {"message_id": 8}}, {}],
)
def test_a_press_of_something_else_is_ignored(query: dict[str, Any]) -> None:
    assert means({"update_id": 1, "callback_query": query}).kind == "ignored"


@pytest.mark.parametrize(
    ("new", "emojis"),
    [
        ([{"type": "emoji", "emoji": "👍"}, {"type": "emoji", "emoji": "🔥"}], ("👍", "🔥")),
        ([{"type": "paid"}, {"type": "custom_emoji", "custom_emoji_id": "1"}], ("⭐", "custom")),
        ([{"type": "of the future"}], ("?",)),
        ([], ()),
    ],
)
def test_a_reaction_says_all_that_the_person_has_put_there(new: list[Any], emojis: tuple[str, ...]) -> None:
    change = {"chat": GROUP, "message_id": 3, "user": ADA, "new_reaction": new, "old_reaction": []}
    found = means({"update_id": 1, "message_reaction": change})
    assert (found.kind, found.message, found.emojis, found.author.id) == ("reaction", "3", emojis, "7")


def test_a_reaction_of_a_chat_is_of_no_person() -> None:
    change = {"chat": GROUP, "message_id": 3, "actor_chat": GROUP, "new_reaction": []}
    assert means({"update_id": 1, "message_reaction": change}).author == Author(name="Team")


@pytest.mark.parametrize(
    ("before", "after", "membership"),
    [
        ({"status": "left"}, {"status": "member"}, "joined"),
        ({"status": "member"}, {"status": "kicked"}, "left"),
        ({"status": "kicked"}, {"status": "administrator"}, "joined"),
        ({"status": "member"}, {"status": "restricted", "is_member": False}, "left"),
        ({"status": "member"}, {"status": "restricted", "is_member": True}, None),
        ({"status": "member"}, {"status": "administrator"}, None),
        ({}, {}, None),
    ],
)
def test_a_membership_is_told_when_it_changes(
    before: dict[str, Any], after: dict[str, Any], membership: str | None
) -> None:
    change = {"chat": GROUP, "from": ADA, "old_chat_member": before, "new_chat_member": after}
    found = decode.update({"update_id": 1, "my_chat_member": change}, 0, ME)
    assert (found.act.membership if found.act else None) == membership


def test_a_group_that_gets_a_new_id_says_so() -> None:
    act = decode.update(message(chat=GROUP, migrate_to_chat_id=-1007), 0, ME).act
    assert act is not None
    assert (act.kind, act.membership, act.chat, act.renamed_to) == (
        "membership",
        "renamed",
        "-1005",
        "-1007",
    )


# --- ids, and what nobody understands -------------------------------------------------------


def test_the_id_has_the_era_but_for_the_first() -> None:
    assert [decode.update(message(text="x"), era, ME).id for era in (0, 1, 2)] == ["1", "1.1", "2.1"]


def test_an_update_without_an_id_has_the_same_every_time() -> None:
    odd = [{"message": {}}, "odd", None, {"update_id": "text"}]
    assert [decode.update_id(one, 0) for one in odd] == [decode.update_id(one, 3) for one in odd]
    assert len({decode.update_id(one, 0) for one in odd}) == 4


def values() -> list[Any]:
    return [None, True, 5, -1, 1.5, "text", "", [], [1], {}, {"id": "x"}, {"chat": []}, [{"a": None}]]


def test_no_update_makes_it_raise() -> None:
    """Every field of a message, replaced by every kind of value."""
    whole = message(
        text="@nexbot hi",
        entities=[entity("mention", "@nexbot hi", "@nexbot")],
        reply_to_message={"message_id": 2, "from": NEX},
        quote={"text": "x"},
        external_reply={"origin": {}},
        forward_origin={"type": "user", "sender_user": ADA},
        sender_chat=GROUP,
        is_topic_message=True,
        message_thread_id=4,
        photo=[{"file_id": "p", "width": 1, "height": 1}],
        document={"file_id": "d", "file_name": "n", "file_size": 4, "mime_type": "x/y"},
        location={"latitude": 1, "longitude": 2},
        venue={"title": "x"},
        contact={"first_name": "x"},
        media_group_id="9",
        migrate_to_chat_id=-4,
    )["message"]
    kinds = [*decode.ALLOWED, "poll_answer"]
    for kind in kinds:
        for field in [*whole, "user", "new_reaction", "data", "old_chat_member", "new_chat_member"]:
            for value in values():
                _look({"update_id": 1, kind: {**whole, field: value}})
    for value in values():
        _look(value)
        for kind in kinds:
            _look({"update_id": value, kind: value})


def _look(raw: Any) -> None:
    found = decode.update(raw, 0, ME)
    assert found.id and found.chat
    assert not set(found.chat) & set(" :/") and json.loads(json.dumps(found.raw)) == found.raw
    assert decode.album(found.raw) in (None, "9", "text")
    file(decode.message_of(raw))


@pytest.mark.parametrize("raw", ["garbage", None, {"update_id": 1}, {"update_id": 1, "message": "text"}])
def test_what_nobody_understands_is_ignored_and_kept(raw: Any) -> None:
    found = decode.update(raw, 0, ME)
    assert (found.chat, found.raw, means(raw).kind) == (decode.NOWHERE, raw, "ignored")


def test_an_update_of_a_new_kind_is_ignored_in_its_chat() -> None:
    found = means({"update_id": 1, "business_of_tomorrow": {"chat": PRIVATE, "draft_id": 4}})
    assert (found.kind, found.chat) == ("ignored", "7")


# --- files and albums -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "found"),
    [
        (
            {
                "photo": [
                    {"file_id": "small", "width": 90, "height": 60},
                    {"file_id": "large", "width": 900, "height": 600, "file_size": 5},
                    {"file_id": "middle", "width": 300, "height": 200},
                ]
            },
            ("photo", "large", "photo_3.jpg", 5),
        ),
        ({"voice": {"file_id": "v"}}, ("voice", "v", "voice_3.ogg", None)),
        ({"document": {"file_id": "d", "file_name": "a b.pdf"}}, ("document", "d", "a b.pdf", None)),
        (
            {"document": {"file_id": "d", "mime_type": "application/pdf"}},
            ("document", "d", "document_3.pdf", None),
        ),
        ({"audio": {"file_id": "a", "mime_type": "audio/mpeg"}}, ("audio", "a", "audio_3.mp3", None)),
        ({"video": {"file_id": "v"}}, ("video", "v", "video_3.mp4", None)),
        ({"video_note": {"file_id": "n"}}, ("video_note", "n", "video_note_3.mp4", None)),
        (
            {"animation": {"file_id": "g"}, "document": {"file_id": "g2"}},
            ("animation", "g", "animation_3.mp4", None),
        ),
        ({"sticker": {"file_id": "s"}}, ("sticker", "s", "sticker_3.webp", None)),
        ({"sticker": {"file_id": "s", "is_animated": True}}, ("sticker", "s", "sticker_3.tgs", None)),
        ({"sticker": {"file_id": "s", "is_video": True}}, ("sticker", "s", "sticker_3.webm", None)),
    ],
)
def test_a_file_has_a_name_that_says_what_it_is(fields: dict[str, Any], found: tuple[Any, ...]) -> None:
    assert file(message(**fields)["message"]) == RemoteFile(*found)


def test_only_new_messages_are_parts_of_an_album() -> None:
    part = message(photo=[], media_group_id="9")
    assert decode.album(part) == "9"
    assert decode.album({"update_id": 1, "edited_message": part["message"]}) is None


def test_an_edit_of_a_part_of_an_album_counts_only_if_the_part_has_the_words() -> None:
    part = message(photo=[], media_group_id="9")["message"]
    assert means({"update_id": 1, "edited_message": part}).kind == "ignored"
    found = means({"update_id": 1, "edited_message": {**part, "caption": "new"}})
    assert (found.kind, found.text) == ("edit", "new")


def test_a_live_location_that_moves_is_ignored() -> None:
    place = message(location={"latitude": 1, "longitude": 2, "live_period": 900})
    assert means(place).kind == "message"
    assert means({"update_id": 1, "edited_message": place["message"]}).kind == "ignored"
