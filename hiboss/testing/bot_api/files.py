"""Files on the server: an upload gets an id, an id gives a path, and the path holds the bytes."""

from __future__ import annotations

import mimetypes
import secrets
import threading
from dataclasses import dataclass, field
from typing import Any

from .refusals import Refusal, bad_request

MEGABYTE = 1024 * 1024
DOWNLOAD_LIMIT = 20 * MEGABYTE
UPLOAD_LIMIT = 50 * MEGABYTE
PHOTO_LIMIT = 10 * MEGABYTE

_FOLDERS = {"photo": "photos", "voice": "voice", "audio": "music", "video": "videos", "sticker": "stickers"}


@dataclass(kw_only=True, eq=False)
class StoredFile:
    """A file that was sent."""

    id: str
    unique_id: str
    kind: str
    name: str
    mime: str
    data: bytes
    size: int  # what the server says; a test may say more than there is
    path: str
    there: bool = True
    bots: set[int] = field(default_factory=set)  # that sent it or were sent it: a file id is theirs alone

    def vanish(self) -> None:
        """Let downloads fail from now on, also those that were already promised a path."""
        self.there = False

    def as_json(self) -> dict[str, Any]:
        return {"file_id": self.id, "file_unique_id": self.unique_id, "file_size": self.size}


class FileStore:
    """All files of the server. Its lock is its own, for downloads need no other."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._files: dict[str, StoredFile] = {}
        self._paths: dict[str, StoredFile] = {}

    def add(
        self, kind: str, data: bytes, *, name: str = "", mime: str | None = None, size: int | None = None
    ) -> StoredFile:
        mime = mime or mimetypes.guess_type(name)[0] or "application/octet-stream"
        ending = name.rpartition(".")[2] if "." in name else (mimetypes.guess_extension(mime) or ".bin")[1:]
        with self._lock:
            file = StoredFile(
                id=f"{kind[:2].upper()}{secrets.token_urlsafe(32)}",
                unique_id=secrets.token_urlsafe(9),
                kind=kind,
                name=name or f"{kind}.{ending}",
                mime=mime,
                data=data,
                size=len(data) if size is None else size,
                path=f"{_FOLDERS.get(kind, 'documents')}/file_{len(self._files)}.{ending}",
            )
            self._files[file.id] = self._paths[file.path] = file
        return file

    def get(self, file_id: str) -> StoredFile | None:
        return self._files.get(file_id)

    def promised(self, file_id: str, bot: int) -> StoredFile:
        """Return a file for getFile, or refuse."""
        file = self._files.get(file_id)
        if file is None or bot not in file.bots:
            raise bad_request("wrong file_id or the file is temporarily unavailable")
        if file.size > DOWNLOAD_LIMIT:
            raise bad_request("file is too big")
        return file

    def at(self, path: str) -> StoredFile:
        """Return a file for a download, or refuse."""
        file = self._paths.get(path)
        if file is None or not file.there:
            raise Refusal(404, "Not Found")
        return file
