"""What a run is given: the text of the turn, the environment of its process, and its workspace."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable, Sequence
from datetime import tzinfo
from fnmatch import fnmatchcase
from shlex import quote
from typing import NamedTuple

from ..core import clock, envelope_json, rendering, shown_envelope
from ..core.envelope import Status, Waits
from ..core.paths import Home
from ..core.quoting import SHORTEST_SECRET, redact
from ..store import due_envelopes, envelope_details, envelope_rows, reactions, run_history, surroundings
from ..store.connection import Connection
from ..store.turn_selection import NOTHING, Beside
from .process_control import MARK

# Variables of the daemon itself. They are not passed on: a run gets its own.
_DAEMON_PREFIX = "HIBOSS_"


class Content(NamedTuple):
    """A turn as the agent sees it."""

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
    beside: Beside = NOTHING,
) -> Content:
    """Render envelopes for an agent (address id, name), and what its turn shows beside them.

    It can take long: call it in a thread.
    """
    rows = envelope_rows.shown(connection, list(numbers))
    details = envelope_details.of_turn(connection, rows, agent[0])
    shown = [shown_envelope.envelope(row, home, details) for row in rows]
    # Count also what this turn holds, so that a preview, which holds nothing, shows the same number.
    number = due_envelopes.count(connection, agent[0], exact_to, with_held=True)
    if isinstance(number, int):  # and what an open session has of it
        number += sum(row.status == Status.PENDING and row.waits == Waits.LEASE for row in rows)
    around = _around(connection, home, agent[0], beside)
    new = rendering.Reactions(reactions.fetch(connection, beside.reactions.shown), beside.reactions.more)
    meanwhile = _meanwhile(connection, home, agent[0], beside)
    text = rendering.turn(clock.iso(now), agent[1], number, shown, zone, around, new, meanwhile)
    redelivered = [one for one, row in zip(numbers, rows, strict=True) if row.handovers]
    if sent := run_history.already_sent(connection, redelivered):
        text += "\n\n" + rendering.already_sent(sent)
    return Content(shown, number, text)


def words(
    connection: Connection, home: Home, agent: int, numbers: Sequence[int], zone: tzinfo
) -> tuple[str, str]:
    """Render envelopes for an agent in the middle of its turn; return that, and their texts."""
    rows = envelope_rows.shown(connection, list(numbers))
    details = envelope_details.of_turn(connection, rows, agent)._replace(reactions={})
    shown = [shown_envelope.envelope(row, home, details) for row in rows]
    return rendering.mail(shown, zone), "\n".join(one["text"] for one in shown)


def _around(connection: Connection, home: Home, agent: int, beside: Beside) -> rendering.Around | None:
    """Return what was said around the envelopes in their group chat."""
    if beside.around is None:
        return None
    return _rendered(connection, home, agent, surroundings.read(connection, agent, beside.around))


def _meanwhile(connection: Connection, home: Home, agent: int, beside: Beside) -> rendering.Around | None:
    """Return what was said in the conversation while somebody else had it."""
    if beside.meanwhile is None:
        return None
    return _rendered(connection, home, agent, surroundings.read_copies(connection, agent, beside.meanwhile))


def _rendered(connection: Connection, home: Home, agent: int, said: surroundings.Said) -> rendering.Around:
    quotes = envelope_rows.quotes(connection, [row["reply_to"] for row in said.rows], agent)
    return rendering.Around([shown_envelope.said(row, home, quotes) for row in said.rows], said.left_out)


def environment(home: Home, agent: str, mark: str, token: str, deny: Sequence[str] = ()) -> dict[str, str]:
    """Return the environment of a run: that of its agent, with the token and the mark of the run."""
    return {
        **environment_of_agent(home, agent, deny),
        "HIBOSS_TOKEN": token,
        "HIBOSS_TOKEN_FILE": home.keep_run_token(mark, token),
        MARK: mark,
    }


def environment_of_agent(home: Home, agent: str, deny: Sequence[str] = ()) -> dict[str, str]:
    """Return the daemon's environment, without the HIBOSS_ variables that are its own.

    A variable that contains a token of hiboss, or a secret of a binding or a provider, is left out, and
    so is one whose name is in `deny` (names and patterns like AWS_*).
    """
    secrets = home.known_secrets()
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(_DAEMON_PREFIX) and not any(fnmatchcase(name, one) for one in deny)
    }
    if _may_have_secrets("\0".join(kept.values()), secrets):
        kept = {name: value for name, value in kept.items() if not _has_secret(value, secrets)}
    path = kept.get("PATH") or os.defpath
    return {
        **kept,
        "PATH": f"{_hiboss_directory(home)}{os.pathsep}{path}",
        "HIBOSS_HOME": home.path,
        "HIBOSS_AGENT": agent,
    }


def _may_have_secrets(values: str, secrets: Iterable[str]) -> bool:
    """Tell whether one of these values may have a secret: asked for all at once, for mostly none has."""
    return redact(values) != values or any(one in values for one in secrets)


def _has_secret(value: str, secrets: Iterable[str]) -> bool:
    """Return whether a value contains a secret, or is a short one, which many harmless values contain."""
    if redact(value) != value:
        return True
    return any(one == value if len(one) < SHORTEST_SECRET else one in value for one in secrets)


def workspace(home: Home, agent: str, given: str | None) -> str:
    """Return the directory the run starts in. Without one given, make one in the home for this agent."""
    if given is not None:
        return given
    path = home.workspace(agent)
    # Two calls: makedirs gives its mode to the last directory only.
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    os.makedirs(path, mode=0o700, exist_ok=True)
    return path


def _hiboss_directory(home: Home) -> str:
    """Return a directory that has this installation's `hiboss` command in it."""
    same_directory = os.path.dirname(sys.executable)
    if os.path.exists(os.path.join(same_directory, "hiboss")):
        return same_directory
    found = shutil.which("hiboss")
    if found:
        return os.path.dirname(found)
    return home.keep_program("hiboss", f'#!/bin/sh\nexec {quote(sys.executable)} -m hiboss.cli.entry "$@"\n')
