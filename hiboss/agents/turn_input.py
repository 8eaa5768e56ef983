"""What a turn contains: the text an agent is shown, and what its process finds around it."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from datetime import tzinfo
from typing import NamedTuple

from ..core import clock, envelope_json, rendering
from ..core.paths import Home
from ..store import due_envelopes, envelopes, run_history
from ..store.connection import Connection
from .process_search import MARK

# Of the daemon's own: a process of an agent's must not take it for its own.
_OURS = "HIBOSS_"


class Content(NamedTuple):
    """A turn as it is shown."""

    envelopes: Sequence[envelope_json.EnvelopeJson]
    due: int | str
    text: str


def content(
    connection: Connection,
    home: Home,
    agent: tuple[int, str],
    numbers: Sequence[int],
    now: int,
    zone: tzinfo,
    exact_to: int,
) -> Content:
    """Envelopes as the agent (address id, name) sees them. Off the loop: it may be long."""
    rows = envelopes.fetch(connection, list(numbers))
    quotes = envelopes.quotes(connection, rows, agent[0])
    shown = [envelope_json.envelope(row, home, quotes) for row in rows]
    number = due_envelopes.count(connection, agent[0], exact_to)
    text = rendering.turn(clock.iso(now), agent[1], number, shown, zone)
    again = [one for one, row in zip(numbers, rows, strict=True) if row["handovers"]]
    if sent := run_history.already_sent(connection, again):
        text += "\n\n" + rendering.already_sent(sent)
    return Content(shown, number, text)


def environment(home: Home, agent: str, mark: str, token: str) -> dict[str, str]:
    """The daemon's, but for what is the daemon's own."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_OURS)}
    path = kept.get("PATH") or os.defpath
    return {
        **kept,
        "PATH": f"{_programs(home)}{os.pathsep}{path}",
        "HIBOSS_HOME": home.path,
        "HIBOSS_TOKEN": token,
        "HIBOSS_AGENT": agent,
        MARK: mark,
    }


def workspace(home: Home, agent: str, given: str | None) -> str:
    """Where it works; a place of its own in the home is made when it was given none."""
    if given is not None:
        return given
    path = home.workspace(agent)
    os.makedirs(
        os.path.dirname(path), mode=0o700, exist_ok=True
    )  # makedirs gives its mode to the last one only
    os.makedirs(path, mode=0o700, exist_ok=True)
    return path


def _programs(home: Home) -> str:
    """A directory with this `hiboss` in it."""
    beside = os.path.dirname(sys.executable)
    if os.path.exists(os.path.join(beside, "hiboss")):
        return beside
    found = shutil.which("hiboss")
    if found:
        return os.path.dirname(found)
    os.makedirs(home.programs, mode=0o700, exist_ok=True)
    script = os.path.join(home.programs, "hiboss")
    with open(script, "w", opener=lambda path, flags: os.open(path, flags, 0o700)) as file:
        file.write(f'#!/bin/sh\nexec "{sys.executable}" -m hiboss.cli.main "$@"\n')
    return home.programs
