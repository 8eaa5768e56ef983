"""What goes out: where it goes, in which form, edits, buttons, topics, and what each refusal means."""

from __future__ import annotations

import json
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest

from hiboss.channels.telegram.adapter import TelegramAdapter
from hiboss.channels.telegram.chunk_form import Chunk, encode
from hiboss.core.contracts.adapter import Adapter, Button, Command, Pace, Posted
from hiboss.core.contracts.failures import AccountError, ChatMoved, EnvelopeError, LaneError, Refused
from hiboss.testing.adapter_platform_rules import with_adapter
from hiboss.testing.adapter_steps import posted
from tests.channels.telegram.telegram_rig import TelegramRig, made_file, post_all

BOLD = ({"type": "bold", "offset": 0, "length": 4},)
RICH = Chunk("name", BOLD, "<table><tr><td>name</td></tr></table>")
MOVED = {
    "ok": False,
    "error_code": 400,
    "description": "Bad Request: group chat was upgraded to a supergroup chat",
    "parameters": {"migrate_to_chat_id": -1007},
}


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
    ({"status": 400, "description": "Bad Request: TOPIC_DELETED"}, EnvelopeError, "topic_not_found"),
    ({"status": 400, "description": "Bad Request: not enough rights to send"}, EnvelopeError, "no_rights"),
    ({"status": 400, "body": MOVED}, ChatMoved, "chat_moved"),
    ({"status": 500}, LaneError, "server_error"),
    ({"status": 502}, LaneError, "server_error"),  # HTML of the server in front
    ({"status": 418, "description": "odd"}, LaneError, "server_error"),
    ({"status": 403, "body": "<html>log in first</html>"}, LaneError, "not_understood"),
    ({"do": "garbage"}, LaneError, "not_understood"),
    ({"status": 200, "body": {"ok": True, "result": True}}, LaneError, "not_understood"),
    ({"do": "drop"}, LaneError, "no_answer"),  # it may have been posted
    ({"do": "lose_answer"}, LaneError, "no_answer"),
]


@pytest.mark.parametrize(("fault", "error", "kind"), REFUSALS, ids=lambda one: str(one)[:70])
async def test_a_refusal_says_how_much_is_affected(
    rig: TelegramRig, fault: dict[str, Any], error: type[Exception], kind: str, adapter: Adapter
) -> None:
    post = await posted(adapter, rig.letter(), "hello")
    for method, call in (
        ("sendMessage", lambda: adapter.post(rig.letter(), 0, "hello")),
        ("sendRichMessage", lambda: adapter.post(rig.letter(), 0, encode(RICH))),
        ("editMessageText", lambda: adapter.edit(rig.chat, post, "new", "key")),
    ):
        if _is_another_story(method, fault):
            continue
        rig.fault(method, **fault)
        with pytest.raises((LaneError, EnvelopeError)) as caught:
            await call()
        assert (type(caught.value), getattr(caught.value, "kind", None)) == (error, kind)
        assert str(caught.value)
        assert rig.bot.token not in f"{caught.value!r} {caught.value.__cause__} {caught.value.__context__}"
        if "retry_after" in fault:
            assert getattr(caught.value, "retry_after", None) == 40
        if isinstance(caught.value, ChatMoved):
            assert caught.value.chat == "-1007"


def _is_another_story(method: str, fault: dict[str, Any]) -> bool:
    """Tell whether a rich message goes in another form then, or what an edit answers does not matter."""
    if method == "editMessageText":
        return "body" in fault and fault["body"] is not MOVED
    refused = fault.get("status") == 404 or "too long" in str(fault) or "SOMETHING_NEW" in str(fault)
    return method == "sendRichMessage" and refused


async def test_a_server_that_cannot_be_connected_to_is_an_account_error(
    rig: TelegramRig, adapter: Adapter
) -> None:
    rig.api.stop_listening()
    with pytest.raises(AccountError) as caught:
        await adapter.post(rig.letter(), 0, "hello")
    assert caught.value.kind == "unreachable"
    assert rig.bot.token not in f"{caught.value!r} {caught.value.__context__}"


async def test_a_wait_of_a_second_chat_while_the_first_still_waits_is_the_bots(
    rig: TelegramRig, adapter: Adapter
) -> None:
    group = rig.api.add_group("Team", [rig.ada, rig.bot])
    waits = [await _limited(rig, adapter, place, 40) for place in (rig.chat, rig.chat, str(group.id))]
    assert [type(one) for one in waits] == [LaneError, LaneError, AccountError]
    assert [one.retry_after for one in waits] == [40] * 3


