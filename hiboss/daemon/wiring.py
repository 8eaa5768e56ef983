"""Connect the parts of the daemon: runner, delivery, scheduler, adapters, waiters, and who wakes whom.

The parts do not import each other; their callbacks are set here.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

from ..agents.breaker import Breaker
from ..agents.controls import Controls
from ..agents.preemption import Preemption
from ..agents.run_execution import Execution
from ..agents.runner import Runner
from ..channels.registry import Registry
from ..channels.supervisor import Slot, Supervisor
from ..core import clock
from ..core.contracts.failures import Failure
from ..core.envelope import Accepted, Lane
from ..core.errors import HibossError
from ..core.events import AskCreated, AskSettled, ChatRenamed, Fact, RunProgress
from ..core.paths import Home
from ..core.settings import Settings
from ..routing import post_changes, reaction_changes
from ..routing.breaker_orders import BreakerOrders
from ..routing.change_queue import ChangeQueue, ChatCalls
from ..routing.change_queue import Kind as ChangeKind
from ..routing.chat_setup import ChatSetup
from ..routing.deadlines import Deadlines
from ..routing.delivery import Delivery
from ..routing.fact_webhooks import FactWebhooks
from ..routing.facts import Facts
from ..routing.intake import Intake
from ..routing.measurements import UNKNOWN, Measurements
from ..routing.presence import Presence
from ..routing.queue_notes import QueueNotes
from ..routing.router import Router
from ..routing.scheduler import Scheduler
from ..routing.stuck_runs import StuckRuns
from ..routing.subscriptions import Subscription
from ..routing.typing_signs import TypingSigns
from ..routing.user_presence import UserPresence
from ..routing.waiters import Waiters
from ..store import bindings, buttons, chat_notes, envelope_orders, intake
from ..store.boss import find_boss
from ..store.overdue import Woken
from ..store.store import Store

log = logging.getLogger(__name__)


async def _nothing() -> None:
    """Stand where nobody has anything to do at the heartbeat."""


class Wiring:
    """All parts, connected. Nothing runs before `start`; `close` stops them in the right order."""

    def __init__(self, store: Store, home: Home, settings: Settings, router: Router) -> None:
        self._store, self._router = store, router
        self.measurements = Measurements()
        self.facts = Facts(store, settings)
        self.on_heartbeat: Callable[[], Awaitable[None]] = _nothing  # set in hiboss/daemon/lifecycle.py
        store.tell_facts(self._publish)
        self.waiters = Waiters()
        store.tell_arrivals(self._arrived)
        self.deadlines = Deadlines()
        self.presence = Presence(store, self.deadlines, self.facts.tell)
        self.user_presence = UserPresence(self.deadlines, self.facts.tell)
        self.facts.opened, self.facts.closed = self._follower_came, self._follower_left
        registry = Registry(settings.adapter_modules)
        self.intake = Intake(store, home, settings, router)
        self.supervisor = Supervisor(
            registry,
            self.facts.tell,
            self.intake.take,
            self._adapter_running,
            self._adapter_failing,
            lambda binding: store.read(lambda c: intake.position(c, binding)),
            home,
        )
        self.intake.adapter = self.supervisor.adapter
        self.delivery = Delivery(store, home, settings, self.supervisor)
        self.delivery.delivered = self._delivered
        self.delivery.handover.measured = self.measurements.measured_post
        calls = ChatCalls(store, self.supervisor, self.delivery.pacing)
        kinds: dict[str, ChangeKind] = {
            post_changes.KIND: post_changes.PostChanges(store, home, settings, calls),
            reaction_changes.KIND: reaction_changes.ReactionChanges(store, calls),
        }
        self.changes = ChangeQueue(store, settings, self.supervisor, kinds)
        self.delivery.settled = self.delivery.endings.ended = self.changes.settled
        self.fact_webhooks = FactWebhooks(store, self.facts, self.delivery.wake)
        self.queue_notes = QueueNotes(store, settings, self.delivery.live)
        self.typing = TypingSigns(store, self.deadlines, self.facts.tell, self.delivery.live.signs)
        self.stuck_runs = StuckRuns(store, settings, self.deadlines, self.presence)
        self.intake.boss_spoke = self._boss_spoke
        self.intake.reposted = self.changes.added
        self.runner = Runner(store, home, settings, self._tell_of_run)
        self.breaker = Breaker(store, home, self.runner.end_told, self.runner.end_all)
        self.runner.obey_flag = self.breaker.obey_flag
        self.controls = Controls(store, settings, self.runner)
        self.scheduler = Scheduler(store, settings, self._wake, self._heartbeat)
        self.controls.nudge = self.scheduler.nudge
        self.chat_setup = ChatSetup(store, self.supervisor, self.delivery.live.signs)
        self.intake.decided = self.delivery.decided = self.chat_setup.remove_buttons
        store.tell_chats(self._chats_open)
        self.delivery.nudge = self.changes.nudge = self.scheduler.nudge
        self.intake.renamed = self.delivery.moved = self.changes.moved = self._chat_renamed
        store.tell_posts(lambda lanes: self.delivery.wake(lanes, eager=True))
        self.preemption = Preemption(store, home, self.runner.begun, self.runner.end_told)
        self.controls.add("preempt", envelope_orders.preempt)
        self.controls.add("priority", envelope_orders.prioritize)
        self._take_commands()
        self._follow_runs()
        router.accepted = self.runner.accepted = self._accepted

    def _take_commands(self) -> None:
        """Let commands that the boss gives in a chat do their work."""
        commands = self.intake.commands
        commands.breaker = BreakerOrders(self._store, self.breaker)
        commands.controls = self.controls
        commands.bounds = self.runner.bounds
        commands.resumed = self._agent_resumed
        commands.stopping = self.delivery.live.signs.acknowledge

    def _follow_runs(self) -> None:
        self.runner.nudge = self.scheduler.nudge
        self.runner.on_begun = self._run_begun
        self.runner.on_ended = self._run_ended
        self.runner.on_busy = self.preemption.look

    async def start(self) -> None:
        """Free what was held, start the adapters, wake what is overdue, give turns to agents."""
        await self.scheduler.look_at_clock()  # before anything is decided by the time
        self.breaker.start()
        await self.breaker.obey_flag()  # before runs of an earlier daemon are settled
        self.breaker.released = self._breaker_released
        self.preemption.on_taken = self.delivery.live.taken
        await self.runner.start()  # before holds are freed: a surviving process of a run must end first
        await self.delivery.start()
        # Now that it is known what was given up after a crash.
        await self._store.timed_write_until_done(chat_notes.tell_of_restart)
        self.intake.start()
        kinds = self.supervisor.threads(), self.supervisor.closed()
        await self._store.write(lambda tx: bindings.note_kinds(tx, *kinds))
        for row in self._store.read(bindings.list_all):
            self.supervisor.add(row)
        self.presence.start()
        self.fact_webhooks.start()
        self.scheduler.start()
        self.runner.begin()

    async def close(self) -> None:
        self.deadlines.close()
        self.facts.close()
        await (
            self.runner.close()
        )  # first (if the doors have not done it): its answers must still be delivered
        await self.preemption.close()
        await self.controls.close()
        await self.stuck_runs.close()
        await self.scheduler.close()
        await self.fact_webhooks.close()
        await self.chat_setup.close()
        await self.queue_notes.close()
        await self.changes.close()
        await self.delivery.close()  # before the adapters: what is being delivered needs them
        await self.intake.close()
        await self.supervisor.close()
        try:
            await self.presence.flush()
        except HibossError as error:
            log.error("When callers were last seen could not be written: %s", error, extra={"action": "stop"})
        clock.follow(None)

    def settings_changed(self) -> None:
        """The quiet hours may have another end; mail that waited for a session may be for a run now."""
        self.scheduler.look()
        self.runner.refresh()
        self.runner.wake_all()

    # --- who wakes whom --------------------------------------------------------------

    def _publish(self, facts: list[Fact]) -> None:
        """After each COMMIT: count it, tell those who follow, then see to the asks among it."""
        self.measurements.count(facts)
        if any(isinstance(fact, ChatRenamed) for fact in facts):
            self.runner.chat_renamed()  # first: what runs say after the gap is said where they answer now
        self.facts.publish(facts)
        if asked := [fact for fact in facts if isinstance(fact, AskCreated | AskSettled)]:
            self._asks_changed(asked)

    def _asks_changed(self, facts: list[AskCreated | AskSettled]) -> None:
        """Set the timer for new asks. Take the buttons of settled ones away, whatever settled them."""
        self.scheduler.look()
        settled = [fact.ask for fact in facts if isinstance(fact, AskSettled)]
        self.runner.asks_settled(settled)
        for ask in settled:
            try:
                messages = self._store.read(lambda c: buttons.about_ask(c, ask))  # noqa: B023 - called here
                for message in messages:
                    self.chat_setup.remove_buttons(message)
            except HibossError as error:  # then a press says that it is settled, and takes them away
                log.error("The buttons of q%d stay: %s", ask, error, extra={"action": "ask"})

    def _arrived(self, recipients: list[int]) -> None:
        """After each COMMIT: something arrived for these address ids, or may be due again."""
        self.waiters.wake(recipients)
        self.runner.wake(recipients, eager=True)
        self.queue_notes.look(filter(self.runner.gives_turns, recipients))

    def _tell_of_run(self, fact: Fact) -> None:
        self.facts.tell(fact)
        if type(fact) is RunProgress:
            self.presence.progressed(fact.run, fact.agent, fact.kind)

    def _follower_came(self, one: Subscription) -> None:
        if one.holder is not None:
            (self.user_presence if one.holder.is_person else self.presence).opened(one.holder.address)

    def _follower_left(self, one: Subscription) -> None:
        if one.holder is not None:
            (self.user_presence if one.holder.is_person else self.presence).closed(one.holder.address)

    def _boss_spoke(self) -> None:
        """The boss did something in a channel."""
        if (row := self._store.read(find_boss)) is not None:
            self.user_presence.wrote_in_channel(row["address"])

    def _delivered(self, binding: int | None, milliseconds: int) -> None:
        slot = self.supervisor.slots.get(binding or 0)
        self.measurements.delivered(UNKNOWN if slot is None else slot.type, milliseconds)

    def _run_begun(self, execution: Execution) -> None:
        turn = execution.turn
        self.measurements.run_begun(turn.run, turn.provider if turn.attached is None else "attached")
        self.stuck_runs.run_begun(execution)
        self.delivery.live.follow(execution)
        self.queue_notes.run_begun(execution.turn.agent)

    def _run_ended(self, run: int) -> None:
        self.runner.attached.turns.turn_ended(run)
        self.stuck_runs.run_ended(run)
        self.presence.run_ended(run)
        self.delivery.live.run_ended(run)
        self.queue_notes.run_ended(run)

    def _chat_renamed(self, binding: int) -> None:
        """A chat of a binding has another id: its lanes may have something new to do."""
        self.delivery.wake([Lane(0, binding)], eager=True)
        self.changes.look(binding, again=True)

    def _accepted(self, what: Accepted) -> None:
        """A message was accepted: deliver it now, or set the timer for it."""
        if what.deliver_at is not None:
            self.scheduler.nudge(what.deliver_at)
            return
        if what.ack_by is not None:
            self.scheduler.nudge(what.ack_by)
        if what.lanes:
            self.delivery.wake([Lane(*lane) for lane in what.lanes], eager=True)

    def _wake(self, what: Woken) -> None:
        """The scheduler found something due."""
        self.delivery.wake([lane for lane in what.lanes if lane.binding is not None], eager=True)
        for binding in {lane.binding for lane in what.lanes if lane.binding is not None}:
            self.changes.look(binding, again=True)
        self.runner.wake([lane.address for lane in what.lanes if lane.binding is None])

    def _chats_open(self, chats: list[tuple[int, str]]) -> None:
        """What comes from these chats of bindings is not held any more; one may be the boss's now."""
        self.intake.wake(chats)
        for binding in {binding for binding, _ in chats}:
            self.chat_setup.look(binding)

    def _agent_resumed(self, agent: int) -> None:
        self.runner.wake([agent], eager=True)
        self.runner.look_for_tasks()

    async def _adapter_running(self, slot: Slot) -> None:
        """Wake the lanes of an adapter."""
        await self.delivery.resume(slot.binding)
        await self.intake.resume(slot.binding, slot.type)
        self.chat_setup.look(slot.binding)
        self.changes.look(slot.binding, again=True)

    async def _adapter_failing(self, slot: Slot) -> None:
        """Let the lanes of an adapter that does not run wait, and tell the boss."""
        await self.delivery.account_failed(slot.binding, Failure("adapter_down", slot.error or "it crashed"))

    def _breaker_released(self) -> None:
        """Schedules catch up, and what agents post goes on. Agents are woken after the COMMIT."""
        self.scheduler.wakeup()
        self.delivery.wake([Lane(0, slot) for slot in self.supervisor.slots])
        self.changes.look(again=True)

    async def _heartbeat(self) -> None:
        await self.breaker.obey_flag()
        await self.presence.flush()
        await self.delivery.endings.follow()
        self.changes.look()
        await self.intake.empty_old()
        await self.on_heartbeat()
        await self.fact_webhooks.look()
        await self.fact_webhooks.note_positions()
        await self._router.uploads.remove_expired()
