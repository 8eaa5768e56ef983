"""One good call of every method that puts something before people, for tests that hold for all of them."""

from __future__ import annotations

from typing import Any

import httpx

from hiboss.testing.bot_api import BotApi
from hiboss.testing.bot_api.bots import Bot

PNG = b"\x89PNG\r\n\x1a\n and so on"
SINGLE_FILES = {"photo": PNG, "document": b"x", "audio": b"ID3", "voice": b"OggS", "video": b"ftyp"}
NEW = (
    *("sendMessage", "sendPhoto", "sendDocument", "sendAudio", "sendVoice", "sendVideo"),
    *("sendMediaGroup", "sendRichMessage"),
)
SHOWN_ONLY = ("sendMessageDraft", "sendRichMessageDraft", "sendChatAction")
CHANGING = ("editMessageText", "editMessageCaption", "deleteMessage", "setMessageReaction")
EVERY = (*NEW, *SHOWN_ONLY, *CHANGING)
_MORE: dict[str, dict[str, Any]] = {
    "sendMessage": {"text": "new"},
    "sendRichMessage": {"rich_message": '{"html": "<p>new</p>"}'},
    "sendMessageDraft": {"draft_id": 1, "text": "new"},
    "sendRichMessageDraft": {"draft_id": 1, "rich_message": '{"html": "<p>new</p>"}'},
    "sendChatAction": {"action": "typing"},
    "editMessageText": {"text": "new"},
    "editMessageCaption": {"caption": "new"},
    "setMessageReaction": {"reaction": '[{"type": "emoji", "emoji": "👍"}]'},
    "sendMediaGroup": {
        "media": '[{"type": "photo", "media": "attach://a", "caption": "new"},'
        ' {"type": "photo", "media": "attach://b"}]'
    },
}


class Sender:
    """Calls any sending method of a bot in a chat, with what the method needs."""

    def __init__(self, api: BotApi, bot: Bot) -> None:
        self._root = f"{api.url}/bot{bot.token}/"
        self.client = httpx.Client(timeout=30, verify=False, trust_env=False)  # certificates cost 40 ms

    def prepare(self, method: str, chat: int) -> dict[str, Any]:
        """Return what names the message that a method changes; it is sent first."""
        if method not in CHANGING:
            return {}
        sent = self("sendDocument" if method == "editMessageCaption" else "sendMessage", chat, old="old")
        return {"message_id": sent.json()["result"]["message_id"]}

    def __call__(self, method: str, chat: int, **params: Any) -> httpx.Response:
        given: dict[str, Any] = {"chat_id": chat, **_MORE.get(method, {}), **params}
        if (old := given.pop("old", None)) is not None:
            given |= {"text": old, "caption": old}
        kind = method.removeprefix("send").lower()
        files: Any = None
        if kind in SINGLE_FILES:
            files = {kind: ("file", SINGLE_FILES[kind])}
            given.setdefault("caption", "new")
        if method == "sendMediaGroup":
            files = {"a": ("a.png", PNG), "b": ("b.png", PNG)}
        return self.client.post(self._root + method, data=given, files=files)