async def test_a_wait_of_a_second_chat_when_the_first_is_over_is_its_own(
    rig: TelegramRig, adapter: Adapter
) -> None:
    group = rig.api.add_group("Team", [rig.ada, rig.bot])
    waits = [await _limited(rig, adapter, place, 0) for place in (rig.chat, str(group.id))]
    assert [type(one) for one in waits] == [LaneError, LaneError]


async def test_the_waits_of_signs_say_nothing_about_posts(rig: TelegramRig, adapter: Adapter) -> None:
    group = rig.api.add_group("Team", [rig.ada, rig.bot])
    rig.fault("sendChatAction", retry_after=40)
    with pytest.raises(LaneError):
        await adapter.typing(str(group.id))
    assert type(await _limited(rig, adapter, rig.chat, 40)) is LaneError


async def _limited(rig: TelegramRig, adapter: Adapter, place: str, seconds: int) -> LaneError:
    rig.fault("sendMessage", retry_after=seconds)
    with pytest.raises(LaneError) as caught:
        await adapter.post(rig.letter(place=place), 0, "hello")
    return caught.value


def test_the_pace_is_that_of_telegram() -> None:
    assert TelegramAdapter.pace == Pace(1.0, 20, 30)


# --- where, in reply to what, with which buttons --------------------------------------------


async def test_only_the_first_chunk_is_a_reply_and_only_the_last_text_has_the_buttons(
    rig: TelegramRig, tmp_path: Path, adapter: Adapter
) -> None:
    rig.comes_in("question")
    given = rig.letter(
        "x" * 4000 + "\n" + "y" * 4000,
        reply_to=str(rig.last.id),
        buttons=(Button("yes", "Yes"), Button("no", "No"), Button("long", "A longer text on a button")),
        files=(made_file(tmp_path, "a.txt", "text/plain"),),
    )
    ids = [one.ids[0] for one in await post_all(adapter, given)]
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
    assert posts[1] is not None and posts[1].buttons == []


async def test_buttons_of_a_letter_without_text_are_under_its_last_file(
    rig: TelegramRig, tmp_path: Path, adapter: Adapter
) -> None:
    files = tuple(made_file(tmp_path, f"{number}.txt", "text/plain") for number in range(3))
    await post_all(adapter, rig.letter("", buttons=(Button("ok", "OK"),), files=files))
    assert [len(one.buttons) for one in rig.private.messages] == [0, 0, 1]


async def test_a_reply_that_the_server_refuses_is_posted_without_the_reference(
    rig: TelegramRig, adapter: Adapter
) -> None:
    rig.comes_in("question")
    rig.fault("sendMessage", status=400, description="Bad Request: message to be replied not found")
    await adapter.post(rig.letter(reply_to=str(rig.last.id)), 0, "hello")
    assert [(one.text, one.reply_to) for one in rig.posts()] == [("hello", None)]


async def test_general_is_posted_to_without_an_id_and_another_topic_with_it(
    rig: TelegramRig, adapter: Adapter
) -> None:
    forum = rig.api.add_group("Forum", [rig.ada, rig.bot], forum=True, admins=[rig.bot])
    plans = forum.create_topic("plans")
    for topic in ("", "/1", f"/{plans.id}"):
        place = f"{forum.id}{topic}"
        await adapter.post(rig.letter(place=place), 0, place)
        await adapter.typing(place)
    found = {one.text: one.topic for one in forum.messages if one.text}
    assert found == {str(forum.id): None, f"{forum.id}/1": None, f"{forum.id}/{plans.id}": plans.id}


@pytest.mark.parametrize("topic", ["plans", "999"])
async def test_a_topic_that_is_not_there_is_an_envelope_error(
    rig: TelegramRig, topic: str, adapter: Adapter
) -> None:
    with pytest.raises(EnvelopeError) as caught:
        await adapter.post(rig.letter(place=f"{rig.chat}/{topic}"), 0, "hello")
    assert caught.value.kind == "topic_not_found"


async def test_a_letter_without_anything_to_see_can_never_be_posted(
    rig: TelegramRig, adapter: Adapter
) -> None:
    with pytest.raises(EnvelopeError):
        await adapter.post(rig.letter(" "), 0, "")


async def test_a_long_text_is_posted_whole(rig: TelegramRig, adapter: Adapter) -> None:
    text = "ä€😀 word\n" * 3000
    await post_all(adapter, rig.letter(text))
    assert "\n".join(rig.posted()).split() == text.split()


# --- the forms of a text --------------------------------------------------------------------

REFUSED = {"status": 400, "description": "Bad Request: RICH_MESSAGE_EMAIL_INVALID"}
NO_ENTITIES = {"status": 400, "description": "Bad Request: can't parse entities: unsupported"}


def forms(rig: TelegramRig) -> list[str]:
    """Return the form of each post of ours: rich, marked or plain."""
    ours = [one for one in rig.private.messages if one.sender is rig.bot and not one.service]
    return ["rich" if "rich_message" in one.more else "marked" if one.entities else "plain" for one in ours]


