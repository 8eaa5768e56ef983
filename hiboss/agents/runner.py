"""The runner: agents take turns. One turn at a time for an agent, several agents at once.

A wake says only: look into the store. What a run is about is written before it begins, what
came of it in one transaction with its answer; in between only the outside world happens.
"""

from __future__ import annotations

import asyncio
import json
import logging
import math
import os
from collections.abc import Callable, Iterable
from functools import partial
from typing import NamedTuple

from ..core import backoff, clock
from ..core.address import BACKGROUND
from ..core.contracts.failures import Failure, LaneError
from ..core.contracts.provider import Provider, TurnInput
from ..core.crashpoint import RUN_ANSWERED, RUN_BEGUN, RUN_SETTLED, RUN_STARTED, crashpoint
from ..core.envelope import Accepted
from ..core.events import Bus, RunEnded, RunStarted
from ..core.paths import Home
from ..core.settings import Settings
from ..core.work_queue import WorkQueue
from ..store import agents, lanes, run_settlement, run_start, tokens
from ..store.boss import boss_timezone
from ..store.connection import Connection
from ..store.group_commit import Tx
from ..store.run_limits import Bounds
from ..store.run_start import Start, Turn
from ..store.store import Store
from . import process_search, turn_input
from .providers.registry import Providers
from .run_execution import Execution, Limits, Outcome

log = logging.getLogger(__name__)
LONGEST_WAIT_SECONDS = 24 * 3600.0
TASKS_LOOKED_AT = 100


class Job(NamedTuple):
    """Something that takes a place: an agent's next turn, or a task in the background."""

    kind: str  # turn, background
    number: int  # of the agent's address, or of the envelope


