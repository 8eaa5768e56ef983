"""What goes out: posts, files, edits, deletions, buttons, topics, the menu, and signs."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, BinaryIO

from ...core.contracts.adapter import Button, Command, File, Letter
from ...core.contracts.failures import EnvelopeError, LaneError, Refused
from ...core.file_guard import FileGuard, HomeFile, NotAFile
from . import text_chunks
from .api_errors import ApiRefusal, CallFailed, as_failure
from .message_facts import identifier

if TYPE_CHECKING:
    from .bot_client import BotClient

MEGABYTE = 1024 * 1024
MOST_BYTES = 50 * MEGABYTE  # of a file that a bot posts
MOST_PHOTO_BYTES = 10 * MEGABYTE
PHOTOS = ("image/jpeg", "image/png", "image/webp")
TOPIC_CHARACTERS = 128
ABOUT_CHARACTERS = 256
ROW_CHARACTERS = 24  # of buttons that share a row
GENERAL = "1"  # the first topic of a forum, which is posted to without an id


def chunks(letter: Letter) -> list[str]:
    """Return the posts of a letter: its text, then one for each file."""
    files = [text_chunks.file_chunk(number) for number in range(len(letter.files))]
    return [*text_chunks.split(letter.text), *files] or [""]


class Poster:
    """Posts for one bot. Its methods raise the errors of `Adapter.post`."""

    def __init__(self, client: BotClient, guard: FileGuard) -> None:
        self._client = client
        self._guard = guard

    async def post(self, letter: Letter, number: int, chunk: str) -> str:
        """Post a chunk and return the id of the message."""
        where = _place(letter.place)
        if number == 0 and letter.reply_to is not None and letter.reply_to.isdecimal():
            where["reply_parameters"] = {
                "message_id": int(letter.reply_to),
                "allow_sending_without_reply": True,  # it may have been deleted
            }
        if letter.buttons and number == _last_text(letter):
            where["reply_markup"] = {"inline_keyboard": _rows(letter.buttons)}
        file = text_chunks.file_number(chunk)
        if file is None:
            found = await self._call("sendMessage", text=chunk, **where)
        elif file < len(letter.files):
            found = await self._send_file(letter.files[file], where)
        else:
            raise EnvelopeError("file_missing", f"there is no file {file + 1} any more")
        if (known := identifier(found, "message_id")) is None:
            raise LaneError("not_understood", "Telegram did not say the id of the post")
        return known

    async def _send_file(self, file: File, where: dict[str, Any]) -> Any:
        opened, size = await asyncio.to_thread(self._open, file)
        try:
            if size > MOST_BYTES:
                text = f"{file.name} has {size / MEGABYTE:.1f} MB, and bots can post 50 MB at most"
                raise EnvelopeError("too_big", text)
            if file.mime in PHOTOS and size <= MOST_PHOTO_BYTES:
                try:
                    return await self._client.upload("sendPhoto", "photo", opened, file.name, **where)
                except ApiRefusal as error:
                    if not _is_no_photo(error):
                        raise
                    opened.seek(0)  # too long and narrow, for example: as a file it can go
            return await self._client.upload("sendDocument", "document", opened, file.name, **where)
        except CallFailed as error:
            failure = as_failure(error)
        finally:
            opened.close()
        raise failure

    def _open(self, file: File) -> tuple[BinaryIO, int]:
        try:
            opened = self._guard.open_file(os.path.realpath(file.path))
        except FileNotFoundError:
            raise EnvelopeError("file_missing", f"{file.path} does not exist any more") from None
        except (HomeFile, NotAFile) as error:
            raise EnvelopeError("file_forbidden", f"{file.path}: {error.strerror}") from None
        except OSError as error:
            raise LaneError("file_unreadable", f"{file.path}: {error.strerror}") from None
        return opened, os.fstat(opened.fileno()).st_size

    async def edit(self, place: str, platform_id: str, chunk: str) -> None:
        if text_chunks.file_number(chunk) is not None:
            raise EnvelopeError("no_text", "a file cannot take the place of a text")
        if text_chunks.units(chunk) > text_chunks.MOST_UNITS:
            raise EnvelopeError("too_long", f"a post has {text_chunks.MOST_UNITS} characters at most")
        await self._call("editMessageText", "not_modified", text=chunk, **_message(place, platform_id))

    async def delete(self, place: str, platform_id: str) -> None:
        if platform_id.isdecimal():
            await self._call("deleteMessage", "not_found", **_message(place, platform_id))

    async def remove_buttons(self, place: str, platform_id: str) -> None:
        await self._call("editMessageReplyMarkup", "not_modified", **_message(place, platform_id))

    async def react(self, place: str, platform_id: str, emoji: str) -> None:
        reaction = [{"type": "emoji", "emoji": emoji}]
        await self._call("setMessageReaction", reaction=reaction, **_message(place, platform_id))

    async def typing(self, place: str) -> None:
        await self._call("sendChatAction", action="typing", **_place(place))

    async def show_commands(self, chat: str, commands: Sequence[Command]) -> None:
        menu = [{"command": one.name, "description": one.about[:ABOUT_CHARACTERS]} for one in commands]
        await self._call("setMyCommands", commands=menu, scope={"type": "chat", "chat_id": chat})

    async def create_topic(self, chat: str, name: str) -> str:
        try:
            found = await self._client.call("createForumTopic", chat_id=chat, name=name[:TOPIC_CHARACTERS])
        except CallFailed as error:
            failure = as_failure(error)
            if isinstance(failure, EnvelopeError):
                raise Refused(_no_topics(chat, failure.text)) from None
            raise failure from None
        if (known := identifier(found, "message_thread_id")) is None:
            raise LaneError("not_understood", "Telegram did not say the id of the topic")
        return known

    async def _call(self, method: str, harmless: str | None = None, **parameters: Any) -> Any:
        """Call a method. `harmless` is the kind of refusal that means that there is nothing to do."""
        try:
            return await self._client.call(method, **parameters)
        except ApiRefusal as error:
            if error.code == 400 and error.kind == harmless:
                return None
            failure = as_failure(error)
        except CallFailed as error:
            failure = as_failure(error)
        raise failure


def _place(place: str) -> dict[str, Any]:
    chat, _, topic = place.partition("/")
    if not topic or (topic == GENERAL and chat.startswith("-")):
        return {"chat_id": chat}
    if not topic.isdecimal():
        raise EnvelopeError("topic_not_found", f"{topic} is no topic of Telegram: these are numbers")
    return {"chat_id": chat, "message_thread_id": int(topic)}


def _message(place: str, platform_id: str) -> dict[str, Any]:
    if not platform_id.isdecimal():
        raise EnvelopeError("not_found", f"there is no post {platform_id}")
    return {"chat_id": place.partition("/")[0], "message_id": int(platform_id)}


def _last_text(letter: Letter) -> int:
    """Return which chunk has the buttons: the last text, or the last file if there is no text."""
    return (len(text_chunks.split(letter.text)) or len(chunks(letter))) - 1


def _rows(buttons: Sequence[Button]) -> list[list[dict[str, str]]]:
    """Return the buttons in rows: short ones side by side, a long one alone."""
    rows: list[list[dict[str, str]]] = []
    used = ROW_CHARACTERS
    for one in buttons:
        used += len(one.text) + 2
        if used > ROW_CHARACTERS:
            rows.append([])
            used = len(one.text) + 2
        rows[-1].append({"text": one.text, "callback_data": one.value})
    return rows


def _is_no_photo(error: ApiRefusal) -> bool:
    words = error.description.lower()
    return error.code == 400 and ("photo" in words or "image" in words)


def _no_topics(chat: str, why: str) -> str:
    if chat.startswith("-"):
        return (
            f"no topic can be made in {chat}: {why}; switch topics on in the settings of the group, and let "
            "the bot be an admin that may manage topics"
        )
    return (
        f"no topic can be made in the chat with the bot: {why}; switch it on: in @BotFather choose the bot, "
        "then Bot Settings, then Threads Settings, and turn Threaded Mode on"
    )
