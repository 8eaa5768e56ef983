"""Delivery while the store cannot be used: what was in hand is settled, and woken, when it works again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.in_process_daemon import InProcessDaemon, frozen

pytestmark = pytest.mark.slow
MODULES = {"adapter_modules": "hiboss.testing.scripted_adapter"}


def log_lines(daemon: InProcessDaemon, *texts: str) -> int:
    """Return how many lines of the log contain one of these texts."""
    lines = Path(daemon.home.log_file).read_text().splitlines()
    return sum(any(text in line for text in texts) for line in lines)


def chat(daemon: InProcessDaemon) -> Path:
    return Path(daemon.home.path).parent / "chat"


def texts(daemon: InProcessDaemon) -> list[str]:
    return [json.loads(line)["chunk"] for line in (chat(daemon) / "posts.jsonl").read_text().splitlines()]


@frozen(at=None, quiet=False, **MODULES)
async def test_what_was_in_hand_is_settled_after_the_store_was_read_only_for_a_moment(
    daemon: InProcessDaemon,
) -> None:
    gate = chat(daemon).with_name("gate")
    address = await daemon.bind(chat(daemon), json.dumps({"do": "ok", "until": str(gate)}))
    (number,) = await daemon.send(address, text="one")
    await daemon.until(lambda: daemon.rows("SELECT 1 FROM envelope WHERE held_by IS NOT NULL"))
    writer = daemon.daemon.wiring.delivery._store._connection
    writer.execute("PRAGMA query_only = ON")  # as on a file system that became read-only
    gate.touch()
    await daemon.until(lambda: log_lines(daemon, "A change waits for the store") >= 2)
    writer.execute("PRAGMA query_only = OFF")
    await daemon.until(lambda: not daemon.rows("SELECT 1 FROM envelope WHERE held_by IS NOT NULL"))
    done = await daemon.get(number)
    assert (done["status"], done["attempts"]) == ("done", 0)
    await daemon.send(address, text="two")  # the lane goes on
    await daemon.until(lambda: texts(daemon) == ["one", "two"])


@frozen(at=None, quiet=False, lock_wait_seconds=0.05, **MODULES)
async def test_mail_does_not_lie_because_the_store_was_locked_while_its_adapter_started(
    daemon: InProcessDaemon,
) -> None:
    address = await daemon.bind(chat(daemon))
    await daemon.ask("lane.pause", address=address)
    await daemon.send(address, text="waits")
    await daemon.close()
    daemon.change("DELETE FROM lane")  # as if it had never been paused
    (chat(daemon) / "settings.json").write_text('{"fail_starts": 1}')
    await daemon.open()
    await daemon.until(lambda: log_lines(daemon, "cannot run"))
    with daemon.locked():  # it starts again after a second
        await daemon.until(lambda: log_lines(daemon, "is running") == 2)
        # Five attempts: once it gave up after four.
        await daemon.until(
            lambda: log_lines(daemon, "A change waits for the store", "could not be woken") >= 5
        )
    await daemon.until(lambda: texts(daemon) == ["waits"])
    assert (await daemon.ask("lane.list"))["lanes"][0]["state"] == "open"
