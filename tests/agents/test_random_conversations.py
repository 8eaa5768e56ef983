"""Random conversations between agents end by themselves, and every answer goes to the right conversation."""

from __future__ import annotations

import sqlite3
from collections import Counter
from pathlib import Path

import pytest

from hiboss.testing.running_daemon import RunningDaemon, running_daemon
from tests.support.daemons import set_up
from tests.support.failures import seeded
from tests.support.parties import Party, agent
from tests.support.python_agents import Boss, wait_until_idle
from tests.support.scripted_channels import SCRIPTED

pytestmark = pytest.mark.slow

TALKERS = 8
QUESTIONS = 20
SETTINGS = {
    **SCRIPTED,
    "HIBOSS_PROVIDERS_MODULES": "tests.support.extra_providers",
    "HIBOSS_RUNS_HOPS": "1000",
    "HIBOSS_RUNS_RUNS_PER_TRACE": "100000",
}


def talkers(daemon: RunningDaemon, directory: Path) -> list[Party]:
    """Register agents that answer and ask each other at random; some with busy followup, some with reply explicit."""
    found = []
    for number in range(TALKERS):
        room = directory / f"room-{number}"
        room.mkdir()
        fields = {"busy": "followup"} if number % 4 == 1 else {"reply": "explicit"} if number % 4 == 2 else {}
        found.append(agent(daemon, f"talker-{number}", provider="chatter", workspace=str(room), **fields))
    for number in range(TALKERS):
        (directory / f"room-{number}" / "team").write_text("\n".join(one.address for one in found))
    return found


def test_random_conversations_end_and_every_answer_goes_to_the_right_conversation(tmp_path: Path) -> None:
    set_up(tmp_path)
    with running_daemon(tmp_path, set_up=False, **SETTINGS) as daemon:
        team, ada, chance = talkers(daemon, tmp_path), Boss(daemon), seeded(6)
        for _ in range(QUESTIONS):
            some = chance.sample(team, chance.choice([1, 1, 2, 3, 5]))
            if chance.random() < 0.5:
                ada.say(*some)
            else:
                some[0].send(*some[1:], *(["user:boss"] if chance.random() < 0.3 or len(some) == 1 else []))
        wait_until_idle(daemon)
        daemon.check()
        with daemon.database() as database:
            database.row_factory = sqlite3.Row
            nothing_is_left(database)
            number = every_answer_went_the_right_way(database)
        assert number > QUESTIONS / 4 and ada.told() == []


def nothing_is_left(database: sqlite3.Connection) -> None:
    rows = database.execute("SELECT status, count(*) AS number FROM run GROUP BY status").fetchall()
    assert [row["status"] for row in rows] == ["completed"]
    [row] = database.execute("SELECT count(*) FROM envelope WHERE status <> 1").fetchall()
    assert row[0] == 0
    # Each was handed over once: no turn was repeated.
    twice = database.execute("SELECT envelope FROM run_envelope GROUP BY envelope HAVING count(*) > 1")
    assert twice.fetchall() == []


def every_answer_went_the_right_way(database: sqlite3.Connection) -> int:
    """Return how many answers there were."""
    runs = database.execute("SELECT * FROM run").fetchall()
    taken: dict[int, list[sqlite3.Row]] = {}
    for row in database.execute(
        """
        SELECT x.run, m.* FROM run_envelope x JOIN envelope e ON e.id = x.envelope
        JOIN message m ON m.id = e.message
        """
    ):
        taken.setdefault(row["run"], []).append(row)
    messages = {row["id"]: row for row in database.execute("SELECT * FROM message")}
    answers = Counter(row["run"] for row in messages.values() if row["auto"])
    for run in runs:
        about(run, taken[run["id"]], messages)
        assert answers[run["id"]] == (run["answer"] is not None)
    return len(answers)


def about(run: sqlite3.Row, taken: list[sqlite3.Row], messages: dict[int, sqlite3.Row]) -> None:
    assert {one["conversation"] for one in taken} == {run["conversation"]}
    if run["answer"] is None:
        return
    answer = messages[run["answer"]]
    assert (answer["sender"], answer["hops"]) == (run["agent"], run["hops"] + 1)
    assert answer["trace"] == run["trace"] and answer["auto"]
    if any(not one["auto"] for one in taken):
        assert answer["conversation"] == run["conversation"]
        assert answer["reply_to"] in {one["id"] for one in taken if not one["auto"]}
    else:  # an automatic message is never answered in its own conversation; only an earlier message is
        assert answer["conversation"] != run["conversation"]
        assert answer["reply_to"] < min(one["id"] for one in taken)
        assert answer["reply_to"] < min(one["reply_to"] for one in taken)
        assert not messages[answer["reply_to"]]["auto"]
