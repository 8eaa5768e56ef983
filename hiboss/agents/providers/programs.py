"""Programs that other people make, like claude and codex: where they are, and which version they have.

A daemon that a service manager started has a short PATH: so the usual places of such programs are looked at.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from ..child_process import Process

VERSION_SECONDS = 4.0  # of the 8 that hiboss waits for all that a provider looks for
OUTPUT_BYTES = 64 * 1024
USUAL_PLACES = (
    "~/.local/bin",
    "~/.npm-global/bin",
    "~/.claude/local",
    "~/.bun/bin",
    "~/.volta/bin",
    "~/.asdf/shims",
    "/usr/local/bin",
    "/opt/homebrew/bin",
    "/usr/bin",
    "/snap/bin",
)
NVM = "~/.nvm/versions/node"
NUMBER = re.compile(r"(?<![0-9.])[0-9]{1,9}(?:\.[0-9]{1,9}){1,5}(?![0-9])")

# Asked once for each program as it is on the disk: an update changes its time.
_known: dict[tuple[str, int, int], str] = {}


class Spoken(NamedTuple):
    """What a program said when it was called shortly."""

    status: int
    output: str  # of standard output
    errors: str  # of standard error, its end


def locate(program: str, environment: Mapping[str, str]) -> str | None:
    """Return the absolute path of a program: by its path, on PATH, or in a usual place; None if not found."""
    home = environment.get("HOME") or os.path.expanduser("~")
    if os.sep in program or program.startswith("~"):
        path = _expanded(program, home)
        return path if os.path.isabs(path) and _runs(path) else None
    places = [one for one in environment.get("PATH", os.defpath).split(os.pathsep) if os.path.isabs(one)]
    places += [_expanded(one, home) for one in USUAL_PLACES] + _of_nvm(_expanded(NVM, home))
    return next((path for one in places if _runs(path := os.path.join(one, program))), None)


def with_program(environment: Mapping[str, str], path: str) -> dict[str, str]:
    """Return the environment with the directory of a program on PATH: a script of npm needs node there."""
    known = environment.get("PATH", os.defpath)
    directory = os.path.dirname(path)
    return {**environment, "PATH": known if directory in known.split(os.pathsep) else f"{known}:{directory}"}


async def version(path: str, environment: Mapping[str, str]) -> str:
    """Return the version of a program, like 2.1.326; empty if it says none in a few seconds."""
    try:
        facts = os.stat(path)
    except OSError:
        return ""
    key = (os.path.realpath(path), facts.st_mtime_ns, facts.st_size)
    if key not in _known:
        spoken = await call([path, "--version"], environment, VERSION_SECONDS)
        found = NUMBER.search(spoken.output) if spoken is not None and spoken.status == 0 else None
        if found is None:
            return ""
        _known[key] = found[0]
    return _known[key]


def own_option(word: str, own: Collection[str]) -> str:
    """Return which of these options an argument is; empty: none. `-rX` is `-r` with its value."""
    name = word.split("=")[0]
    short = word[:2] if word[:1] == "-" and word[:2] != "--" else ""
    return next((one for one in (name, short) if one in own), "")


def older(version_text: str, least: Sequence[int]) -> bool:
    """Tell whether a version is older than the least one; False for a version that is not known."""
    if NUMBER.fullmatch(version_text) is None:
        return False
    return [int(one) for one in version_text.split(".")] < list(least)


async def call(arguments: Sequence[str], environment: Mapping[str, str], seconds: float) -> Spoken | None:
    """Run a short command without input; None if it cannot be started, or does not end in time.

    Whatever it started ends with it: also what left its session, if the environment has a mark of a run.
    What it writes beyond OUTPUT_BYTES ends it.
    """
    output: list[bytes] = []
    process = Process(arguments, os.sep, with_program(environment, arguments[0]), OUTPUT_BYTES)

    async def read(part: bytes) -> None:
        output.append(part)

    try:
        await process.start()
    except OSError:
        return None
    try:
        async with asyncio.timeout(seconds):
            ended = await process.run_to_end(b"", read)
    except TimeoutError:
        return None
    return Spoken(ended.status, b"".join(output).decode("utf-8", "replace"), ended.stderr_tail)


def _expanded(path: str, home: str) -> str:
    return os.path.join(home, path[2:]) if path.startswith("~/") else path


def _runs(path: str) -> bool:
    return os.path.isfile(path) and os.access(path, os.X_OK)


def _of_nvm(directory: str) -> list[str]:
    """Return the directories of programs of the node versions that nvm installed, the newest first."""
    try:
        found = [one for one in Path(directory).iterdir() if one.name.startswith("v")]
    except OSError:
        return []
    newest = sorted(found, key=lambda one: [int(part) for part in re.findall(r"\d+", one.name)], reverse=True)
    return [str(one / "bin") for one in newest]
