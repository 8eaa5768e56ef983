"""getUpdates and webhooks; groups, forums and channels: what a bot sees there, and in whose name."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from telegram import Bot as Library
from telegram import Update
from telegram.error import BadRequest

from hiboss.testing.bot_api import BotApi
from hiboss.testing.bot_api.bots import Bot
from hiboss.testing.bot_api.chats import Chat
from hiboss.testing.bot_api.people import Person

from .conftest import Raw


def texts(updates: list[Any]) -> list[str]:
    return [one["message"]["text"] for one in updates]


def in_background(raw: Raw, **params: Any) -> tuple[threading.Thread, list[Any]]:
    """Call getUpdates in a thread and collect its answer."""
    answers: list[Any] = []
    thread = threading.Thread(target=lambda: answers.append(raw.post("getUpdates", **params).json()))
    thread.start()
    return thread, answers


def test_updates_come_again_until_an_offset_confirms_them(
    raw: Raw, ada: Person, bot: Bot, chat: Chat
) -> None:
    for text in ("one", "two", "three"):
        ada.says(chat, text)
    first = raw("getUpdates")
    assert texts(first) == ["one", "two", "three"] == texts(raw("getUpdates", offset=0))
    assert texts(raw("getUpdates", offset=first[1]["update_id"])) == ["two", "three"]
    assert len(bot.pending) == 2
    assert raw("getUpdates", offset=first[-1]["update_id"] + 1) == []
    assert bot.pending == []


def test_a_negative_offset_counts_from_the_end_and_forgets_the_rest(
    raw: Raw, ada: Person, chat: Chat
) -> None:
    for text in ("one", "two", "three"):
        ada.says(chat, text)
    assert texts(raw("getUpdates", offset=-1)) == ["three"]
    assert texts(raw("getUpdates")) == ["three"]


def test_at_most_a_hundred_updates_come_at_once(raw: Raw, ada: Person, chat: Chat) -> None:
    for number in range(105):
        ada.says(chat, str(number))
    assert len(raw("getUpdates")) == 100 == len(raw("getUpdates", limit=1000))
    assert len(raw("getUpdates", limit=3)) == 3


def test_a_long_poll_ends_when_something_happens(api: BotApi, raw: Raw, ada: Person, chat: Chat) -> None:
    before = len(api.calls_of("getUpdates"))
    thread, answers = in_background(raw, timeout=30)
    api.wait_for_call("getUpdates", count=before + 1)
    ada.says(chat, "hello")
    thread.join()
    assert texts(answers[0]["result"]) == ["hello"]


def test_a_second_poll_ends_the_first_with_a_conflict(
    api: BotApi, raw: Raw, bot: Bot, ada: Person, chat: Chat
) -> None:
    before = len(api.calls_of("getUpdates"))
    thread, answers = in_background(raw, timeout=30)
    api.wait_for_call("getUpdates", count=before + 1)
    assert raw("getUpdates") == []
    thread.join()
    assert answers[0]["error_code"] == 409
    assert answers[0]["description"] == (
        "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running"
    )


def test_an_update_older_than_a_day_is_gone(api: BotApi, raw: Raw, ada: Person, chat: Chat) -> None:
    ada.says(chat, "old")
    api.advance(hours=23)
    ada.says(chat, "new")
    api.advance(hours=2)
    assert texts(raw("getUpdates")) == ["new"]


def test_after_a_quiet_week_ids_start_anew_and_an_offset_far_ahead_is_not_believed(
    api: BotApi, raw: Raw, bot: Bot, ada: Person, chat: Chat, monkeypatch: pytest.MonkeyPatch
) -> None:
    ada.says(chat, "before")
    last = raw("getUpdates")[-1]["update_id"]
    assert raw("getUpdates", offset=last + 1) == []
    api.advance(days=8)
    monkeypatch.setattr("hiboss.testing.bot_api.update_queue._random_id", lambda: 7)
    ada.says(chat, "after")
    found = raw("getUpdates", offset=last + 1)
    assert (found[0]["update_id"], texts(found)) == (7, ["after"])


def test_a_week_with_updates_keeps_the_ids_in_order(api: BotApi, raw: Raw, ada: Person, chat: Chat) -> None:
    ada.says(chat, "one")
    first = raw("getUpdates")[-1]["update_id"]
    api.advance(days=6)
    ada.says(chat, "two")
    assert raw("getUpdates")[-1]["update_id"] == first + 1


def test_reactions_come_only_to_a_bot_that_named_them(raw: Raw, ada: Person, chat: Chat) -> None:
    message = ada.says(chat, "hello")
    raw.updates()
    ada.reacts(message, "👍")
    assert raw.updates(allowed_updates=["message", "message_reaction"]) == []
    ada.reacts(message, "🔥")
    (update,) = raw.updates()  # it is remembered what was named
    assert update["message_reaction"]["old_reaction"] == [{"type": "emoji", "emoji": "👍"}]
    assert update["message_reaction"]["new_reaction"] == [{"type": "emoji", "emoji": "🔥"}]
    raw("getUpdates", allowed_updates=[])
    ada.reacts(message, "👍")
    assert raw.updates() == []


def test_a_webhook_and_getupdates_exclude_each_other(raw: Raw, ada: Person, bot: Bot, chat: Chat) -> None:
    assert raw.refused("setWebhook", url="http://example.org") == (
        400,
        "Bad Request: bad webhook: An HTTPS URL must be provided for webhook",
    )
    raw("setWebhook", url="https://example.org/hook")
    ada.says(chat, "hello")
    assert raw.refused("getUpdates") == (
        409,
        "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first",
    )
    info = raw("getWebhookInfo")
    assert (info["url"], info["pending_update_count"]) == ("https://example.org/hook", 1)
    raw("deleteWebhook", drop_pending_updates=True)
    assert raw("getUpdates") == []
    assert raw("getWebhookInfo")["url"] == ""


def test_an_update_can_be_injected_that_no_library_reads(raw: Raw, bot: Bot, chat: Chat) -> None:
    message = {"message_id": 1, "date": "tomorrow", "chat": {"id": 1, "type": "private"}}
    number = bot.inject({"message": message})
    (update,) = raw("getUpdates")
    assert update == {"update_id": number, "message": message}
    with pytest.raises(TypeError):
        Update.de_json(update, None)


def test_a_reply_to_another_chat_comes_with_what_is_known_of_it(raw: Raw, ada: Person, chat: Chat) -> None:
    origin = {"type": "hidden_user", "date": 1, "sender_user_name": "Bob"}
    ada.says(chat, "look", external_reply={"origin": origin})
    (update,) = raw.updates()
    message = Update.de_json(update, None).message
    assert message and message.external_reply and message.external_reply.origin.type == "hidden_user"


# --- groups, forums and channels ------------------------------------------------------


def test_with_privacy_a_bot_sees_only_what_is_meant_for_it(
    api: BotApi, bot: Bot, ada: Person, raw: Raw
) -> None:
    group = api.add_group("Team", [ada, bot])
    sent = raw("sendMessage", chat_id=group.id, text="hello all")
    raw.updates()
    own = group.find(sent["message_id"])
    ada.says(group, "just talking")
    ada.says(group, "/plain")
    ada.says(group, "/cmd@NexBot now")
    ada.says(group, "/cmd@otherbot now")
    ada.says(group, "hey @nexbot!")
    ada.says(group, "a reply", reply_to=own)
    ada.says(group, "to myself", reply_to=ada.says(group, "one"))
    assert [one["text"] for one in raw.messages()] == ["/plain", "/cmd@NexBot now", "hey @nexbot!", "a reply"]


@pytest.mark.parametrize("how", ["privacy off", "admin"])
def test_without_privacy_or_as_admin_a_bot_sees_everything_but_bots(
    api: BotApi, ada: Person, bot: Bot, raw: Raw, how: str
) -> None:
    other = api.add_bot("otherbot")
    group = api.add_group("Team", [ada, bot, other])
    if how == "admin":
        group.promote(bot)
    bot.privacy = how == "admin"
    raw.updates()
    ada.says(group, "just talking")
    rival = Raw(api, other)
    rival("sendMessage", chat_id=group.id, text="I am a bot, @nexbot")
    rival.close()
    assert [one["text"] for one in raw.messages()] == ["just talking"]
    assert group.texts[-1] == "I am a bot, @nexbot"
    assert raw("getMe")["can_read_all_group_messages"] == (how != "admin")


def test_a_bot_is_told_when_it_comes_and_goes(api: BotApi, bot: Bot, ada: Person, raw: Raw) -> None:
    group = api.add_group("Team", [ada])
    group.add(bot, by=ada)
    bob = api.add_person("Bob")
    bob.joins(group)
    bob.leaves(group)
    group.remove(bot, by=ada)
    told = raw.updates()
    assert [
        (
            "my_chat_member" in one,
            sorted(one.get("message", {}).keys() & {"new_chat_members", "left_chat_member"}),
        )
        for one in told
    ] == [
        (True, []),
        (False, ["new_chat_members"]),
        (False, ["new_chat_members"]),
        (False, ["left_chat_member"]),
        (False, ["left_chat_member"]),
        (True, []),
    ]
    first, last = told[0]["my_chat_member"], told[-1]["my_chat_member"]
    assert (first["old_chat_member"]["status"], last["new_chat_member"]["status"]) == ("left", "kicked")
    assert all(Update.de_json(update, None) for update in told)


def test_a_topic_is_named_in_its_messages_and_general_is_not(
    api: BotApi, bot: Bot, ada: Person, raw: Raw
) -> None:
    forum = api.add_group("Forum", [ada, bot], forum=True)
    bot.privacy = False
    topic = forum.create_topic("Plans", by=ada)
    raw.updates()
    ada.says(forum, "in general")
    inside = ada.says(forum, "in the topic", topic=topic)
    general, special = raw.messages()
    assert "message_thread_id" not in general and "is_topic_message" not in general
    assert (special["message_thread_id"], special["is_topic_message"]) == (topic.id, True)
    assert special["reply_to_message"]["forum_topic_created"]["name"] == "Plans"  # though it is no reply
    assert "message_thread_id" not in raw("sendMessage", chat_id=forum.id, text="x")
    assert raw("sendMessage", chat_id=forum.id, text="x", message_thread_id=topic.id)["is_topic_message"]
    reply = raw("sendMessage", chat_id=forum.id, text="x", reply_parameters={"message_id": inside.id})
    assert reply["message_thread_id"] == topic.id
    for unknown in (1, 999):
        refusal = raw.refused("sendMessage", chat_id=forum.id, text="x", message_thread_id=unknown)
        assert refusal == (400, "Bad Request: message thread not found")


async def test_topics_are_made_by_admins_in_forums(
    api: BotApi, bot: Bot, ada: Person, client: Library
) -> None:
    forum = api.add_group("Forum", [ada], forum=True, admins=[bot])
    poor = api.add_group("Forum", [ada, bot], forum=True)
    plain = api.add_group("Team", [ada], admins=[bot])
    topic = await client.create_forum_topic(forum.id, "Plans")
    assert forum.topics[topic.message_thread_id].name == "Plans"
    await client.edit_forum_topic(forum.id, topic.message_thread_id, name="Old plans")
    with pytest.raises(BadRequest, match="Topic_not_modified"):
        await client.edit_forum_topic(forum.id, topic.message_thread_id, name="Old plans")
    await client.close_forum_topic(forum.id, topic.message_thread_id)
    await client.send_message(forum.id, "x", message_thread_id=topic.message_thread_id)
    forum.demote(bot)
    with pytest.raises(BadRequest, match="Topic_closed"):
        await client.send_message(forum.id, "x", message_thread_id=topic.message_thread_id)
    with pytest.raises(BadRequest, match="Not enough rights to create a topic"):
        await client.create_forum_topic(poor.id, "Plans")
    with pytest.raises(BadRequest, match="The chat is not a forum"):
        await client.create_forum_topic(plain.id, "Plans")


def test_a_private_chat_has_topics_if_the_bot_has_them(api: BotApi, ada: Person) -> None:
    bot = api.add_bot("topicbot", topics=True)
    chat = ada.starts(bot)
    raw = Raw(api, bot)
    assert raw("getMe")["has_topics_enabled"]
    topic = raw("createForumTopic", chat_id=ada.id, name="Plans")["message_thread_id"]
    raw.updates()
    ada.says(chat, "in it", topic=topic)
    (message,) = raw.messages()
    assert (message["message_thread_id"], message["is_topic_message"]) == (topic, True)
    assert raw("sendMessage", chat_id=ada.id, text="x", message_thread_id=topic)["message_thread_id"] == topic
    bot.topics = False
    assert raw.refused("createForumTopic", chat_id=ada.id, name="Plans")[0] == 400
    raw.close()


def test_messages_in_the_name_of_a_group_or_channel_say_so(
    api: BotApi, bot: Bot, ada: Person, raw: Raw
) -> None:
    group = api.add_group("Team", [ada], admins=[bot])
    channel = api.add_channel("News", [ada, bot], username="news")
    raw.updates()
    ada.says(group, "anonymous", anonymous=True)
    ada.says(group, "as a channel", as_channel=channel)
    group.shows_post_of(channel, "posted")
    updates = raw.updates()
    by_group, by_channel = updates[0]["message"], updates[1]["message"]
    assert (by_group["from"]["id"], by_group["sender_chat"]["id"]) == (1087968824, group.id)
    assert (by_channel["from"]["id"], by_channel["sender_chat"]["id"]) == (136817688, channel.id)
    assert updates[2]["channel_post"]["text"] == "posted" and "from" not in updates[2]["channel_post"]
    forwarded = updates[3]["message"]
    assert (forwarded["from"]["id"], forwarded["is_automatic_forward"]) == (777000, True)
    assert forwarded["forward_origin"]["type"] == "channel"
    assert raw("sendMessage", chat_id="@news", text="x")["sender_chat"]["id"] == channel.id


def test_ids_are_counted_per_supergroup_and_together_elsewhere(
    api: BotApi, bot: Bot, ada: Person, raw: Raw
) -> None:
    bob = api.add_person("Bob")
    one, two = api.add_group("One", [ada, bot]), api.add_group("Two", [ada, bot])
    small = api.add_group("Small", [ada, bot], supergroup=False)
    with_ada, with_bob = ada.starts(bot), bob.starts(bot)
    assert ada.says(one, "x").id == ada.says(two, "x").id
    ids = [ada.says(with_ada, "x").id, bob.says(with_bob, "x").id, ada.says(small, "x").id]
    assert ids == list(range(ids[0], ids[0] + 3))


async def test_the_members_of_a_chat_can_be_asked_for(
    api: BotApi, bot: Bot, ada: Person, client: Library
) -> None:
    group = api.add_group("Team", [ada], admins=[bot])
    assert (await client.get_chat(group.id)).title == "Team"
    assert (await client.get_chat_member(group.id, ada.id)).status == "creator"
    assert (await client.get_chat_member(group.id, bot.id)).status == "administrator"
    assert len(await client.get_chat_administrators(group.id)) == 2
    assert await client.get_chat_member_count(group.id) == 2
    with pytest.raises(BadRequest, match="Member not found"):
        await client.get_chat_member(group.id, 17)


def test_reactions_in_a_group_reach_admins_only(api: BotApi, bot: Bot, ada: Person, raw: Raw) -> None:
    group = api.add_group("Team", [ada, bot])
    message = ada.says(group, "x")
    raw.updates(allowed_updates=["message_reaction"])
    ada.reacts(message, "👍")
    assert raw.updates() == []
    group.promote(bot)
    ada.reacts(message, None)
    (update,) = raw.updates()
    assert update["message_reaction"]["new_reaction"] == []


def test_an_admin_that_asks_for_it_sees_members_come_and_go(
    api: BotApi, bot: Bot, ada: Person, raw: Raw
) -> None:
    group = api.add_group("Team", [ada], admins=[bot])
    raw.updates()
    bob = api.add_person("Bob")
    bob.joins(group)
    assert [sorted(one)[0] for one in raw.updates(allowed_updates=["message", "chat_member"])] == ["message"]
    bob.leaves(group)
    message, change = raw.updates()
    assert message["message"]["left_chat_member"]["id"] == bob.id
    assert change["chat_member"]["new_chat_member"]["status"] == "left"


def test_forwards_tell_where_a_message_came_from(api: BotApi, bot: Bot, ada: Person, raw: Raw) -> None:
    group = api.add_group("Team", [ada], admins=[bot])
    channel = api.add_channel("News", [ada, bot])
    chat = ada.starts(bot)
    ours = ada.says(group, "mine")
    unnamed = ada.says(group, "ours", anonymous=True)
    post = channel.posts("news")
    raw.updates()
    ada.forwards(ours, chat)
    ada.forwards(ours, chat, hidden=True)
    ada.forwards(unnamed, chat)
    ada.forwards(post, chat)
    updates = [Update.de_json(one, None) for one in raw.updates()]
    origins = [one.message.forward_origin for one in updates if one.message]
    assert [one.type for one in origins if one] == ["user", "hidden_user", "chat", "channel"]
