"""hiboss control preempt and priority, with programs that stream: who comes first, what comes back, what is told."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from hiboss.testing.running_daemon import RunningDaemon
from tests.support.cli import Office
from tests.support.daemons import daemon_with
from tests.support.holding_agents import HoldingWorker
from tests.support.parties import agent
from tests.support.shell_agents import Boss, assert_idle, end_all, left_behind, rows
from tests.support.waits import wait_until


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDaemon]:
    with daemon_with(tmp_path_factory.mktemp("d"), finish_seconds=0.1) as running:
        yield running
        running.check()


@pytest.fixture
def office(daemon: RunningDaemon) -> Iterator[Office]:
    yield Office(daemon)
    end_all(daemon)


@pytest.fixture
def nex(daemon: RunningDaemon, tmp_path: Path) -> HoldingWorker:
    """An agent whose program streams words until it is let go, and answers with the number of its turn."""
    worker = HoldingWorker(daemon, tmp_path)
    worker.program.does(
        """
n=$(wc -l < "$D/turns" | tr -d ' ')
cp "$D/given" "$D/turn.new" && mv "$D/turn.new" "$D/turn.$n"
while grep -q '^> hold' "$D/turn.$n" && [ ! -e "$D/go" ]; do
    echo '{"hiboss": "delta", "text": "still at it\\n"}'; sleep 0.02
done
echo '{"hiboss": "final", "text": "answer '$n'"}'
"""
    )
    return worker


def test_a_streaming_run_is_set_aside_and_comes_back_and_nothing_is_lost_or_doubled(
    office: Office, nex: HoldingWorker
) -> None:
    boss = Boss(office.daemon)
    held = [boss.tell(nex, text=f"hold {number}") for number in range(2)]
    run = nex.works()
    wait_until(lambda: boss.call("run.tail", id=run)["parts"])  # it streams
    pids = nex.program.pids
    waiting = agent(office.daemon).tell(nex, text="afterwards")
    urgent = agent(office.daemon).tell(nex, text="first")
    done = office("control", "preempt", "--envelope", urgent, "--reason", "the client waits")
    assert (done.rc, done.values("outcome")) == (0, ["applied"]), done
    nex.all_done(urgent)
    assert nex.shown(2) == [urgent]
    nex.turn(3)
    assert not any(one.startswith(f"{pids[0]} ") for one in left_behind(office.daemon, []))  # it is gone
    nex.program.let_go()
    nex.all_done(*held, waiting)
    assert_idle(office.daemon, nex.program)
    history = nex.history()
    assert history[0][:2] == ("interrupted", "preempted") and history[1] == ("completed", None, [urgent])
    assert sorted(one for status, _, shown in history for one in shown if status == "completed") == sorted(
        [*held, urgent, waiting]
    )
    assert [boss.get(one)["attempts"] for one in (*held, urgent, waiting)] == [0] * 4
    again = office("control", "preempt", "--envelope", urgent)
    assert (again.rc, again.values("outcome")) == (1, ["too-late"])
    listed = office("control", "list", "--agent", nex.name)
    assert listed.values("outcome") == ["too-late", "applied"]
    query = "SELECT type, metadata FROM messages WHERE type = 'event' AND metadata LIKE '%the client waits%'"
    [record] = rows(office.daemon, query)
    assert re.search(r'"event": ?"stream.preempt"', record["metadata"])


def test_a_message_that_is_not_to_be_interrupted_refuses_and_priority_orders_what_waits(
    office: Office, nex: HoldingWorker
) -> None:
    sent = office("envelope", "send", "--to", nex.name, "--text", "hold this", "--not-interruptible")
    assert sent.rc == 0, sent
    nex.works()
    first, second = (agent(office.daemon).tell(nex, text=text) for text in ("one", "two"))
    refused = office("control", "preempt", "--envelope", second)
    assert (refused.rc, refused.values("outcome")) == (1, ["refused"])
    assert "wants no interruption" in refused.stdout
    assert office("control", "priority", "--envelope", second, "--level", "high").rc == 0
    nex.program.let_go()
    nex.all_done(first, second)
    assert [shown for *_, shown in nex.history()][1:] == [[second], [first]]
    late = office("control", "priority", "--envelope", second, "--level", "low")
    assert (late.rc, late.values("outcome")) == (1, ["too-late"])
