"""Controls: orders of people and agents about what runs or waits (`control.send`, /stop, a Stop button).

Each event has a handler. What it changes and its record are one transaction (hiboss/store/run_controls.py,
controls.py); processes are told after its COMMIT. If the daemon dies in between, the next one ends all that
is left of runs, and settles them as it is stored: so a control is applied as a whole or not at all.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import NamedTuple

from ..core import clock
from ..core.crashpoint import CONTROLLED, crashpoint
from ..core.envelope import Lane
from ..core.settings import Settings
from ..store import control_targets, controls, handoffs, lanes, route_moves, run_controls, run_pauses
from ..store.connection import Row
from ..store.control_targets import Target
from ..store.controls import Control, Decision, Order
from ..store.group_commit import Tx
from ..store.store import Store
from .run_execution import Execution
from .runner import Runner

log = logging.getLogger(__name__)
NO_PROGRAM = "its provider has no program of its own that could stand still"
# What an event does inside the transaction.
Change = Callable[[Tx, Order, Target, int], Decision]


class Outcome(NamedTuple):
    """What came of an order."""

    outcome: str  # applied, too-late, refused
    why: str | None  # of what was not applied; or a remark
    message: int  # the message with the record
    decision: Decision


Handler = Callable[[Order], Awaitable[Outcome]]


class Controls:
    """Carries out controls. Use it on the event loop's thread only."""

    def __init__(self, store: Store, settings: Settings, runner: Runner) -> None:
        self._store = store
        self._settings = settings
        self._runner = runner
        self._handlers: dict[str, Handler] = {}
        self._tasks: set[asyncio.Task[None]] = set()  # they end runs whose pause was too long
        self._timers: dict[int, asyncio.TimerHandle] = {}  # by run
        self.nudge: Callable[[int], None] = lambda at: None  # the scheduler's; set in hiboss/daemon/wiring.py
        self.add("pause", partial(run_controls.pause, cannot=self._cannot_stop))
        self.handle("resume", self._resume)
        self.add("cancel", run_controls.cancel)
        self.add("route", route_moves.route)
        self.add("handoff", handoffs.handoff)

    def add(self, event: str, change: Change) -> None:
        """Let an event be carried out by a change, and by what its decision says about processes."""
        self._handlers[event] = partial(self.carry_out, change=change)

    def handle(self, event: str, handler: Handler) -> None:
        """Let an event be carried out by a handler, which calls `carry_out`."""
        self._handlers[event] = handler

    async def send(self, order: Order) -> Outcome:
        """Carry out an order. Raise what its check raises, and NotFound for an unknown id."""
        return await self._handlers[order.event](order)

    async def carry_out(self, order: Order, change: Change) -> Outcome:
        """Change something and record it in one transaction; then tell the processes."""
        now = clock.now()
        target_of = partial(
            control_targets.find,
            agent=order.agent,
            run=order.run,
            conversation=order.conversation,
            envelope=order.envelope,
        )

        def write(tx: Tx) -> Outcome:
            target = target_of(tx)
            order.check(tx, target)
            decision = change(tx, order, target, now)
            order.decided(decision, target)
            recorded = controls.record(tx, _control(order, target), decision.outcome, decision.why, now)
            if decision.recorded is not None:
                decision.recorded(tx, recorded.control)
            return Outcome(decision.outcome, decision.why, recorded.message, decision)

        outcome = await (self._store.write_until_done if order.until_done else self._store.write)(write)
        crashpoint(CONTROLLED)
        await self.follow(outcome.decision)
        return outcome

    async def follow(self, decision: Decision) -> None:
        """Tell the processes of runs what was decided about them, after COMMIT; wake agents."""
        if decision.ended:
            self._runner.end_told()
        await asyncio.gather(*(self.apply_pause(run) for run in decision.changed))
        if decision.woken:
            self._wake(decision.woken)

    def _wake(self, agents: tuple[int, ...]) -> None:
        for agent in agents:
            state = self._store.read(partial(lanes.get, lane=Lane(agent, None)))
            if state is not None and state["wake_at"] is not None:
                self.nudge(state["wake_at"])
        self._runner.wake(agents, eager=True)
        self._runner.look_for_tasks()

    async def _resume(self, order: Order) -> Outcome:
        return await self.carry_out(order, partial(run_controls.resume, bounds=self._runner.bounds()))

    def _cannot_stop(self, run: Row) -> str | None:
        """Return why the processes of a run cannot be stopped; None: they can, also if they start later."""
        if run["pid"] is not None or self._runner.providers.starts_program(run["provider"]):
            return None
        return NO_PROGRAM

    # --- pauses ------------------------------------------------------------------------

    async def apply_pause(self, run: int) -> None:
        """Stop the processes of a run, or let them go on, as it is stored now."""
        execution = await self._runner.begun(run)
        if execution is None:
            return
        async with execution.control:  # the last one to come finds what is stored last
            since = self._store.read(partial(run_pauses.paused_at, run=run))
            if since is not None and await execution.pause():
                self._end_later(execution, since)
            elif since is None:
                self._forget_timer(run)
                await execution.resume()
                execution.release()

    def _end_later(self, execution: Execution, since: int) -> None:
        run, seconds = execution.turn.run, self._settings.paused_seconds
        self._forget_timer(run)
        loop = asyncio.get_running_loop()
        self._timers[run] = loop.call_later(seconds, self._begin_to_end, execution, since, seconds)

    def _begin_to_end(self, execution: Execution, since: int, seconds: float) -> None:
        self._timers.pop(execution.turn.run, None)
        if execution.ending is not None:  # it is over, and its answer waits for the end of the pause
            return
        task = asyncio.get_running_loop().create_task(self._end_paused(execution.turn.run, since, seconds))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _end_paused(self, run: int, since: int, seconds: float) -> None:
        """End a run whose pause is too long; it comes again when it is resumed."""
        if await self._store.write_until_done(lambda tx: run_pauses.end_after(tx, run, since, seconds)):
            self._runner.end_told()

    def _forget_timer(self, run: int) -> None:
        if (timer := self._timers.pop(run, None)) is not None:
            timer.cancel()

    async def close(self) -> None:
        """End no more paused runs by their time."""
        for run in list(self._timers):
            self._forget_timer(run)
        if self._tasks:
            await asyncio.wait(self._tasks)


def _control(order: Order, target: Target) -> Control:
    """Return an order as it is recorded."""
    return Control(
        event=order.event,
        actor=order.actor,
        agent=target.agent,
        run=order.run,
        conversation=order.conversation,
        envelope=order.envelope,
        destination=order.to,
        reason=order.reason,
        meta=order.meta,
    )
