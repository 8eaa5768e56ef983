"""Texts that a platform gives us: cut to our limits, and without what cannot be stored.

What people write in a chat must not be lost because of a long name, so nothing here is refused.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace

from ..core.contracts.failures import Refused
from ..core.contracts.inbound import Inbound, ReceivedFile
from ..core.settings import Settings

LONGEST_ID = 500  # characters


class OverLimit(Refused):
    """What came in is larger than the settings allow: the boss is told, since he can change them."""


def tidy(inbound: Inbound, limits: Settings) -> Inbound:
    """Return what came in as it can be stored. Only its text keeps its length."""
    author, word = inbound.author, limits.word_bytes
    return replace(
        inbound,
        author=author._replace(
            id=None if author.id is None else clean_id(author.id),
            name=_cut(author.name, word),
            username=_cut(author.username, word),
        ),
        title=_cut(inbound.title, word),
        forwarded=_cut(inbound.forwarded, word),
        emoji=_cut(inbound.emoji, word),
        emojis=None if inbound.emojis is None else [_cut(one, word) or "" for one in inbound.emojis],
        quote=_cut(inbound.quote, limits.subject_bytes),
        subject=_cut(inbound.subject, limits.subject_bytes),
        note=_cut(inbound.note, limits.subject_bytes),
        files=[_file(one, word) for one in inbound.files],
        text=_storable(inbound.text),
        command=_cut(inbound.command, word),
        arguments=_storable(inbound.arguments),
        button=None if inbound.button is None else _storable(inbound.button),
        message=None if inbound.message is None else clean_id(inbound.message),
        reply_to=None if inbound.reply_to is None else clean_id(inbound.reply_to),
    )


def _file(file: str | ReceivedFile, limit: int) -> str | ReceivedFile:
    if isinstance(file, str):
        return file
    kept = None if file.platform_id is None else clean_id(file.platform_id)
    return file._replace(name=_cut(file.name, limit), platform_id=kept)


def clean_id(text: object, limit: int = LONGEST_ID) -> str:
    """Return an id of a platform as it can be stored; two that differ never become the same."""
    if not isinstance(text, str):
        raise TypeError(f"an id must be a text, not {type(text).__name__}")
    stored = _storable(text)
    if stored == text and len(text) <= limit:
        return text
    mark = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{stored[: limit - len(mark) - 1]}#{mark}"


def _storable(text: str) -> str:
    """Return a text without what no database stores: NUL, and halves of surrogate pairs."""
    return text.encode("utf-8", "replace").decode().replace("\x00", "\ufffd")


def _cut(text: str | None, limit: int) -> str | None:
    """Return a text of at most so many bytes, with … at its end if something is missing."""
    if text is None:
        return None
    text = _storable(text)
    if len(text.encode()) <= limit:
        return text
    return text.encode()[: limit - 3].decode("utf-8", "ignore") + "…"
