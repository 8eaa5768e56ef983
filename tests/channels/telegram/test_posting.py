"""What goes out: where it goes, files, buttons, topics, the menu, and what each refusal means."""

from __future__ import annotations

import json
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest

from hiboss.channels.telegram import posting
from hiboss.core.contracts.adapter import Adapter, Button, Command, File
from hiboss.core.contracts.failures import AccountError, EnvelopeError, LaneError, Refused
from hiboss.testing.adapter_platform_rules import with_adapter
from hiboss.testing.adapter_rig import letter
from tests.channels.telegram.telegram_rig import TelegramRig

MEGABYTE = 1024 * 1024


async def post_all(adapter: Adapter, given: Any) -> list[str]:
    return [await adapter.post(given, number, chunk) for number, chunk in enumerate(adapter.chunks(given))]


# --- what each refusal means ----------------------------------------------------------------

REFUSALS: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"retry_after": 40}, LaneError, "rate_limited"),
    ({"status": 401}, AccountError, "unauthorized"),
    ({"status": 404}, AccountError, "unauthorized"),
    ({"status": 409}, AccountError, "other_poller"),
    ({"status": 403, "description": "Forbidden: bot was blocked by the user"}, EnvelopeError, "forbidden"),
    ({"status": 403, "description": "Forbidden: bot was kicked from the group"}, EnvelopeError, "forbidden"),
    ({"status": 400, "description": "Bad Request: chat not found"}, EnvelopeError, "chat_not_found"),
    ({"status": 400, "description": "Bad Request: message is too long"}, EnvelopeError, "too_long"),
    (
        {"status": 400, "description": "Bad Request: message thread not found"},
        EnvelopeError,
        "topic_not_found",
    ),
    ({"status": 400, "description": "Bad Request: SOMETHING_NEW"}, EnvelopeError, "refused"),
    ({"status": 413, "description": "Request Entity Too Large"}, EnvelopeError, "too_big"),
    (
        {
            "status": 400,
            "body": {
                "ok": False,
                "error_code": 400,
                "description": "Bad Request: group chat was upgraded to a supergroup chat",
                "parameters": {"migrate_to_chat_id": -1007},
            },
        },
        LaneError,
        "chat_migrated",
    ),
    ({"status": 500}, LaneError, "server_error"),
    ({"status": 502}, LaneError, "server_error"),  # HTML of the server in front
    ({"status": 418, "description": "odd"}, LaneError, "server_error"),
    ({"status": 403, "body": "<html>log in first</html>"}, LaneError, "not_understood"),
    ({"do": "garbage"}, LaneError, "not_understood"),
    ({"status": 200, "body": {"ok": True, "result": True}}, LaneError, "not_understood"),
    ({"do": "drop"}, AccountError, "unreachable"),
    ({"do": "lose_answer"}, AccountError, "unreachable"),
]


@pytest.mark.parametrize(("fault", "error", "kind"), REFUSALS, ids=lambda one: str(one)[:70])
def test_a_refusal_says_how_much_is_affected(
    rig: TelegramRig, fault: dict[str, Any], error: type[Exception], kind: str
) -> None:
    async def story(adapter: Adapter) -> None:
        rig.api.fault("sendMessage", **fault)
        with pytest.raises((LaneError, EnvelopeError)) as caught:
            await adapter.post(rig.letter(), 0, "hello")
        assert type(caught.value) is error
        assert caught.value.kind == kind
        assert caught.value.text
        if "retry_after" in fault:
            assert getattr(caught.value, "retry_after", None) == 40

    with_adapter(rig, story)


def test_nobody_can_be_written_to_who_has_blocked_the_bot(rig: TelegramRig) -> None:
    async def story(adapter: Adapter) -> None:
        rig.ada.blocks(rig.bot)
        with pytest.raises(EnvelopeError, match="blocked by the user"):
            await adapter.post(rig.letter(), 0, "hello")
        stranger = rig.api.add_person("Bo")
        with pytest.raises(EnvelopeError, match="can't initiate"):
            await adapter.post(rig.letter(place=str(stranger.id)), 0, "hello")

    with_adapter(rig, story)


def test_a_post_to_a_group_that_moved_waits_for_the_announcement(rig: TelegramRig) -> None:
    async def story(adapter: Adapter) -> None:
        group = rig.api.add_group("Team", [rig.ada, rig.bot], supergroup=False)
        new = group.migrate()
        with pytest.raises(LaneError, match=str(new.id)) as caught:
            await adapter.post(rig.letter(place=str(group.id)), 0, "hello")
        assert not isinstance(caught.value, AccountError)

    with_adapter(rig, story)


# --- where, in reply to what, with which buttons --------------------------------------------


