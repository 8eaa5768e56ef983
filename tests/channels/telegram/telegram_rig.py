"""One bot with one private chat on the Bot API server, for the contract test and all others of the adapter."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hiboss.channels.telegram.adapter import TelegramAdapter
from hiboss.core.contracts.adapter import Account, Letter
from hiboss.testing.adapter_rig import FullRig, Post
from hiboss.testing.bot_api import BotApi
from hiboss.testing.bot_api.faults import Fault

NEW, OLD = "10.3", "9.0"  # an old server has no drafts and no rich messages


class TelegramRig(FullRig):
    """Ada and a bot. The bot has topics in private chats; topics are numbers, so they have to be made."""

    def __init__(self, directory: Path, version: str = NEW) -> None:
        self.home = directory / "home"
        self.home.mkdir()
        self.api = BotApi(version)
        self.api.start()
        self.configure()
        self.bot = self.api.add_bot("nexbot", topics=True)
        self.ada = self.api.add_person("Ada", username="ada")
        self.private = self.api.private_chat(self.ada, self.bot)
        self.chat = str(self.private.id)
        self.api.world.started.add((self.ada.id, self.bot.id))
        self.last: Any = None
        self._album: Any = None

    def configure(self, **settings: str) -> None:
        """Write the settings of this home, for the next start of an adapter."""
        lines = [f'{key} = "{value}"\n' for key, value in {"base_url": self.api.url, **settings}.items()]
        (self.home / "config.toml").write_text("[telegram]\n" + "".join(lines))

    def close(self) -> None:
        self.api.close()
        assert self.api.defects == []

    def good(self) -> dict[str, Any]:
        return {"adapter_token": self.bot.token}

    def bad(self) -> list[dict[str, Any]]:
        revoked = f"{self.bot.id}:{'x' * 35}"
        tokens = ["", "token", "123", ":abc", "123:a b", "abc:def", revoked]
        return [{}, {"adapter_tokn": self.bot.token}, *[{"adapter_token": one} for one in tokens]]

    def make(self) -> TelegramAdapter:
        settings = TelegramAdapter.Settings(adapter_token=self.bot.token)  # type: ignore[arg-type]
        return TelegramAdapter(
            Account(
                binding=1,
                name=str(self.bot.id),
                settings=settings,
                home=str(self.home),
                position=self.position,
            )
        )

    def comes_in(self, text: str) -> None:
        self.last = self.ada.says(self.private, text)

    def command(self, name: str, arguments: str) -> None:
        self.comes_in(f"/{name} {arguments}")

    def edit(self, text: str) -> None:
        self.ada.edits(self.last, text)

    def album(self, *files: tuple[str, str]) -> None:
        if self._album is None:
            self._album = self.ada.begins_album(self.private)
        for name, data in files:
            self._album.add((name, data.encode()))

    def in_topic(self, topic: str, text: str) -> None:
        self.last = self.ada.says(self.private, text, topic=int(topic))

    def topic(self, name: str) -> str:
        """Make a topic, and forget the update about it."""
        made = str(self.ada.creates_topic(self.private, name).id)
        self.bot.updates.clear()
        return made

    def press(self, post: str, value: str) -> None:
        message = self.private.find(int(post))
        assert message is not None
        message.reply_markup = {"inline_keyboard": [[{"text": value, "callback_data": value}]]}
        self.ada.presses(message, value)

    def reply(self, post: str, text: str) -> None:
        self.ada.says(self.private, text, reply_to=self.private.find(int(post)))

    def deleted(self) -> str:
        message = self.ada.says(self.private, "never mind")
        self.ada.deletes(message)
        return str(message.id)

    def lost_file(self, text: str) -> None:
        message = self.ada.sends_document(self.private, "notes.txt", b"notes", caption=text)
        message.files[-1].vanish()

    def originals(self) -> int:
        return len(self.bot.pending)

    def cannot_start(self) -> None:
        self.api.stop_listening()

    def cannot_post(self) -> None:
        self.api.stop_listening()

    def limited(self, seconds: int) -> None:
        self.fault("sendMessage", retry_after=seconds)

    def locked_out(self) -> None:
        self.fault(status=401, times=None)

    def fault(self, method: str = "*", **what: Any) -> Fault:
        """Let calls of the bot go wrong."""
        return self.api.fault(method, bot=self.bot, **what)

    def impossible(self) -> Letter:
        return self.letter(place="-100999")

    def posted(self) -> list[str]:
        return [one.text for one in self._posts()]

    def posts(self) -> list[Post]:
        return [
            Post(
                str(one.id),
                self.chat if one.topic is None else f"{self.chat}/{one.topic}",
                one.text,
                None if one.reply_to is None else str(one.reply_to.id),
            )
            for one in self._posts()
        ]

    def _posts(self) -> list[Any]:
        return [one for one in self.private.messages if one.sender is self.bot and not one.service]


@contextmanager
def running_rig(directory: Path, version: str = NEW) -> Iterator[TelegramRig]:
    rig = TelegramRig(directory, version)
    try:
        yield rig
    finally:
        rig.close()
