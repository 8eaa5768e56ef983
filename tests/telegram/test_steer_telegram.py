"""What people see in Telegram when what they write is taken into the turn that is under way."""

from __future__ import annotations

from pathlib import Path

from tests.agents.test_busy_interrupt import HOLDS_OPEN
from tests.agents.test_steering import HEAD
from tests.support.shell_agents import Program
from tests.support.telegram_bots import TelegramDaemon
from tests.support.waits import wait_until
from tests.telegram.test_telegram_live import Talk


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