def test_only_the_first_chunk_is_a_reply_and_only_the_last_text_has_the_buttons(
    rig: TelegramRig, tmp_path: Path
) -> None:
    rig.comes_in("question")
    path = tmp_path / "a.txt"
    path.write_text("a")
    given = rig.letter(
        "x" * 4000 + "\n" + "y" * 4000,
        reply_to=str(rig.last.id),
        buttons=(Button("yes", "Yes"), Button("no", "No"), Button("long", "A longer text on a button")),
        files=(File("a.txt", str(path), "text/plain"),),
    )

    async def story(adapter: Adapter) -> None:
        ids = await post_all(adapter, given)
        posts = [rig.private.find(int(one)) for one in ids]
        assert all(one is not None for one in posts)
        assert [one.reply_to is not None for one in posts if one] == [True, False, False]
        assert [len(one.buttons) for one in posts if one] == [0, 3, 0]
        markup = posts[1].reply_markup if posts[1] else None
        assert markup is not None
        assert [[one["text"] for one in row] for row in markup["inline_keyboard"]] == [
            ["Yes", "No"],
            ["A longer text on a button"],
        ]
        await adapter.remove_buttons(rig.chat, ids[1])
        await adapter.remove_buttons(rig.chat, ids[1])  # there are none any more
        assert posts[1] is not None
        assert posts[1].buttons == []

    with_adapter(rig, story)


def test_buttons_of_a_letter_without_text_are_under_its_last_file(rig: TelegramRig, tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("a")
    files = tuple(File("a.txt", str(path), "text/plain") for _ in range(2))

    async def story(adapter: Adapter) -> None:
        ids = await post_all(adapter, rig.letter("", buttons=(Button("ok", "OK"),), files=files))
        posts = [rig.private.find(int(one)) for one in ids]
        assert [len(one.buttons) for one in posts if one] == [0, 1]

    with_adapter(rig, story)


def test_general_is_posted_to_without_an_id_and_another_topic_with_it(rig: TelegramRig) -> None:
    async def story(adapter: Adapter) -> None:
        forum = rig.api.add_group("Forum", [rig.ada, rig.bot], forum=True, admins=[rig.bot])
        plans = forum.create_topic("plans")
        for topic in ("", "/1", f"/{plans.id}"):
            place = f"{forum.id}{topic}"
            await adapter.post(rig.letter(place=place), 0, place)
            await adapter.typing(place)
        found = {one.text: one.topic for one in forum.messages if one.text}
        assert found == {str(forum.id): None, f"{forum.id}/1": None, f"{forum.id}/{plans.id}": plans.id}

    with_adapter(rig, story)


@pytest.mark.parametrize("topic", ["plans", "999"])
def test_a_topic_that_is_not_there_is_an_envelope_error(rig: TelegramRig, topic: str) -> None:
    async def story(adapter: Adapter) -> None:
        with pytest.raises(EnvelopeError) as caught:
            await adapter.post(rig.letter(place=f"{rig.chat}/{topic}"), 0, "hello")
        assert caught.value.kind == "topic_not_found"

    with_adapter(rig, story)


def test_a_letter_without_anything_to_see_can_never_be_posted(rig: TelegramRig) -> None:
    async def story(adapter: Adapter) -> None:
        with pytest.raises(EnvelopeError):
            await adapter.post(rig.letter(" "), 0, "")

    with_adapter(rig, story)


def test_a_long_text_is_posted_whole(rig: TelegramRig) -> None:
    async def story(adapter: Adapter) -> None:
        text = "ä€😀 word\n" * 3000
        await post_all(adapter, rig.letter(text))
        assert "\n".join(rig.posted()).split() == text.split()

    with_adapter(rig, story)


# --- files ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "mime", "size", "method"),
    [
        ("a.png", "image/png", 100, "sendPhoto"),
        ("a.jpg", "image/jpeg", 11 * MEGABYTE, "sendDocument"),
        ("a.svg", "image/svg+xml", 100, "sendDocument"),
        ("ä b.pdf", "application/pdf", 3 * MEGABYTE, "sendDocument"),
    ],
)
def test_a_small_picture_is_a_photo_and_all_else_a_document(
    rig: TelegramRig, tmp_path: Path, name: str, mime: str, size: int, method: str
) -> None:
    path = tmp_path / "stored"
    path.write_bytes(b"x" * size)

    async def story(adapter: Adapter) -> None:
        ids = await post_all(adapter, rig.letter("see", files=(File(name, str(path), mime),)))
        post = rig.private.find(int(ids[1]))
        assert post is not None
        assert post.files[-1].data == b"x" * size
        (call,) = rig.api.calls_of(method)
        assert name in str(call.uploads)

    with_adapter(rig, story)


def test_a_picture_that_cannot_be_a_photo_goes_as_a_document(rig: TelegramRig, tmp_path: Path) -> None:
    path = tmp_path / "long.png"
    path.write_bytes(b"picture")

    async def story(adapter: Adapter) -> None:
        rig.api.fault("sendPhoto", status=400, description="Bad Request: PHOTO_INVALID_DIMENSIONS")
        (id_,) = await post_all(adapter, rig.letter("", files=(File("long.png", str(path), "image/png"),)))
        post = rig.private.find(int(id_))
        assert post is not None
        assert post.media["document"]["file_name"] == "long.png"
        assert post.files[-1].data == b"picture"

    with_adapter(rig, story)


