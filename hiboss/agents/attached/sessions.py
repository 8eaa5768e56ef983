"""All open sessions: what their hooks report, and which of them takes an agent's next turn.

A session gets mail in one of four ways: a hook that reports (its turn ends, or a tool has been used) takes the
text with its answer; a waiter (`hiboss watch --hook`) that was armed by a hook wakes an idle session; else a
door of the harness itself does (claude_doors.py, codex_doors.py). The last two carry a nudge with ids; the
text follows when the hook for prompts reports that nudge. What a report changes is stored before it is
answered, and so is a turn before its session is told of it.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from ...core import clock
from ...core.contracts.failures import LeftOpen, SessionEnded
from ...core.crashpoint import ATTACHED_SEEN, ATTACHED_SUBMITTED, ATTACHED_TOLD, crashpoint
from ...core.errors import HibossError, NotAttached, Stopping
from ...core.paths import Home
from ...core.settings import Settings
from ...store import attached_notices, attached_sessions, attached_turns, breaker_holds, turn_selection
from ...store import agents as stored_agents
from ...store.attached_sessions import Arrival
from ...store.connection import Connection
from ...store.group_commit import Tx
from ...store.run_start import Turn
from ...store.store import Store
from .. import process_control, process_exit
from . import doors, late_reports, wording
from .open_session import AGAIN_SECONDS, Handed, OpenSession

log = logging.getLogger(__name__)
TAKE_SECONDS = 3.0  # that a hook waits for mail that is there
SETTLE_SECONDS = 8.0  # that a hook waits until its answer is stored
BLOCKS = 5  # times in a row that a session is kept from stopping; Claude Code bears 8
SOON = 10.0  # seconds in which a nudge reaches the session, if it does
LOOK_SECONDS = 2.0  # between two looks at sessions that may have become idle without a report
IDLE_LOOKS = 2  # looks in a row at which a harness says that it is idle


class Place(NamedTuple):
    """Who takes the next turn of an agent."""

    session: int | None  # None: its provider
    busy: bool = False  # nobody can take one now


class Reply(NamedTuple):
    """What a hook is answered."""

    context: str = ""  # for the model, beside what it has
    block: str = ""  # why it must not stop


NOTHING = Reply()


class AttachedSessions:
    """Keeps the sessions that are open, hands turns to them, and takes their reports."""

    def __init__(self, store: Store, home: Home, settings: Settings) -> None:
        self._store = store
        self._home = home
        self._settings = settings
        self._open: dict[int, OpenSession] = {}
        self._handed: dict[int, tuple[OpenSession, Handed]] = {}  # by run id, until its outcome is stored
        self._looking: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._closed = False
        # Set in hiboss/daemon/wiring.py.
        self.wake: Callable[[Iterable[int]], None] = lambda agents: None
        self.refresh: Callable[[], None] = lambda: None  # which agents get turns
        self.token_changed: Callable[[], None] = lambda: None

    # --- start and stop --------------------------------------------------------------

    def load(self) -> None:
        """Read which sessions were open when the last daemon ended."""
        for row in self._store.read(attached_sessions.open_ones):
            self._open[row["id"]] = OpenSession(row)

    def expect(self, number: int) -> bool:
        """Let a session wait for the turn that it had; False if it is not open any more."""
        if number in self._open:
            self._open[number].ready.clear()
        return number in self._open

    def start(self) -> None:
        """Watch the processes of the sessions, and look at what they do. Their turns are with them again."""
        for session in list(self._open.values()):
            self._watch(session)
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
        for task in list(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=5.0)

    def leave(self, run: int) -> None:
        """Let go of a turn that a session works on: the daemon stops. One that it was not told of ends."""
        for session in self._open.values():
            handed = session.handed
            if handed is not None and handed.turn.run == run and handed.submitted and not handed.over:
                handed.answer.set_exception(LeftOpen())

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

    def one(self, number: int) -> OpenSession:
        """Return an open session by its number."""
        if number not in self._open:
            raise NotAttached()
        return self._open[number]

    def listed(self, agent: int | None = None) -> list[OpenSession]:
        return [one for one in self._open.values() if agent is None or one.agent == agent]

    # --- a turn ----------------------------------------------------------------------

    async def work_on(self, turn: Turn, text: str) -> str:
        """Give a turn to its session, and return the final text of the session's turn.

        Raises SessionEnded when its process is gone, or it was detached: nobody works on the mail then.
        """
        assert turn.attached is not None
        session = self._open.get(turn.attached)
        if session is None:
            raise SessionEnded("the session was closed before it got the mail")
        handed = Handed(turn, self._as_given(turn, text), self._code(turn.run))
        progress = self._store.read(lambda c: attached_turns.progress(c, turn.run))
        handed.submitted, handed.seen = progress.submitted_at is not None, progress.seen_at is not None
        if handed.submitted:  # by an earlier daemon; perhaps it died before it told the session
            handed.told, handed.told_at = 1, asyncio.get_running_loop().time() - AGAIN_SECONDS[0] + SOON
        session.handed, self._handed[turn.run] = handed, (session, handed)
        session.ready.set()
        session.changed.set()
        telling: asyncio.Task[None] | None = None
        try:
            await self._catch_up(session)
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
        self.token_changed()
        self.wake([session.agent])

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
            can = session.is_idle and doors.is_open(session)
            if session.takes_now or (can and due is not None and due <= loop.time()):
                await self._tell_once(session, handed)
                continue
            if due is None and session.is_idle and not handed.boss_told:
                handed.boss_told = True
                await self._store.timed_write_until_done(
                    lambda tx, now: attached_notices.not_taken(tx, handed.turn, now)
                )
            wait = LOOK_SECONDS if due is None or not can else max(0.05, due - loop.time())
            try:
                async with asyncio.timeout(min(wait, LOOK_SECONDS)):
                    await session.changed.wait()
            except TimeoutError:
                pass

    async def _tell_once(self, session: OpenSession, handed: Handed) -> None:
        given = await self._store.timed_write_until_done(
            lambda tx, now: attached_turns.submit(tx, handed.turn, now)
        )
        if not given or handed.over:
            return
        crashpoint(ATTACHED_SUBMITTED)
        handed.submitted = True
        handed.told += 1
        handed.told_at = asyncio.get_running_loop().time()
        if session.takes_now and session.taking is not None:
            handed.by_hook = True
            session.taking.set_result(handed)
            return
        handed.by_hook = False
        nudge = wording.nudge(handed.turn.run, handed.code, handed.turn.envelopes + handed.turn.notices)
        if session.end_waiter(nudge):
            return
        told = await doors.tell(session, nudge)
        crashpoint(ATTACHED_TOLD)
        if told.held:
            await self._store.timed_write_until_done(
                lambda tx, now: attached_turns.note_held(tx, handed.turn, now)
            )
        if told.error:
            log.warning("%s could not be told of mail: %s", session.name, told.error, extra={"action": "attached"})

    # --- what hooks report -----------------------------------------------------------

    async def arrived(self, arrival: Arrival, token: str, valid: bool) -> attached_sessions.Attached:
        """Attach a session that was started, resumed, cleared or compacted."""
        now = clock.now()
        attached = await self._store.write(
            lambda tx: attached_sessions.attach(tx, arrival, token, valid, now)
        )
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
        self.token_changed()
        self.refresh()
        session.changed.set()
        self.wake([session.agent])
        return attached

    async def prompted(self, number: int, event: str, prompt: str) -> Reply:
        """A prompt goes to the model: a nudge of ours, or words of the person at the terminal."""
        session = await self._session(number)
        handed = session.handed
        ours = handed is not None and wording.mark(handed.turn.run, handed.code) in prompt
        if not ours and wording.is_nudge(prompt):
            return await self._told_late(session, event)
        joins = ours and not session.is_idle and session.of_person  # in the middle of a person's turn

        def write(tx: Tx, now: int) -> None:
            if ours and handed is not None:
                attached_turns.note_seen(tx, handed.turn, now)
            attached_sessions.note_state(tx, number, "busy", joins or not ours, event, now)

        await self._store.timed_write_until_done(write)
        crashpoint(ATTACHED_SEEN)
        session.note("busy", joins or not ours)
        session.last_event, session.blocks = event, 0
        if ours and handed is not None:
            had_it, handed.seen = handed.seen and session.state == "busy" and handed.given, True
            handed.given = True
            self.token_changed()
            text = wording.GIVEN.format(ids=wording.ids(handed.turn.envelopes)) if had_it else handed.text
            return Reply(text + "\n" + _beside(handed) if joins else text)
        return Reply(self._waiting_mail(session))

    async def _told_late(self, session: OpenSession, event: str) -> Reply:
        """A nudge reaches the model whose mail is done: the session was told twice."""
        await self._note(session, "busy", session.of_person and not session.is_idle, event)
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
        taken = await self._take(session)
        return NOTHING if taken is None else Reply(f"{taken.text}\n{_beside(taken)}")

    async def stopped(self, number: int, event: str, text: str, *, active: bool) -> Reply:
        """The session ends its turn: its final text is the answer, if it worked on mail. It may get more."""
        session = await self._session(number)
        session.decided()
        if event == session.last_event:
            return NOTHING
        handed = session.handed
        if handed is not None and (active or not handed.by_hook):
            await self._seen_by_hook(session, handed)
        if handed is not None and handed.seen and not handed.over:
            if (again := await self._ask_for_answer(session, handed, event)) is not None:
                return again
            self._answered(session, handed, text)
            await self._until_settled(handed, session, event)
        if session.blocks < BLOCKS and self._wants_mail(session):
            await self._note(session, "busy", False, event)
            if (taken := await self._take(session)) is not None:
                session.blocks += 1
                return Reply(block=taken.text)
        session.blocks = 0
        await self._note(session, "idle", False, event)
        self.wake([session.agent])
        return NOTHING

    async def broke_off(self, number: int, event: str) -> None:
        """The turn of a session ended without a final text: a person interrupted it, or the model failed.

        If it had mail, that is not done: it is told again after some time.
        """
        session = await self._session(number)
        session.blocks = 0
        session.decided()
        await self._note(session, "idle", False, event)
        self.wake([session.agent])

    async def ended(self, number: int, why: str) -> None:
        """A session is over: it was closed, its process is gone, or the boss detached it."""
        session = self._open.pop(number, None)
        if session is None:
            return
        session.gone = True
        session.unwatch()
        session.end_waiter(None)
        await self._store.timed_write_until_done(
            lambda tx, now: attached_sessions.end(tx, number, why, now)
        )
        self._home.forget_session(session.client, session.session)
        late_reports.discard(self._home, session.client, session.session)
        self.token_changed()
        if session.handed is not None and not session.handed.over:
            said = {"detached": "it was detached", "gone": "its process ended"}.get(why, "it was closed")
            session.handed.answer.set_exception(SessionEnded(f"the session did not finish: {said}"))
            await self._until_settled(session.handed, None, "")
        self.refresh()
        self.wake([session.agent])

    def fetched(self, number: int, envelopes: Iterable[int]) -> None:
        """A session has read envelopes itself: if they are of its turn, it has that."""
        session = self._open.get(number)
        handed = None if session is None else session.handed
        if handed is None or handed.seen or not handed.submitted or session is None:
            return
        if set(envelopes) & set(handed.turn.envelopes):
            self._spawn(self._mark_seen(handed))

    async def wait(self, number: int) -> str | None:
        """Wait until an idle session is to be told of mail; return what it is told, or None if it must not wait.

        One waiter for a session: a new one replaces the one before, which ends.
        """
        session = await self._session(number)
        session.end_waiter(None)
        if self._closed:
            raise Stopping()
        waiter: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
        session.waiter = waiter
        session.changed.set()
        self.wake([session.agent])
        try:
            return await waiter
        finally:
            if session.waiter is waiter:
                session.waiter = None
            session.waiter_left_at = asyncio.get_running_loop().time()

    # --- parts of the reports --------------------------------------------------------

    async def _session(self, number: int) -> OpenSession:
        """Return an open session. After a restart: as soon as its turn is with it again, and with what is late."""
        session = self._open.get(number)
        if session is None:
            raise NotAttached()
        await self._catch_up(session)
        return session

    async def _note(self, session: OpenSession, state: str, of_person: bool, event: str | None) -> None:
        await self._store.timed_write_until_done(
            lambda tx, now: attached_sessions.note_state(tx, session.id, state, of_person, event, now)
        )
        session.last_event = event or session.last_event
        session.note(state, of_person)

    async def _seen_by_hook(self, session: OpenSession, handed: Handed) -> None:
        """What a hook took for the session, the session has: it went on with it."""
        if handed.by_hook and handed.submitted and not handed.seen:
            await self._mark_seen(handed)

    async def _mark_seen(self, handed: Handed) -> None:
        await self._store.timed_write_until_done(
            lambda tx, now: attached_turns.note_seen(tx, handed.turn, now)
        )
        handed.seen = True
        self.token_changed()

    async def _ask_for_answer(self, session: OpenSession, handed: Handed, event: str) -> Reply | None:
        """Let a session go on that has mail, but whose final text was for the person at the terminal."""
        if not session.of_person or handed.asked_again or handed.turn.reply != "auto":
            return None
        to = self._store.read(lambda c: attached_turns.answered(c, handed.turn))
        if to is None or self._store.read(lambda c: attached_turns.answered_by_hand(c, handed.turn)):
            return None
        handed.asked_again = True
        await self._note(session, "busy", False, event)
        return Reply(block=wording.AGAIN.format(ids=wording.ids(handed.turn.envelopes), to=to))

    def _answered(self, session: OpenSession, handed: Handed, text: str) -> None:
        """End a turn with the final text; with none, if that was for the person at the terminal."""
        handed.answer.set_result("" if session.of_person else text)

    async def _until_settled(self, handed: Handed, session: OpenSession | None, event: str) -> None:
        """Wait until the answer is stored: only then the hook may end."""
        try:
            async with asyncio.timeout(SETTLE_SECONDS):
                await handed.settled.wait()
        except TimeoutError:
            log.warning("r%d is not settled yet.", handed.turn.run, extra={"action": "attached"})

    async def _take(self, session: OpenSession) -> Handed | None:
        """Let a hook wait for a turn that is due, for a short time."""
        taking: asyncio.Future[Handed] = asyncio.get_running_loop().create_future()
        session.taking = taking
        session.changed.set()
        self.wake([session.agent])
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
            return self._has_mail(session)
        lately = asyncio.get_running_loop().time() - handed.told_at < SOON
        return not handed.seen and not handed.over and (handed.told == 0 or not lately)

    def _code(self, run: int) -> str:
        """Return the code of a turn in nudges: the same after a restart, and nobody can guess it."""
        return hashlib.sha256(f"{self._store.epoch}/{self._store.run_marks}/{run}".encode()).hexdigest()[:8]

    def _has_mail(self, session: OpenSession) -> bool:
        """Tell whether something is due that a session could take now."""

        def look(connection: Connection) -> bool:
            if breaker_holds.is_pulled(connection):
                return False
            row = stored_agents.attached(connection, session.agent)
            if row is None or row["paused_at"] is not None:
                return False
            return bool(turn_selection.preview(connection, row, clock.now()))

        try:
            return self._store.read(look)
        except HibossError as error:
            log.error("Mail of %s is looked for later: %s", session.name, error, extra={"action": "attached"})
            return False

    def _may_come_between(self, session: OpenSession) -> bool:
        if self._settings.attached_when_busy != "between":
            return False
        return self._has_mail(session)

    def _waiting_mail(self, session: OpenSession) -> str:
        """Say which mail waits, to a session that works on something else."""
        if session.handed is not None or not self._has_mail(session):
            return ""
        found = self._store.read(lambda c: attached_turns.waiting(c, session.agent))
        shown = ", ".join(f"e{one.id} from {one.sender}" for one in found)
        return wording.WAITS.format(shown=shown, ids=wording.ids([one.id for one in found]))

    # --- what they do not report -----------------------------------------------------

    async def _catch_up(self, session: OpenSession) -> None:
        """Take the reports of the time without a daemon, in their order, before any other."""
        async with session.catching_up:
            await session.ready.wait()
            late = late_reports.take(self._home, session.client, session.session)
            for one in late:
                try:
                    await self._take_late(session, one)
                except (HibossError, KeyError, TypeError) as error:
                    log.error("A late report of %s was left out: %s", session.name, error, extra={"action": "attached"})
            if late:
                late_reports.done(self._home, session.client, session.session)

    async def _take_late(self, session: OpenSession, report: dict[str, Any]) -> None:
        event, handed = str(report["event"]), session.handed
        if report["kind"] == "prompt":
            if handed is not None and handed.seen and event == session.last_event:
                # The daemon died before the hook had its answer: the session never got the text.
                handed.seen = not await self._store.write(
                    lambda tx: attached_turns.note_unseen(tx, handed.turn.run)
                )
            await self._note(session, "busy", True, event)
        elif report["kind"] == "stop" and event != session.last_event:
            if handed is not None and handed.seen and not handed.over and not session.of_person:
                handed.answer.set_result(str(report["text"]))
            await self._note(session, "idle", False, event)

    def _watch(self, session: OpenSession) -> None:
        session.unwatch()
        session.unwatch = process_exit.watch(session.pid, lambda: self._spawn(self._process_ended(session)))
        if process_control.started_at(session.pid) != session.pid_started:
            self._spawn(self._process_ended(session))

    async def _process_ended(self, session: OpenSession) -> None:
        if session.id in self._open and process_control.started_at(session.pid) != session.pid_started:
            await self._catch_up(session)
            await self.ended(session.id, "gone")

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
        if process_control.started_at(session.pid) != session.pid_started:
            return await self._process_ended(session)
        await self._catch_up(session)
        if session.is_idle or session.takes_now:
            return
        session.idle_looks = session.idle_looks + 1 if doors.says_idle(session) else 0
        if session.idle_looks >= IDLE_LOOKS:
            await self._note(session, "idle", False, None)
            self.wake([session.agent])

    def _spawn(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _beside(handed: Handed) -> str:
    return wording.BESIDE.format(first=wording.ids(handed.turn.envelopes[:1]))
