"""Uploads in tests: through the api of a daemon inside the test, or put into the home of a daemon process."""

from __future__ import annotations

import asyncio
import hashlib
import os
import time
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import Any

from hiboss.api.context import Context
from hiboss.api.uploads import UploadJson, store_upload
from hiboss.testing.frozen_clock import FrozenDaemon
from hiboss.testing.running_daemon import RunningDaemon
from tests.support.parties import Party

DAY_MS = 86_400_000


def context_of(daemon: FrozenDaemon) -> Context:
    return daemon.daemon.dispatcher._context


async def in_chunks(content: bytes, size: int = 65_536) -> AsyncIterator[bytes]:
    """Yield a content as a connection would bring it."""
    for start in range(0, len(content), size):
        await asyncio.sleep(0)
        yield content[start : start + size]


async def upload(
    daemon: FrozenDaemon,
    content: bytes = b"1. read\n",
    *,
    name: str = "plan.txt",
    mime: str = "",
    who: str = "nex",
    chunks: AsyncIterator[bytes] | None = None,
) -> UploadJson:
    """Upload a file with the token of a profile, as a door does."""
    context = context_of(daemon)
    caller = context.auth.authenticate(daemon.token(who), "envelope.send", "web")
    return await store_upload(context, caller, name, mime, chunks or in_chunks(content))


def directory(daemon: FrozenDaemon | RunningDaemon) -> Path:
    return Path(daemon.home.media) / ".uploads"


def files(daemon: FrozenDaemon | RunningDaemon) -> list[str]:
    """Return the names of the files of uploads."""
    return sorted(os.listdir(directory(daemon))) if directory(daemon).exists() else []


def media(daemon: FrozenDaemon | RunningDaemon) -> list[str]:
    """Return what is in media/ for ever: the copies, and the marks of those that no message has."""
    root = Path(daemon.home.media)
    found = (path for path in root.rglob("*") if path.is_file())
    return sorted(str(path.relative_to(root)) for path in found if ".uploads" not in path.parts)


def put(party: Party, content: bytes = b"1. read\n", *, name: str = "plan.txt") -> str:
    """Put an upload of somebody into the home of a daemon process, as a door has left it; return its id."""
    folder = directory(party.daemon)
    folder.mkdir(mode=0o700, exist_ok=True)
    file = os.urandom(16).hex()
    (folder / file).write_bytes(content)
    now = round(time.time() * 1000)
    facts: Iterable[Any] = (file, name, "text/plain", len(content), hashlib.sha256(content).hexdigest())
    with party.daemon.database() as database:
        found = database.execute(
            """
            INSERT INTO upload (holder, file, name, mime, size, sha256, created_at, expires_at)
            VALUES ((SELECT id FROM address WHERE fold = ? AND retired_at IS NULL), ?, ?, ?, ?, ?, ?, ?)
            RETURNING id
            """,
            (party.address.lower(), *facts, now, now + DAY_MS),
        ).fetchone()
        database.commit()
    return f"u{found[0]}"
