"""What people send besides text: photos, files, voices, places, contacts, and albums of several."""

from __future__ import annotations

import secrets
import threading
from typing import Any, Unpack

from .chats import Chat
from .files import StoredFile
from .media_json import media_json, photo_sizes
from .messages import Message
from .posting import How, Speaker


class MediaSender(Speaker):
    """Sends files. `size` is what the server says about a file, if not the truth."""

    def sends_photo(
        self, chat: Chat, data: bytes = b"\xff\xd8photo", caption: str = "", **how: Unpack[How]
    ) -> Message:
        """Send a photo; the server keeps it in several sizes, the given one is the largest."""
        files = photo_sizes(self.world.files, data)
        return self.post(chat, caption, media=media_json("photo", files), files=files, **how)

    def sends_document(
        self,
        chat: Chat,
        name: str = "notes.txt",
        data: bytes = b"notes",
        mime: str | None = None,
        caption: str = "",
        size: int | None = None,
        **how: Unpack[How],
    ) -> Message:
        file = self.world.files.add("document", data, name=name, mime=mime, size=size)
        return self._send("document", chat, file, caption, how)

    def sends_voice(
        self, chat: Chat, data: bytes = b"OggS", caption: str = "", **how: Unpack[How]
    ) -> Message:
        file = self.world.files.add("voice", data, name="voice.oga", mime="audio/ogg")
        return self._send("voice", chat, file, caption, how)

    def sends_audio(
        self, chat: Chat, data: bytes = b"ID3", name: str = "song.mp3", caption: str = "", **how: Unpack[How]
    ) -> Message:
        file = self.world.files.add("audio", data, name=name, mime="audio/mpeg")
        return self._send("audio", chat, file, caption, how)

    def sends_video(
        self, chat: Chat, data: bytes = b"ftyp", name: str = "clip.mp4", caption: str = "", **how: Unpack[How]
    ) -> Message:
        file = self.world.files.add("video", data, name=name, mime="video/mp4")
        return self._send("video", chat, file, caption, how)

    def sends_sticker(
        self, chat: Chat, data: bytes = b"RIFF", emoji: str = "👍", **how: Unpack[How]
    ) -> Message:
        file = self.world.files.add("sticker", data, name="sticker.webp", mime="image/webp")
        media = media_json("sticker", [file])
        media["sticker"]["emoji"] = emoji
        return self.post(chat, media=media, files=[file], **how)

    def sends_location(
        self, chat: Chat, latitude: float = 52.5, longitude: float = 13.4, **how: Unpack[How]
    ) -> Message:
        return self.post(
            chat, media={"location": {"latitude": latitude, "longitude": longitude}}, files=(), **how
        )

    def sends_contact(
        self, chat: Chat, phone: str = "+4930123456", first_name: str = "Bob", **how: Unpack[How]
    ) -> Message:
        contact = {"phone_number": phone, "first_name": first_name}
        return self.post(chat, media={"contact": contact}, files=(), **how)

    def begins_album(self, chat: Chat, **how: Unpack[How]) -> Album:
        """Return an album whose parts the test sends one by one, when it wants."""
        return Album(self, chat, how)

    def sends_album(
        self,
        chat: Chat,
        parts: list[bytes | tuple[str, bytes]],
        caption: str = "",
        gap: float = 0,
        **how: Unpack[How],
    ) -> list[Message]:
        """Send an album: bytes are a photo, (name, bytes) a document. `gap` seconds are between parts."""
        album = self.begins_album(chat, **how)
        for number, part in enumerate(parts):
            if number and gap:
                threading.Event().wait(gap)
            album.add(part, caption if number == 0 else "")
        return album.messages

    def _send(self, kind: str, chat: Chat, file: StoredFile, caption: str, how: How) -> Message:
        return self.post(chat, caption, media=media_json(kind, [file]), files=[file], **how)


class Album:
    """Messages that belong together by their media_group_id. Nothing tells a bot that one is the last."""

    def __init__(self, sender: MediaSender, chat: Chat, how: How) -> None:
        self._sender = sender
        self._chat = chat
        self._how = how
        self.id = str(secrets.randbelow(10**17))
        self.messages: list[Message] = []

    def add(self, part: bytes | tuple[str, bytes], caption: str = "") -> Message:
        """Send the next part."""
        more: dict[str, Any] = {**(self._how.get("more") or {}), "media_group_id": self.id}
        how: How = {**self._how, "more": more}
        if isinstance(part, bytes):
            message = self._sender.sends_photo(self._chat, part, caption, **how)
        else:
            message = self._sender.sends_document(self._chat, part[0], part[1], caption=caption, **how)
        self.messages.append(message)
        return message