@pytest.mark.parametrize(
    ("where", "kind"), [("missing", "file_missing"), ("home", "file_forbidden"), ("large", "too_big")]
)
def test_a_file_that_can_never_be_posted_is_named(
    rig: TelegramRig, tmp_path: Path, where: str, kind: str
) -> None:
    path = rig.home / "config.toml" if where == "home" else tmp_path / where
    if where == "large":
        with path.open("wb") as file:
            file.truncate(51 * MEGABYTE)

    async def story(adapter: Adapter) -> None:
        given = rig.letter("", files=(File(where, str(path), "application/zip"),))
        with pytest.raises(EnvelopeError) as caught:
            await post_all(adapter, given)
        assert caught.value.kind == kind
        assert path.name in caught.value.text
        assert rig.posted() == []

    with_adapter(rig, story)


# --- edits, signs, topics, the menu ---------------------------------------------------------


@pytest.mark.parametrize(
    "chunk", ["x" * 4097, posting.chunks(letter("7", "", files=(File("a", "/a", "x/y"),)))[0]]
)
def test_what_cannot_be_an_edit_is_an_envelope_error(rig: TelegramRig, chunk: str) -> None:
    async def story(adapter: Adapter) -> None:
        post = await adapter.post(rig.letter(), 0, "hello")
        with pytest.raises(EnvelopeError):
            await adapter.edit(rig.chat, post, chunk, "key")
        assert rig.posted() == ["hello"]

    with_adapter(rig, story)


@pytest.mark.parametrize("call", ["edit", "typing", "react", "delete"])
def test_a_wait_is_named_by_every_call(rig: TelegramRig, call: str) -> None:
    async def story(adapter: Adapter) -> None:
        post = await adapter.post(rig.letter(), 0, "hello")
        given = {
            "edit": (rig.chat, post, "new", "key"),
            "typing": (rig.chat,),
            "react": (rig.chat, post, "👍"),
            "delete": (rig.chat, post),
        }
        rig.api.fault(retry_after=9)
        with pytest.raises(LaneError) as caught:
            await getattr(adapter, call)(*given[call])
        assert caught.value.retry_after == 9

    with_adapter(rig, story)


def test_a_reaction_goes_out_and_one_that_telegram_does_not_have_is_refused(rig: TelegramRig) -> None:
    async def story(adapter: Adapter) -> None:
        rig.comes_in("hello")
        await adapter.react(rig.chat, str(rig.last.id), "👍")
        assert rig.last.reactions[rig.bot.id] == ["👍"]
        with pytest.raises(EnvelopeError) as caught:
            await adapter.react(rig.chat, str(rig.last.id), "🪿")
        assert caught.value.kind == "reaction_invalid"

    with_adapter(rig, story)


def test_a_topic_can_be_made_and_posted_to(rig: TelegramRig) -> None:
    async def story(adapter: Adapter) -> None:
        topic = await adapter.create_topic(rig.chat, "n" * 200)
        await adapter.post(rig.letter(place=f"{rig.chat}/{topic}"), 0, "hello")
        assert [one.place for one in rig.posts()] == [f"{rig.chat}/{topic}"]

    with_adapter(rig, story)


def test_where_no_topic_can_be_made_the_next_step_is_named(rig: TelegramRig) -> None:
    async def story(adapter: Adapter) -> None:
        rig.bot.topics = False
        await _refused(adapter.create_topic(rig.chat, "plans"), "@BotFather")
        group = rig.api.add_group("Team", [rig.ada, rig.bot])
        await _refused(adapter.create_topic(str(group.id), "plans"), "settings of the group")
        rig.api.fault("createForumTopic", status=404)
        await _refused(adapter.create_topic(rig.chat, "plans"), "has no createForumTopic")
        rig.api.fault("createForumTopic", status=500)
        with pytest.raises(LaneError):
            await adapter.create_topic(rig.chat, "plans")

    with_adapter(rig, story)


async def _refused(call: Coroutine[Any, Any, str], words: str) -> None:
    with pytest.raises(Refused) as caught:
        await call
    assert words in caught.value.why


def test_the_commands_are_in_the_menu_of_that_chat_alone(rig: TelegramRig) -> None:
    async def story(adapter: Adapter) -> None:
        commands = [Command("stop", "stop what works here"), Command("status", "s" * 300)]
        await adapter.show_commands(rig.chat, commands)
        (call,) = rig.api.calls_of("setMyCommands")
        assert json.loads(call.params["scope"]) == {"type": "chat", "chat_id": rig.chat}
        assert [one["command"] for one in json.loads(call.params["commands"])] == ["stop", "status"]

    with_adapter(rig, story)


def test_a_method_that_an_old_server_lacks_does_not_stop_the_account(rig: TelegramRig) -> None:
    async def story(adapter: Adapter) -> None:
        post = await adapter.post(rig.letter(), 0, "hello")
        rig.api.fault("setMessageReaction", status=404)
        with pytest.raises(EnvelopeError) as caught:
            await adapter.react(rig.chat, post, "👍")
        assert caught.value.kind == "unsupported"

    with_adapter(rig, story)
