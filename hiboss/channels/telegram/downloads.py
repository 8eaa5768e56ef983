"""Fetches the files of messages. What can never be fetched becomes a note."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

from ...core.contracts.failures import LaneError
from ...core.contracts.inbound import ReceivedFile, download_path
from .api_errors import ApiRefusal, CallFailed, as_digest_failure
from .message_facts import text
from .message_text import RemoteFile

if TYPE_CHECKING:
    from .bot_client import BotClient

MEGABYTE = 1024 * 1024
MOST_BYTES = 20 * MEGABYTE  # Telegram gives bots no larger file


class Fetched(NamedTuple):
    """A file that was fetched, or why there is none."""

    file: ReceivedFile | None
    note: str | None = None


async def fetch(
    client: BotClient, remote: RemoteFile, downloads: str, *, seconds: float, last_try: bool
) -> Fetched:
    """Fetch a file into a new directory in `downloads`.

    Raises AccountError if the server cannot be reached, and LaneError if this file cannot be fetched now, or
    does not come within `seconds`; at the last try there is a note instead.
    """
    if remote.size is not None and remote.size > MOST_BYTES:
        return Fetched(None, _too_big(remote))
    try:
        async with asyncio.timeout(seconds):
            return await _fetch(client, remote, downloads)
    except CallFailed as error:
        if (failure := as_digest_failure(error)) is not None:
            raise failure from None
        if isinstance(error, ApiRefusal) and error.kind == "too_big":
            return Fetched(None, _too_big(remote))
        why = str(error)
    except TimeoutError:  # before OSError, of which it is one
        why = f"it did not come within {seconds:.3g} seconds"
        if last_try:
            return Fetched(None, missing(remote, why))
    except OSError as error:
        why = f"it cannot be written: {error.strerror}"
    if not last_try:
        raise LaneError("file_lost", f"{remote.name} cannot be fetched: {why}")
    return Fetched(None, f"the file {remote.name} could not be fetched: {why}")


async def _fetch(client: BotClient, remote: RemoteFile, downloads: str) -> Fetched:
    found = await client.call("getFile", file_id=remote.id)
    file_path = text(found, "file_path")
    if not file_path or os.path.isabs(file_path):  # a server that runs with --local
        raise ApiRefusal("getFile", 400, "the server gives no path that can be fetched")
    path = await asyncio.to_thread(download_path, downloads, remote.name)
    with _create(path) as file:  # buffered: its lock lets no close come between a write in a thread
        whole = await client.download(file_path, file, MOST_BYTES)
    if not whole:
        await asyncio.to_thread(os.unlink, path)
        return Fetched(None, _too_big(remote))
    return Fetched(ReceivedFile(path, remote.name, remote.id))


def _create(path: str) -> BinaryIO:
    return open(path, "xb")


def missing(remote: RemoteFile, why: str) -> str:
    """Return the note about a file that is left out."""
    size = "" if remote.size is None else f" ({_in_words(remote.size)})"
    return f"the file {remote.name}{size} is missing: {why}"


def _too_big(remote: RemoteFile) -> str:
    size = "more than 20 MB" if remote.size is None else _in_words(remote.size)
    return f"the file {remote.name} ({size}) is missing: Telegram gives bots no file over 20 MB"


def _in_words(size: int) -> str:
    if size < MEGABYTE:
        return f"{size / 1024:.1f} KB" if size >= 1024 else f"{size} bytes"
    return f"{size / MEGABYTE:.1f} MB"
