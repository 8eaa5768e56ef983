"""What people see in Telegram when what they write is taken into the turn that is under way."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.agents.test_busy_interrupt import HOLDS_OPEN
from tests.agents.test_steering import HEAD
from tests.support.daemons import wait_until
from tests.support.shell_agents import Program
from tests.support.telegram_bots import TelegramDaemon, telegram_daemon
from tests.telegram.test_telegram_live import Talk


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TelegramDaemon]:
    with telegram_daemon(tmp_path_factory.mktemp("d")) as running:
        yield running


def test_words_that_the_turn_takes_are_marked_as_seen_and_wait_for_nothing(
    office: TelegramDaemon, tmp_path: Path
) -> None:
    talk = Talk(office, "steered")
    program = Program(tmp_path)
    program.becomes(HEAD + HOLDS_OPEN)
    takes_words = {"provider": "command", "settings": {"command": program.command, "input": "open"}}
    office.boss.call("agent.set", name="steered", busy="steer", **takes_words)
    first = talk.asks("begin")
    program.begins()
    [run] = talk.agent.runs()
    office.boss.call("run.pause", id=run["id"])
    second = talk.asks("and this")
    talk.chat.wait_for_text(f"Queued behind {run['id']}")  # so long as it cannot be given to the run
    assert talk.reactions(second) == []
    office.boss.call("run.resume", id=run["id"])
    office.api.wait_for(lambda: talk.posts() == [] and talk.reactions(second) == ["👀"])
    assert [one["status"] for one in talk.agent.runs()] == ["running"]
    third = talk.asks("go on")
    talk.chat.wait_for_text("done")
    (answer,) = talk.posts()
    assert answer.text == "steered:\ndone" and answer.reply_to is first
    assert talk.reactions(first) == talk.reactions(third) == ["👀"]
    wait_until(lambda: [one["status"] for one in talk.agent.runs()] == ["completed"])
    assert len(talk.agent.runs()[0]["envelopes"]) == 3
