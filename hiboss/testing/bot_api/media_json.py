"""Media as the platform writes them into a message."""

from __future__ import annotations

from typing import Any

from .files import FileStore, StoredFile

_PHOTO_SIZES = ((90, 60), (320, 213), (1280, 853))
_DURATION = 3  # seconds; nothing here looks into a file


def photo_sizes(store: FileStore, data: bytes) -> list[StoredFile]:
    """Store a photo in several sizes, the largest last; the small ones are only cut off."""
    small = [store.add("photo", data[:size], name="photo.jpg") for size in (8, 64)]
    return [*small, store.add("photo", data, name="photo.jpg")]


def media_json(kind: str, files: list[StoredFile]) -> dict[str, Any]:
    """Return {"document": {…}}; a photo is a list of its sizes."""
    if kind == "photo":
        return {
            "photo": [
                {**file.as_json(), "width": width, "height": height}
                for file, (width, height) in zip(files, _PHOTO_SIZES[-len(files) :], strict=True)
            ]
        }
    file = files[-1]
    facts = {**file.as_json(), "mime_type": file.mime}
    if kind in ("document", "audio", "video"):
        facts["file_name"] = file.name
    if kind in ("audio", "voice", "video"):
        facts["duration"] = _DURATION
    if kind == "video":
        facts |= {"width": 640, "height": 360}
    if kind == "sticker":
        del facts["mime_type"]
        facts |= {
            "type": "regular",
            "width": 512,
            "height": 512,
            "is_animated": False,
            "is_video": False,
        }
    return {kind: facts}
