"""The runner gives agents their turns: one turn at a time for an agent, several agents at once.

A wake has no data; it only says that the store may have something due. Each run has two
transactions: the first starts it and holds its envelopes, the second writes its outcome together
with the answer. Between them the provider works (`run_execution`). Also here: tasks in the
background, and the runs that a crashed daemon left. The rules of starting and settling a run are in
hiboss/store/run_start.py and run_settlement.py.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial

from ..core import bounded_calls, clock
from ..core.address import BACKGROUND
from ..core.contracts.failures import Failure
from ..core.contracts.provider import Progress
from ..core.crashpoint import RUN_ANSWERED, RUN_BEGUN, RUN_SETTLED, crashpoint
from ..core.envelope import Accepted
from ..core.errors import HibossError
from ..core.events import AgentChanged, Fact, RunProgress
from ..core.paths import Home
from ..core.settings import Settings
from ..core.work_queue import WorkQueue
from ..store import (
    agents,
    attached_turns,
    provider_sessions,
    run_cancels,
    run_history,
    run_pauses,
    run_settlement,
    run_start,
    tokens,
)
from ..store.boss import boss_timezone
from ..store.group_commit import Tx
from ..store.provider_sessions import SessionStart
from ..store.run_limits import Bounds
from ..store.run_start import Start, Turn
from ..store.store import Store
from . import left_processes, run_execution, settling, survivors
from .attached.provider import Attached
from .attached.sessions import AttachedSessions, Place
from .own_time import OwnTime
from .providers.registry import Providers
from .questions import OpenQuestion, stored_asks
from .run_execution import Execution, Limits, Reports
from .run_inputs import RunInputs
from .run_outcome import Outcome
from .settling import Written
from .turn_starts import Job, TurnStart

log = logging.getLogger(__name__)
TASKS_AT_ONCE = 100
TASKS_LOOKED_THROUGH = 200  # on the event loop's thread
START_CHECKS = 100  # one every 10 ms: how long a stored run may take to be under way
STOPPED = "the daemon stopped during the run; its envelopes are redelivered"
NO_LIMIT = 10 * 365 * 86_400.0  # seconds
RETRY_SECONDS = 1.0  # after the store could not be read


class Runner:
    """Runs turns and background tasks, at most `runs.parallel_runs` at once."""

    def __init__(self, store: Store, home: Home, settings: Settings, tell: Callable[[Fact], None]) -> None:
        self._store = store
        self._home = home
        self._settings = settings
        self._tell = tell  # publishes a fact
        self.providers = Providers(settings.provider_modules)
        self._inputs = RunInputs(store, home, settings, self.providers)
        self._agents: set[int] = set()  # address ids of the agents that get turns
        self._background = 0  # the address id of agent:background
        self._queue: WorkQueue[Job] = WorkQueue(lambda: settings.parallel_runs, self._run_job)
        self._queue.left = self._job_finished
        self._looking: asyncio.Task[None] | None = None  # looks for tasks behind those of paused agents
        self._look_behind = False
        self._executions: dict[int, Execution] = {}  # by run id
        self.attached = AttachedSessions(store, home, settings)
        self._adopted: dict[int, Turn] = {}  # by agent: what open sessions worked on without a daemon
        self.attached.registry.wake = partial(self.wake, eager=True)
        self.attached.registry.refresh = self.refresh
        self.attached.registry.token_changed = lambda: self.on_token_ended()
        self.attached.turns.render = self._inputs.text_now
        self._inputs.attached = partial(Attached, None, self.attached.turns)
        # Set in hiboss/daemon: wiring.py, lifecycle.py.
        self.accepted: Callable[[Accepted], None] = lambda what: None
        self.nudge: Callable[[int], None] = lambda at: None  # the scheduler's
        self.on_token_ended: Callable[[], None] = lambda: None
        self.on_begun: Callable[[Execution], None] = lambda execution: None
        self.obey_flag: Callable[[], Awaitable[None]] = _nothing  # of the breaker, left by the command line
        self.on_ended: Callable[[int], None] = lambda run: None  # its outcome is stored
        self.on_busy: Callable[[int], None] = lambda agent: None  # it may have news while it has a turn

    # --- start and stop --------------------------------------------------------------

    async def start(self) -> None:
        """End the processes that an earlier daemon left, and mark their runs as interrupted."""
        self._home.forget_run_tokens()
        left = self._store.read(lambda c: run_settlement.left_over(c, self._store.boot))
        if left:
            await left_processes.end_recorded(self._store.run_marks, left)
            now = clock.now()

            def interrupt(tx: Tx) -> int:
                number = run_settlement.interrupt_left_over(tx, self._store.boot, now)
                for row in left:
                    if survivors.noted(self._inputs.mark(row["id"])):
                        provider_sessions.settled(tx, row["id"], now, in_use=True)
                return number

            number = await self._store.write(interrupt)
            log.warning(
                "%d runs were interrupted when the daemon ended; their envelopes are redelivered.", number
            )
        await self._adopt()
        self._background = await self._store.write(
            lambda tx: (tx.cache.live_address(BACKGROUND) or tx.cache.add_address(BACKGROUND)).id
        )
        self.refresh()

    async def _adopt(self) -> None:
        """Find what open sessions have been working on: it goes on as a run of this daemon."""
        self.attached.load()
        for row in self._store.read(attached_turns.left_open):
            run = int(row["id"])
            turn = await self._store.write(lambda tx: attached_turns.adopt(tx, run, self._store.boot))  # noqa: B023
            if turn is not None:
                self._adopted[turn.agent] = turn
                self.attached.expect(int(row["attached"]))

    def begin(self) -> None:
        """Give a turn to every agent that has something due. Called when all parts are ready."""
        self.attached.start()
        self.wake_all()

    def wake_all(self) -> None:
        """Look what is due for every agent that gets turns."""
        self.wake([*self._agents, self._background])

    def refresh(self) -> None:
        """Read again which agents get turns. Called after agents have changed."""
        rows = self._store.read(agents.list_all)
        self._agents = {row["id"] for row in rows if row["mode"] == "run" and row["provider"] is not None}
        self._agents |= self.attached.agents() | set(self._adopted)

    def gives_turns(self, address: int) -> bool:
        """Tell whether this is the address id of an agent that gets turns."""
        return address in self._agents

    async def close(self) -> None:
        """Let runs finish for a limited time. End the others; the next start redelivers their envelopes."""
        jobs = self._queue.close()
        for run in list(self._executions):
            self.attached.turns.leave(run)
        await self.attached.close()
        if self._looking is not None:
            await asyncio.wait([self._looking])
        for execution in list(self._executions.values()):
            if execution.paused:  # it would not finish
                execution.end("interrupted", STOPPED)
            execution.release()
        if jobs:
            await asyncio.wait(jobs, timeout=self._settings.finish_seconds)
        for execution in list(self._executions.values()):
            execution.end("interrupted", STOPPED)
        if jobs:
            await asyncio.wait(jobs, timeout=30.0)
        await bounded_calls.end(jobs, "A run", run_execution.END_SECONDS)

    # --- which job is next -----------------------------------------------------------

    def wake(self, recipients: Iterable[int], *, eager: bool = False) -> None:
        """Look what is due for these addresses. `eager`: it is new, so try a waiting lane at once."""
        found = [number for number in recipients if number in self._agents or number == self._background]
        for number in dict.fromkeys(found):
            if number == self._background:
                continue
            if self._queue.is_working(Job("turn", number)):
                self.on_busy(number)
            self._queue.wake(Job("turn", number), eager=eager)
        if found:  # tasks of an agent that was paused wait until it is resumed
            self.look_for_tasks()

    def look_for_tasks(self) -> None:
        """Queue the due tasks in the background, each as a job of its own."""
        try:
            found, more = self._store.read(
                lambda c: run_start.tasks_due(c, self._background, TASKS_AT_ONCE, TASKS_LOOKED_THROUGH)
            )
        except HibossError as error:  # look again: nothing else would find them
            log.error("Tasks are looked for again in a second: %s", error, extra={"action": "run"})
            asyncio.get_running_loop().call_later(RETRY_SECONDS, self.look_for_tasks)
            return
        for number in found:
            self._queue.wake(Job("background", number))
        self._look_behind = more
        if more and (self._looking is None or self._looking.done()):
            self._looking = asyncio.get_running_loop().create_task(self._look_through_all())

    async def _look_through_all(self) -> None:
        """Find tasks behind many of paused agents, on another thread, once more if any came meanwhile."""
        while self._look_behind and not self._queue.closed:
            self._look_behind = False
            try:
                found, _ = await self._store.read_in_thread(
                    lambda c: run_start.tasks_due(c, self._background, TASKS_AT_ONCE)
                )
            except HibossError as error:
                log.error("Tasks are looked for again in a second: %s", error, extra={"action": "run"})
                asyncio.get_running_loop().call_later(RETRY_SECONDS, self.look_for_tasks)
                return
            for number in found:
                self._queue.wake(Job("background", number))

    def _job_finished(self, job: Job) -> None:
        """Queue more tasks: at most TASKS_AT_ONCE are read at a time."""
        if job.kind == "background":
            self.look_for_tasks()

    # --- one run ---------------------------------------------------------------------

    async def _run_job(self, job: Job, eager: bool) -> None:
        """Run the next turn of an agent, and those that follow it at once; or a task in the background."""
        await self.obey_flag()
        place = self.attached.place(job.number) if job.kind == "turn" else Place(None)
        begun = self._new_start(job, place, eager=eager)
        begun.turn = self._adopted.pop(job.number, None) if job.kind == "turn" else None
        if begun.turn is None and not place.busy:
            await self._store.timed_write_until_done(begun.begin)
        following: TurnStart | None = begun
        while following is not None and following.turn is not None:
            following = await self._run_turn(job, following, following.turn)

    def _new_start(self, job: Job, place: Place, *, eager: bool = False) -> TurnStart:
        session = SessionStart(provider_sessions.new_id(), self.providers.session_kinds())
        bounds, token = self.bounds(), tokens.new("run")
        start = Start(token, clock.now(), self._store.boot, bounds, session, place.session)
        return TurnStart(job, start, eager=eager)

    async def _run_turn(self, job: Job, begun: TurnStart, turn: Turn) -> TurnStart | None:
        """Execute a run, and settle it. Return the start of the next turn, if that was tried with it."""
        crashpoint(RUN_BEGUN)
        following: TurnStart | None = None
        try:
            try:
                outcome = await self._execute(turn, begun.token, begun.own_time)
            except Exception:  # a defect of ours: the run must end all the same
                log.exception("r%d broke off.", turn.run, extra={"action": "run"})
                outcome = Outcome(failure=Failure("broke_off", "hiboss failed to run it; its log shows why"))
            crashpoint(RUN_ANSWERED)
            if outcome.left_open:
                self._executions.pop(turn.run, None)
                return None
            following = await self._settle_somehow(turn, outcome, self._following(job, outcome))
            crashpoint(RUN_SETTLED)
            return following
        finally:
            if job.kind == "turn" and following is None:
                self._queue.once_more(job)  # more may be due; other agents come first
            self._call_hook(turn, partial(self.on_ended, turn.run))

    def _following(self, job: Job, outcome: Outcome) -> TurnStart | None:
        """Return the start of an agent's next turn, for the transaction that settles this one.

        None if others wait for the place, or if it is not for a provider of the daemon.
        """
        if job.kind != "turn" or outcome.answer is None or not self._queue.may_go_on(job):
            return None
        if job.number not in self._agents or job.number in self._adopted:
            return None
        try:
            place = self.attached.place(job.number)
            return None if place.busy or place.session is not None else self._new_start(job, place)
        except HibossError:  # the store cannot be read now; this run must be settled first
            return None

    def _call_hook(self, turn: Turn, hook: Callable[[], None]) -> None:
        """Tell another part about a run. Whatever fails there, the run goes on and is settled."""
        try:
            hook()
        except Exception:
            log.exception("What follows r%d failed.", turn.run, extra={"action": "run"})

    async def _settle_somehow(
        self, turn: Turn, outcome: Outcome, following: TurnStart | None
    ) -> TurnStart | None:
        """Settle a run as it ended; after a defect in another way, for it must end.

        Return the start of the next turn, if it is stored with the outcome.
        """
        for attempt, then in settling.attempts(turn, outcome, following):
            try:
                await self._settle(turn, attempt, then)
            except Exception:
                log.exception("r%d could not be settled.", turn.run, extra={"action": "run"})
                if then is None or not then.is_stored:
                    continue
            return then if then is not None and then.is_stored else None
        return None

    async def _execute(self, turn: Turn, token: str, own_time: OwnTime) -> Outcome:
        """Run the provider and return the outcome. The run can be ended from here on."""
        execution = self._executions[turn.run] = Execution(
            turn,
            self._limits(turn),
            prepare=partial(self._inputs.prepare, turn, token),
            reports=Reports(
                store_pid=partial(self._inputs.store_pid, turn.run),
                store_session=partial(self._inputs.store_session, turn),
                session_lost=partial(self._inputs.session_lost, turn, token),
                on_output=partial(self._on_output, turn),
                on_standstill=partial(self._stand_still, turn),
                asks=stored_asks(self._store, turn.run),
                on_question=partial(self._on_question, turn),
            ),
            own_time=own_time,
        )
        self._call_hook(turn, partial(self.on_begun, execution))
        if turn.attached is not None:
            execution.give_way()
        self._end_if_told(execution)  # since it was stored, and before anybody could end it
        if self._queue.closed:
            execution.end(
                "interrupted", "the daemon stopped before the run began; its envelopes are redelivered"
            )
        return await execution.run()

    def _limits(self, turn: Turn) -> Limits:
        """Return the limits of a run. What an open session does has none: a person sits there."""
        found = self._settings
        idle, total = found.idle_seconds, found.total_seconds
        if turn.attached is not None:
            idle = total = NO_LIMIT
        return Limits(idle, total, found.text_bytes, found.question_seconds)

    def _on_output(self, turn: Turn, part: Progress, position: int) -> None:
        """Tell those who follow a run of a part of its output."""
        if (execution := self._executions.get(turn.run)) is not None:
            turn = execution.turn
        whose = (turn.run, turn.agent, turn.followed_in)
        self._tell(RunProgress(clock.now(), *whose, position, part.kind, part.text))

    def _on_question(self, turn: Turn) -> None:
        """A run asks, or has an answer: the state of its agent is another one."""
        self._tell(AgentChanged(clock.now(), turn.agent))

    def asks_settled(self, asks: Sequence[int]) -> None:
        """Give the runs that wait for these asks their answers. That they are settled is committed."""
        for execution in self._executions.values():
            execution.questions.settled(asks)

    def bounds(self) -> Bounds:
        zone = clock.zone(self._store.read(boss_timezone))
        return Bounds(self._settings.hops, self._settings.runs_per_trace, *clock.day(clock.now(), zone))

    # --- the outcome -----------------------------------------------------------------

    async def _settle(self, turn: Turn, outcome: Outcome, following: TurnStart | None = None) -> None:
        """Write the outcome; if somebody has paused the run meanwhile, when it goes on or is told to end."""
        await self.obey_flag()  # it may have ended its processes
        execution = self._executions.get(turn.run)
        while not await self._write_outcome(turn, outcome, execution, following):
            assert execution is not None
            await execution.until_released()
            following = None  # another run may have its place
            if self._queue.closed:
                outcome = Outcome(ended="interrupted", failure=Failure("interrupted", STOPPED))

    async def _write_outcome(
        self, turn: Turn, outcome: Outcome, execution: Execution | None, following: TurnStart | None
    ) -> bool:
        """Write the outcome in one transaction, then tell those who wait for it. False: the run is paused."""
        written = Written()

        def write(tx: Tx, now: int) -> bool:
            nonlocal written
            if execution is not None and outcome.ended is None and run_pauses.stands_still(tx, turn.run):
                return False
            survivors.tell_boss(tx, turn, self._inputs.mark(turn.run), now)
            if execution is not None:
                settling.note_reports(tx, turn, execution.reported, has_answer=outcome.answer is not None)
            self._inputs.note_given(tx, turn.run, has_answer=outcome.answer is not None)
            written = settling.write(tx, turn, outcome, now)
            left = execution is not None and execution.left_behind
            in_use = left or survivors.noted(self._inputs.mark(turn.run))
            provider_sessions.settled(tx, turn.run, now, in_use=in_use)
            if following is not None:
                following.begin(tx, now)
            return True

        if not await self._store.timed_write_until_done(write):
            return False
        if following is not None:
            following.is_stored = True
        if execution is not None:
            execution.own_time.committed(turn.run)
        self._executions.pop(turn.run, None)
        self._inputs.forget(turn.run)
        survivors.forget(self._inputs.mark(turn.run))
        settling.log_end(turn, outcome)
        self._call_hook(turn, self.on_token_ended)  # it is settled: nothing from here on may settle it again
        for one in written.sent:
            self._call_hook(turn, partial(self.accepted, one))
        if written.wake_at is not None:
            self._call_hook(turn, partial(self.nudge, written.wake_at))
        return True

    # --- controlling runs ------------------------------------------------------------

    def execution(self, run: int) -> Execution | None:
        """Return the execution of a run that is running; None when it has ended or not begun."""
        return self._executions.get(run)

    @property
    def load(self) -> dict[str, int]:
        """How many runs work, stand still (paused, or for a person), and how much waits for a place."""
        still = min(self._queue.aside(None), len(self._executions))
        active = len(self._executions) - still
        return {"active": active, "still": still, "waiting": self._queue.waiting()}

    def turn_text(self, run: int) -> str | None:
        """Return the text of the turn of a run that is under way; None if it is not, or has none yet."""
        return self._inputs.turn_text(run)

    async def begun(self, run: int) -> Execution | None:
        """Return the execution of a run that is stored as running: that is a moment before it begins.

        None if it has ended.
        """
        for _ in range(START_CHECKS):
            if (execution := self.execution(run)) is not None:
                return execution
            row = self._store.read(lambda c: run_history.get(c, run))
            if row is None or row["status"] != "running":
                return None
            await asyncio.sleep(0.01)
        return None

    def asking(self) -> dict[int, OpenQuestion]:
        """Return the first open question of each run that asks something, by run id."""
        opened = ((run, execution.questions.open()) for run, execution in self._executions.items())
        return {run: questions[0] for run, questions in opened if questions}

    def _stand_still(self, turn: Turn, still: bool) -> None:
        """A run is paused or waits for a person, or works again: another run may have its place."""
        (self._queue.set_aside if still else self._queue.take_back)(_job(turn))

    def chat_renamed(self) -> None:
        """Look where the runs answer: two chats may have become one, and their conversations too."""
        for execution in self._executions.values():
            turn = execution.turn
            try:
                execution.turn = self._store.read(partial(run_start.answers_in, turn=turn))
            except HibossError as error:  # only those who follow its output there miss it
                log.error("r%d: %s", turn.run, error, extra={"action": "run"})

    def end_told(self) -> None:
        """End the runs that were told to end, and are going on: it is stored already, as what."""
        for execution in list(self._executions.values()):
            self._end_if_told(execution)

    def _end_if_told(self, execution: Execution) -> None:
        try:
            told = self._store.read(lambda c: run_cancels.noted(c, execution.turn.run))
        except HibossError as error:
            log.error("r%d goes on for now: %s", execution.turn.run, error, extra={"action": "run"})
            return
        if told is not None:
            if told.ends_as == run_cancels.PREEMPTED:  # the turn that it was ended for follows at once
                self._queue.keep_place(_job(execution.turn))
            execution.end(told.status, told.why)

    def end_runs(self, agent: int, why: str) -> None:
        """End all runs of an agent. Their envelopes are due again."""
        for execution in list(self._executions.values()):
            if execution.turn.agent == agent:
                execution.end("cancelled", why)

    def end_all(self, why: str) -> None:
        """End all runs; it could not be stored before. Their envelopes are due again."""
        for execution in list(self._executions.values()):
            execution.end("interrupted", why)


async def _nothing() -> None:
    pass


def _job(turn: Turn) -> Job:
    return Job("turn", turn.agent) if turn.kind == "turn" else Job("background", turn.envelopes[0])
