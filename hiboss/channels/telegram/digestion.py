"""The second stage: what updates mean with their files, and albums as one message."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ...core.contracts.failures import AccountError
from ...core.contracts.inbound import Digested, Inbound, NotYet, Update
from ...core.errors import HibossError
from ...core.settings import Configuration, Settings
from . import decode
from .message_facts import Me, text
from .message_files import MessageFiles, Part
from .message_text import file

if TYPE_CHECKING:
    from .bot_client import BotClient

ALBUM_SECONDS = 1.5  # after its last part
ALBUM_PARTS = 10  # an album never has more


class Digester:
    """Digests the updates of one bot."""

    def __init__(
        self, client: BotClient, me: Me, configuration: Configuration, caught_up: Callable[[], bool]
    ) -> None:
        """`caught_up` tells whether what came in while nobody fetched is stored."""
        self._client = client
        self._caught_up = caught_up
        self._me = me
        self._configuration = configuration

    async def digest(
        self, updates: Sequence[Update], directory: str, *, waited: bool, last_try: bool
    ) -> Digested | NotYet:
        """Say what the first of these updates mean. Raises AccountError and LaneError, as an adapter does."""
        began = asyncio.get_running_loop().time()
        parts = self._of_one_message(updates)
        if decode.album(updates[0].raw) is not None and len(parts) < ALBUM_PARTS:
            if not self._caught_up():
                # A daemon that died between two parts must not seal it before it has asked for the rest.
                raise AccountError("starting", "what came in meanwhile is still being fetched")
            if not waited:
                return NotYet(ALBUM_SECONDS, last=parts[-1])
        found = [self._decoded(one.raw) for one in parts]
        if all(one.remote is None for one in found):
            return Digested(_joined([one.means for one in found]), uses=parts)
        settings = await self._current_settings()
        files = MessageFiles(self._client, directory, settings, began=began, last_try=last_try)
        return Digested(_joined(await files.add_to(found)), uses=parts)

    def _of_one_message(self, updates: Sequence[Update]) -> list[Update]:
        """Return the first update; of an album all its parts, but no more than an album can have."""
        album = decode.album(updates[0].raw)
        if album is None:
            return [updates[0]]
        return [one for one in updates if decode.album(one.raw) == album][:ALBUM_PARTS]

    def _decoded(self, raw: Any) -> Part:
        means = decode.meaning(raw, self._me)
        message = decode.message_of(raw)
        if means.kind not in ("message", "edit"):
            return Part(means, None)
        if means.kind == "edit" and text(message, "media_group_id"):
            return Part(means, None)  # the files of the album are not this one alone
        return Part(means, file(message))

    async def _current_settings(self) -> Settings:
        try:
            await asyncio.to_thread(self._configuration.reload)
        except HibossError:
            pass  # like the daemon, it goes on with those that it has
        return self._configuration.settings


def _joined(parts: Sequence[Inbound]) -> Inbound:
    """Return an album as one message: the facts of its first part, with the words and files of all."""
    return replace(
        parts[0],
        text="\n\n".join(one.text for one in parts if one.text),
        files=tuple(file for one in parts for file in one.files),
        note="; ".join(one.note for one in parts if one.note) or None,
        mentioned=any(one.mentioned for one in parts),
        replied=any(one.replied for one in parts),
    )