async def test_a_rich_message_is_posted_and_edited_as_such(rig: TelegramRig, adapter: Adapter) -> None:
    post = await posted(adapter, rig.letter(), encode(RICH))
    assert forms(rig) == ["rich"]
    (call,) = rig.api.calls_of("sendRichMessage")
    assert json.loads(call.params["rich_message"]) == {"html": RICH.rich, "skip_entity_detection": True}
    more = RICH._replace(rich="<table><tr><td>more</td></tr></table>")
    for _ in range(2):
        await adapter.edit(rig.chat, post, encode(more), "key")
    assert forms(rig) == ["rich"]
    await adapter.edit(rig.chat, post, encode(Chunk("name", BOLD)), "key")
    assert (forms(rig), rig.posted()) == (["marked"], ["name"])


async def test_what_is_refused_as_rich_goes_with_entities_and_then_plain(
    rig: TelegramRig, adapter: Adapter
) -> None:
    rig.fault("sendRichMessage", **REFUSED)
    await adapter.post(rig.letter(), 0, encode(RICH))
    rig.fault("sendRichMessage", **REFUSED)
    rig.fault("sendMessage", **NO_ENTITIES)
    await adapter.post(rig.letter(), 0, encode(RICH))
    await adapter.post(rig.letter(), 0, encode(RICH))  # one refusal says nothing about the next
    assert (forms(rig), rig.posted()[:2]) == (["marked", "plain", "rich"], ["name", "name"])


@pytest.mark.parametrize("html", ["<table><tr><td>open", "<nonsense>x</nonsense>"])
async def test_what_the_server_itself_refuses_as_rich_goes_with_entities(
    rig: TelegramRig, html: str, adapter: Adapter
) -> None:
    await adapter.post(rig.letter(), 0, encode(RICH._replace(rich=html)))
    assert (forms(rig), rig.posted()) == (["marked"], ["name"])


async def test_entities_that_the_server_refuses_are_left_out(rig: TelegramRig, adapter: Adapter) -> None:
    beyond = ({"type": "bold", "offset": 0, "length": 100},)
    await adapter.post(rig.letter(), 0, encode(Chunk("name", beyond)))
    assert (forms(rig), rig.posted()) == (["plain"], ["name"])


async def test_an_edit_that_is_refused_as_rich_goes_with_entities_and_then_plain(
    rig: TelegramRig, adapter: Adapter
) -> None:
    post = await posted(adapter, rig.letter(), "na…")
    rig.fault("editMessageText", **REFUSED)
    await adapter.edit(rig.chat, post, encode(RICH), "key")
    assert forms(rig) == ["marked"]
    rig.fault("editMessageText", **REFUSED)
    rig.fault("editMessageText", **NO_ENTITIES)
    await adapter.edit(rig.chat, post, encode(RICH), "key")
    assert forms(rig) == ["plain"]
    rig.fault("editMessageText", **REFUSED)
    rig.fault("editMessageText", **NO_ENTITIES)
    await adapter.edit(rig.chat, post, encode(RICH), "key")  # it is so already
    assert (forms(rig), rig.posted()) == (["plain"], ["name"])


def test_an_old_server_is_asked_for_a_rich_post_once(old_rig: TelegramRig) -> None:
    async def story(adapter: Adapter) -> None:
        for _ in range(3):
            await adapter.post(old_rig.letter(), 0, encode(RICH))
        assert (forms(old_rig), len(old_rig.api.calls_of("sendRichMessage"))) == (["marked"] * 3, 1)

    with_adapter(old_rig, story)


def test_an_old_server_is_asked_for_a_rich_edit_once(old_rig: TelegramRig) -> None:
    async def story(adapter: Adapter) -> None:
        post = await posted(adapter, old_rig.letter(), "na…")
        for text in ("name", "name", "more"):
            await adapter.edit(old_rig.chat, post, encode(RICH._replace(text=text)), "key")
        assert (forms(old_rig), old_rig.posted()) == (["marked"], ["more"])
        asked = [one for one in old_rig.api.calls_of("editMessageText") if "rich_message" in one.params]
        assert len(asked) == 1
        await adapter.post(old_rig.letter(), 0, encode(RICH))
        assert old_rig.api.calls_of("sendRichMessage") == []  # it has neither

    with_adapter(old_rig, story)


async def test_a_fallback_posts_its_own_chunk_only(rig: TelegramRig, adapter: Adapter) -> None:
    given = rig.letter()
    for number in range(3):
        if number == 1:
            rig.fault("sendRichMessage", **REFUSED)
        await adapter.post(given, number, encode(RICH._replace(text=f"name {number}")))
    assert forms(rig) == ["rich", "marked", "rich"]


