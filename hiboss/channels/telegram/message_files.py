"""Gives a message its files, and a voice message its text, within the time that one digest has.

A file that does not come in time is a failure, so that it is tried again; at the last try it is left out and
named in the note, and the words and all other files come in.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from ...core.contracts.inbound import Inbound, ReceivedFile
from ...core.settings import Settings
from . import downloads
from .message_text import RemoteFile
from .transcription import NotTranscribed, transcribe

if TYPE_CHECKING:
    from .bot_client import BotClient

SHARE = 0.8  # of intake.digest_seconds; the rest is for ending what did not come in time


class Part(NamedTuple):
    """A message, or one part of an album."""

    means: Inbound  # without its file
    remote: RemoteFile | None  # what to fetch; None: nothing


class MessageFiles:
    """Fetches the files of one message."""

    def __init__(
        self, client: BotClient, directory: str, settings: Settings, *, began: float, last_try: bool
    ) -> None:
        """`began`: when the digest was called, by the clock of the event loop."""
        self._client = client
        self._directory = directory
        self._settings = settings
        self._deadline = began + settings.digest_seconds * SHARE
        self._last_try = last_try

    async def add_to(self, parts: Sequence[Part]) -> list[Inbound]:
        """Return what the parts mean with their files, in the same order.

        Small files are fetched first. Each may take half of the time that is left, and the last one all of
        it: so one slow part does not cost the others. Raises AccountError and LaneError as `fetch` does.
        """
        found = [one.means for one in parts]
        remotes = {number: one.remote for number, one in enumerate(parts) if one.remote is not None}
        most = self._settings.attachments
        for number in list(remotes)[most:]:
            note = downloads.missing(
                remotes.pop(number), f"a message has at most {most} files (limits.attachments)"
            )
            found[number] = replace(found[number], note=note)
        for number in sorted(remotes, key=lambda one: _size(remotes[one])):
            remote = remotes.pop(number)
            seconds = self._left() / 2 if remotes else self._left()
            found[number] = await self._with_file(found[number], remote, seconds)
        return found

    def _left(self) -> float:
        return max(0.0, self._deadline - asyncio.get_running_loop().time())

    async def _with_file(self, means: Inbound, remote: RemoteFile, seconds: float) -> Inbound:
        fetched = await downloads.fetch(
            self._client, remote, self._directory, seconds=seconds, last_try=self._last_try
        )
        if fetched.file is None:
            return replace(means, note=fetched.note)
        means = replace(means, files=(fetched.file,))
        return await self._written_down(means, fetched.file) if remote.kind == "voice" else means

    async def _written_down(self, means: Inbound, voice: ReceivedFile) -> Inbound:
        """Give a voice message its text, if there is a program for it; below the caption, if there is one."""
        program = self._settings.transcribe_command
        if not program.strip():
            return means
        try:
            said = await transcribe(program, voice.path, self._left())
        except NotTranscribed as error:
            return replace(means, note=f"the voice message was not written down: {error}")
        return replace(means, text="\n\n".join(filter(None, (means.text, said))))


def _size(remote: RemoteFile) -> int:
    return downloads.MOST_BYTES if remote.size is None else remote.size
