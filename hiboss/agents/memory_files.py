"""The files of an agent's memory: what they say, as its turns show it, and which of them a session has seen.

BOSS.md is in the home and for all agents. SOUL.md, MEMORY.md and memory/YYYY-MM-DD.md are in the workspace of
the agent; of the daily notes, today's and yesterday's are shown. A harness keeps the system prompt that a
session began with, so these stand in the turn: in the first one of a session, and each again when it has
changed.

The agent and its tools can write these files. So no link is followed, nothing but regular files is opened,
only so much is read, and each line is marked, so that no line of a file can look like one of hiboss.
"""

from __future__ import annotations

import errno
import os
from codecs import getincrementaldecoder
from collections.abc import Iterator
from datetime import date, timedelta
from hashlib import sha256
from typing import BinaryIO, NamedTuple

from ..core.contracts.provider import storable_text
from ..core.escaping import mark_lines, visible
from ..core.file_guard import FileGuard
from ..core.paths import Home

FILE_BYTES = 16 * 1024  # shown of one file
ALL_BYTES = 48 * 1024  # shown of all of them
SHARE_BYTES = 8 * 1024  # of these, kept for each file, however long those before it are
BOSS, SOUL, MEMORY, NOTES = "BOSS.md", "SOUL.md", "MEMORY.md", "memory"
INSTRUCTIONS = "instructions"  # stands beside the files in what a session has seen


class Part(NamedTuple):
    """One file, as a turn shows it."""

    name: str
    text: str


class Memory(NamedTuple):
    """What there is to remember now."""

    parts: tuple[Part, ...]  # of the files that have something to show
    looked_at: frozenset[str]  # the names of all files that were looked for


class Look(NamedTuple):
    """One file to look at."""

    name: str
    path: str
    open: tuple[str, ...]  # its names below the workspace; empty: the file of the home
    ends: bool  # its end counts more than its beginning


def note_names(today: date) -> tuple[str, str]:
    """Return the names of the daily notes that are shown: today's and yesterday's."""
    days = (today, today - timedelta(days=1))
    return f"{NOTES}/{days[0].isoformat()}.md", f"{NOTES}/{days[1].isoformat()}.md"


def read(home: Home, workspace: str, today: date) -> Memory:
    """Read the files. It blocks: call it in a thread."""
    guard, left = FileGuard(home), ALL_BYTES
    looks = list(_looks(home, workspace, today))
    shares = [min(_size(guard, workspace, one), SHARE_BYTES) for one in looks]
    parts: list[Part] = []
    for place, one in enumerate(looks):
        kept = sum(shares[place + 1 :])  # for those that follow
        shown, used = _show(guard, workspace, one, min(FILE_BYTES, left - kept))
        left -= used
        if shown:
            parts.append(Part(one.name, shown))
    return Memory(tuple(parts), frozenset(one.name for one in looks))


def _looks(home: Home, workspace: str, today: date) -> Iterator[Look]:
    yield Look(BOSS, home.boss_file, (), ends=False)
    for name in (SOUL, MEMORY):
        yield Look(name, os.path.join(workspace, name), (name,), ends=False)
    for name in note_names(today):
        yield Look(name, os.path.join(workspace, name), tuple(name.split("/")), ends=True)


def _show(guard: FileGuard, workspace: str, one: Look, limit: int) -> tuple[str, int]:
    """Return a file as it is shown, and how many of its bytes that are; nothing if it is missing or empty."""
    head = f"file: {one.name} ({visible(one.path)})"
    try:
        with _open(guard, workspace, one) as file:
            content, left_out = _read(file, limit, ends=one.ends)
    except (FileNotFoundError, NotADirectoryError):
        return "", 0
    except OSError as error:
        why = "it is a link, and no link is followed" if error.errno == errno.ELOOP else error.strerror
        return f"{head}\n(not read: {visible(why or str(error))})", 0
    text = storable_text(content.decode("utf-8", "replace").removeprefix("\ufeff")).strip("\r\n")
    if not text.strip() and not left_out:
        return "", 0
    mark = [f"… {left_out:,} bytes left out; read {visible(one.path)}"] if left_out else []
    marked = [mark_lines(text)] if text.strip() else []
    lines = [head, "text:", *(mark + marked if one.ends else marked + mark)]
    return "\n".join(lines), len(content)


def _size(guard: FileGuard, workspace: str, one: Look) -> int:
    """Return how long a file is; 0 if it cannot be read."""
    try:
        with _open(guard, workspace, one) as file:
            return os.fstat(file.fileno()).st_size
    except OSError:
        return 0


def _open(guard: FileGuard, workspace: str, one: Look) -> BinaryIO:
    return guard.open_below_workspace(workspace, *one.open) if one.open else guard.open_in_home(one.name)


def _read(file: BinaryIO, limit: int, *, ends: bool) -> tuple[bytes, int]:
    """Return the beginning or the end of a file, cut between lines, and how many bytes are left out."""
    size = os.fstat(file.fileno()).st_size
    if ends and size > limit:
        file.seek(size - limit)
    content = file.read(limit)
    if size <= len(content):
        return content, 0
    content = _from_line(content) if ends else _to_line(content)
    return content, size - len(content)


def _to_line(content: bytes) -> bytes:
    end = content.rfind(b"\n", len(content) // 2)
    if end >= 0:
        return content[: end + 1]
    decoder = getincrementaldecoder("utf-8")("replace")
    decoder.decode(content)
    return content.removesuffix(decoder.getstate()[0])  # no half of a character


def _from_line(content: bytes) -> bytes:
    begin = content.find(b"\n", 0, len(content) // 2)
    if begin >= 0:
        return content[begin + 1 :]
    first = next((place for place in range(min(4, len(content))) if content[place] & 0xC0 != 0x80), 0)
    return content[first:]


# --- what a session has seen ---------------------------------------------------------


def seen(memory: Memory, instructions: str) -> str:
    """Return what a session has seen that was shown all of this: a short mark for each part, to be stored."""
    parts = [Part(INSTRUCTIONS, instructions), *memory.parts]
    return " ".join(f"{one.name}={sha256(one.text.encode()).hexdigest()[:16]}" for one in parts)


def block(memory: Memory, instructions: str, before: str | None) -> str:
    """Return what a turn of a session says of memory; empty if the session has seen all of it.

    `before`: what the session has seen; None: nothing. New instructions come with it, because a
    harness keeps those that the session began with.
    """
    known = dict(one.split("=", 1) for one in before.split(" ")) if before else {}
    now = dict(one.split("=", 1) for one in seen(memory, instructions).split(" "))
    blocks: list[str] = []
    if INSTRUCTIONS in known and known[INSTRUCTIONS] != now[INSTRUCTIONS]:
        head = "instructions: they have changed; these hold from now on, in place of those before"
        blocks.append(f"{head}\n\n{instructions}\n\n(end of the instructions)")
    shown = [one.text for one in memory.parts if known.get(one.name) != now[one.name]]
    gone = [
        f"gone: {name} (it was emptied or removed; what it said before holds no longer)"
        for name in known
        if name not in now and name in memory.looked_at
    ]
    if shown or gone:
        head = "memory: new to this session" if not known else "memory: changed since it was last shown here"
        blocks.append("\n\n".join([head, *shown, *gone]))
    return "\n\n".join(blocks)
