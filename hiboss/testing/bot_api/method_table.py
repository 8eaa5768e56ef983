"""All methods of the server, and the version each came with. An older server does not know it: 404."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import (
    methods_albums,
    methods_changing,
    methods_chats,
    methods_drafts,
    methods_sending,
    methods_updates,
)
from .bots import Bot
from .params import Params
from .world import World

Method = Callable[[World, Bot, Params], Any]

_SINCE_EVER = {
    "getMe": methods_updates.get_me,
    "getUpdates": methods_updates.get_updates,
    "setWebhook": methods_updates.set_webhook,
    "deleteWebhook": methods_updates.delete_webhook,
    "getWebhookInfo": methods_updates.get_webhook_info,
    "setMyCommands": methods_updates.set_my_commands,
    "getMyCommands": methods_updates.get_my_commands,
    "deleteMyCommands": methods_updates.delete_my_commands,
    "setMyName": methods_updates.no_answer_needed,
    "setMyDescription": methods_updates.no_answer_needed,
    "setMyShortDescription": methods_updates.no_answer_needed,
    "setChatMenuButton": methods_updates.no_answer_needed,
    "answerCallbackQuery": methods_updates.answer_callback_query,
    "sendMessage": methods_sending.send_message,
    "sendPhoto": methods_sending.sender_of("photo"),
    "sendDocument": methods_sending.sender_of("document"),
    "sendAudio": methods_sending.sender_of("audio"),
    "sendVoice": methods_sending.sender_of("voice"),
    "sendVideo": methods_sending.sender_of("video"),
    "sendSticker": methods_sending.sender_of("sticker"),
    "sendMediaGroup": methods_albums.send_media_group,
    "sendChatAction": methods_sending.send_chat_action,
    "editMessageText": methods_drafts.edit_text_or_rich,
    "editMessageCaption": methods_changing.edit_message_caption,
    "editMessageReplyMarkup": methods_changing.edit_message_reply_markup,
    "deleteMessage": methods_changing.delete_message,
    "deleteMessages": methods_changing.delete_messages,
    "setMessageReaction": methods_changing.set_message_reaction,
    "getChat": methods_chats.get_chat,
    "getChatMember": methods_chats.get_chat_member,
    "getChatAdministrators": methods_chats.get_chat_administrators,
    "getChatMemberCount": methods_chats.get_chat_member_count,
    "leaveChat": methods_chats.leave_chat,
    "getFile": methods_chats.get_file,
    "createForumTopic": methods_chats.create_forum_topic,
    "editForumTopic": methods_chats.edit_forum_topic,
    "closeForumTopic": methods_chats.close_forum_topic,
    "reopenForumTopic": methods_chats.reopen_forum_topic,
    "deleteForumTopic": methods_chats.delete_forum_topic,
}
_SINCE = {
    "sendMessageDraft": ("9.5", methods_drafts.send_message_draft),  # 9.3 for some bots only
    "sendRichMessage": ("10.1", methods_drafts.send_rich_message),
    "sendRichMessageDraft": ("10.1", methods_drafts.send_rich_message_draft),
}
_TABLE: dict[str, tuple[str, str, Method]] = {
    **{name.lower(): (name, "1.0", method) for name, method in _SINCE_EVER.items()},
    **{name.lower(): (name, since, method) for name, (since, method) in _SINCE.items()},
}

# What puts something before people, or changes it.
SENDING = frozenset(
    {
        *("sendMessage", "sendPhoto", "sendDocument", "sendAudio", "sendVoice", "sendVideo", "sendSticker"),
        *("sendMediaGroup", "sendMessageDraft", "sendRichMessage", "sendRichMessageDraft", "sendChatAction"),
        *("editMessageText", "editMessageCaption", "editMessageReplyMarkup"),
        *("deleteMessage", "deleteMessages", "setMessageReaction"),
    }
)
# What the limits of sending count.
COUNTED = frozenset(name for name in SENDING if not name.startswith(("delete", "setMessage"))) - {
    *("sendMessageDraft", "sendRichMessageDraft", "sendChatAction"),
}


def find_method(world: World, name: str) -> tuple[str, Method] | None:
    """Return a method and its proper name; case does not matter. None: this server does not know it."""
    found = _TABLE.get(name.lower())
    if found is None or not world.has(found[1]):
        return None
    return found[0], found[2]