class Runner:
    def __init__(self, store: Store, home: Home, settings: Settings, bus: Bus) -> None:
        self._store = store
        self._home = home
        self._settings = settings
        self._bus = bus
        self.providers = Providers(settings.provider_modules)
        self._turn_takers: set[int] = set()  # address ids of agents that are given turns
        self._background = 0  # the address id of agent:background
        self._queue: WorkQueue[Job] = WorkQueue(lambda: settings.parallel_runs, self._do)
        self._queue.left = self._left
        self._executions: dict[int, Execution] = {}  # by run
        # Set by the assembly.
        self.accepted: Callable[[Accepted], None] = lambda what: None
        self.nudge: Callable[[int], None] = lambda at: None
        self.activity: Callable[[int], None] = lambda agent: None
        self.token_ended: Callable[[], None] = lambda: None

    # --- its life --------------------------------------------------------------------

    async def start(self) -> None:
        """What another daemon left running is ended, and its runs are interrupted."""
        left = self._store.read(lambda c: run_settlement.left_over(c, self._store.boot))
        if left:
            marks = frozenset(self._mark(row["id"]) for row in left)
            pids = [(row["pid"], row["pid_started"]) for row in left if row["pid"] is not None]
            await _end_survivors(marks, pids)
            number = await self._store.write(
                lambda tx: run_settlement.interrupt_left_over(tx, self._store.boot, clock.now())
            )
            log.warning("%d runs were under way when the daemon ended; they come again.", number)
        self._background = await self._store.write(
            lambda tx: (tx.cache.live_address(BACKGROUND) or tx.cache.add_address(BACKGROUND)).id
        )
        self.refresh()

    def begin(self) -> None:
        """Everything is in place: whoever has mail gets a turn."""
        self.wake([*self._turn_takers, self._background])

    def refresh(self) -> None:
        """Agents have changed: who is given turns now?"""
        rows = self._store.read(agents.listed)
        self._turn_takers = {
            row["id"] for row in rows if row["mode"] == "run" and row["provider"] is not None
        }

    async def close(self) -> None:
        """Let runs finish, for a bounded time; the others are ended and come again at the next start."""
        jobs = self._queue.close()
        if jobs:
            await asyncio.wait(jobs, timeout=self._settings.finish_seconds)
        for work in list(self._executions.values()):
            work.end("interrupted", "the daemon stopped in the midst of it; its envelopes come again")
        if jobs:
            await asyncio.wait(jobs, timeout=30.0)
        for job in jobs:
            job.cancel()
        await asyncio.gather(*jobs, return_exceptions=True)

    # --- who is next -----------------------------------------------------------------

    def wake(self, recipients: Iterable[int], *, eager: bool = False) -> None:
        """Something may be due for these. `eager`: it is new, so try also a lane that waits."""
        found = [number for number in recipients if number in self._turn_takers or number == self._background]
        for number in found:
            if number != self._background:
                self._queue.wake(Job("turn", number), eager=eager)
        if found:  # an agent that goes on may have left tasks waiting
            self.look_for_tasks()

    def look_for_tasks(self) -> None:
        """Tasks in the background, each a job of its own."""
        for number in self._store.read(lambda c: run_start.tasks_due(c, self._background, TASKS_LOOKED_AT)):
            self._queue.wake(Job("background", number))

    def _left(self, job: Job) -> None:
        """A place is free: of the tasks in the background only so many were looked at."""
        if job.kind == "background":
            self.look_for_tasks()

    # --- one run ---------------------------------------------------------------------

    async def _do(self, job: Job, eager: bool) -> None:
        token = tokens.new("run")
        start = Start(token, clock.now(), self._store.boot, self.bounds())

        def begin(tx: Tx) -> Turn | None:
            if job.kind == "turn":
                return run_start.begin(tx, job.number, start, eager=eager)
            return run_start.begin_background(tx, job.number, start)

        turn = await self._store.write_in_the_end(begin)
        if turn is None:
            return
        crashpoint(RUN_BEGUN)
        self._bus.publish(RunStarted(at=start.now, run=turn.run, agent=turn.agent))
        if job.kind == "turn":
            self._queue.once_more(job)  # stand in line again
        outcome = await self._take(turn, token)
        crashpoint(RUN_ANSWERED)
        try:
            await self._settle(turn, outcome)
        except Exception as error:  # a defect: the run must still end, and its envelopes come again
            log.exception("r%d could not be settled.", turn.run, extra={"action": "run"})
            failure = Failure("broke_off", f"hiboss failed to settle it: {type(error).__name__}")
            await self._settle(turn, Outcome(failure=failure))
        crashpoint(RUN_SETTLED)

    async def _take(self, turn: Turn, token: str) -> Outcome:
        """Have it thought about. From the first moment on it can be ended."""
        limits = self._settings
        work = self._executions[turn.run] = Execution(
            turn,
            Limits(limits.idle_seconds, limits.total_seconds, limits.text_bytes),
            prepare=partial(self._prepare, turn, token),
            note=partial(self._note, turn.run),
            ring=partial(self.activity, turn.agent),
        )
        self.activity(turn.agent)
        if self._queue.closed:
            work.end("interrupted", "the daemon stopped before it began; its envelopes come again")
        return await work.go()

    async def _prepare(self, turn: Turn, token: str) -> tuple[TurnInput, Provider]:
        try:
            return await self._task(turn, token), self._provider(turn)
        except OSError as error:
            raise LaneError("no_workspace", f"its workspace cannot be made: {error}") from error

    def _provider(self, turn: Turn) -> Provider:
        settings = json.loads(turn.settings) if turn.settings else {}
        if "secret" in settings:
            settings["secret"] = self._home.secret(settings["secret"]) or ""
        provider: Provider = self.providers.kind(turn.provider)(settings)
        return provider

    async def _task(self, turn: Turn, token: str) -> TurnInput:
        now = clock.now()
        zone = self._store.read(boss_timezone)
        exact_to = self._settings.count_exact_to

        def read(connection: Connection) -> turn_input.Content:
            who, what = (turn.agent, turn.name), turn.envelopes + turn.riding
            return turn_input.content(connection, self._home, who, what, now, clock.zone(zone), exact_to)

        content = await self._store.read_slowly(read)
        mark = self._mark(turn.run)
        return TurnInput(
            run=f"r{turn.run}",
            delivery=mark,
            agent=turn.name,
            text=content.text,
            envelopes=content.envelopes,
            due=content.due,
            now=now,
            timezone=zone,
            workspace=turn_input.workspace(self._home, turn.name, turn.workspace),
            environment=turn_input.environment(self._home, turn.name, mark, token),
            output_bytes=self._settings.output_bytes,
        )

    def _mark(self, run: int) -> str:
        """Unlike any other run's, also of another home."""
        return f"{self._store.epoch}-r{run}"

    async def _note(self, run: int, pid: int) -> None:
        crashpoint(RUN_STARTED)
        started = process_search.started_at(pid)
        await self._store.write(lambda tx: run_start.note_process(tx, run, pid, started))

    def bounds(self) -> Bounds:
        zone = clock.zone(self._store.read(boss_timezone))
        return Bounds(self._settings.hops, self._settings.runs_per_trace, *clock.day(clock.now(), zone))

    # --- what came of it -------------------------------------------------------------

    async def _settle(self, turn: Turn, outcome: Outcome) -> None:
        now = clock.now()
        work = self._executions.get(turn.run)
        usage = work.usage if work is not None else None
        sent: list[Accepted] = []
        wake_at: int | None = None

        def write(tx: Tx) -> None:
            nonlocal sent, wake_at
            sent, wake_at = [], None
            if usage is not None:
                run_settlement.note_usage(tx, turn, usage)
            if outcome.answer is not None:
                sent = run_settlement.complete(tx, turn, outcome.answer, now)
                return
            assert outcome.failure is not None
            if outcome.ended is not None:
                gives_up = outcome.gives_up
                run_settlement.cancel(tx, turn, outcome.ended, outcome.failure.text, now, gives_up=gives_up)
            elif outcome.of_lane and turn.kind == "turn":
                wake_at = now + self._delay(tx, turn, outcome.retry_after)
                run_settlement.wait(tx, turn, outcome.failure, wake_at, now)
            else:
                wake_at = run_settlement.fail(tx, turn, outcome.failure, backoff.steps(), now)

        await self._store.write_in_the_end(write)
        self._executions.pop(turn.run, None)
        self.token_ended()
        self.activity(turn.agent)
        self._tell(turn, outcome, now)
        for one in sent:
            self.accepted(one)
        if wake_at is not None:
            self.nudge(wake_at)

    def _delay(self, tx: Tx, turn: Turn, retry_after: float | None) -> int:
        delay = backoff.after(lanes.failures(tx, turn.lane))
        if retry_after is not None and math.isfinite(retry_after):
            delay = min(max(retry_after, 0.05), LONGEST_WAIT_SECONDS)
        return int(delay * 1000)

    def _tell(self, turn: Turn, outcome: Outcome, now: int) -> None:
        failure = outcome.failure
        status = "completed" if failure is None else outcome.ended or "failed"
        if failure is not None:
            log.warning(
                "r%d of %s %s: %s", turn.run, turn.name, status, failure.text, extra={"action": "run"}
            )
        error = failure.text if failure else None
        self._bus.publish(RunEnded(at=now, run=turn.run, agent=turn.agent, status=status, error=error))

    # --- steering --------------------------------------------------------------------

    def work(self, run: int) -> Execution | None:
        """A run that is under way."""
        return self._executions.get(run)

    def end_runs(self, agent: int, why: str) -> None:
        """Whatever this agent has under way is ended; its envelopes are not given up."""
        for work in list(self._executions.values()):
            if work.turn.agent == agent:
                work.end("cancelled", why)


async def _end_survivors(marks: frozenset[str], pids: list[tuple[int, str | None]]) -> None:
    """Processes of runs whose daemon died: by their pid and start, and by the mark they carry."""
    sessions = {
        pid for pid, started in pids if started is not None and process_search.started_at(pid) == started
    }
    for pid in await asyncio.to_thread(process_search.marked, marks):
        try:
            sessions.add(os.getsid(pid))
        except ProcessLookupError:
            pass
    sessions.discard(os.getsid(0))
    await asyncio.gather(
        *(process_search.end_session(session, leader_gone=lambda: False) for session in sessions)
    )
