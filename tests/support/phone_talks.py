"""Ada, who is the boss, on her phone, and an agent whose program uses the `hiboss` command as agents do."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from hiboss.testing.bot_api import BotApi
from hiboss.testing.bot_api.bots import Bot
from hiboss.testing.bot_api.chats import Chat
from hiboss.testing.bot_api.messages import Message
from hiboss.testing.bot_api.people import Person
from tests.support.cli import Shell, gone
from tests.support.python_agents import PythonAgent, wait_until_idle
from tests.support.telegram_bots import TelegramDaemon, telegram_daemon
from tests.support.waits import wait_until

# What every program has: `hiboss` runs the installed command with the token of the run, `say` writes a part
# of the answer, `step` waits for the test, and ENVELOPE is the last envelope of the turn.
HEAD = """
ENVELOPE = re.findall(r"(?m)^envelope-id: (?:e[0-9]+, )*(e[0-9]+)$", TURN)[-1]


def hiboss(*words):
    done = subprocess.run(["hiboss", *words], capture_output=True, text=True)
    note({"words": words, "status": done.returncode, "errors": done.stderr})
    return done.stdout


def say(text):
    print(text, flush=True)


def step(number):
    wait_for(f"{STORY}.{number}")


"""
# A tree of three: the program, its child, and a grandchild in a session of its own, without an environment.
# INT and TERM end none of them, and two go on writing.
STUBBORN_TREE = """
import signal

for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, signal.SIG_IGN)
if os.fork() == 0 and os.fork() == 0:
    os.setsid()
    note({"pid": os.getpid()})
    os.execve("/bin/sleep", ["sleep", "1000"], {})
note({"pid": os.getpid()})
while True:
    say("still at it")
    time.sleep(0.1)
"""


class PhoneTalk:
    """Ada talks with an agent of her own bot. The bot keeps to the rates, and the server insists on them."""

    def __init__(self, office: TelegramDaemon, name: str) -> None:
        self.office = office
        self.agent: PythonAgent = office.team.hire("", name)
        self.bot: Bot = office.bound_bot(f"{name}bot", name)
        self.ada: Person = office.api.add_person("Ada", username="ada")
        self.chat: Chat = office.pair(self.ada, self.bot)
        self.shell = Shell(office.daemon.home.path)
        self._stories = itertools.count(1)
        self._story = ""
        self.look_from_here()

    # --- the agent -----------------------------------------------------------------------

    def works_so(self, body: str) -> None:
        """Give the agent the program of its next turns, and wait until the last one is over."""
        wait_until_idle(self.office.daemon)
        self._story = f"{self.agent.name}-{next(self._stories)}"
        head = f"STORY = {self._story!r}\n{HEAD}"
        self.agent.program.write(head + body, self.office.daemon.home.socket)

    def file(self, name: str) -> Path:
        """Return the path of a file beside the program."""
        return self.office.team.place(name)

    def steps(self, number: int) -> None:
        """Let the program go on behind its step of this number."""
        self.file(f"{self._story}.{number}").touch()

    def commands(self) -> list[list[str]]:
        """Return the commands that the program ran; none of them failed."""
        ran = [one for one in self.agent.program.notes() if "words" in one]
        assert [one["errors"] for one in ran if one["status"] != 0] == []
        return [one["words"] for one in ran]

    def tree(self) -> list[int]:
        """Wait until the three processes of STUBBORN_TREE are there, and return their ids."""

        def last() -> list[int]:
            found = [one["pid"] for one in self.agent.program.notes() if "pid" in one]
            return [pid for pid in found if not gone(pid)]

        wait_until(lambda: len(last()) == 3)
        return last()

    # --- what people see -------------------------------------------------------------------

    def asks(self, text: str, reply_to: Message | None = None) -> Message:
        self.look_from_here()
        return self.ada.says(self.chat, text, reply_to=reply_to)

    def look_from_here(self) -> None:
        """Do not look at what was posted until now."""
        self._posted = max(self.chat.history, default=0)

    def posts(self) -> list[Message]:
        """Return what people see of the bot."""
        own = [one for one in self.chat.messages if one.sender is self.bot and not one.service]
        return [one for one in own if one.id > self._posted]

    def wait_for_eyes(self, message: Message) -> None:
        """Wait until the agent has begun to work on a message."""
        self.office.api.wait_for(lambda: message.reactions_of(self.bot) == ["👀"])

    def growth(self, text: str) -> str:
        """Wait until so much of an answer is shown, as a draft or as a post; return all that is shown of it."""
        shown: list[str] = []

        def look() -> bool:
            draft = self.chat.draft
            shown[:] = [one for one in [*self.texts(), draft.text if draft else ""] if text in one]
            return bool(shown)

        self.office.api.wait_for(look)
        return shown[0]

    def texts(self) -> list[str]:
        return [one.text for one in self.posts()]

    def wait_for_post(self, text: str) -> Message:
        """Wait for the one post with this text."""
        self.chat.wait_for(lambda found: any(text in one.text for one in self.posts()))
        (found,) = [one for one in self.posts() if text in one.text]
        return found

    def wait_for_live_post(self) -> None:
        """Wait until the daemon knows which post grows; a draft is no post."""
        if self.chat.draft is None:
            wait_until(lambda: self.office.rows("SELECT run FROM live_post WHERE platform_id IS NOT NULL"))

    def quiet(self) -> None:
        """Wait until no run is under way, and nothing waits to be posted or taken back."""
        wait_until_idle(self.office.daemon)
        unsent = """
            SELECT id FROM envelope WHERE binding IS NOT NULL AND status = 0 AND waits IS NULL
            UNION ALL SELECT run FROM live_post
        """
        wait_until(lambda: not self.office.rows(unsent))


@contextmanager
def phone_talk(directory: Path, version: str) -> Iterator[PhoneTalk]:
    """Start a server of this version, and a daemon with an agent; at the end check what the server saw."""
    with telegram_daemon(
        directory, partial(BotApi, version=version, limits=True), HIBOSS_DELIVERY_PACING="on"
    ) as office:
        yield PhoneTalk(office, "kai")
        assert office.api.complaints == []
        assert office.api.floods == []
