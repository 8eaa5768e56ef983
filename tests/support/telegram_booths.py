"""Booths: each has a bot of its own that sends in one way, a chat in which that goes wrong, and one in which not."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from hiboss.core.envelope import Status
from hiboss.testing.bot_api.bots import Bot
from hiboss.testing.bot_api.chats import Chat
from hiboss.testing.bot_api.faults import Fault
from hiboss.testing.bot_api.groups import Group
from hiboss.testing.bot_api.messages import CAPTIONED, Message
from hiboss.testing.bot_api.people import Person
from tests.support import bulk
from tests.support.telegram_bots import Row, TelegramDaemon, address, own_topic
from tests.support.waits import wait_until

PNG = b"\x89PNG\r\n\x1a\n"
ROOM = "So it goes on and on, for a caption is short. " * 40  # more than a caption has
PAGE = "So it goes on and on, until a post is full. " * 92  # with a table it is more than one post
_numbers = itertools.count(1)
VERSIONS = ("10.3", "9.0")  # a new server, and an old one, which has no drafts and no rich messages


def each(word: str, values: Iterable[Any]) -> pytest.MarkDecorator:
    """Give a test with `booths` each of these values with one of the servers; in a soak, with both."""
    both = [(version, value) for value in values for version in VERSIONS]
    rows = bulk.some(both, lambda row: repr(row[1]))
    return pytest.mark.parametrize(("booths", word), rows, indirect=["booths"], ids=_shown)


def _shown(value: Any) -> str:
    return " ".join(map(str, value.values())) if isinstance(value, dict) else str(value)


class Way(NamedTuple):
    """A way of sending: the method that it ends with, and the posts that a letter becomes.

    The posts are named by the word of the letter (written {}) where it is in their text, else by their kind.
    """

    method: str
    text: str  # with the word in place of {}
    files: tuple[str, ...] = ()  # their names, each begins with {}
    earlier: tuple[str, ...] = ()  # posts of other methods, before
    posts: tuple[str, ...] = ("{}",)  # those of the method

    def becomes(self, word: str) -> list[str]:
        """Return the posts of a letter."""
        return [one.format(word) for one in (*self.earlier, *self.posts)]


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
        people = [office.api.add_person("Bob") for _ in range(2)]
        self.bob = people[0]
        self._home, self.other = self._opened_chats(people)
        self.go_home()

    def _opened_chats(self, people: list[Person]) -> list[Chat]:
        chats = [one.starts(self.bot) for one in people]
        for chat in chats:
            chat.wait_for_text("Your code is")  # else it could come among the posts
        return [self._approved(one) for one in chats]

    def open_third(self) -> Chat:
        """Open a chat of somebody else again, while nothing goes wrong."""
        (third,) = self._opened_chats([self.office.api.add_person("Bob")])
        return third

    def _approved(self, chat: Chat) -> Chat:
        wait_until(lambda: self.office.rows("SELECT 1 FROM contacts WHERE address = ?", address(chat)))
        self.office.boss.call("contact.approve", contact=address(chat))
        return chat

    def go_home(self) -> None:
        """Use the private chat, and do not look at what was posted there until now."""
        self.look_at(self._home)

    def look_at(self, chat: Chat, *, first: int | None = None) -> None:
        """Use another chat, and look at what is posted there behind a message; else from now on."""
        self.chat = chat
        self._first = max(chat.history) if first is None else first

    def open_group(self, **how: Any) -> Group:
        """Use a new group in place of the private chat."""
        group = self.office.api.add_group("Ops", [self.office.api.add_person("Eve"), self.bot], **how)
        self._approved(group)
        self.look_at(group)
        return group

    def send(
        self,
        word: str,
        *,
        to: str | None = None,
        way: Way | None = None,
        size: int = 0,
        files: str | None = None,
    ) -> str:
        """Send a letter in the way of this booth; return the id of its envelope.

        Its files have this size and more, and this name; without one they are files that nobody has sent before.
        """
        way = way or self.way
        names = [one.format(files or f"{word}-{next(_numbers)}") for one in way.files]
        for name in names:
            begin = (PNG if name.endswith("png") else b"file ") + name.encode()
            (self.files / name).write_bytes(begin + bytes(size))
        (number,) = self.office.nex.send(
            to or address(self.chat),
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

    def say(self, word: str) -> str:
        """Send a text to the other chat; return the id of its envelope."""
        return self.send(word, to=address(self.other), way=WAYS["sendMessage"])

    def messages(self) -> list[Message]:
        """Return what the bot has posted in the chat and heard of, from where this booth looks."""
        found = [one for one in self.chat.messages if one.sender is self.bot and one.id > self._first]
        unheard = self.unheard()
        return [one for one in found if one.id not in unheard and not one.service]

    def unheard(self) -> set[int]:
        """Return the ids of posts that were made without the daemon hearing of it: it posts them again."""
        return {one for one in unheard_posts(self.office, self.bot, self.chat) if one > self._first}

    def posted(self, *words: str) -> list[str]:
        """Return the names of the posts (see Way), given the words of the letters."""
        return [_name(one, (*words, "cell")) for one in self.messages()]

    def notices(self, to: str, *words: str) -> list[str]:
        """Return the notices to somebody that have all these words, in order."""
        return notices(self.office, to, *words)

    def retry(self, chat: Chat | None = None) -> None:
        """Try the lane of the chat now, and its account."""
        self.office.boss.call("lane.retry", address=address(chat or self.chat))


def _name(post: Message, words: Iterable[str]) -> str:
    known = [word for word in words if word in post.text]
    return known[0] if known else next((kind for kind in CAPTIONED if kind in post.media), post.text)


class TopicOwner:
    """An agent with a topic of its own in the chat of the boss with its bot."""

    def __init__(self, office: TelegramDaemon, boss: Person, number: int) -> None:
        self.office = office
        self.agent = office.team.hire("", f"owner-{number}")
        self.label = f"{self.agent.name}:\n"
        self.bot = office.bound_bot(f"owner{number}bot", self.agent.name, topics=True, topic=True)
        self.chat = boss.starts(self.bot)
        self.topic = own_topic(office, self.chat, self.agent)

    def loses_topic(self, **what: Any) -> Fault:
        """Delete the topic, and let something go wrong when it is made again."""
        with self.chat.changed:
            del self.chat.topics[self.topic.id]
        return self.office.api.fault("createForumTopic", bot=self.bot.id, **what)

    def send(self, text: str) -> str:
        (number,) = self.agent.send(address(self.chat, self.topic.id), text=text)["ids"]
        return str(number)

    def posted(self) -> list[tuple[int | None, str]]:
        """Return what the agent has posted, with the topics that it is in."""
        own = [one for one in self.chat.messages if one.sender is self.bot and not one.service]
        return [(one.topic, one.text) for one in own if self.label in one.text]


class Booths:
    """All booths of one server. Each row of a table borrows those it needs; those of a row that fails are lost."""

    def __init__(self, office: TelegramDaemon, files: Path) -> None:
        self.office = office
        self.is_new = office.api.world.has("10.1")  # it has rich messages and drafts
        self._files = files
        self._free: dict[Way, list[Booth]] = {}

    def opened(self, way: Way) -> Booth:
        """Open a booth that nobody had before."""
        return Booth(self.office, way, self._files)

    @contextmanager
    def borrowed(self, wanted: Iterable[Way]) -> Iterator[list[Booth]]:
        """Lend booths for these ways; nothing goes wrong there any more afterwards."""
        found = []
        for way in wanted:
            free = self._free.setdefault(way, [])
            found.append(free.pop() if free else self.opened(way))
            found[-1].go_home()
        try:
            yield found
        finally:
            self.office.api.clear_faults()
        for booth in found:
            self._free[booth.way].append(booth)

    def silence(self, found: Iterable[Booth]) -> Fault:
        """Let nothing come in any more: return when the polls of these bots have met the fault."""
        self.office.settle()
        silence = self.office.api.fault("getUpdates", everywhere=True, status=500, times=None)
        for booth in found:
            self.office.api.wait_for(partial(self._is_deaf, booth.bot))
        return silence

    def _is_deaf(self, bot: Bot) -> bool:
        return bool(self.office.polls(bot)[-1].status == 500)

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
            wait_until(partial(self.waits, booth, words))

    def waits(self, booth: Booth, words: str = "", chat: Chat | None = None) -> bool:
        """Tell whether the lane of a chat waits, because of an error with these words."""
        lane = self.lane(booth, chat)
        return lane["state"] == "waiting" and words in (lane["error_text"] or "")

    def statuses(self, envelopes: Iterable[str]) -> set[str]:
        return set(statuses(self.office, envelopes).values())

    def wait_for_status(self, envelopes: Iterable[str], wanted: str) -> None:
        """Wait until all these envelopes are settled, and have this status."""
        wait_for_status(self.office, envelopes, wanted)


def statuses(office: TelegramDaemon, envelopes: Iterable[str]) -> dict[str, str]:
    """Return the status of each of these envelopes, all as they are at one moment."""
    wanted = list(envelopes)
    found = office.rows(
        "SELECT id, status FROM envelope WHERE id IN (SELECT value FROM json_each(?))",
        json.dumps([int(one[1:]) for one in wanted]),
    )
    known = {f"e{row['id']}": Status(row["status"]).name.lower() for row in found}
    return {one: known[one] for one in wanted}


def wait_for_status(office: TelegramDaemon, envelopes: Iterable[str], wanted: str) -> None:
    """Wait until all these envelopes are settled, and have this status."""
    waiting = list(envelopes)
    wait_until(lambda: "pending" not in statuses(office, waiting).values(), seconds=30 + len(waiting))
    for envelope, status in statuses(office, waiting).items():
        assert status == wanted, office.nex.get(envelope)["last_error"]


def notices(office: TelegramDaemon, to: str, *words: str) -> list[str]:
    """Return the notices of hiboss to somebody that have all these words, in order."""
    rows = office.rows('SELECT text FROM envelopes WHERE sender = ? AND "to" = ?', "agent:system", to)
    return [row["text"] for row in rows if all(word in row["text"] for word in words)]


def unheard_posts(office: TelegramDaemon, bot: Bot, chat: Chat) -> set[int]:
    """Return the ids of posts that a bot made in a chat without hearing of it."""
    sends = [
        one for one in office.api.carried_out if one.call.bot is bot and one.call.method.startswith("send")
    ]
    here = [one for one in sends if str(one.call.params["chat_id"]) == str(chat.id)]
    return {number for one in here for number in one.message_ids}


def secrets_shown(office: TelegramDaemon) -> list[str]:
    """Return where the token of a bot can be read: in the log, or in the database."""
    database = Path(office.daemon.home.database)
    tokens = {one.token.partition(":")[2].encode() for one in office.api.world.bots.values()}
    places = [*database.parent.glob("logs/*"), *database.parent.glob(f"{database.name}*")]
    contents = {place.name: place.read_bytes() for place in places}
    return [name for name, content in contents.items() if any(token in content for token in tokens)]
