"""What a test can ask about what people saw: every version, every deletion, in order."""

from __future__ import annotations

from hiboss.testing.bot_api import BotApi
from hiboss.testing.bot_api.bots import Bot
from hiboss.testing.bot_api.chats import Chat
from hiboss.testing.bot_api.people import Person

from .conftest import Raw


def test_all_that_was_ever_seen_is_in_the_log(api: BotApi, raw: Raw, ada: Person, chat: Chat) -> None:
    live = raw("sendMessage", chat_id=ada.id, text="one")["message_id"]
    raw("editMessageText", chat_id=ada.id, message_id=live, text="one two")
    api.advance(seconds=5)
    raw("sendMessage", chat_id=ada.id, text="other")
    raw("deleteMessage", chat_id=ada.id, message_id=live)
    happened = [(one.kind, one.text) for one in chat.log[1:]]
    assert happened == [("sent", "one"), ("edited", "one two"), ("sent", "other"), ("deleted", "one two")]
    assert chat.visible() == ["/start", "other"]
    message = chat.history[live]
    assert (message.texts, message.revision, message.deleted) == (["one", "one two"], 1, True)
    assert [one.message for one in chat.log.of("deleted")] == [message]
    assert chat.log[-1].date - chat.log[1].date >= 5


def test_a_refused_edit_is_in_no_log(raw: Raw, ada: Person, chat: Chat) -> None:
    number = raw("sendMessage", chat_id=ada.id, text="one")["message_id"]
    raw.refused("editMessageText", chat_id=ada.id, message_id=number, text="one")
    raw.refused("editMessageText", chat_id=ada.id, message_id=number, text="x" * 5000)
    assert chat.history[number].texts == ["one"]


def test_a_message_tells_all_about_itself(raw: Raw, bot: Bot, ada: Person, chat: Chat) -> None:
    question = ada.says(chat, "how?")
    reaction = [{"type": "emoji", "emoji": "👀"}]
    raw("setMessageReaction", chat_id=ada.id, message_id=question.id, reaction=reaction)
    rich = {"html": "<p>so</p>"}
    raw("sendRichMessage", chat_id=ada.id, rich_message=rich, reply_parameters={"message_id": question.id})
    facts = chat.messages[-1].facts()
    assert (facts["text"], facts["rich_source"], facts["reply_to"]) == ("so", "<p>so</p>", question.id)
    assert (facts["revision"], facts["texts"], facts["topic"], facts["entities"]) == (0, ["so"], None, [])
    assert question.reactions_of(bot) == ["👀"]
    assert chat.messages[-1].reactions_of(bot) == []


def test_what_people_edit_and_topics_that_go_are_in_the_log_too(api: BotApi, ada: Person, raw: Raw) -> None:
    bot = api.add_bot("topicbot", topics=True)
    chat = ada.starts(bot)
    topic = ada.creates_topic(chat, "Here")
    message = ada.says(chat, "oen", topic=topic)
    ada.edits(message, "one")
    other = Raw(api, bot)
    other("deleteForumTopic", chat_id=ada.id, message_thread_id=topic.id)
    assert message.texts == ["oen", "one"]
    assert [one.text for one in chat.log.of("deleted")] == ["", "one"]
    other.close()
