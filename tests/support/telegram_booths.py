"""Booths: each has a bot of its own that sends in one way, a chat in which that goes wrong, and one in which not."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from hiboss.testing.bot_api.bots import Bot
from hiboss.testing.bot_api.chats import Chat
from hiboss.testing.bot_api.faults import Fault
from hiboss.testing.bot_api.messages import CAPTIONED, Message
from tests.support.daemons import wait_until
from tests.support.telegram_bots import Row, TelegramDaemon, address

PNG = b"\x89PNG\r\n\x1a\n"
ROOM = "So it goes on and on, for a caption is short. " * 40  # more than a caption has
PAGE = "So it goes on and on, until a post is full. " * 92  # with a table it is more than one post
_numbers = itertools.count(1)


class Way(NamedTuple):
    """A way of sending: the method that it ends with, and the posts that a letter becomes.

    The posts are named by the word of the letter (written {}) where it is in their text, else by their kind.
    """

    method: str
    text: str  # with the word in place of {}
    files: tuple[str, ...] = ()  # their names, each begins with {}
    earlier: tuple[str, ...] = ()  # posts of other methods, before
    posts: tuple[str, ...] = ("{}",)  # those of one call of the method

    def becomes(self, word: str, times: int = 1) -> list[str]:
        """Return the posts of a letter, of which the last call was carried out so often."""
        return [one.format(word) for one in (*self.earlier, *self.posts * times)]


_BOLD = "**{}** and more"
_TABLE = "| what | when |\n|---|---|\n| {} | cell |"
WAYS = {
    "sendMessage": Way("sendMessage", _BOLD),
    "sendPhoto": Way("sendPhoto", _BOLD, ("{}.png",)),
    "sendDocument": Way("sendDocument", _BOLD, ("{}.pdf",)),
    "sendAudio": Way("sendAudio", _BOLD, ("{}.mp3",)),
    "sendVoice": Way("sendVoice", _BOLD, ("{}.ogg",)),
    "sendVideo": Way("sendVideo", _BOLD, ("{}.mp4",)),
    "sendMediaGroup": Way("sendMediaGroup", _BOLD, ("{}.png", "{}.mp4"), posts=("{}", "video")),
    "sendPhoto after its text": Way(
        "sendPhoto", _BOLD + ROOM, ("{}.png",), earlier=("{}",), posts=("photo",)
    ),
}
RICH_WAYS = {
    "sendRichMessage": Way("sendRichMessage", _TABLE),
    "sendRichMessage after another chunk": Way(
        "sendRichMessage",
        "{}: " + PAGE + "\n\n| what | when |\n|---|---|\n" + "| cell | later |\n" * 5,
        earlier=("{}",),
        posts=("cell",),
    ),
}


def ways(office: TelegramDaemon) -> list[Way]:
    """Return all ways in which a server can be sent something."""
    return [*WAYS.values(), *(RICH_WAYS.values() if office.api.world.has("10.1") else [])]


class Booth:
    """A bot that sends in one way. Things go wrong in `chat`; `other` is the chat of somebody else."""

    def __init__(self, office: TelegramDaemon, way: Way, files: Path) -> None:
        self.office = office
        self.way = way
        self.files = files
        self.bot: Bot = office.bound_bot(f"booth{next(_numbers)}bot")
        self.chat = self.new_chat()
        self.other = self.new_chat()
        self.third = self.new_chat()
        self.look_from_here()

    def new_chat(self) -> Chat:
        chat = self.office.api.add_person("Bob").starts(self.bot)
        wait_until(lambda: self.office.rows("SELECT 1 FROM contacts WHERE address = ?", address(chat)))
        self.office.boss.call("contact.approve", contact=address(chat))
        return chat

    def look_from_here(self) -> None:
        """Do not look at what was posted until now."""
        self._first = max(self.chat.history)

    @property
    def address(self) -> str:
        return address(self.chat)

    def send(
        self, word: str, chat: Chat | None = None, way: Way | None = None, *, size: int = 0
    ) -> str:
        """Send a letter in the way of this booth, with files of this size; return the id of its envelope."""
        way = way or self.way
        names = [one.format(f"{word}-{next(_numbers)}") for one in way.files]
        for name in names:
            # Each content is another one: a file that Telegram has would go by its id.
            begin = (PNG if name.endswith("png") else b"file ") + name.encode()
            (self.files / name).write_bytes(begin + bytes(size))
        (number,) = self.office.nex.send(
            address(chat or self.chat),
            text=way.text.format(word),
            type="markdown",
            attachments=[str(self.files / name) for name in names],
        )["ids"]
        return str(number)

    def fault(self, method: str | None = None, **what: Any) -> Fault:
        """Let the method of this booth go wrong in its chat."""
        return self.office.api.fault(
            method or self.way.method, **{"bot": self.bot.id, "chat": self.chat.id, **what}
        )

    def envelope(self, number: str) -> Row:
        return dict(self.office.nex.get(number))

    def messages(self) -> list[Message]:
        """Return what the bot has posted in the chat, from where this booth looks."""
        return [one for one in self.chat.messages if one.sender is self.bot and one.id > self._first]

    def posted(self, *words: str) -> list[str]:
        """Return the names of the posts (see Way), given the words of the letters."""
        return [_name(one, (*words, "cell")) for one in self.messages()]

    def retry(self, chat: Chat | None = None) -> None:
        """Try the lane of the chat now, and its account."""
        self.office.boss.call("lane.retry", address=address(chat or self.chat))


def _name(post: Message, words: Iterable[str]) -> str:
    known = [word for word in words if word in post.text]
    return known[0] if known else next((kind for kind in CAPTIONED if kind in post.media), post.text)


class Booths:
    """All booths of one server. Each row of a table borrows those it needs; those of a row that fails are lost."""

    def __init__(self, office: TelegramDaemon, files: Path) -> None:
        self.office = office
        self.is_new = office.api.world.has("10.1")  # it has rich messages and drafts
        self._files = files
        self._free: dict[Way, list[Booth]] = {}

    def opened(self, way: Way = WAYS["sendMessage"]) -> Booth:
        """Open a booth that nobody had before."""
        return Booth(self.office, way, self._files)

    @contextmanager
    def borrowed(self, wanted: Iterable[Way]) -> Iterator[list[Booth]]:
        """Lend booths for these ways; nothing goes wrong there any more afterwards."""
        found = []
        for way in wanted:
            free = self._free.setdefault(way, [])
            found.append(free.pop() if free else self.opened(way))
            found[-1].look_from_here()
        try:
            yield found
        finally:
            self.office.api.clear_faults()
        for booth in found:
            self._free[booth.way].append(booth)

    def lane(self, booth: Booth, chat: Chat | None = None) -> Row:
        """Return the lane of the chat of a booth; that of its account, without an address, if all of it waits."""
        rows = self.office.rows(
            """
            SELECT l.* FROM lanes l JOIN bindings b ON b.id = l.binding
            WHERE b.account = ? AND (l.address = ? OR (l.address IS NULL AND l.state <> 'open'))
            ORDER BY l.address IS NULL DESC
            """,
            str(booth.bot.id),
            address(chat or booth.chat),
        )
        return rows[0] if rows else {"state": "open", "error_text": None}

    def wait_for_error(self, found: Iterable[Booth], words: str) -> None:
        """Wait until the lanes of all these booths wait, because of an error with these words."""
        for booth in found:
            wait_until(lambda one=booth: self._waits(one, words))

    def _waits(self, booth: Booth, words: str) -> bool:
        lane = self.lane(booth)
        return lane["state"] == "waiting" and words in (lane["error_text"] or "")

    def status(self, envelope: str) -> str:
        (row,) = self.office.rows("SELECT status FROM envelopes WHERE id = ?", envelope)
        return str(row["status"])

    def wait_for_status(self, envelopes: Iterable[str], status: str) -> None:
        """Wait until all these envelopes are settled, and have this status."""
        for envelope in envelopes:
            wait_until(lambda one=envelope: self.status(one) != "pending")
            assert self.status(envelope) == status, self.office.nex.get(envelope)["last_error"]


def secrets_shown(office: TelegramDaemon) -> list[str]:
    """Return where the token of a bot can be read: in the log, or in the database."""
    home = Path(office.daemon.home.database).parent
    places = [*home.glob("logs/*"), *home.glob(f"{Path(office.daemon.home.database).name}*")]
    found = []
    for place in places:
        data = place.read_bytes()
        found += [f"{place.name} has that of {one.name}" for one in office.api.world.bots.values() if one.token.encode() in data]
    return found
