"""Messages in several chunks: each has its own time limit, and a posted one is never posted again by a locked store."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from hiboss.testing.running_daemon import RunningDaemon, running_daemon
from tests.support.daemons import wait_until

MODULES = {"HIBOSS_ADAPTERS_MODULES": "hiboss.testing.scripted_adapter"}


class Channel:
    """A scripted channel of nex that cuts messages into chunks of five characters."""

    def __init__(self, daemon: RunningDaemon, directory: Path, *steps: dict[str, Any]) -> None:
        self.daemon = daemon
        self.path = directory / "channel"
        self.path.mkdir()
        (self.path / "settings.json").write_text(json.dumps({"chunk": 5}))
        (self.path / "script.jsonl").write_text("".join(json.dumps(step) + "\n" for step in steps))
        bound = daemon.call(
            "agent.bind",
            token=daemon.token("boss"),
            name="nex",
            adapter_type="scripted",
            settings={"path": str(self.path)},
        )
        self.address = bound["address"]
        wait_until((self.path / "posts.jsonl").exists)

    def send(self, text: str) -> str:
        sent = self.daemon.call("envelope.send", token=self.daemon.token("nex"), to=self.address, text=text)
        return str(sent["ids"][0])

    def posts(self) -> list[str]:
        lines = (self.path / "posts.jsonl").read_text().splitlines()
        return [json.loads(line)["chunk"] for line in lines]

    def envelope(self, number: str) -> dict[str, Any]:
        found: dict[str, Any] = self.daemon.call("envelope.get", token=self.daemon.token("boss"), id=number)[
            "envelope"
        ]
        return found


def test_a_long_message_whose_chunks_each_come_in_time_is_no_failure(tmp_path: Path) -> None:
    slow = [{"do": "hang", "seconds": 0.4}] * 4
    with running_daemon(tmp_path, HIBOSS_DELIVERY_POST_SECONDS="1", **MODULES) as daemon:
        channel = Channel(daemon, tmp_path, *slow)
        number = channel.send("AAAAABBBBBCCCCCDDDDD")  # 1.6 seconds in all
        wait_until(lambda: channel.envelope(number)["status"] == "done")
        assert channel.posts() == ["AAAAA", "BBBBB", "CCCCC", "DDDDD"]
        assert channel.envelope(number)["attempts"] == 0


def test_a_posted_chunk_is_not_posted_again_because_the_store_was_locked(tmp_path: Path) -> None:
    with running_daemon(tmp_path, HIBOSS_STORE_LOCK_WAIT_SECONDS="0.1", **MODULES) as daemon:
        locked = tmp_path / "locked"
        channel = Channel(daemon, tmp_path, {"do": "ok"}, {"do": "ok", "until": str(locked)})
        number = channel.send("AAAAABBBBBCCCCC")
        # The script has no line left: the first chunk is recorded, and the second is being posted.
        wait_until(lambda: not (channel.path / "script.jsonl").read_text())
        with closing(sqlite3.connect(daemon.home.database, isolation_level=None, timeout=30)) as other:
            other.execute("BEGIN IMMEDIATE")
            locked.touch()
            wait_until(lambda: len(channel.posts()) == 2)
            log = Path(daemon.home.log_file)
            wait_until(
                lambda: "A change waits for the store" in log.read_text()
            )  # recording it has failed once
            other.execute("ROLLBACK")
        wait_until(lambda: channel.envelope(number)["status"] == "done")
        assert channel.posts() == ["AAAAA", "BBBBB", "CCCCC"]
        assert channel.envelope(number)["attempts"] == 0
        daemon.check()
