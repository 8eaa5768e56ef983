"""What goes out beside the posts: drafts of an answer, typing, reactions, buttons that go, the menu.

Their flood waits say nothing about posts, so they are not counted with those.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...core.contracts.adapter import Command, Live
from ...core.contracts.failures import Refused
from . import reactions
from .api_errors import ApiRefusal, as_failures
from .chunk_form import decode
from .posting import call_with_entities, message_parameters, place_parameters

if TYPE_CHECKING:
    from .bot_client import BotClient

ABOUT_CHARACTERS = 256
DRAFT_SECONDS = 1.0  # between two drafts
EDIT_SECONDS = 1.5  # between two edits of a live post in a private chat
GROUP_EDIT_SECONDS = 6.0  # a group has 20 posts and edits a minute for all


class Signs:
    """The signs of one bot. Its methods raise the errors of `Adapter.post`."""

    def __init__(self, client: BotClient) -> None:
        self._client = client
        self._has_drafts = True  # until the server says that it has none
        self._without_drafts: set[str] = set()  # chats in which it refused them

    async def typing(self, place: str) -> None:
        with as_failures():
            await self._client.call("sendChatAction", action="typing", **place_parameters(place))

    async def react(self, place: str, platform_id: str, emoji: str | None) -> None:
        """Put an emoji on a message in place of the one that is there; None: take that back."""
        wanted = [] if emoji is None else [{"type": "emoji", "emoji": reactions.spelled(emoji)}]
        which = message_parameters(place, platform_id)
        with as_failures():
            await self._client.call("setMessageReaction", reaction=wanted, **which)

    async def remove_buttons(self, place: str, platform_id: str) -> None:
        which = message_parameters(place, platform_id)
        with as_failures():
            try:
                await self._client.call("editMessageReplyMarkup", **which)
            except ApiRefusal as error:
                if error.code != 400 or error.kind != "not_modified":
                    raise

    async def show_commands(self, chat: str, commands: Sequence[Command]) -> None:
        menu = [{"command": one.name, "description": one.about[:ABOUT_CHARACTERS]} for one in commands]
        with as_failures():
            await self._client.call("setMyCommands", commands=menu, scope={"type": "chat", "chat_id": chat})

    # --- an answer that grows --------------------------------------------------------------

    def live(self, place: str, wanted: str) -> Live:
        """Say how an answer grows in a place. `wanted` is draft, edit or off."""
        if wanted == "off":
            return Live("off")
        if _is_group(place):
            return Live("edit", GROUP_EDIT_SECONDS)
        if wanted == "draft" and self._takes_drafts(place):
            return Live("draft", DRAFT_SECONDS)
        return Live("edit", EDIT_SECONDS)

    async def draft(self, place: str, number: int, chunk: str) -> None:
        """Show an answer as far as it is there. Raises Refused if this place has no drafts."""
        where = {**place_parameters(place), "draft_id": number, "can_stop": True}
        if not self._takes_drafts(place):
            raise Refused(f"there are no drafts in {place}")
        with as_failures():
            try:
                await call_with_entities(self._client, "sendMessageDraft", decode(chunk), where)
            except ApiRefusal as error:
                if error.code == 404:
                    self._has_drafts = False
                elif error.is_about_content:
                    self._without_drafts.add(_chat(place))
                else:
                    raise
            else:
                return
        raise Refused(f"there are no drafts in {place}")

    def _takes_drafts(self, place: str) -> bool:
        return self._has_drafts and not _is_group(place) and _chat(place) not in self._without_drafts


def _chat(place: str) -> str:
    return place.partition("/")[0]


def _is_group(place: str) -> bool:
    return place.startswith("-")
