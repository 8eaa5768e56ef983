"""All open sessions: which of them takes an agent's next turn, and how they come and go.

A session gets mail in one of four ways: a hook that reports (its turn ends, or a tool has been used) takes
the text with its answer; a waiter (`hiboss watch --hook`) that a hook has armed wakes an idle session; else a
door of the harness itself does (doors.py). The last two carry a nudge with ids; the text follows when
the hook for prompts reports that nudge.
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import NamedTuple

from ...core import clock
from ...core.contracts.failures import SessionEnded
from ...core.errors import HibossError, Stopping
from ...core.paths import Home
from ...core.settings import Settings
from ...store import ask_answers, attached_sessions, attached_turns, run_asks
from ...store.attached_sessions import Arrival
from ...store.connection import Connection
from ...store.store import Store
from .. import process_exit, process_table
from . import doors, late_reports
from .handing_over import HandingOver
from .hook_reports import HookReports
from .open_session import OpenSession
from .registry import Registry

log = logging.getLogger(__name__)
LOOK_SECONDS = 2.0  # between two looks at sessions that may have become idle without a report
IDLE_LOOKS = 2  # looks in a row at which a harness says that it is idle


class Place(NamedTuple):
    """Who takes the next turn of an agent."""

    session: int | None  # None: its provider
    busy: bool = False  # nobody can take one now


class AttachedSessions:
    """The sessions that are open, from their start to their end."""

    def __init__(self, store: Store, home: Home, settings: Settings) -> None:
        self.registry = Registry(store, home, settings)
        self.turns = HandingOver(self.registry)
        self.reports = HookReports(self.registry, self.turns)
        self._store = store
        self._home = home
        self._settings = settings
        self._open = self.registry.open
        self._looking: asyncio.Task[None] | None = None
        self._closed = False
        # Harnesses that were attached and may still run: their tools must not speak as the boss either.
        self._left: set[tuple[int, str]] = set()

    # --- start and stop --------------------------------------------------------------

    def load(self) -> None:
        """Read which sessions were open when the last daemon ended."""
        for row in self._store.read(attached_sessions.open_ones):
            self._open[row["id"]] = OpenSession(row)
        found = self._store.read(attached_sessions.ended_lately)
        self._left = {one for one in found if not is_gone(*one)}

    def expect(self, number: int) -> bool:
        """Let a session wait for the turn that it had; False if it is not open any more."""
        if number in self._open:
            self._open[number].ready.clear()
        return number in self._open

    def start(self) -> None:
        """Watch the processes of the sessions, and look at what they do. Their turns are with them again."""
        for session in list(self._open.values()):
            self._watch(session)
            self.registry.spawn(self._withdraw(self._asked(session)))
        self._looking = asyncio.get_running_loop().create_task(self._look_around())

    async def close(self) -> None:
        """Leave the sessions: they go on with what they have, and the next daemon finds them."""
        self._closed = True
        if self._looking is not None:
            self._looking.cancel()
        for session in self._open.values():
            session.unwatch()
            if session.waiter is not None and not session.waiter.done():
                session.waiter.set_exception(Stopping())
            if session.takes_now and session.taking is not None:
                session.taking.cancel()
        for task in list(self.registry.tasks):
            task.cancel()
        if self.registry.tasks:
            await asyncio.wait(self.registry.tasks, timeout=5.0)

    # --- who takes a turn ------------------------------------------------------------

    def agents(self) -> set[int]:
        """Return the address ids of the agents that have an open session."""
        return {session.agent for session in self._open.values()}

    def place(self, agent: int) -> Place:
        """Return who takes the next turn of an agent."""
        mine = [one for one in self._open.values() if one.agent == agent]
        if not mine:
            boxed = self._settings.attached_fallback == "box"
            waits = boxed and self._store.read(lambda c: attached_sessions.was_attached(c, agent))
            return Place(None, busy=waits)
        if any(one.handed is not None for one in mine):
            return Place(None, busy=True)
        ready = [one for one in mine if one.takes_now] + [
            one for one in reversed(mine) if one.is_idle and doors.is_open(one)
        ]
        return Place(ready[0].id) if ready else Place(None, busy=True)

    def above(self, pid: int) -> str | None:
        """Return what harness is above a process, if it is attached or was; None: there is none."""
        self._left = {one for one in self._left if not is_gone(*one)} if self._left else self._left
        known = {(one.pid, one.pid_started): f"agent:{one.name}" for one in self._open.values()}
        known |= {one: "a session that was attached" for one in self._left if one not in known}
        stat = process_table.stat_of(pid) if known else None
        while stat is not None and pid > 1:
            if (pid, stat.started) in known:
                return f"{known[pid, stat.started]} (process {pid})"
            pid = stat.parent
            stat = process_table.stat_of(pid)
        return None

    # --- coming and going ------------------------------------------------------------

    async def arrived(self, arrival: Arrival, token: str, has: str) -> attached_sessions.Attached:
        """Attach a session that was started, resumed, cleared or compacted."""
        await self._end_earlier_process(arrival)
        now = clock.now()
        attached = await self._store.write(lambda tx: attached_sessions.attach(tx, arrival, token, has, now))
        row = self._store.read(lambda c: attached_sessions.get(c, attached.id))
        still = {one["id"] for one in self._store.read(attached_sessions.open_ones)}
        for number in [number for number in self._open if number not in still]:
            await self.ended(number, "closed")  # their terminals were closed
        session = self._open.get(attached.id)
        if session is None:
            session = self._open[attached.id] = OpenSession(row)
        else:
            session.refresh(row)
        self._watch(session)
        self.registry.token_changed()
        self.registry.refresh()
        session.changed.set()
        self.registry.wake([session.agent])
        return attached

    async def _end_earlier_process(self, arrival: Arrival) -> None:
        """End what a session had in a process that is gone, before it is attached in another process.

        Its end may not be noticed yet, after a start of the daemon above all. The new process has no mail.
        """
        for session in list(self._open.values()):
            process = (session.pid, session.pid_started)
            same = (session.client, session.session) == (arrival.client, arrival.session)
            if same and process != (arrival.pid, arrival.pid_started) and is_gone(*process):
                await self._process_ended(session, process)

    async def ended(self, number: int, why: str) -> None:
        """A session is over: it was closed, its process is gone, or the boss detached it."""
        session = self._open.pop(number, None)
        if session is None:
            return
        session.gone = True
        session.unwatch()
        session.end_waiter(None)
        pid = session.pid if why == "gone" else None  # else it was opened again in another process meanwhile
        await self._store.timed_write_until_done(
            lambda tx, now: attached_sessions.end(tx, number, why, now, pid=pid)
        )
        self._left.add((session.pid, session.pid_started))
        self._home.forget_session(session.client, session.session, session.pid)
        late_reports.discard(self._home, session.client, session.session)
        self.registry.token_changed()
        if session.handed is not None and not session.handed.over:
            said = {"detached": "it was detached", "gone": "its process ended"}.get(why, "it was closed")
            session.handed.answer.set_exception(SessionEnded(f"the session did not finish: {said}"))
            await self.reports.until_settled(session.handed)
        self.registry.refresh()
        self.registry.wake([session.agent])

    async def end_of_agent(self, agent: int, why: str) -> None:
        """End the sessions of an agent that was deleted, or whose tokens were revoked."""
        for number in [one.id for one in self._open.values() if one.agent == agent]:
            await self.ended(number, why)

    async def wait(self, number: int) -> str | None:
        """Wait until an idle session is to be told of mail; return what it is told, or None: do not wait.

        One waiter for a session: a new one replaces the one before, which ends.
        """
        session = self.registry.one(number)
        session.end_waiter(None)
        if self._closed:
            raise Stopping()
        waiter: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
        session.waiter = waiter
        session.changed.set()
        self.registry.wake([session.agent])
        try:
            return await waiter
        finally:
            if session.waiter is waiter:
                session.waiter = None
            session.waiter_left_at = asyncio.get_running_loop().time()

    def _wake_by_door(self, session: OpenSession) -> None:
        """Begin with mail for an idle session whose waiter did not come back: now its door is used."""
        waits = session.handed is None and not session.has_waiter
        if waits and doors.is_open(session) and self.registry.has_mail(session):
            self.registry.wake([session.agent])

    # --- what they do not report -----------------------------------------------------

    def _watch(self, session: OpenSession) -> None:
        session.unwatch()
        watched = (session.pid, session.pid_started)
        ended = partial(self._process_ended, session, watched)
        session.unwatch = process_exit.watch(session.pid, lambda: self.registry.spawn(ended()))
        if is_gone(session.pid, session.pid_started):
            self.registry.spawn(ended())

    async def _process_ended(self, session: OpenSession, process: tuple[int, str]) -> None:
        """The process of a session has ended, unless it was resumed in another one meanwhile."""
        if session.id in self._open and process == (session.pid, session.pid_started):
            await self.reports.catch_up(session)
        if session.id in self._open and process == (session.pid, session.pid_started):
            await self.ended(session.id, "gone")

    def _asked(self, session: OpenSession) -> list[int]:
        """Return what hooks of a session asked the boss: they waited for the last daemon, and are gone."""

        def look(connection: Connection) -> list[int]:
            of_session = (None, attached_turns.open_of(connection, session.id))
            found = ask_answers.listed(connection, ask_answers.Query(session.agent))
            mine = [one for one in found if one["asker"] == session.agent and one["in_turn"]]
            return [one["id"] for one in mine if one["run"] in of_session]

        return self._store.read(look)

    async def _withdraw(self, asks: list[int]) -> None:
        for number in asks:
            await self._store.timed_write_until_done(lambda tx, now: run_asks.withdraw(tx, number, now))  # noqa: B023

    async def _look_around(self) -> None:
        """Find sessions that ended, or became idle, without a report: nobody reports an Esc."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            for session in list(self._open.values()):
                try:
                    await self._look_at(session)
                except (HibossError, OSError, ValueError) as error:
                    log.error("%s cannot be looked at: %s", session.name, error, extra={"action": "attached"})

    async def _look_at(self, session: OpenSession) -> None:
        if is_gone(session.pid, session.pid_started):
            return await self._process_ended(session, (session.pid, session.pid_started))
        await self.reports.catch_up(session)
        if session.takes_now:
            return
        if session.is_idle:
            return self._wake_by_door(session)
        session.idle_looks = session.idle_looks + 1 if doors.says_idle(session) else 0
        if session.idle_looks >= IDLE_LOOKS:
            await self.registry.note(session, "idle", False, None)
            self.registry.wake([session.agent])


def is_gone(pid: int, started: str) -> bool:
    """Tell whether a process has ended, also if nobody has asked for its status yet."""
    stat = process_table.stat_of(pid)
    return stat is None or stat.is_dead or stat.started != started
