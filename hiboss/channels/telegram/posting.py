"""What goes out and stays: posts, edits, deletions, and topics. Signs are in `signs`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...core.contracts.adapter import Button, Letter, Posted
from ...core.contracts.failures import TOPIC_NOT_FOUND, EnvelopeError, LaneError, Refused
from ...core.file_guard import FileGuard
from .api_errors import ApiRefusal, as_failures
from .chunk_form import MOST_UNITS, Chunk, decode, units
from .file_posting import FileSending
from .flood_watch import FloodWatch
from .message_facts import identifier

if TYPE_CHECKING:
    from .bot_client import BotClient

TOPIC_CHARACTERS = 128
ROW_CHARACTERS = 24  # of buttons that share a row
GENERAL = "1"  # the first topic of a forum, which is posted to without an id


class Poster:
    """Posts for one bot. Its methods raise the errors of `Adapter.post`."""

    def __init__(self, client: BotClient, guard: FileGuard) -> None:
        self._client = client
        self._guard = guard
        self._flood = FloodWatch()
        self._takes_rich = True  # until the server says that it has no rich messages

    async def post(self, letter: Letter, number: int, chunk: str) -> str | Posted:
        """Post a chunk; return the id of the message, or what else there is to say."""
        content, where = decode(chunk), place_parameters(letter.place)
        if number == 0 and letter.reply_to is not None and letter.reply_to.isdecimal():
            where["reply_parameters"] = {
                "message_id": int(letter.reply_to),
                "allow_sending_without_reply": True,  # it may have been deleted
            }
        if content.buttons and letter.buttons:
            where["reply_markup"] = {"inline_keyboard": _rows(letter.buttons)}
        with self._flood.failures(letter.chat):
            try:
                return await self._post(letter, content, where)
            except ApiRefusal as error:
                if error.kind != "reply_not_found" or where.pop("reply_parameters", None) is None:
                    raise
            return await self._post(letter, content, where)

    async def _post(self, letter: Letter, content: Chunk, where: dict[str, Any]) -> str | Posted:
        if not content.files:
            known = _id_of(await self._say(content, where))
            return known if content.problem is None else Posted((known,), notes=(content.problem,))
        sent = await FileSending(self._client, self._guard, letter, content, where).send()
        messages = sent.messages
        if not messages:
            text = "\n\n".join(filter(None, (content.text, *sent.problems)))
            messages = [await self._say(Chunk(text, content.entities), where)]
        return Posted(tuple(map(_id_of, messages)), sent.files, tuple(sent.problems))

    async def _say(self, content: Chunk, where: dict[str, Any]) -> Any:
        return await self._in_some_form("sendRichMessage", "sendMessage", content, where)

    async def edit(self, place: str, platform_id: str, chunk: str) -> None:
        """Give a post the text of this chunk; of a file, or the first of an album, the caption."""
        content, which = decode(chunk), message_parameters(place, platform_id)
        if units(content.text) > MOST_UNITS:
            raise EnvelopeError("too_long", f"a post has {MOST_UNITS} characters at most")
        with self._flood.failures(which["chat_id"]):
            try:
                if content.files:
                    await call_with_entities(self._client, "editMessageCaption", content, which, "caption")
                else:
                    await self._in_some_form("editMessageText", "editMessageText", content, which)
            except ApiRefusal as error:
                if error.code != 400 or error.kind != "not_modified":
                    raise

    async def delete(self, place: str, platform_id: str) -> None:
        if not platform_id.isdecimal():
            return
        which = message_parameters(place, platform_id)
        with self._flood.failures(which["chat_id"]):
            try:
                await self._client.call("deleteMessage", **which)
            except ApiRefusal as error:
                if error.code != 400 or error.kind != "not_found":
                    raise

    async def create_topic(self, chat: str, name: str) -> str:
        try:
            with as_failures():
                name = name[:TOPIC_CHARACTERS]
                found = await self._client.call("createForumTopic", chat_id=chat, name=name)
        except EnvelopeError as error:
            raise Refused(_no_topics(chat, error.text)) from None
        if (known := identifier(found, "message_thread_id")) is None:
            raise LaneError("not_understood", "Telegram did not say the id of the topic")
        return known

    # --- the forms of a text ---------------------------------------------------------------

    async def _in_some_form(
        self, rich_method: str, method: str, content: Chunk, given: dict[str, Any]
    ) -> Any:
        """Send a text as a rich message, or with entities, or plain: the first form that the server takes."""
        if content.rich is not None and self._takes_rich:
            # Telegram would find links in it, and then refuse some of them.
            rich = {"html": content.rich, "skip_entity_detection": True}
            try:
                return await self._client.call(rich_method, rich_message=rich, **given)
            except ApiRefusal as error:
                if _lacks_rich(error):
                    self._takes_rich = False
                elif not error.is_about_content:
                    raise
        return await call_with_entities(self._client, method, content, given)


async def call_with_entities(
    client: BotClient, method: str, content: Chunk, given: dict[str, Any], field: str = "text"
) -> Any:
    """Call a method with a text and its entities; if the server does not take these, without."""
    given = {**given, field: content.text}
    if content.entities:
        name = "entities" if field == "text" else f"{field}_entities"
        try:
            return await client.call(method, **{**given, name: list(content.entities)})
        except ApiRefusal as error:
            if not error.is_about_content:
                raise
    return await client.call(method, **given)


def place_parameters(place: str) -> dict[str, Any]:
    """Return how a call names a chat, and the topic if there is one."""
    chat, _, topic = place.partition("/")
    if not topic or (topic == GENERAL and chat.startswith("-")):
        return {"chat_id": chat}
    if not topic.isdecimal():
        raise EnvelopeError(TOPIC_NOT_FOUND, f"{topic} is no topic of Telegram: these are numbers")
    return {"chat_id": chat, "message_thread_id": int(topic)}


def message_parameters(place: str, platform_id: str) -> dict[str, Any]:
    """Return how a call names a message."""
    if not platform_id.isdecimal():
        raise EnvelopeError("not_found", f"there is no post {platform_id}")
    return {"chat_id": place.partition("/")[0], "message_id": int(platform_id)}


def _lacks_rich(error: ApiRefusal) -> bool:
    """Tell whether the server has no rich messages: it lacks the method, or sees no text in an edit."""
    if error.method == "editMessageText":
        return error.code == 400 and "text is empty" in error.description
    return error.code == 404


def _id_of(message: Any) -> str:
    if (known := identifier(message, "message_id")) is None:
        raise LaneError("not_understood", "Telegram did not say the id of the post")
    return known


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
