"""One open session: what it does now, who waits to give it mail, and the turn that it has.

Only memory: what must survive is written by `sessions` before it is noted here. Used on the event loop's
thread only.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ...store.connection import Row
from ...store.run_start import Turn

AGAIN_SECONDS = 60.0  # that an idle session has before it is told once more; each time five times as long
TELLINGS = 4


class Handed:
    """A turn that a session has, or is to get."""

    def __init__(self, turn: Turn, text: str, code: str) -> None:
        self.turn = turn
        self.text = text  # as the session gets it
        self.code = code  # by which a nudge is known
        self.submitted = False
        self.seen = False
        self.between = False  # that hook told of a tool, in the middle of a turn
        self.by_hook = False  # a hook that waited for it has got the text itself
        self.told = 0  # how often the session was told
        self.told_at = 0.0
        self.not_before = 0.0  # a door refused it
        self.held = False  # the harness holds a nudge back until a person allows it
        self.given = False  # the text, by this daemon
        self.boss_told = False  # that the session does not take it
        loop = asyncio.get_running_loop()
        self.answer: asyncio.Future[str] = loop.create_future()
        self.settled = asyncio.Event()  # its outcome is stored

    @property
    def over(self) -> bool:
        return self.answer.done()


class OpenSession:
    """A harness that is open as an agent."""

    def __init__(self, row: Row) -> None:
        self.id = int(row["id"])
        self.agent = int(row["agent"])
        self.handed: Handed | None = None
        self.taking: asyncio.Future[Handed] | None = None  # a hook waits for mail, to hand it over itself
        self.takes_by = "stop"  # which hook that is: stop, step
        self.waiter: asyncio.Future[str | None] | None = None  # a waiter, to be told of mail; None: it ends
        self.gone = False
        self.blocks = 0  # how often in a row it was kept from stopping
        self.changed = asyncio.Event()  # something changed that decides whether it can be told
        self.ready = asyncio.Event()  # its turn is with it again, after a restart of the daemon
        self.ready.set()
        self.catching_up = asyncio.Lock()
        self.unwatch: Callable[[], None] = lambda: None
        self._permits: list[tuple[str, asyncio.Event]] = []  # tools whose permission is asked for
        self.idle_looks = 0  # how often in a row its harness said idle, while it counts as busy
        self.waiter_left_at = asyncio.get_running_loop().time()
        self.idle_at = self.waiter_left_at - AGAIN_SECONDS  # perhaps: nobody knows since when
        self.refresh(row)

    def refresh(self, row: Row) -> None:
        """Take over what is stored of it: after a start, a resume, or /clear."""
        self.agent, self.name = int(row["agent"]), str(row["name"])
        self.client, self.session = str(row["client"]), str(row["session"])
        self.pid, self.pid_started = int(row["pid"]), str(row["pid_started"])
        self.directory = str(row["directory"])
        self.details: dict[str, Any] = json.loads(row["details"])
        self.state, self.of_person = str(row["state"]), bool(row["of_person"])
        self.last_event: str | None = row["last_event"]

    def note(self, state: str, of_person: bool) -> None:
        """Note what it does now."""
        if state == "idle" and self.state != "idle":
            self.idle_at = asyncio.get_running_loop().time()
        self.state, self.of_person = state, of_person
        self.idle_looks = 0
        self.changed.set()
        if state == "idle":  # also after a No in the terminal, which no hook reports
            self.decided()

    @property
    def is_idle(self) -> bool:
        return self.state == "idle"

    @property
    def takes_now(self) -> bool:
        """Whether a hook waits for mail."""
        return self.taking is not None and not self.taking.done()

    @property
    def has_waiter(self) -> bool:
        return self.waiter is not None and not self.waiter.done()

    def next_telling(self, handed: Handed) -> float | None:
        """Return when the session is to be told of its turn, by the loop's clock; None: not again.

        The time between two tellings counts only while it is idle.
        """
        if handed.told == 0:
            return handed.not_before
        if handed.told >= TELLINGS:
            return None
        return max(
            handed.not_before, max(handed.told_at, self.idle_at) + AGAIN_SECONDS * 5.0 ** (handed.told - 1)
        )

    @contextmanager
    def permitting(self, tool: str) -> Iterator[asyncio.Event]:
        """Give an event that is set when the tool is used, or the turn ends: somebody there has decided."""
        event = asyncio.Event()
        entry = (tool, event)
        self._permits.append(entry)
        try:
            yield event
        finally:
            self._permits.remove(entry)

    def decided(self, tool: str | None = None) -> None:
        """A tool was used, or the turn ended (None): a person in the terminal has decided about it."""
        for name, event in self._permits:
            if tool is None or name == tool:
                event.set()

    def end_waiter(self, told: str | None) -> bool:
        """Answer the waiter. False if there is none."""
        if not self.has_waiter:
            return False
        assert self.waiter is not None
        self.waiter.set_result(told)
        self.waiter = None
        return True
