"""What the hooks of open sessions report, and what they are answered.

What a report changes is stored before it is answered. Reports of the time without a daemon come first.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any, NamedTuple

from ...core.crashpoint import ATTACHED_SEEN, crashpoint
from ...core.errors import HibossError
from ...store import attached_sessions, attached_turns
from ...store.group_commit import Tx
from . import late_reports, wording
from .handing_over import SOON, HandingOver
from .open_session import Handed, OpenSession
from .registry import Registry

log = logging.getLogger(__name__)
TAKE_SECONDS = 3.0  # that a hook waits for mail that is there
SETTLE_SECONDS = 8.0  # that a hook waits until its answer is stored
BLOCKS = 5  # times in a row that a session is kept from stopping; Claude Code bears 8


class Reply(NamedTuple):
    """What a hook is answered."""

    context: str = ""  # for the model, beside what it has
    block: str = ""  # why it must not stop


NOTHING = Reply()


class HookReports:
    """Takes the reports of hooks."""

    def __init__(self, registry: Registry, turns: HandingOver) -> None:
        self._registry = registry
        self._turns = turns
        self._store = registry.store
        self._settings = registry.settings

    async def prompted(self, number: int, event: str, prompt: str) -> Reply:
        """A prompt goes to the model: a nudge of ours, or words of the person at the terminal."""
        session = await self._session(number)
        handed = session.handed
        mark = wording.nudge_in(prompt)
        ours = handed is not None and mark == (handed.turn.run, handed.code)
        if not ours and mark is not None and self._turns.is_old(session, mark):
            return await self._told_late(session, event)
        joins = ours and not session.is_idle and session.of_person  # in the middle of a person's turn

        def write(tx: Tx, now: int) -> None:
            if ours and handed is not None:
                attached_turns.note_seen(tx, handed.turn, now)
            attached_sessions.note_state(tx, number, "busy", joins or not ours, event, now)

        was_busy = not session.is_idle
        await self._store.timed_write_until_done(write)
        crashpoint(ATTACHED_SEEN)
        session.note("busy", joins or not ours)
        session.last_event, session.blocks = event, 0
        if ours and handed is not None:
            if not handed.seen:
                await self._turns.render_again(handed)
            had_it, handed.seen = handed.seen and was_busy and handed.given, True
            handed.given = True
            self._registry.token_changed()
            text = wording.GIVEN.format(ids=wording.ids(handed.turn.envelopes)) if had_it else handed.text
            return Reply(text + "\n" + _beside(handed) if joins else text)
        return Reply(self._waiting_mail(session))

    async def _told_late(self, session: OpenSession, event: str) -> Reply:
        """A nudge reaches the model whose mail is done: the session was told twice.

        If it has other mail, what it says now is not the answer to that.
        """
        has_other = session.handed is not None and session.handed.seen
        of_person = has_other or (session.of_person and not session.is_idle)
        await self._registry.note(session, "busy", of_person, event)
        return Reply(wording.DONE_ALREADY)

    async def stepped(self, number: int, tool: str) -> Reply:
        """A tool was used: the session works. It can be given mail here."""
        session = await self._session(number)
        session.decided(tool)
        handed = session.handed
        if handed is not None:
            await self._seen_by_hook(session, handed)
            return NOTHING
        if session.is_idle or not self._may_come_between(session):
            return NOTHING
        if (taken := await self._take(session, "step")) is None:
            return NOTHING
        return Reply(f"{taken.text}\n{_beside(taken)}")

    async def stopped(self, number: int, event: str, text: str, *, active: bool) -> Reply:
        """The session ends its turn: its final text is the answer, if it worked on mail. It may get more."""
        session = await self._session(number)
        session.decided()
        if event == session.last_event:
            return NOTHING
        handed = session.handed
        if handed is not None and (active or handed.between):
            await self._seen_by_hook(session, handed)
        if handed is not None and handed.seen and not handed.over:
            if session.of_person and (to := self._unanswered(handed)) is not None:
                return await self._ask_for_answer(session, handed, to, event)
            self._answered(session, handed, text)
            await self.until_settled(handed)
        if session.blocks < BLOCKS and self._wants_mail(session):
            await self._registry.note(session, "busy", False, event)
            if (taken := await self._take(session, "stop")) is not None:
                session.blocks += 1
                return Reply(block=taken.text)
        session.blocks = 0
        await self._registry.note(session, "idle", False, event)
        self._registry.wake([session.agent])
        return NOTHING

    async def broke_off(self, number: int, event: str) -> None:
        """The turn of a session ended without a final text: a person interrupted it, or the model failed.

        If it had mail, that is not done: it is told again after some time.
        """
        session = await self._session(number)
        session.blocks = 0
        session.decided()
        await self._registry.note(session, "idle", False, event)
        self._registry.wake([session.agent])

    # --- parts of the reports --------------------------------------------------------

    async def _session(self, number: int) -> OpenSession:
        """Return an open session. After a restart: with its turn again, and when what is late is taken."""
        session = self._registry.one(number)
        await self.catch_up(session)
        return session

    async def _seen_by_hook(self, session: OpenSession, handed: Handed) -> None:
        """What a hook took for the session, the session has: it went on with it."""
        if handed.by_hook and handed.submitted and not handed.seen:
            await self._turns.mark_seen(handed)

    def _unanswered(self, handed: Handed) -> str | None:
        """Return who waits for the answer of a turn; None: nobody, or the agent has answered by hand."""
        if handed.turn.reply != "auto":
            return None
        to = self._store.read(lambda c: attached_turns.answered(c, handed.turn))
        by_hand = self._store.read(lambda c: attached_turns.answered_by_hand(c, handed.turn))
        return None if by_hand else to

    async def _ask_for_answer(self, session: OpenSession, handed: Handed, to: str, event: str) -> Reply:
        """Let a session go on that has mail, but whose final text was for the person at the terminal.

        If that was done too often in a row, it may stop: it is told of its mail again when it is idle.
        """
        if session.blocks >= BLOCKS:
            await self._registry.note(session, "idle", False, event)
            return NOTHING
        session.blocks += 1
        await self._registry.note(session, "busy", False, event)
        return Reply(block=wording.AGAIN.format(ids=wording.ids(handed.turn.envelopes), to=to))

    def _answered(self, session: OpenSession, handed: Handed, text: str) -> None:
        """End a turn with the final text; with none, if that was for the person at the terminal."""
        handed.answer.set_result("" if session.of_person else text)

    async def until_settled(self, handed: Handed) -> None:
        """Wait until the answer is stored: only then the hook may end."""
        try:
            async with asyncio.timeout(SETTLE_SECONDS):
                await handed.settled.wait()
        except TimeoutError:
            log.warning("r%d is not settled yet.", handed.turn.run, extra={"action": "attached"})

    async def _take(self, session: OpenSession, by: str) -> Handed | None:
        """Let a hook (stop, step) wait for a turn that is due, for a short time."""
        session.takes_by = by
        taking: asyncio.Future[Handed] = asyncio.get_running_loop().create_future()
        session.taking = taking
        session.changed.set()
        self._registry.wake([session.agent])
        try:
            async with asyncio.timeout(TAKE_SECONDS):
                return await taking
        except (TimeoutError, asyncio.CancelledError):
            if taking.done() and not taking.cancelled():
                return taking.result()
            if (task := asyncio.current_task()) is not None and task.cancelling():
                raise
            return None
        finally:
            session.taking = None

    def _wants_mail(self, session: OpenSession) -> bool:
        """Tell whether a session that stops has mail to get: more that is due, or what it was not told of."""
        handed = session.handed
        if handed is None:
            return self._registry.has_mail(session)
        lately = asyncio.get_running_loop().time() - handed.told_at < SOON
        return not handed.seen and not handed.over and (handed.told == 0 or not lately)

    def _may_come_between(self, session: OpenSession) -> bool:
        if self._settings.attached_when_busy != "between":
            return False
        return self._registry.has_mail(session)

    def _waiting_mail(self, session: OpenSession) -> str:
        """Say which mail waits, to a session that works on something else."""
        if session.handed is not None or not self._registry.has_mail(session):
            return ""
        found = self._store.read(lambda c: attached_turns.waiting(c, session.agent))
        return wording.waits([(one.id, one.sender, one.text) for one in found])

    # --- reports of the time without a daemon ----------------------------------------

    async def catch_up(self, session: OpenSession) -> None:
        """Take the reports of the time without a daemon, in their order, before any other."""
        async with session.catching_up:
            await session.ready.wait()
            late = late_reports.take(self._registry.home, session.client, session.session)
            for one in late or ():
                try:
                    await self._take_late(session, one)
                except (HibossError, KeyError, TypeError) as error:
                    what = "A late report of %s was left out: %s"
                    log.error(what, session.name, error, extra={"action": "attached"})
            if late is not None:
                late_reports.done(self._registry.home, session.client, session.session)
                self._registry.wake([session.agent])  # it may be idle now

    async def _take_late(self, session: OpenSession, report: dict[str, Any]) -> None:
        event, handed = str(report["event"]), session.handed
        if report["kind"] == "prompt":
            if handed is not None and handed.seen and event == session.last_event:
                # The daemon died before the hook had its answer: the session never got the text.
                handed.seen = not await self._store.write(
                    lambda tx: attached_turns.note_unseen(tx, handed.turn.run)
                )
            await self._registry.note(session, "busy", True, event)
        elif report["kind"] == "stop":
            new = event != session.last_event  # else the daemon took it, and died before it answered
            if handed is not None and new and (report.get("active") or handed.between):
                await self._seen_by_hook(session, handed)
            if handed is not None and handed.seen and not handed.over and new and not session.of_person:
                handed.answer.set_result(str(report["text"]))
                await self.until_settled(handed)  # before the file with the report goes
            await self._registry.note(session, "idle", False, event)


def _beside(handed: Handed) -> str:
    return wording.BESIDE.format(first=wording.ids(handed.turn.envelopes[:1]))
