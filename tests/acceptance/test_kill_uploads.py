"""kill -9 while a file is uploaded or used: what was answered is there, and no file is left over for ever."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from hiboss.core.crashpoint import AFTER_COMMIT, MEDIA_PLACED, UPLOAD_USED, UPLOAD_WRITTEN
from hiboss.core.errors import DaemonUnreachable
from hiboss.testing.running_daemon import RunningDaemon
from tests.support.daemons import set_up, started
from tests.support.parties import Party
from tests.support.uploaded_files import files, media, put

# A daemon without a door, in a process of its own, and somebody who uploads to it.
UPLOADS = """
import asyncio, os, sys
from hiboss.core.paths import Home
from hiboss.testing.frozen_clock import FrozenDaemon
from tests.support.uploaded_files import upload

async def main():
    daemon = FrozenDaemon(Home(sys.argv[1]), None, dict(os.environ))
    await daemon.open()
    for number in range(20):
        made = await upload(daemon, b"x" * 100_000, name=f"{number}.bin")
        print(made["id"], flush=True)

asyncio.run(main())
"""


@pytest.mark.parametrize("crash", [f"{UPLOAD_WRITTEN}:3", f"{AFTER_COMMIT}:9"])
def test_what_was_answered_is_there_after_a_kill_and_nothing_else(tmp_path: Path, crash: str) -> None:
    home = set_up(tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", UPLOADS, home.path],
        env={**os.environ, "HIBOSS_CRASH_AT": crash},
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    answered = done.stdout.split()
    daemon = RunningDaemon(home)
    daemon.start()
    try:
        nex = Party(daemon, "agent:nex", daemon.token("nex"))
        there = [one["id"] for one in nex.call("upload.list")["uploads"]]
        assert there[: len(answered)] == answered and len(there) <= len(answered) + 1
        assert len(files(daemon)) == len(there)
        nex.send(nex, uploads=there)
        assert files(daemon) == []
        daemon.check()
    finally:
        daemon.stop()


@pytest.mark.parametrize("operation", ["envelope.send", "cron.create"])
@pytest.mark.parametrize(
    "crash", [UPLOAD_USED, f"{MEDIA_PLACED}:2", *[f"{AFTER_COMMIT}:{n}" for n in (1, 2, 3)]]
)
def test_an_upload_is_used_or_still_there_after_a_kill(tmp_path: Path, operation: str, crash: str) -> None:
    with started(tmp_path) as daemon:
        nex = Party(daemon, "agent:nex", daemon.token("nex"))
        given = [put(nex, os.urandom(1_000)) for _ in range(2)]
        daemon.stop()
        armed = tmp_path / "armed"
        daemon.start(HIBOSS_CRASH_AT=f"{crash}@{armed}")
        armed.touch()
        when = {"at": "+1h"} if operation == "cron.create" else {"key": "once"}
        try:
            nex.call(operation, to=nex.address, text="see", uploads=given, **when)
        except DaemonUnreachable:
            daemon.wait_for_death()
        else:  # it has made fewer writes
            daemon.kill()
        daemon.start()
        left = [one["id"] for one in nex.call("upload.list")["uploads"]]
        assert left in ([], given) and len(files(daemon)) == len(left)
        assert len(media(daemon)) == 2 - len(left)
        if operation == "envelope.send":
            sent = nex.call(operation, to=nex.address, text="see", uploads=given, key="once")
            assert sent["duplicate"] == (left == [])
            assert files(daemon) == [] and len(media(daemon)) == 2
        daemon.check()
