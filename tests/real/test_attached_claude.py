"""Mail for the real Claude Code that is open in a terminal: from Ada's phone, and answered there."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hiboss.testing.bot_api.chats import Chat
from hiboss.testing.model_server import ModelServer, Say
from tests.real.open_claude import OpenClaude
from tests.real.programs import Programs
from tests.support.cli import HIBOSS
from tests.support.daemons import wait_until
from tests.support.telegram_bots import TelegramDaemon, telegram_daemon


@pytest.fixture
def office(tmp_path: Path) -> Iterator[TelegramDaemon]:
    place = tmp_path / "office"
    place.mkdir()
    with telegram_daemon(place) as made:
        yield made


class Desk:
    """A person's desk: Claude Code is open as nex, and Ada's phone writes to nex."""

    def __init__(
        self, office: TelegramDaemon, directory: Path, programs: Programs, server: ModelServer
    ) -> None:
        self.office = office
        self.server = server
        environment = {"HIBOSS_HOME": office.daemon.home.path}
        self.claude = OpenClaude(
            directory, programs, server, environment=environment, arguments=["--permission-mode", "default"]
        )
        self.hiboss("hooks", "install", "--client", "claude", "--agent", "nex")
        office.boss.call("agent.set", name="nex", mode="pull")
        self.ada = office.api.add_person("Ada", username="ada")
        self.chat: Chat = office.pair(self.ada, office.bound_bot("nexbot"))

    def hiboss(self, *words: str) -> str:
        """Run a command as the boss."""
        env = {name: value for name, value in self.claude.environment().items() if "CLAUDE_CODE" not in name}
        env["PATH"] = os.environ["PATH"]
        done = subprocess.run([HIBOSS, *words], env=env, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def asks(self, text: str) -> str:
        """Let Ada ask by phone; return the id of the envelope."""
        self.ada.says(self.chat, text)
        row = self.office.wait_for_stored(self.chat, text)
        return str(self.office.rows("SELECT id FROM envelope WHERE message = ?", row["id"])[0]["id"])

    def receipt(self, envelope: str) -> dict[str, Any]:
        return dict(self.office.boss.call("envelope.get", id=envelope)["receipt"] or {})

    def attached(self) -> list[dict[str, Any]]:
        return list(self.office.boss.call("attached.list")["sessions"])

    def answers(self) -> list[str]:
        """Return what the bot posted."""
        return [one.text for one in self.chat.messages if one.sender is not None and one.sender.is_bot]


@pytest.fixture
def desk(office: TelegramDaemon, tmp_path: Path, programs: Programs, server: ModelServer) -> Iterator[Desk]:
    made = Desk(office, tmp_path, programs, server)
    with made.claude:
        wait_until(lambda: any(one["waiter"] for one in made.attached()), 30)
        yield made


def test_an_idle_session_answers_a_question_from_the_phone(desk: Desk, server: ModelServer) -> None:
    server.script(Say("All is green."))
    envelope = desk.asks("How is the build?")
    desk.chat.wait_for_text("All is green.", seconds=60)
    receipt = desk.receipt(envelope)
    assert receipt["state"] == "done"
    assert receipt["submitted_at"] <= receipt["seen_at"] <= receipt["done_at"]
    [request] = [one for one in server.requests if one.is_main]
    assert "> How is the build?" in json.dumps(request.body)
    wait_until(lambda: any(one["waiter"] and one["state"] == "idle" for one in desk.attached()), 30)
    server.script(Say("Still green."))
    desk.asks("And now?")
    desk.chat.wait_for_text("Still green.", seconds=60)
    assert sum("green" in one for one in desk.answers()) == 2
