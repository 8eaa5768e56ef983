"""One bot with one private chat on the Bot API server, for all tests of the adapter: what it posts, and what it takes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from hiboss.channels.telegram.adapter import TelegramAdapter
from hiboss.channels.telegram.chunk_form import Chunk
from hiboss.core.contracts.adapter import Account, Adapter, File, Letter, Posted, Taken
from hiboss.core.contracts.inbound import Update
from hiboss.testing.adapter_rig import FullRig, Post
from hiboss.testing.adapter_steps import heard, started
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
        tokens = ["", "token", "123", ":abc", "123:a b", "abc:def", f"{self.bot.id}:{'x' * 35}"]
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
        self.ada.sends_document(self.private, "notes.txt", b"notes", caption=text).files[-1].vanish()

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


# --- what goes out: post a whole letter, and look at what the server has then ---------------------


STARTS = {"image/png": b"\x89PNG", "image/jpeg": b"\xff\xd8", "image/webp": b"RIFF", "image/gif": b"GIF8"}


async def post_all(adapter: Adapter, letter: Letter) -> list[Posted]:
    """Post all chunks of a letter, one after the other, as the daemon does."""
    found = []
    for number, chunk in enumerate(adapter.chunks(letter)):
        answer = await adapter.post(letter, number, chunk)
        found.append(answer if isinstance(answer, Posted) else Posted((answer,)))
    return found


def made_file(directory: Path, name: str, mime: str, size: int = 100, platform_id: str | None = None) -> File:
    """Write a file that looks as its type says, to the server at least."""
    path = directory / name
    path.write_bytes(STARTS.get(mime, b"data").ljust(size, b"x")[:size])
    return File(name, str(path), mime, size, platform_id)


def kinds_of(posts: list[Any]) -> list[str]:
    """Return what each post is: text, photo, document …"""
    return [next(iter(one.media), "text") for one in posts]


def posts(rig: TelegramRig) -> list[Any]:
    """Return what the bot has posted, in order."""
    return [one for one in rig.private.messages if one.sender is rig.bot]


def places(whole: str, chunks: Sequence[Chunk], name: str = "") -> list[tuple[int, int]]:
    """Return where each chunk is in the text; fails unless they are all of it, but for white space between them.

    If a chunk begins with the two first lines of a table that was cut, they are there a second time: a header,
    and a line of - and + under it. `name`: the line with which each chunk begins.
    """
    found = []
    place = 0
    for chunk in chunks:
        text = chunk.text
        if name and found:
            assert text.startswith(f"{name}\n"), f"no name before: {text[:80]!r}"
            text = text.removeprefix(f"{name}\n")
        start = _start(whole, place, text)
        if start is None:
            first, under, text = text.split("\n", 2)
            assert under and not under.strip("-+"), (
                f"not in the text: {chunk.text[:80]!r} after {whole[:place][-80:]!r}"
            )
            assert f"{first}\n{under}" in whole[:place], f"no header before: {first!r}"
            assert chunk.entities[0]["type"] in ("pre", "blockquote", "expandable_blockquote")
            start = _start(whole, place, text)
            assert start is not None, f"not in the text: {text[:80]!r} after {whole[:place][-80:]!r}"
        found.append((start, start + len(text)))
        place = start + len(text)
    assert not whole[place:].strip(), f"lost: {whole[place:][:80]!r}"
    return found


def _start(whole: str, place: int, text: str) -> int | None:
    """Return where a text goes on after white space."""
    while True:
        if whole.startswith(text, place):
            return place
        if place >= len(whole) or not whole[place].isspace():
            return None
        place += 1


# --- what comes in: a take that remembers what it was given, and fails when it is told to ---------


class Given(NamedTuple):
    """What one call of `take` was given."""

    ids: list[str]
    position: dict[str, Any]
    missed: tuple[int, int] | None


class Taker:
    """Stores updates and the position as the daemon does. It outlives an adapter."""

    def __init__(self, rig: TelegramRig) -> None:
        self._rig = rig
        self.calls: list[Given] = []
        self.updates: list[Update] = []
        self.errors: list[Exception] = []  # the next calls raise these, and store nothing
        self.answers: Mapping[str, str] = {}  # by the value of a button
        self.after: Callable[[], None] = lambda: None  # called when something was stored

    async def __call__(
        self,
        updates: Sequence[Update],
        position: str | None = None,
        missed: tuple[int, int] | None = None,
    ) -> Taken:
        assert position is not None
        self.calls.append(Given([one.id for one in updates], json.loads(position), missed))
        if self.errors:
            raise self.errors.pop(0)
        known = {one.id for one in self.updates}
        new = [one for one in updates if one.id not in known]
        self.updates += [replace(one, raw=json.loads(json.dumps(one.raw))) for one in new]
        self._rig.position = position
        self.after()
        acts = {one.id: one.act.button or "" for one in updates if one.act is not None}
        answers = {id_: self.answers[value] for id_, value in acts.items() if value in self.answers}
        return Taken(new=frozenset(one.id for one in new), digested={}, answers=answers)

    @property
    def ids(self) -> list[str]:
        return [one.id for one in self.updates]

    @property
    def texts(self) -> list[str]:
        return [one.about.text for one in self.updates if one.about is not None]


@asynccontextmanager
async def polling_adapter(
    rig: TelegramRig, take: Taker
) -> AsyncIterator[tuple[TelegramAdapter, asyncio.Task[None]]]:
    """Run an adapter that listens, until the end of the block."""
    async with started(rig) as adapter, heard(adapter, take) as task:
        assert isinstance(adapter, TelegramAdapter)
        yield adapter, task
