"""kill -9 while a file is uploaded, used or attached: no message without its file, and no file is left over."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from hiboss.api import schedules
from hiboss.core.crashpoint import AFTER_COMMIT, MEDIA_COPIED, MEDIA_PLACED, UPLOAD_USED, UPLOAD_WRITTEN
from hiboss.core.errors import DaemonUnreachable
from hiboss.routing.router import Router
from hiboss.routing.uploads import Uploads
from hiboss.testing.running_daemon import RunningDaemon
from tests.support.crash_groups import Submits, groups_of
from tests.support.daemons import set_up, started
from tests.support.mortals import Mortal
from tests.support.parties import Party
from tests.support.uploaded_files import files, media, put

pytestmark = pytest.mark.slow

# A daemon without a door, in a process of its own, and somebody who uploads to it.
UPLOADS = """
import asyncio, os, sys
from hiboss.core.paths import Home
from hiboss.testing.frozen_clock import FrozenDaemon
from tests.support import crash_groups
from tests.support.uploaded_files import upload

crash_groups.count_only([os.environ[crash_groups.VARIABLE]])

async def main():
    daemon = FrozenDaemon(Home(sys.argv[1]), None, dict(os.environ))
    await daemon.open()
    for number in range(20):
        made = await upload(daemon, b"x" * 100_000, name=f"{number}.bin")
        print(made["id"], flush=True)

asyncio.run(main())
"""


@pytest.mark.parametrize("crash", [f"{UPLOAD_WRITTEN}:3", f"{AFTER_COMMIT}:3"])
def test_what_was_answered_is_there_after_a_kill_and_nothing_else(tmp_path: Path, crash: str) -> None:
    home = set_up(tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", UPLOADS, home.path],
        env={**os.environ, "HIBOSS_CRASH_AT": crash, **groups_of(Uploads.keep)},
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    answered = done.stdout.split()
    assert len(answered) == 2
    daemon = RunningDaemon(home)
    daemon.start()
    try:
        nex = Party(daemon, "agent:nex", daemon.token("nex"))
        there = [one["id"] for one in nex.call("upload.list")["uploads"]]
        assert there[:2] == answered and len(there) == (3 if crash.startswith(AFTER_COMMIT) else 2)
        assert len(files(daemon)) == len(there)
        nex.send(nex, uploads=there)
        assert files(daemon) == []
        daemon.check()
    finally:
        daemon.stop()


# A call with files makes two writes: one checks it before copying, one stores it.
WRITES: dict[str, tuple[Submits, Submits]] = {
    "envelope.send": (Router.accept, Router.plan),
    "cron.create": (Router.prepare, schedules.create),
}


@pytest.mark.parametrize("operation", list(WRITES))
@pytest.mark.parametrize(
    ("crash", "write", "used"),
    [
        (UPLOAD_USED, 1, True),
        (f"{MEDIA_PLACED}:2", 1, False),
        (AFTER_COMMIT, 0, False),
        (AFTER_COMMIT, 1, True),
    ],
)
def test_an_upload_is_used_or_still_there_after_a_kill(
    daemon: Mortal, operation: str, crash: str, write: int, used: bool
) -> None:
    nex = Party(daemon, "agent:nex", daemon.token("nex"))
    before = media(daemon)
    given = [put(nex, os.urandom(1_000)) for _ in range(2)]
    key = f"{crash} {write}"
    when = {"at": "+1h"} if operation == "cron.create" else {"key": key}
    armed = daemon.dies_at(crash, of=WRITES[operation][write])
    daemon.dies_of(armed, lambda: nex.call(operation, to=nex.address, text="see", uploads=given, **when))
    daemon.start()
    left = [one["id"] for one in nex.call("upload.list")["uploads"]]
    assert left == ([] if used else given) and len(files(daemon)) == len(left)
    assert len(media(daemon)) == len(before) + 2 - len(left)
    if operation == "cron.create" and left:
        nex.call("upload.delete", ids=left)  # the next test has its own
    elif operation == "envelope.send":
        sent = nex.call(operation, to=nex.address, text="see", uploads=given, key=key)
        assert sent["duplicate"] == (left == [])
        assert files(daemon) == [] and len(media(daemon)) == len(before) + 2
    daemon.check()


# --- attachments --------------------------------------------------------------------------


CRASHES = [
    *[(operation, f"{AFTER_COMMIT}:3", write) for operation, writes in WRITES.items() for write in writes],
    ("envelope.send", f"{MEDIA_COPIED}:4", Router.plan),
    ("envelope.send", f"{MEDIA_PLACED}:3", Router.plan),
    ("cron.create", f"{MEDIA_PLACED}:4", Router.plan),
]


def in_media(daemon: RunningDaemon) -> set[str]:
    top = Path(daemon.home.media)
    return {str(file.relative_to(top)) for file in top.rglob("*") if file.is_file()}


def referred_to(daemon: RunningDaemon) -> set[str]:
    """Return the files that the database refers to."""
    with daemon.database() as database:
        stored = database.execute(
            """
            SELECT attachments FROM message WHERE attachments IS NOT NULL
            UNION ALL SELECT json_extract(draft, '$.attachments') FROM schedule
            """
        ).fetchall()
    return {file["file"] for row in stored for file in json.loads(row[0])}


def attach_until_it_dies(daemon: RunningDaemon, operation: str, directory: Path) -> None:
    """Send new files again and again; the daemon dies during one of these calls."""
    when = {"at": "+1h"} if operation == "cron.create" else {}
    for round_ in range(20):
        files = [directory / f"{round_}-{n}.bin" for n in range(2)]
        for file in files:
            file.write_bytes(os.urandom(1000))
        params = {"to": "agent:nex", "text": "see", "attachments": [str(file) for file in files], **when}
        try:
            daemon.call(operation, token=daemon.token("nex"), **params)
        except DaemonUnreachable:
            break
    daemon.wait_for_death()


def test_a_file_is_there_exactly_for_the_messages_that_are_stored(tmp_path: Path) -> None:
    with started(tmp_path) as daemon:
        daemon.stop()
        for operation, crash, write in CRASHES:
            daemon.start(
                HIBOSS_CRASH_AT=crash, **groups_of(write)
            )  # this start cleans up what the last crash left
            assert in_media(daemon) == referred_to(daemon)
            attach_until_it_dies(daemon, operation, tmp_path)
            daemon.check()  # no message is without its file, also before anybody has cleaned up
        daemon.start()
        assert in_media(daemon) == referred_to(daemon)
        assert len(referred_to(daemon)) > len(CRASHES)
        daemon.check()
