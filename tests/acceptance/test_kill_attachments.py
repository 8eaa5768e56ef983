"""kill -9 while a file is attached: no message without its file, and after the next start no file left over."""

from __future__ import annotations

import json
import os
from pathlib import Path

from hiboss.core.crashpoint import AFTER_COMMIT, MEDIA_COPIED, MEDIA_PLACED
from hiboss.core.errors import DaemonUnreachable
from hiboss.testing.running_daemon import RunningDaemon
from tests.support.daemons import started

# A send with files makes two writes: one checks it before copying, one stores it. Some are the daemon's own.
CRASHES = [
    *[("envelope.send", f"{AFTER_COMMIT}:{n}") for n in (12, 13)],
    *[("cron.create", f"{AFTER_COMMIT}:{n}") for n in (12, 13)],
    ("envelope.send", f"{MEDIA_COPIED}:4"),
    ("envelope.send", f"{MEDIA_PLACED}:3"),
    ("cron.create", f"{MEDIA_PLACED}:4"),
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
        for operation, crash in CRASHES:
            daemon.start(HIBOSS_CRASH_AT=crash)  # this start cleans up what the last crash left
            assert in_media(daemon) == referred_to(daemon)
            attach_until_it_dies(daemon, operation, tmp_path)
            daemon.check()  # no message is without its file, also before anybody has cleaned up
        daemon.start()
        assert in_media(daemon) == referred_to(daemon)
        assert len(referred_to(daemon)) > len(CRASHES)
        daemon.check()
