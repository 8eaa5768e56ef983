"""A group `core` in a daemon whose clock the test moves: members with programs, what is said, and who has it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.support.in_process_daemon import Envelope, InProcessDaemon
from tests.support.python_agents import QUIET, Program, hire, idle_after

ANSWERS = 'print("answer of " + os.path.basename(__file__))'
MISSING = "/there/is/no/such/program"


async def group(daemon: InProcessDaemon, *members: str, respond: str | None = None, **more: Any) -> None:
    """Create the group `core`, which the boss owns."""
    given = [one if ":" in one else f"agent:{one}" for one in members]
    await daemon.ask("conversation.create", name="core", participants=given, respond=respond, **more)


async def hired(daemon: InProcessDaemon, *names: str, body: str = QUIET, **more: Any) -> list[Program]:
    return [await hire(daemon, name, body, **more) for name in names]


async def say(
    daemon: InProcessDaemon, text: str, who: str = "boss", to: str = "group:core", **more: Any
) -> str:
    """Say something there; return when all turns that it starts are over."""
    (number,) = await daemon.send(to, text=text, who=who, **more)
    await idle_after(daemon)
    return number


def turns(programs: Sequence[Program]) -> list[int]:
    return [len(one.turns()) for one in programs]


def has_turns(program: Program, number: int) -> bool:
    return len(program.turns()) == number


async def copies(daemon: InProcessDaemon, text: str) -> dict[str, Envelope]:
    """Return the envelopes of a message, by their recipients."""
    page = await daemon.ask("envelope.list", box="all", page_size=100)
    return {one["to"]: one for one in page["envelopes"] if one["text"] == text}


async def states(daemon: InProcessDaemon, text: str, *names: str) -> list[tuple[str, bool]]:
    """Return of each of these agents whether it has a message to answer."""
    found = await copies(daemon, text)
    return [(found[f"agent:{name}"]["status"], found[f"agent:{name}"]["context"]) for name in names]


OPEN, ALONG, DONE = ("pending", False), ("done", True), ("done", False)  # as `states` has them