async def test_a_chunk_that_names_a_problem_tells_it_to_the_sender(
    rig: TelegramRig, adapter: Adapter
) -> None:
    answer = await adapter.post(rig.letter(), 0, encode(Chunk("too big", problem="too big")))
    assert isinstance(answer, Posted)
    assert (rig.posted(), answer.notes, len(answer.ids)) == (["too big"], ("too big",), 1)


# --- edits, deletions, topics, the menu -----------------------------------------------------


@pytest.mark.parametrize("chunk", ["x" * 4097, encode(Chunk("caption", files=(0,)))])
async def test_what_cannot_be_an_edit_is_an_envelope_error(
    rig: TelegramRig, chunk: str, adapter: Adapter
) -> None:
    post = await posted(adapter, rig.letter(), "hello")
    with pytest.raises(EnvelopeError):
        await adapter.edit(rig.chat, post, chunk, "key")
    assert rig.posted() == ["hello"]


async def test_an_edit_of_a_post_that_is_gone_is_refused_after_one_call(
    rig: TelegramRig, adapter: Adapter
) -> None:
    post = await posted(adapter, rig.letter(), "hello")
    await adapter.delete(rig.chat, post)
    with pytest.raises(EnvelopeError) as caught:
        await adapter.edit(rig.chat, post, encode(RICH), "key")
    assert caught.value.kind == "not_found"
    assert len(rig.api.calls_of("editMessageText")) == 1


async def test_a_post_that_is_too_old_cannot_be_deleted_and_the_reason_is_named(
    rig: TelegramRig, adapter: Adapter
) -> None:
    post = await posted(adapter, rig.letter(), "hello")
    rig.api.advance(hours=49)
    with pytest.raises(EnvelopeError, match="can't be deleted") as caught:
        await adapter.delete(rig.chat, post)
    assert caught.value.kind == "not_deletable"


@pytest.mark.parametrize("call", ["edit", "typing", "react", "delete"])
async def test_a_wait_is_named_by_every_call(rig: TelegramRig, call: str, adapter: Adapter) -> None:
    post = await posted(adapter, rig.letter(), "hello")
    given = {
        "edit": (rig.chat, post, "new", "key"),
        "typing": (rig.chat,),
        "react": (rig.chat, post, "👍"),
        "delete": (rig.chat, post),
    }
    rig.fault(retry_after=9)
    with pytest.raises(LaneError) as caught:
        await getattr(adapter, call)(*given[call])
    assert caught.value.retry_after == 9


async def test_a_topic_can_be_made_and_posted_to(rig: TelegramRig, adapter: Adapter) -> None:
    topic = await adapter.create_topic(rig.chat, "n" * 200)
    await adapter.post(rig.letter(place=f"{rig.chat}/{topic}"), 0, "hello")
    assert [one.place for one in rig.posts()] == [f"{rig.chat}/{topic}"]


async def test_where_no_topic_can_be_made_the_next_step_is_named(rig: TelegramRig, adapter: Adapter) -> None:
    rig.bot.topics = False
    await _refused(adapter.create_topic(rig.chat, "plans"), "@BotFather")
    group = rig.api.add_group("Team", [rig.ada, rig.bot])
    await _refused(adapter.create_topic(str(group.id), "plans"), "settings of the group")
    rig.fault("createForumTopic", status=404)
    await _refused(adapter.create_topic(rig.chat, "plans"), "has no createForumTopic")
    rig.fault("createForumTopic", status=500)
    with pytest.raises(LaneError):
        await adapter.create_topic(rig.chat, "plans")


async def _refused(call: Coroutine[Any, Any, str], words: str) -> None:
    with pytest.raises(Refused) as caught:
        await call
    assert words in caught.value.why


async def test_the_commands_are_in_the_menu_of_that_chat_alone(rig: TelegramRig, adapter: Adapter) -> None:
    commands = [Command("stop", "stop what works here"), Command("status", "s" * 300)]
    await adapter.show_commands(rig.chat, commands)
    (call,) = rig.api.calls_of("setMyCommands")
    assert json.loads(call.params["scope"]) == {"type": "chat", "chat_id": rig.chat}
    assert [one["command"] for one in json.loads(call.params["commands"])] == ["stop", "status"]


async def test_a_method_that_an_old_server_lacks_does_not_stop_the_account(
    rig: TelegramRig, adapter: Adapter
) -> None:
    post = await posted(adapter, rig.letter(), "hello")
    rig.fault("setMessageReaction", status=404)
    with pytest.raises(EnvelopeError) as caught:
        await adapter.react(rig.chat, post, "👍")
    assert caught.value.kind == "unsupported"
