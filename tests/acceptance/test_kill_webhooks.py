"""kill -9 while webhooks receive and post: what was confirmed is there once, and each arrival is posted."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hiboss.core.crashpoint import (
    AFTER_COMMIT,
    BEFORE_WRITE,
    CLAIMED,
    DIGESTED,
    FACTS_STORED,
    IN_GROUP,
    POSTED,
    SETTLED,
    TAKEN,
)
from hiboss.core.errors import HibossError
from hiboss.testing.running_daemon import RunningDaemon
from tests.support.daemons import set_up
from tests.support.fact_receivers import FactReceiver, fact_receiver
from tests.support.parties import Party, agent, boss
from tests.support.waits import wait_until

pytestmark = pytest.mark.slow

NEW, KNOWN = {"accepted": True, "duplicate": False}, {"accepted": True, "duplicate": True}


# --- in --------------------------------------------------------------------------------


def given(home: str, name: str, secret: str, requests: list[list[str]], crash_at: str = "") -> list[Any]:
    """Give requests to a daemon of its own; return its answers until it ended."""
    env = {**os.environ, "HIBOSS_CRASH_AT": crash_at}
    done = subprocess.run(
        [sys.executable, "-m", "tests.acceptance.webhook_sender", home, name, secret],
        input="".join(f"{json.dumps(one)}\n" for one in requests),
        capture_output=True,
        text=True,
        env=env,
        timeout=120,
        check=False,
    )
    assert done.returncode == (-9 if crash_at else 0), done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize("point", [f"{TAKEN}:2", f"{DIGESTED}:2"])
def test_a_request_whose_answer_was_lost_is_known_when_it_is_repeated(tmp_path: Path, point: str) -> None:
    daemon = RunningDaemon(set_up(tmp_path))
    daemon.start()
    secret = boss(daemon).call("webhook.create", name="ci", to="nex")["secret"]
    daemon.stop()
    requests = [[f"d{number}", f"text {number}"] for number in range(4)]
    first = given(str(daemon.home), "ci", secret, requests, point)
    again = given(str(daemon.home), "ci", secret, requests)
    assert first == [NEW] * len(first)
    assert again[: len(first)] == [KNOWN] * len(first)
    if point.startswith(TAKEN):
        assert again == [KNOWN, KNOWN, NEW, NEW]  # the second was stored, and its sender was not told so
    daemon.start()
    nex = Party(daemon, "agent:nex", daemon.token("nex"))
    wait_until(lambda: len(nex.list()) == 4)
    assert [one["text"] for one in nex.list(oldest_first=True)] == [text for _, text in requests]
    daemon.check()
    daemon.stop()


# --- out -------------------------------------------------------------------------------


class Story:
    """A daemon that is killed, a webhook that posts all arrivals of ada, and what ada has sent."""

    def __init__(self, directory: Path, server: FactReceiver) -> None:
        self.daemon = RunningDaemon(set_up(directory))
        self.daemon.start()
        self.server = server
        self.ada, self.bob = agent(self.daemon, "ada"), agent(self.daemon, "bob")
        answer = boss(self.daemon).call(
            "webhook.subscribe",
            name="out",
            url=server.url,
            topics=["envelope.arrived"],
            addresses=["agent:ada"],
        )
        server.secret = answer["secret"]
        self.number = 0

    def send_until_it_dies(self, most: int = 40) -> None:
        try:
            for _ in range(most):
                self.number += 1
                self.ada.send(self.bob, text=f"{self.number}")
        except HibossError:  # it ended
            return

    def finish(self) -> None:
        """Start it again, and see that each arrival was posted, each under one id, in order."""
        if self.daemon.process is None:
            self.daemon.start()
        with self.daemon.database() as database:
            query = """
                SELECT id FROM envelopes WHERE "from" = 'agent:ada' AND arrived IS NOT NULL ORDER BY arrived
            """
            sent = [row["id"] for row in database.execute(query)]
        wait_until(lambda: len(self._posted()) >= len(sent))
        assert list(self._posted()) == sent
        assert all(len(ids) == 1 for ids in self._posted().values())
        assert self.server.forged == []
        self.daemon.check()

    def _posted(self) -> dict[str, set[str]]:
        """Return the webhook-ids of the posts about each envelope, by their first one."""
        found: dict[str, set[str]] = {}
        for post in list(self.server.posts):
            if 200 <= post.status < 300:
                for one in post.fact["data"]["envelopes"]:
                    found.setdefault(one["id"], set()).add(post.id)
        return found


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    with fact_receiver() as server:
        made = Story(tmp_path_factory.mktemp("s"), server)
        yield made
        made.daemon.stop()


@pytest.mark.parametrize(
    "point",
    [
        f"{BEFORE_WRITE}:40",
        f"{IN_GROUP}:41",
        f"{AFTER_COMMIT}:42",
        f"{AFTER_COMMIT}:43",
        f"{AFTER_COMMIT}:44",
        f"{FACTS_STORED}:5",
        f"{CLAIMED}:5",
        f"{POSTED}:5",
        f"{SETTLED}:5",
    ],
)
def test_each_arrival_is_posted_wherever_the_daemon_dies(story: Story, point: str) -> None:
    story.daemon.stop()
    story.daemon.start(HIBOSS_CRASH_AT=point)
    story.send_until_it_dies()
    assert story.daemon.wait_for_death() == -9
    story.finish()


def test_each_arrival_is_posted_although_it_is_killed_again_and_again(story: Story) -> None:
    for _ in range(3):
        sending = threading.Thread(target=story.send_until_it_dies, args=(1_000,))
        sending.start()
        before = len(story.server.posts)
        wait_until(lambda: len(story.server.posts) > before + 10)  # noqa: B023
        story.daemon.kill()
        sending.join()
        story.daemon.start()
    story.finish()


def test_a_server_that_was_down_gets_all_after_kills(story: Story) -> None:
    story.server.usual = 503
    for _ in range(2):
        for _ in range(10):
            story.number += 1
            story.ada.send(story.bob, text=f"{story.number}")
        story.daemon.kill()
        story.daemon.start()
    story.server.usual = 204
    boss(story.daemon).call("lane.retry", address="channel:webhook:out")
    story.finish()


def test_after_each_start_there_is_a_gap_for_other_facts_but_only_one_that_waits(story: Story) -> None:
    with fact_receiver() as server:
        boss(story.daemon).call("webhook.subscribe", name="all", url=server.url, addresses=["agent:ada"])
        for number in range(2):
            story.daemon.kill()
            story.daemon.start()
            wait_until(lambda: len(server.facts("gap")) == number + 1)  # noqa: B023
        server.usual = 500
        for _ in range(3):
            story.daemon.kill()
            story.daemon.start()
        story.ada.send(story.bob)
        server.usual = 204
        wait_until(lambda: boss(story.daemon).call("lane.retry", address="channel:webhook:all"))
        wait_until(lambda: server.facts("envelope.arrived"))
        wait_until(lambda: not boss(story.daemon).list(address="channel:webhook:all", status="pending"))
        assert len(server.facts("gap")) == 3
        boss(story.daemon).call("webhook.unsubscribe", name="all")
