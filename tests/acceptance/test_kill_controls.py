"""kill -9 around a cancel: afterwards it is applied as a whole or not at all, and told once.

Pauses, and controls of agents, conversations and mail, are in test_kill_more_controls.py.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from hiboss.agents import process_control
from hiboss.agents.controls import Controls
from hiboss.core.crashpoint import AFTER_COMMIT, CONTROLLED, IN_GROUP, RUN_ANSWERED, RUN_SETTLED
from tests.support.mortals import Mortal
from tests.support.parties import Party, agent
from tests.support.shell_agents import Boss, Worker, assert_idle, eventually, rows

pytestmark = pytest.mark.slow

STREAM = 'while [ ! -e "$D/go" ]; do echo line; sleep 0.02; done; echo done'


class Story:
    """An agent that streams for zoe, and a daemon that dies when the boss controls it."""

    def __init__(self, daemon: Mortal, directory: Path) -> None:
        self.daemon = daemon
        self.ada, self.zoe, self.worker = Boss(daemon), agent(daemon), Worker(daemon, directory)
        self.worker.program.does(STREAM)
        self.number = ""

    def begins(self, crash_at: str) -> None:
        """Let it work for zoe, in a daemon that dies there as soon as it is armed."""
        self.armed = self.daemon.dies_at(crash_at, of=Controls.carry_out)
        self.number = self.zoe.tell(self.worker)
        self.worker.under_way()

    def dies_in(self, event: str, **more: Any) -> None:
        """Send a control, and let the daemon die of it."""
        run = self.worker.runs()[0]["id"]
        order = {"event": f"stream.{event}", "run": run, **more}
        self.daemon.dies_of(self.armed, lambda: self.ada.call("control.send", **order))
        self.daemon.check()  # as the dead daemon has left it

    def recorded(self, event: str) -> bool:
        """Whether the control is stored, with its message, and nothing of it is missing."""
        found = rows(
            self.daemon,
            "SELECT k.outcome, m.type FROM control k JOIN message m ON m.id = k.message WHERE k.event = ?"
            " AND k.agent = (SELECT id FROM address WHERE name = ? AND retired_at IS NULL)",
            event,
            self.worker.name,
        )
        assert [tuple(one) for one in found] in ([], [("applied", 4)])
        return bool(found)

    def ends_as(self) -> str | None:
        """How its first run ends."""
        query = "SELECT r.ends_as FROM run r JOIN address a ON a.id = r.agent WHERE a.name = ? ORDER BY r.id"
        return rows(self.daemon, query, self.worker.name)[0]["ends_as"]

    def told(self, party: Party) -> list[str]:
        return [one["text"] for one in party.list(page_size=100) if one["from"] == "agent:system"]

    def comes_again(self) -> None:
        """What it worked on is given to it again, and is answered once."""
        self.worker.program.let_go()
        eventually(lambda: self.zoe.get(self.number)["status"], "done")
        [answer] = self.worker.answers_to(self.number)
        assert answer.endswith("done")


class Case(NamedTuple):
    more: dict[str, Any]
    stored: Callable[[Story], None]  # what is true after the next start, if it is stored


def _cancelled(story: Story) -> None:
    """As if the daemon had gone on: cancelled, and its sender told once."""
    run = story.worker.settled()
    assert (run["status"], run["error"]) == ("cancelled", "the boss cancelled it: enough")
    envelope = story.zoe.get(story.number)
    assert (envelope["status"], envelope["attempts"]) == ("cancelled", 0)
    [notice] = story.told(story.zoe)
    assert notice.startswith(f"Not delivered: {story.number}") and "enough" in notice
    assert len(story.worker.runs()) == 1
    story.worker.program.answers("again")
    story.zoe.call("envelope.retry", ids=[story.number])
    eventually(lambda: story.worker.answers_to(story.number), ["again"])


def _requeued(story: Story) -> None:
    assert story.worker.settled()["status"] == "cancelled"
    assert story.told(story.zoe) == []
    story.comes_again()
    assert story.zoe.get(story.number)["attempts"] == 0


CASES = {
    "cancel": Case({"reason": "enough"}, _cancelled),
    "requeue": Case({"reason": "enough", "requeue": True}, _requeued),
}
# At the last two its processes have ended, and that is not stored; it is settled.
POINTS = (IN_GROUP, AFTER_COMMIT, CONTROLLED, RUN_ANSWERED, RUN_SETTLED)


@pytest.fixture
def story(outlived: Mortal, tmp_path: Path) -> Story:
    return Story(outlived, tmp_path)


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("case", list(CASES))
def test_a_cancel_is_applied_as_a_whole_or_not_at_all(story: Story, case: str, point: str) -> None:
    story.begins(point)
    story.dies_in("cancel", **CASES[case].more)
    stored = story.recorded("cancel")
    assert stored or point == IN_GROUP  # nothing after COMMIT takes it back
    assert (story.ends_as() is not None) == stored
    story.daemon.start()
    assert not process_control.members(story.worker.program.pids[0])  # it ended them before it was ready
    if stored:
        CASES[case].stored(story)
    else:
        story.comes_again()
    assert_idle(story.daemon, story.worker.program)
