"""The people of a test in Telegram: a bot that serves two agents of its own, the boss Ada, and Bob."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hiboss.testing.bot_api.bots import Bot
from hiboss.testing.bot_api.chats import Chat, Topic
from hiboss.testing.bot_api.groups import Group
from hiboss.testing.bot_api.messages import Message
from hiboss.testing.bot_api.people import Person
from tests.support.python_agents import PythonAgent
from tests.support.telegram_bots import TelegramDaemon, address, answer_to, telegram_daemon
from tests.support.waits import wait_until

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
