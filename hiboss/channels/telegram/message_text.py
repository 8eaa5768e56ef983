"""The content of a raw message: its text, in words also for what is no text, and its files.

Pure functions over JSON that may lack any field, or have it in another form: none of them raises.
"""

from __future__ import annotations

import mimetypes
from typing import NamedTuple

from .message_facts import Raw, number, record, records, text
from .message_kinds import AROUND, SERVICE

_FILES = ("photo", "animation", "document", "voice", "audio", "video", "video_note", "sticker")
_ENDINGS = {"photo": ".jpg", "voice": ".ogg", "video": ".mp4", "video_note": ".mp4", "animation": ".mp4"}
_MIME_ENDINGS = {"audio/mpeg": ".mp3", "audio/ogg": ".ogg", "image/jpeg": ".jpg", "text/plain": ".txt"}


class RemoteFile(NamedTuple):
    """A file of a message, as the server knows it."""

    kind: str
    id: str
    name: str  # as its sender named it, or one that says what it is
    size: int | None  # bytes, if the server says it


def is_service(message: Raw) -> bool:
    """Tell whether it only says that something happened in the chat."""
    return not SERVICE.isdisjoint(message) and not (text(message, "text") or text(message, "caption"))


def content(message: Raw) -> str:
    """Return the text of a message, exactly as it was written, or words for what it has in its place."""
    written = text(message, "text") or text(message, "caption")
    if written:
        return written
    if sticker := record(message, "sticker"):
        return text(sticker, "emoji")
    if file(message) is not None:
        return ""
    if location := record(message, "location"):
        return _location(location, record(message, "venue"))
    if contact := record(message, "contact"):
        name = " ".join(filter(None, (text(contact, "first_name"), text(contact, "last_name"))))
        return "contact: " + ", ".join(filter(None, (name, text(contact, "phone_number"))))
    return _other(message)


def file(message: Raw) -> RemoteFile | None:
    """Return the file of a message. An animation is also there as a document, for old programs."""
    for kind in _FILES:
        found = _largest(message) if kind == "photo" else record(message, kind)
        if known := text(found, "file_id"):
            return RemoteFile(kind, known, _name(kind, found, message), number(found, "file_size"))
    return None


def is_live_location(message: Raw) -> bool:
    """Tell whether its edits only say where somebody has gone: one every few seconds."""
    return number(record(message, "location"), "live_period") is not None


def _largest(message: Raw) -> Raw:
    def area(size: Raw) -> int:
        return (number(size, "width") or 0) * (number(size, "height") or 0)

    return max(records(message, "photo"), key=area, default={})


def _name(kind: str, found: Raw, message: Raw) -> str:
    if given := text(found, "file_name"):
        return given
    ending = _ENDINGS.get(kind)
    if kind == "sticker":
        animated = ".webm" if found.get("is_video") is True else ".webp"
        ending = ".tgs" if found.get("is_animated") is True else animated
    if ending is None:
        mime = text(found, "mime_type")
        ending = _MIME_ENDINGS.get(mime) or mimetypes.guess_extension(mime) or ""
    return f"{kind}_{number(message, 'message_id') or 0}{ending}"


def _location(location: Raw, venue: Raw) -> str:
    place = ", ".join(str(location.get(key, "?"))[:40] for key in ("latitude", "longitude"))
    about = ", ".join(filter(None, (text(venue, "title"), text(venue, "address"))))
    return f"location: {place} ({about})" if about else f"location: {place}"


def _other(message: Raw) -> str:
    """Return words for content without a text of its own: a poll, a dice, or what is newer than hiboss."""
    kind = next((key for key in message if key not in AROUND), None)
    if kind is None:
        return "[a message of a kind that hiboss does not know]"
    found = record(message, kind)
    if kind == "dice":
        return f"[dice: {text(found, 'emoji')} {number(found, 'value') or '?'}]"
    about = text(found, "question") or text(found, "title") or text(found, "text")
    return f"[{kind}: {about}]" if about else f"[{kind}]"
