"""The files of a call: uploaded with it, attached under another name, or known by their id."""

from __future__ import annotations

from typing import Any

from .bots import Bot
from .files import PHOTO_LIMIT, UPLOAD_LIMIT, StoredFile
from .media_json import photo_sizes
from .params import Params, Upload
from .refusals import Refusal, bad_request
from .world import World

_IMAGE_STARTS = (b"\xff\xd8", b"\x89PNG", b"GIF8", b"RIFF", b"BM")
_UNKNOWN_TYPE = "application/octet-stream"
# What a method takes as such; another type comes back as audio or document, as is documented.
_TAKEN = {
    "voice": ("audio/ogg", "audio/opus", "audio/mpeg", "audio/mp4", "audio/x-m4a", "audio/m4a"),
    "video": ("video/mp4", "video/quicktime"),
}


def read_files(world: World, bot: Bot, params: Params, kind: str, given: Any) -> list[StoredFile]:
    """Return the files of a call, or refuse. What was uploaded may turn out to be of another kind."""
    reference = str(given or "")
    upload = params.uploads.get(reference.removeprefix("attach://") if reference else kind)
    if upload is not None:
        files = _uploaded(world, kind, upload)
        for file in files:
            file.bots.add(bot.id)
        return files
    if not reference:
        raise bad_request(f"there is no {kind} in the request")
    if reference.startswith("attach://"):
        raise bad_request("wrong file identifier/HTTP URL specified")  # a guess: nothing of that name came
    if reference.startswith(("http://", "https://")):
        raise bad_request("failed to get HTTP URL content")  # this server reaches nothing outside
    known = world.files.get(reference)
    if known is None:
        raise bad_request("wrong remote file identifier specified: Wrong string length")
    if bot.id not in known.bots:
        raise bad_request("wrong file identifier/HTTP URL specified")  # it is the id of another bot
    if known.kind != kind:
        raise bad_request(f"can't use file of type {known.kind.title()} as {kind.title()}")
    return [known]


def _uploaded(world: World, kind: str, upload: Upload) -> list[StoredFile]:
    size = len(upload.data)
    if size > UPLOAD_LIMIT:
        raise Refusal(413, "Request Entity Too Large")
    if not size:
        raise bad_request("file must be non-empty")
    if kind == "photo":
        if size > PHOTO_LIMIT:
            raise bad_request(
                f"file of size {size} bytes is too big for a photo; the maximum size is {PHOTO_LIMIT} bytes"
            )
        if not upload.data.startswith(_IMAGE_STARTS):
            raise bad_request("IMAGE_PROCESS_FAILED")
        return photo_sizes(world.files, upload.data)
    return [world.files.add(_kind(kind, upload.mime), upload.data, name=upload.name, mime=upload.mime)]


def _kind(kind: str, mime: str) -> str:
    """Return as what an upload is sent: a WAV that is sent as a voice message is an audio file."""
    if mime == _UNKNOWN_TYPE or mime in _TAKEN.get(kind, ()) or kind in ("document", "sticker"):
        return kind
    if kind in ("voice", "audio") and mime.startswith("audio/"):
        return "audio"
    return "document"
