"""The program behind `hiboss hook CLIENT` and `hiboss watch --hook CLIENT`. Nothing goes wrong aloud here."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from ...core.paths import Home
from . import daemon_calls, events, harness
from .daemon_calls import NoAnswer

CLIENTS = ("claude", "codex")
MOST_INPUT = 32 * 1024 * 1024


def main(words: list[str]) -> int:
    """Answer one event, or wait for mail. Return the exit status: 2 wakes a session, all else is 0."""
    waits = words[0] == "watch"
    given = words[2:] if waits else words[1:]
    if not given or given[0] not in CLIENTS:
        sys.stderr.write(
            "usage: hiboss hook claude|codex, called by the harness; see: hiboss hooks install\n"
        )
        return 1
    try:
        return _run(given[0], given[1:], waits=waits)
    except Exception:  # noqa: BLE001 - the harness would show it to the person, at every step
        return 0


def _run(client: str, words: list[str], *, waits: bool) -> int:
    options = dict(zip(words[::2], words[1::2], strict=False))
    if home := options.get("--home"):
        os.environ["HIBOSS_HOME"] = home
    try:
        event = json.loads(sys.stdin.buffer.read(MOST_INPUT) or b"{}")
    except ValueError:
        return 0
    if not isinstance(event, dict) or not harness.is_open_session(client, event):
        return 0
    hook = events.Hook(Home(), client, options.get("--agent"), event, os.urandom(12).hex())
    if not os.path.isdir(hook.home.path):
        return 0
    if waits:
        from .waiter import wait

        return wait(hook)
    return _answer(hook)


def _answer(hook: events.Hook) -> int:
    failed: str | None = None
    try:
        found: dict[str, Any] = events.answer(hook)
        if found:
            sys.stdout.write(json.dumps(found) + "\n")
    except NoAnswer as error:
        failed = error.code
    _note(hook, failed)
    return 0


def _note(hook: events.Hook, failed: str | None) -> None:
    from ...core import clock

    daemon_calls.note_last(
        hook.home,
        hook.client,
        {
            "event": hook.event.get("hook_event_name"),
            "at": clock.iso(clock.now()),
            "agent": hook.home.known_session(hook.client, hook.session).get("agent"),
            "outcome": "failed" if failed else "done",
            "error": failed,
        },
    )
