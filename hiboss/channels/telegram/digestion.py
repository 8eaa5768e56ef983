"""The second stage: what updates mean with their files, albums as one message, voice messages as text."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from ...core.contracts.failures import AccountError
from ...core.contracts.inbound import Digested, Inbound, NotYet, ReceivedFile, Update
from ...core.errors import HibossError
from . import decode, downloads
from .message_facts import Me, text
from .message_text import RemoteFile, file
from .transcription import NotTranscribed, transcribe

if TYPE_CHECKING:
    from .bot_client import BotClient

ALBUM_SECONDS = 1.5  # after its last part
ALBUM_PARTS = 10  # an album never has more


class Digester:
    """Digests the updates of one bot."""

    def __init__(
        self, client: BotClient, me: Me, command: Callable[[], str], caught_up: Callable[[], bool]
    ) -> None:
        """`command` returns the program that writes down voice messages, "" for none. It blocks.

        `caught_up` tells whether what came in while nobody fetched is stored.
        """
        self._client = client
        self._caught_up = caught_up
        self._me = me
        self._command = command

    async def digest(
        self, updates: Sequence[Update], directory: str, *, waited: bool, last_try: bool
    ) -> Digested | NotYet:
        """Say what the first of these updates mean. Raises AccountError and LaneError, as an adapter does."""
        fetch = _Fetching(self._client, directory, self._command, last_try)
        first = updates[0]
        album = decode.album(first.raw)
        if album is None:
            return Digested(await self._one(first.raw, fetch))
        parts = [one for one in updates if decode.album(one.raw) == album]
        if len(parts) < ALBUM_PARTS and not self._caught_up():
            # A daemon that died between two parts must not seal it before it has asked for the rest.
            raise AccountError("starting", "what came in meanwhile is still being fetched")
        if not waited and len(parts) < ALBUM_PARTS:
            return NotYet(ALBUM_SECONDS, last=parts[-1])
        means = [await self._one(one.raw, fetch) for one in parts]
        return Digested(_joined(means), uses=parts)

    async def _one(self, raw: Any, fetch: _Fetching) -> Inbound:
        means = decode.meaning(raw, self._me)
        message = decode.message_of(raw)
        if means.kind not in ("message", "edit") or (remote := file(message)) is None:
            return means
        if means.kind == "edit" and text(message, "media_group_id"):
            return means  # the files of the album are not this one alone
        return await _with_file(means, remote, fetch)


class _Fetching(NamedTuple):
    """How the files of a message are fetched."""

    client: BotClient
    directory: str
    command: Callable[[], str]
    last_try: bool


async def _with_file(means: Inbound, remote: RemoteFile, fetch: _Fetching) -> Inbound:
    found = await downloads.fetch(fetch.client, remote, fetch.directory, last_try=fetch.last_try)
    if found.file is None:
        return replace(means, note=found.note)
    means = replace(means, files=(found.file,))
    return await _written_down(means, found.file, fetch.command) if remote.kind == "voice" else means


async def _written_down(means: Inbound, voice: ReceivedFile, command: Callable[[], str]) -> Inbound:
    """Give a voice message its text, if there is a program for it; if there is a caption too, below it."""
    try:
        program = await asyncio.to_thread(command)
        if not program.strip():
            return means
        said = await transcribe(program, voice.path)
    except (NotTranscribed, HibossError) as error:  # HibossError: the settings cannot be read
        return replace(means, note=f"the voice message was not written down: {error}")
    return replace(means, text="\n\n".join(filter(None, (means.text, said))))


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
