"""Hand turns to open sessions: tell a session of its turn, and wait for its answer, however long it takes."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Awaitable, Callable, Iterable

from ...core.contracts.failures import LeftOpen, SessionEnded
from ...core.crashpoint import ATTACHED_SUBMITTED, ATTACHED_TOLD, crashpoint
from ...core.errors import HibossError
from ...store import attached_notices, attached_turns
from ...store.run_start import Turn
from . import doors, wording
from .open_session import AGAIN_SECONDS, Handed, OpenSession
from .registry import Registry

log = logging.getLogger(__name__)
SOON = 10.0  # seconds in which a nudge reaches the session, if it does
REFUSED_SECONDS = 5.0  # after a door did not take a nudge
LOOK_SECONDS = 2.0  # between two looks whether a session can be told


class HandingOver:
    """The turns that sessions have, or are to get."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._store = registry.store
        self._handed: dict[int, tuple[OpenSession, Handed]] = {}  # by run id, until its outcome is stored
        self.render: Callable[[Turn], Awaitable[str]]  # the text of a turn now; set by the runner

    async def work_on(self, turn: Turn, text: str) -> str:
        """Give a turn to its session, and return the final text of the session's turn.

        Raises SessionEnded when its process is gone, or it was detached: nobody works on the mail then.
        """
        assert turn.attached is not None
        session = self._registry.open.get(turn.attached)
        if session is None:
            raise SessionEnded("the session was closed before it got the mail")
        handed = Handed(turn, self._as_given(turn, text), self._code(turn.run))
        progress = self._store.read(lambda c: attached_turns.progress(c, turn.run))
        handed.submitted, handed.seen = progress.submitted_at is not None, progress.seen_at is not None
        handed.held = progress.held_at is not None and not handed.seen
        handed.by_hook, handed.between = progress.by in ("stop", "step"), progress.by == "step"
        if handed.submitted:  # by an earlier daemon; perhaps it died before it told the session
            handed.told, handed.told_at = 1, asyncio.get_running_loop().time() - AGAIN_SECONDS + SOON
        session.handed, self._handed[turn.run] = handed, (session, handed)
        for other in self._registry.open.values():  # hooks of the agent's other sessions wait for nothing now
            if other is not session and other.agent == turn.agent and other.taking is not None:
                other.taking.cancel()
        session.ready.set()
        session.changed.set()
        telling: asyncio.Task[None] | None = None
        try:
            telling = asyncio.get_running_loop().create_task(self._tell(session, handed))
            return await handed.answer
        finally:
            if telling is not None:
                telling.cancel()

    def turn_ended(self, run: int) -> None:
        """The outcome of a run is stored."""
        session, handed = self._handed.pop(run, (None, None))
        if session is None or handed is None:
            return
        handed.settled.set()
        if session.handed is handed:
            session.handed = None
        session.changed.set()
        self._registry.token_changed()
        self._registry.wake([session.agent])

    def _as_given(self, turn: Turn, text: str) -> str:
        to = self._store.read(lambda c: attached_turns.answered(c, turn))
        rule = wording.answer_rule(to, turn.reply, turn.envelopes)
        return wording.context(turn.name, text, rule)

    async def _tell(self, session: OpenSession, handed: Handed) -> None:
        """Tell a session of its turn whenever it can be told and does not work on it; the boss at last."""
        loop = asyncio.get_running_loop()
        while not handed.over:
            session.changed.clear()
            due = session.next_telling(handed)
            held = handed.held and not session.has_waiter  # a person decides there
            can = session.is_idle and doors.is_open(session) and not held
            if session.takes_now or (can and due is not None and due <= loop.time()):
                await self._tell_once(session, handed)
                continue
            in_vain = due is None or (held and due <= loop.time())
            if in_vain and session.is_idle and not handed.boss_told:
                handed.boss_told = True
                await self._store.timed_write_until_done(
                    lambda tx, now: attached_notices.not_taken(tx, handed.turn, now)
                )
            if not handed.seen and self._store.read(lambda c: attached_turns.is_settled(c, handed.turn)):
                handed.answer.set_result("")  # somebody acknowledged, archived or cancelled all of it
                return
            wait = LOOK_SECONDS if due is None or not can else max(0.05, due - loop.time())
            try:
                async with asyncio.timeout(min(wait, LOOK_SECONDS)):
                    await session.changed.wait()
            except TimeoutError:
                pass

    async def _tell_once(self, session: OpenSession, handed: Handed) -> None:
        by = session.takes_by if session.takes_now else "nudge"
        given = await self._store.timed_write_until_done(
            lambda tx, now: attached_turns.submit(tx, handed.turn, by, now)
        )
        if not given or handed.over:
            return
        crashpoint(ATTACHED_SUBMITTED)
        handed.submitted = True
        handed.told += 1
        handed.told_at = asyncio.get_running_loop().time()
        if session.takes_now and session.taking is not None and by != "nudge":
            await self.render_again(handed)
            if session.takes_now and session.taking is not None:
                handed.by_hook, handed.between = True, by == "step"
                session.taking.set_result(handed)
            else:  # the hook did not wait so long
                handed.told -= 1
            return
        handed.by_hook = handed.between = False
        nudge = wording.nudge(handed.turn.run, handed.code, handed.turn.envelopes + handed.turn.notices)
        if session.end_waiter(nudge):
            return
        told = await doors.tell(session, nudge)
        crashpoint(ATTACHED_TOLD)
        if told.error:  # it does not count, and is tried again
            handed.told -= 1
            handed.not_before = asyncio.get_running_loop().time() + REFUSED_SECONDS
        if told.held:
            handed.held = True
            await self._store.timed_write_until_done(
                lambda tx, now: attached_turns.note_held(tx, handed.turn, now)
            )
        if told.error:
            log.warning(
                "%s could not be told of mail: %s", session.name, told.error, extra={"action": "attached"}
            )

    async def render_again(self, handed: Handed) -> None:
        """Give a turn the wording that its mail has now: it may have been edited since it began."""
        try:
            handed.text = self._as_given(handed.turn, await self.render(handed.turn))
        except HibossError as error:
            log.error("r%d is given as it began: %s", handed.turn.run, error, extra={"action": "attached"})

    def is_old(self, session: OpenSession, mark: wording.Mark) -> bool:
        """Tell whether a nudge is one of ours, about an earlier turn of this session."""
        if mark.code != self._code(mark.run):
            return False
        return self._store.read(lambda c: attached_turns.was_of(c, mark.run, session.id))

    def leave(self, run: int) -> None:
        """Let go of a turn that a session works on: the daemon stops. One that it was not told of ends."""
        _, handed = self._handed.get(run, (None, None))
        if handed is not None and handed.submitted and not handed.over:
            handed.answer.set_exception(LeftOpen())

    def fetched(self, number: int, envelopes: Iterable[int]) -> None:
        """A session has read envelopes itself: if they are of its turn, it has that."""
        session = self._registry.open.get(number)
        handed = None if session is None else session.handed
        if handed is None or handed.seen or not handed.submitted or session is None:
            return
        if set(envelopes) & set(handed.turn.envelopes):
            self._registry.spawn(self.mark_seen(handed))

    async def mark_seen(self, handed: Handed) -> None:
        """Store that a session has the mail of its turn."""
        await self._store.timed_write_until_done(
            lambda tx, now: attached_turns.note_seen(tx, handed.turn, now)
        )
        handed.seen = True
        self._registry.token_changed()

    def _code(self, run: int) -> str:
        """Return the code of a turn in nudges: the same after a restart, and nobody can guess it."""
        return hashlib.sha256(f"{self._store.epoch}/{self._store.run_marks}/{run}".encode()).hexdigest()[:8]
