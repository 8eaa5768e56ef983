"""A daemon beside a Bot API server: bots that agents are bound to, people who write to them, and what is stored."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from hiboss.core.errors import DaemonUnreachable
from hiboss.testing.bot_api import BotApi
from hiboss.testing.bot_api.bots import Bot
from hiboss.testing.bot_api.chats import Chat, Topic
from hiboss.testing.bot_api.groups import Group
from hiboss.testing.bot_api.messages import Message
from hiboss.testing.bot_api.people import Person
from hiboss.testing.running_daemon import RunningDaemon, running_daemon
from tests.support.daemons import set_up
from tests.support.forked_daemons import pauses
from tests.support.parties import Party
from tests.support.python_agents import Boss, PythonAgent, Team
from tests.support.waits import wait_until

Row = dict[str, Any]
GROWTH = {
    "channels.telegram.signs.DRAFT_SECONDS": 0.2,
    "channels.telegram.signs.EDIT_SECONDS": 0.3,
    "channels.telegram.signs.GROUP_EDIT_SECONDS": 0.6,
}


class Stored(NamedTuple):
    """A message that came in, as far as its sender knows it."""

    text: str
    files: tuple[str, ...] = ()  # the hashes of their contents, in order


def hash_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


class TelegramDaemon:
    """A daemon, the Bot API server that it talks to, and the boss, who has a token and may have a chat."""

    def __init__(self, daemon: RunningDaemon, api: BotApi, env: dict[str, str], programs: Path) -> None:
        self.daemon = daemon
        self.api = api
        self.env = env
        self.boss = Boss(daemon)
        self._first = 0  # messages up to this one are not looked at
        self.nex = Party(daemon, "agent:nex", daemon.token("nex"))
        self.team = Team(daemon, programs)

    def start(self, **env: str) -> None:
        """Start it again after a kill."""
        self.daemon.start(**{**self.env, **env})

    # --- bots and people ---------------------------------------------------------------

    def bind(self, bot: Bot, agent: str = "nex", **params: Any) -> Row:
        """Bind an agent to a bot; return when the bot polls."""
        polls = len(self.polls(bot))
        bound = self.boss.call(
            "agent.bind",
            name=agent,
            adapter_type="telegram",
            settings={"adapter_token": bot.token},
            **params,
        )
        if bound["created"]:
            self.api.wait_for(lambda: len(self.polls(bot)) > polls)
        return dict(bound)

    def bound_bot(self, name: str, agent: str = "nex", *, topics: bool = False, **params: Any) -> Bot:
        """Add a bot and bind an agent to it."""
        bot = self.api.add_bot(name, topics=topics, privacy=params.pop("privacy", True))
        self.bind(bot, agent, **params)
        return bot

    def polls(self, bot: Bot) -> list[Any]:
        return [one for one in self.api.calls_of("getUpdates") if one.bot is bot]

    def pair(self, person: Person, bot: Bot) -> Chat:
        """Let a person be the boss, by a code; return the chat."""
        chat = person.starts(bot, payload=self.boss.call("boss.pair")["code"])
        chat.wait_for_text("This chat is yours now")
        return chat

    def approved(self, person: Person, bot: Bot) -> Chat:
        """Let a person write something, and approve them; return the chat."""
        chat = person.starts(bot)
        self.approve(chat)
        self.wait_until_posted(chat)
        return chat

    def wait_until_posted(self, chat: Chat) -> None:
        """Return when nothing is on its way to a chat: the code of a stranger could come among other posts."""
        waiting = """
            SELECT 1 FROM envelope e JOIN address a ON a.id = e.recipient
            WHERE a.kind = 'channel' AND a.name = ? AND e.status = 0 AND e.binding IS NOT NULL
        """
        wait_until(lambda: not self.rows(waiting, address(chat).partition(":")[2]))

    def approve(self, chat: Chat) -> Row:
        """Approve a chat as soon as it is known."""
        wait_until(lambda: address(chat) in [one["address"] for one in self.contacts()])
        return dict(self.boss.call("contact.approve", contact=address(chat))["contact"])

    def try_approve(self, chat: Chat) -> bool:
        """Approve a chat; return False if the daemon died before it answered."""
        try:
            self.boss.call("contact.approve", contact=address(chat))
        except DaemonUnreachable:
            return False
        return True

    def contacts(self, **params: Any) -> list[Row]:
        return list(self.boss.call("contact.list", **params)["contacts"])

    def contact(self, chat: Chat) -> Row:
        """Wait until a chat is known, and return what is known of it."""
        wait_until(lambda: address(chat) in [one["address"] for one in self.contacts()])
        (found,) = [one for one in self.contacts() if one["address"] == address(chat)]
        return found

    def binding(self, bot: Bot) -> Row:
        """Return the binding of a bot as agent.bindings shows it."""
        (found,) = [
            one for one in self.boss.call("agent.bindings")["bindings"] if one["account"] == str(bot.id)
        ]
        return dict(found)

    def wait_for_error(self, bot: Bot, words: str, state: str = "running") -> None:
        """Wait until the binding of a bot is in this state and shows an error with these words."""

        def shown() -> bool:
            found = self.binding(bot)
            return found["state"] == state and words in (found["last_error"] or "")

        wait_until(shown)

    # --- what is stored ----------------------------------------------------------------

    def rows(self, sql: str, *values: object) -> list[Row]:
        with self.daemon.database() as database:
            return [dict(row) for row in database.execute(sql, values)]

    def stored(self, chat: Chat) -> list[Row]:
        """Return what came in from a chat, as it is stored, in order."""
        return self.rows(
            "SELECT * FROM message WHERE json_extract(channel, '$.chat.id') = ? AND id > ? ORDER BY id",
            str(chat.id),
            self._first,
        )

    def look_from_here(self) -> None:
        """Do not look at what came in until now: a chat of the boss has the same id with all bots."""
        self._first = self.rows("SELECT ifnull(max(id), 0) AS last FROM message")[0]["last"]

    def messages(self, chat: Chat) -> list[Stored]:
        """Return the texts and the files of what came in from a chat, in order."""
        return [
            Stored(one["text"], tuple(file["sha256"] for file in json.loads(one["attachments"] or "[]")))
            for one in self.stored(chat)
        ]

    def texts(self, chat: Chat) -> list[str]:
        return [one["text"] for one in self.stored(chat)]

    def wait_for_texts(self, chat: Chat, *texts: str) -> list[Row]:
        """Wait until exactly these texts came in from a chat, in this order; return what is stored."""
        wait_until(lambda: len(self.stored(chat)) >= len(texts))
        self.settle()
        assert self.texts(chat) == list(texts)
        return self.stored(chat)

    def wait_for_stored(self, chat: Chat, text: str) -> Row:
        """Wait until a text came in from a chat; return the message."""
        wait_until(lambda: text in self.texts(chat))
        return next(one for one in self.stored(chat) if one["text"] == text)

    def recipients(self, message: Row) -> list[str]:
        """Return the agents to whom a message went."""
        rows = self.rows(
            """
            SELECT a.name FROM envelope e JOIN address a ON a.id = e.recipient
            WHERE e.message = ? AND a.kind = 'agent' ORDER BY e.id
            """,
            message["id"],
        )
        return [one["name"] for one in rows]

    def updates(self, chat: Chat) -> list[Row]:
        return self.rows("SELECT * FROM platform_update WHERE chat = ? ORDER BY id", str(chat.id))

    def outcomes(self, chat: Chat) -> list[str | None]:
        return [one["outcome"] for one in self.updates(chat)]

    def is_settled(self) -> bool:
        """Tell whether the server has nothing for us, and nothing that came in waits to be read."""
        bound = {row["account"] for row in self.rows("SELECT account FROM binding WHERE removed_at IS NULL")}
        if any(bot.pending for bot in list(self.api.world.bots.values()) if str(bot.id) in bound):
            return False
        return not self.rows("SELECT id FROM platform_update WHERE outcome IS NULL LIMIT 1")

    def settle(self, seconds: float = 30) -> None:
        wait_until(self.is_settled, seconds)

    def log(self) -> str:
        return "".join(one.read_text() for one in sorted(Path(self.daemon.home.path).glob("logs/*")))


def address(chat: Chat, topic: int | None = None) -> str:
    return f"channel:telegram:{chat.id}" + ("" if topic is None else f"/{topic}")


def answer_to(chat: Chat, message: Message, count: int = 1) -> Message:
    """Wait for the first post of a bot behind a message, and return it."""

    def posts(found: list[Message]) -> list[Message]:
        behind = found[found.index(message) + 1 :] if message in found else []
        return [one for one in behind if one.sender is not None and one.sender.is_bot and not one.service]

    return posts(chat.wait_for(lambda found: len(posts(found)) >= count))[count - 1]


@contextmanager
def telegram_daemon(
    directory: Path, make: Callable[..., BotApi] = BotApi, **env: str
) -> Iterator[TelegramDaemon]:
    """Start a Bot API server and a daemon that uses it; check both at the end.

    The daemon does not pace what it posts, for this server refuses nothing; HIBOSS_DELIVERY_PACING="on" lets it.
    Unless it does, an answer grows quickly, too.
    """
    programs = directory / "programs"
    programs.mkdir()
    set_up(directory)
    with make() as api:
        quick = pauses(GROWTH) if env.get("HIBOSS_DELIVERY_PACING", "off") == "off" else {}
        all_env = {"HIBOSS_TELEGRAM_BASE_URL": api.url, "HIBOSS_DELIVERY_PACING": "off", **quick, **env}
        with running_daemon(directory, set_up=False, **all_env) as daemon:
            yield TelegramDaemon(daemon, api, all_env, programs)
            daemon.check()


# --- casts: the people of a test ------------------------------------------------------------------


ANSWERS = 'print(f"heard {TEXTS[-1]}")'
_numbers = itertools.count(1)


def own_topic(office: TelegramDaemon, chat: Chat, agent: PythonAgent) -> Topic:
    """Wait until an agent has its topic in a chat of the boss, and return it."""
    query = """
        SELECT a.name FROM place p JOIN address a ON a.id = p.address JOIN address g ON g.id = p.agent
        WHERE g.name = ? AND a.name LIKE 'telegram:%/%' AND p.gone_at IS NULL
    """
    wait_until(lambda: office.rows(query, agent.name))
    (found,) = office.rows(query, agent.name)
    topic = chat.topics[int(found["name"].rpartition("/")[2])]
    assert topic.name == agent.name
    return topic


class Stage:
    """A daemon for several casts. Ada is the boss; her notices come in the chat with a bot of their own."""

    def __init__(self, office: TelegramDaemon) -> None:
        self.office = office
        self.ada = office.api.add_person("Ada", username="ada")
        self.notices = office.pair(self.ada, office.bound_bot("noticebot", "nex"))


@contextmanager
def stage(directory: Path, **env: str) -> Iterator[Stage]:
    with telegram_daemon(directory, **env) as office:
        yield Stage(office)


class Cast:
    """Two agents and the bot that serves them, none of which another test has. The first agent leads."""

    def __init__(self, stage: Stage, *, topics: bool = False, privacy: bool = False, **bound: Any) -> None:
        number = next(_numbers)
        self.office = stage.office
        self.ada = stage.ada
        self.notices = stage.notices
        self.bob = self.office.api.add_person("Bob", username=f"bob_{number}")
        self.kai = self.office.team.hire(ANSWERS, f"kai{number}")
        self.mia = self.office.team.hire(ANSWERS, f"mia{number}")
        self.bot: Bot = self.office.api.add_bot(f"cast{number}bot", topics=topics, privacy=privacy)
        self.office.bind(self.bot, self.kai.name, **bound)
        self.office.bind(self.bot, self.mia.name, **bound)

    def private(self) -> Chat:
        """Let Ada open her chat with the bot."""
        chat = self.ada.starts(self.bot)
        chat.wait_for_text("Commands of hiboss")
        return chat

    def own_topic(self, chat: Chat, agent: PythonAgent) -> Topic:
        return own_topic(self.office, chat, agent)

    @property
    def binding(self) -> str:
        return str(self.office.binding(self.bot)["binding"])

    @contextmanager
    def reached_in(self, chat: Chat) -> Iterator[None]:
        """Let mail for the boss go to his chat with this bot, for a while."""
        before = self.office.boss.call("boss.get")
        self.office.boss.call("boss.set", reach=address(chat), reach_binding=self.binding)
        try:
            yield
        finally:
            self.office.boss.call("boss.set", reach=before["reach"], reach_binding=before["reach_binding"])

    def group(self, **how: Any) -> Group:
        """Make a group of Ada, Bob and the bot, which may write to the agents."""
        group = self.office.api.add_group(self.bot.name, [self.ada, self.bob, self.bot], **how)
        self.office.approve(group)
        return group

    def said(self, message: Message) -> dict[str, Any]:
        """Wait until what somebody wrote is stored, and return it."""
        query = """
            SELECT m.* FROM message m JOIN platform_update u ON u.message = m.id
            JOIN binding b ON b.id = u.binding
            WHERE b.account = ? AND u.chat = ? AND u.platform_id = ?
        """
        values = (str(self.bot.id), str(message.chat.id), str(message.id))
        wait_until(lambda: self.office.rows(query, *values))
        return self.office.rows(query, *values)[0]

    def got(self, message: Message) -> PythonAgent:
        """Wait until what somebody wrote is stored, and return the agent that it went to."""
        (name,) = self.office.recipients(self.said(message))
        return {one.name: one for one in (self.kai, self.mia)}[name]

    def is_context(self, message: Message) -> bool:
        """Tell whether what somebody wrote starts no turn."""
        return bool(self.said(message)["context"])

    def post_of(self, agent: PythonAgent, chat: Chat, person: Person | None = None) -> Message:
        """Let somebody name an agent in a chat, and return what it answers."""
        return answer_to(chat, (person or self.ada).says(chat, f"@{agent.name} are you there?"))

    def answers(self, chat: Chat, text: str, **how: Any) -> str:
        """Let Ada write something, and return the text of the answer."""
        return answer_to(chat, self.ada.says(chat, text, **how)).text


def opened(stage: Stage, **how: Any) -> tuple[Cast, Chat]:
    """Return a cast, and the chat of Ada with its bot."""
    cast = Cast(stage, **how)
    return cast, cast.private()
