"""A person's desk: a harness is open as an agent, and the boss, Ada, writes to that agent by phone.

`Phone` is for every harness, `Desk` has the real Claude Code.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import psutil
import pytest

from hiboss.testing.bot_api.chats import Chat
from hiboss.testing.bot_api.messages import Message
from hiboss.testing.bot_api.people import Person
from hiboss.testing.model_server import ModelServer, Request, Say, UseTool
from tests.real.open_claude import OpenClaude
from tests.real.processes import words_of
from tests.real.programs import Programs
from tests.support.cli import HIBOSS
from tests.support.forked_daemons import pauses
from tests.support.telegram_bots import GROWTH, TelegramDaemon, telegram_daemon
from tests.support.waits import wait_until

SECONDS = 60.0  # a limit for every wait: a defect, not a measure
Row = dict[str, Any]
# An idle session is told again soon. What must not happen in these pauses is tested with them as they are.
SOON_AGAIN = {
    "agents.attached.open_session.AGAIN_SECONDS": 3.0,
    "agents.attached.handing_over.AGAIN_SECONDS": 3.0,
    "agents.attached.handing_over.SOON": 2.0,
}
# What a session is told once only, however long it needs for it: a busy machine makes no second telling.
ONCE = {
    "agents.attached.open_session.AGAIN_SECONDS": 600.0,
    "agents.attached.handing_over.AGAIN_SECONDS": 600.0,
}
told_once = pytest.mark.parametrize("office", [{"more": ONCE}], indirect=True, ids=["told once"])
ALLOWED = {"permissions": {"allow": ["Bash(*)"]}}


@contextmanager
def open_office(
    directory: Path, more: Mapping[str, float] | None = None, **env: str
) -> Iterator[TelegramDaemon]:
    """Start a daemon and a Bot API server; `more` are pauses of the daemon that are shorter than they are."""
    place = directory / "office"
    place.mkdir()
    short = pauses({**GROWTH, **SOON_AGAIN, **(more or {})})
    with telegram_daemon(place, **{**short, **env}) as office:
        yield office


def when_busy(*ways: str) -> pytest.MarkDecorator:
    """Parametrise the daemon by when a busy session gets its mail; without a way, by both."""
    ways = ways or ("end", "between")
    settings = [{"HIBOSS_ATTACHED_WHEN_BUSY": one} for one in ways]
    return pytest.mark.parametrize("office", settings, indirect=True, ids=ways)


class Phone:
    """Ada's phone: the chat with an agent's bot, once she has paired it."""

    ada: Person
    chat: Chat

    def __init__(self, office: TelegramDaemon, server: ModelServer, agent: str = "nex") -> None:
        self.office, self.server, self.agent = office, server, agent

    def pair(self) -> None:
        """Let Ada be the boss, in a chat with the bot of the agent, whose mail waits for its session."""
        self.office.boss.call("agent.set", name=self.agent, mode="pull")
        self.ada = self.office.api.add_person("Ada", username="ada")
        self.chat = self.office.pair(self.ada, self.office.bound_bot("nexbot", self.agent))

    def asks(self, text: str) -> str:
        """Let Ada ask something; return the id of the envelope."""
        self.ada.says(self.chat, text)
        row = self.office.wait_for_stored(self.chat, text)
        return f"e{self.office.rows('SELECT id FROM envelope WHERE message = ?', row['id'])[0]['id']}"

    def receipt(self, envelope: str) -> Row:
        return dict(self.office.boss.call("envelope.get", id=envelope)["receipt"] or {})

    def wait_receipt(self, envelope: str, state: str) -> Row:
        """Wait until an envelope has this receipt."""
        wait_until(lambda: self.receipt(envelope).get("state") == state, SECONDS)
        return self.receipt(envelope)

    def posts(self) -> list[str]:
        """Return what the bot posted and people see."""
        return [one.text for one in self.chat.messages if one.sender is not None and one.sender.is_bot]

    def wait_answer(self, text: str) -> None:
        """Wait until the phone has an answer with this text."""
        self.chat.wait_for_text(text, seconds=SECONDS)

    def count(self, text: str) -> int:
        """Return how many posts have a text."""
        return sum(text in one for one in self.posts())

    def question(self, text: str) -> Message:
        """Wait for a post with this text and buttons."""
        found = self.chat.wait_for(
            lambda all_: any(text in one.text and one.buttons for one in all_), seconds=SECONDS
        )
        return next(one for one in reversed(found) if text in one.text and one.buttons)

    def presses(self, message: Message, label: str) -> None:
        [button] = [one for one in message.buttons if one.text == label]
        self.ada.presses(message, str(button.data)).wait()

    def attached(self) -> list[Row]:
        """Return the open sessions."""
        return list(self.office.boss.call("attached.list")["sessions"])

    def wait_idle(self, sessions: int = 1, *, waiter: bool = True) -> None:
        """Wait until so many sessions are open, idle, and can be woken."""

        def ready() -> bool:
            found = self.attached()
            return len(found) == sessions and all(
                one["state"] == "idle" and one["waiter"] == waiter for one in found
            )

        wait_until(ready, SECONDS)

    def runs(self) -> list[Row]:
        """Return the turns that open sessions had, in order."""
        return self.office.rows("SELECT * FROM run WHERE attached IS NOT NULL ORDER BY id")

    def told(self) -> Iterator[tuple[str, str]]:
        """Return how things are, for the explanation of a failure."""
        yield "posts of the bot", "\n---\n".join(self.posts())
        for table in ("run", "attached_session"):
            rows = self.office.rows(f"SELECT * FROM {table} ORDER BY id")
            facts = [{name: value for name, value in one.items() if value is not None} for one in rows]
            yield f"rows of {table}", "\n".join(map(str, facts))
        last = ["\n".join(one.texts)[-1000:] for one in self.server.turns[-3:]]
        yield "ends of the last requests to the model", "\n---\n".join(last)

    def check_done(self, *envelopes: str) -> None:
        """Check that mail is done, that nothing of it is left, and that no two turns had it at one time."""
        for one in envelopes:
            self.wait_receipt(one, "done")
        runs = self.runs()
        assert not [one for one in runs if one["status"] == "running"], runs
        for earlier, later in pairwise(runs):
            assert earlier["ended_at"] <= later["started_at"], (earlier, later)
        self.office.daemon.check()


class Desk(Phone):
    """The real Claude Code, open as an agent. It is started by the test, or by `opened`."""

    def __init__(
        self,
        office: TelegramDaemon,
        directory: Path,
        programs: Programs,
        server: ModelServer,
        *,
        install: Sequence[str] = ("--agent", "nex"),
        settings: Mapping[str, Any] = ALLOWED,
        mode: str = "default",
    ) -> None:
        super().__init__(office, server)
        self.directory, self.programs, self.mode = directory, programs, mode
        self.claude = self.session(settings=settings)
        self.hiboss("hooks", "install", "--client", "claude", *install)
        self.pair()

    def session(self, *words: str, settings: Mapping[str, Any] | None = None) -> OpenClaude:
        """Return another session of the same person in the same directory, not started."""
        return OpenClaude(
            self.directory,
            self.programs,
            self.server,
            settings=settings,
            # As root Claude Code takes the mode bypassPermissions only in a sandbox.
            environment={"HIBOSS_HOME": self.office.daemon.home.path, "IS_SANDBOX": "1"},
            arguments=["--permission-mode", self.mode, *words],
        )

    def hiboss(self, *words: str) -> str:
        """Run a command as the boss, in a terminal of the same person."""
        env = {name: value for name, value in self.claude.environment().items() if "CLAUDE_CODE" not in name}
        env["PATH"] = os.environ["PATH"]
        done = subprocess.run(
            [HIBOSS, *words], env=env, capture_output=True, text=True, cwd=self.claude.workspace
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def tool(self, command: str, **more: Any) -> UseTool:
        """A step in which the model runs a command; `hiboss` is on its PATH."""
        path = f"export PATH={os.path.dirname(HIBOSS)}:$PATH; "
        return UseTool("Bash", {"command": path + command, "description": "work"}, **more)

    def long_tool(self) -> UseTool:
        """A step in which the model runs a command that ends after `finish_tool`."""
        return self.tool(
            f"touch {self._begun}; until [ -e {self._go} ]; do sleep 0.05; done; echo tool ended"
        )

    @property
    def _begun(self) -> Path:
        return self.directory / "tool-begun"

    @property
    def _go(self) -> Path:
        return self.directory / "tool-go"

    def wait_tool(self) -> None:
        """Wait until the command of `long_tool` runs."""
        wait_until(self._begun.exists, SECONDS)

    def finish_tool(self) -> None:
        self._go.touch()

    def answers(self, question: str, *steps: Any) -> None:
        """Let the model answer the mail with this question by these steps, whenever it gets it."""
        self.server.when(lambda one: f"> {question}" in last_input(one), *steps)

    def says(self, question: str, answer: str) -> None:
        """Let the model answer the mail with this question, as often as it gets it, or is asked for the answer."""
        self.answers(question, *[Say(answer)] * 5)
        self.server.when(lambda one: _is_asked_for_answer(one, question), *[Say(answer)] * 5)

    def last_hook(self) -> tuple[str, str]:
        """Return the event that a hook of Claude Code reported last, and what became of the report."""
        place = Path(self.office.daemon.home.path, "sessions", "last-hook-claude.json")
        facts = json.loads(place.read_text())
        return facts["event"], facts["outcome"]

    def answered_once(self, envelope: str, answer: str) -> None:
        """Wait for the answer. It comes once, and nothing is left that could bring another one."""
        self.wait_answer(answer)
        self.wait_idle()
        self.check_done(envelope)
        self.says("And are you well?", "I am well.")
        after = self.asks("And are you well?")
        self.check_done(envelope, after)
        assert self.count(answer) == 1, self.posts()

    def waiters(self, claude: OpenClaude | None = None) -> list[psutil.Process]:
        """Return the processes that wait for mail, of one session."""
        return [one for one in (claude or self.claude).left_behind() if _is_waiter(one)]


def last_input(request: Request) -> str:
    """Return what the model got since it last said something."""
    messages = request.body["messages"]
    last = max((n for n, one in enumerate(messages) if one["role"] == "assistant"), default=-1)
    return json.dumps(messages[last + 1 :], ensure_ascii=False)


def _is_asked_for_answer(request: Request, question: str) -> bool:
    """Tell whether a session is asked, before it stops, for the answer to the mail with this question.

    It is where the mail came beside words of its person, whose answer is not sent.
    """
    asked = re.search(r"this mail is not answered yet \((e\d+)", last_input(request))
    if asked is None:
        return False
    mail = json.dumps(request.body["messages"], ensure_ascii=False).split("envelope-id: ")
    return any(one.startswith(f"{asked[1]}\\n") and f"> {question}" in one for one in mail)


def _is_waiter(process: psutil.Process) -> bool:
    return {"--hook", "watch"} <= set(words_of(process))


@contextmanager
def opened(desk: Desk) -> Iterator[Desk]:
    """Start Claude Code at a desk, and wait until it can be woken."""
    with desk.claude:
        desk.wait_idle()
        yield desk
