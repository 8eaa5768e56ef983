"""What a file is posted as: by its type and its size, and how Telegram names one that it has.

Pure functions. A file that Telegram has is known as `<kind>:<file id>`: an id can only be posted as its kind.
"""

from __future__ import annotations

from typing import NamedTuple

from ...core.contracts.adapter import File
from .message_facts import Raw, record, records, text

MEGABYTE = 1024 * 1024
MOST_BYTES = 50 * MEGABYTE  # of a file that a bot posts
MOST_PHOTO_BYTES = 10 * MEGABYTE
MOST_OF_ALBUM = 10
METHODS = {
    "photo": "sendPhoto",
    "video": "sendVideo",
    "audio": "sendAudio",
    "voice": "sendVoice",
    "animation": "sendAnimation",  # what Telegram makes of a GIF: only ever posted by its id
    "document": "sendDocument",
}
_KIND_OF = {
    "image/jpeg": "photo",
    "image/png": "photo",
    "image/webp": "photo",
    "video/mp4": "video",
    "audio/mpeg": "audio",
    "audio/mp4": "audio",
    "audio/x-m4a": "audio",
    "audio/ogg": "voice",
    "audio/opus": "voice",
}
# Which kinds can be in one album. Voices and animations are in none.
_FAMILY = {"photo": "seen", "video": "seen", "audio": "audio", "document": "document"}


class Known(NamedTuple):
    """A file that Telegram has already."""

    kind: str
    id: str


def kind_of(file: File) -> str:
    """Return what a file is posted as."""
    return fitting_kind(_KIND_OF.get(file.mime, "document"), file.size)


def fitting_kind(kind: str, size: int) -> str:
    """Return the kind that a file of this size can have: a large picture is a document."""
    return "document" if kind == "photo" and size > MOST_PHOTO_BYTES else kind


def known(file: File) -> Known | None:
    """Return how Telegram knows a file; None: it does not. An id that came in there names no kind."""
    if not file.platform_id:
        return None
    kind, _, number = file.platform_id.partition(":")
    return Known(kind, number) if kind in METHODS and number else Known(kind_of(file), file.platform_id)


def known_by(message: Raw) -> str | None:
    """Return how Telegram knows the file of a message that it has posted; None: it has none."""
    for kind in METHODS:  # an animation is a document too: it comes first
        found = records(message, kind)[-1] if records(message, kind) else record(message, kind)
        if number := text(found, "file_id"):  # of a photo the last and largest
            return f"{kind}:{number}"
    return None


def can_be_together(kinds: list[str]) -> bool:
    """Tell whether files of these kinds can be one album, or one post."""
    families = {_FAMILY.get(kind) for kind in kinds}
    return len(kinds) == 1 or (len(families) == 1 and None not in families)


def too_big(size: int) -> str | None:
    """Return why a file of this size cannot be posted; None: it can."""
    if size <= MOST_BYTES:
        return None
    return f"it has {size / MEGABYTE:.1f} MB, and bots can post {MOST_BYTES // MEGABYTE} MB at most"


def not_posted(name: str, why: str) -> str:
    """Return the sentence that stands in place of a file."""
    return f"{name[-100:]} was not posted: {why}"[:300]


def sent_name(name: str) -> str:
    """Return the name under which a file is uploaded: people would see the %22 of a quote in a form."""
    return "".join(one if one.isprintable() else " " for one in name).replace('"', "'").strip() or "file"
