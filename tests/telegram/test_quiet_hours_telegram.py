"""The boss's quiet hours in Telegram: what comes at night, and the one message about all the rest."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hiboss.testing.bot_api.messages import Message
from tests.support.python_agents import QUIET, wait_until_idle
from tests.support.quiet_nights import begin_night, end_night
from tests.support.telegram_bots import TelegramDaemon, address, answer_to, telegram_daemon
from tests.support.waits import wait_until


@pytest.fixture
def office(tmp_path: Path) -> Iterator[TelegramDaemon]:
    with telegram_daemon(tmp_path) as running:
        yield running


class Scene:
    """Ada, who is the boss, with a chat where her mail is posted; an agent, and strangers."""

    def __init__(self, office: TelegramDaemon) -> None:
        self.office = office
        self.ada = office.api.add_person("Ada", username="ada")
        self.kai = office.team.hire(QUIET, "kai")
        self.bot = office.bound_bot("kaibot", "kai")
        self.his = office.pair(self.ada, self.bot)
        office.boss.call("boss.set", reach=address(self.his))
        self._first = len(self.his.messages)

    def stranger(self, name: str) -> None:
        """Let somebody unknown write; return when the boss was told."""
        told = len(self.told())
        self.office.api.add_person(name).starts(self.bot)
        wait_until(lambda: len(self.told()) > told)

    def told(self) -> list[str]:
        return [one for one in self.office.boss.told() if "wants to write" in one]

    def posts(self) -> list[Message]:
        """Return what the bot has posted since the beginning, when nothing waits to be."""
        wait_until_idle(self.office.daemon)
        pending = "SELECT id FROM envelope WHERE binding IS NOT NULL AND status = 0 AND waits IS NULL"
        wait_until(lambda: not self.office.rows(pending))
        return [one for one in self.his.messages[self._first :] if one.sender is self.bot and not one.service]

    def fails(self, text: str) -> None:
        """Let the boss's mail to somebody who has blocked the bot fail; return when he was told."""
        told = len(self.office.boss.told())
        bob = self.office.api.add_person("Bob")
        chat = self.office.approved(bob, self.bot)
        bob.blocks(self.bot)
        self.office.boss.call("envelope.send", to=address(chat), text=text)
        wait_until(lambda: any("Not delivered" in one for one in self.office.boss.told()[told:]))


def test_a_night_ends_with_one_digest_and_strangers_can_be_approved_in_the_chat(
    office: TelegramDaemon,
) -> None:
    scene = Scene(office)
    begin_night(office.daemon)
    scene.stranger("Eve")
    scene.fails("hello")
    assert scene.posts() == []
    status = scene.ada.says(scene.his, "/status")
    assert "kai" in answer_to(scene.his, status).text  # he is awake: it comes at once
    office.boss.call("envelope.send", from_="agent:kai", to="user:boss", text="a letter")
    scene.his.wait_for_text("a letter")
    before = len(scene.posts())
    end_night(office.daemon)
    scene.his.wait_for_text("wants to write")
    digest, request = scene.posts()[before:]
    assert digest.text.count("in your quiet hours:") == 1 and "Not delivered" in digest.text
    assert "wants to write" in request.text
    [approve] = [one for one in request.buttons if one.text == "Approve"]
    assert scene.ada.presses(request, str(approve.data)).wait()["text"] == "Approved."
    assert office.rows("SELECT envelope FROM quiet_notice") == []
