"""Connect the parts of the daemon: runner, delivery, scheduler, adapters, waiters, and who wakes whom.

The parts do not import each other; their callbacks are set here.
"""

from __future__ import annotations

import logging

from ..agents.run_execution import Execution
from ..agents.runner import Runner
from ..channels.registry import Registry
from ..channels.supervisor import Slot, Supervisor
from ..core import clock
from ..core.contracts.failures import Failure
from ..core.envelope import Accepted, Lane
from ..core.errors import HibossError
from ..core.paths import Home
from ..core.settings import Settings
from ..routing import post_changes, reaction_changes
from ..routing.change_queue import ChangeQueue, ChatCalls
from ..routing.change_queue import Kind as ChangeKind
from ..routing.chat_setup import ChatSetup
from ..routing.delivery import Delivery
from ..routing.facts import Facts
from ..routing.intake import Intake
from ..routing.presence import Presence
from ..routing.queue_notes import QueueNotes
from ..routing.router import Router
from ..routing.scheduler import Scheduler
from ..routing.waiters import Waiters
from ..store import bindings, chat_notes, intake
from ..store.overdue import Woken
from ..store.store import Store

log = logging.getLogger(__name__)


class Wiring:
    """All parts, connected. Nothing runs before `start`; `close` stops them in the right order."""

    def __init__(self, store: Store, home: Home, settings: Settings, router: Router) -> None:
        self._store = store
        self.facts = Facts(store, settings)
        store.tell_facts(self.facts.publish)
        self.waiters = Waiters()
        store.tell_arrivals(self._arrived)
        self.presence = Presence(store)
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
        calls = ChatCalls(store, self.supervisor, self.delivery.pacing)
        kinds: dict[str, ChangeKind] = {
            post_changes.KIND: post_changes.PostChanges(store, home, settings, calls),
            reaction_changes.KIND: reaction_changes.ReactionChanges(store, calls),
        }
        self.changes = ChangeQueue(store, settings, self.supervisor, kinds)
        self.delivery.settled = self.delivery.endings.ended = self.changes.settled
        self.queue_notes = QueueNotes(store, settings, self.delivery.live)
        self.runner = Runner(store, home, settings, self.facts.tell)
        self.scheduler = Scheduler(store, settings, self._wake, self._heartbeat)
        self.intake.commands.execution = self.runner.begun
        self.intake.commands.bounds = self.runner.bounds
        self.intake.commands.resumed = self._agent_resumed
        self.intake.commands.stopping = self.delivery.live.signs.acknowledge
        self.chat_setup = ChatSetup(store, self.supervisor, self.delivery.live.signs)
        self.intake.decided = self.chat_setup.remove_buttons
        store.tell_chats(self._chats_open)
        self.delivery.nudge = self.changes.nudge = self.scheduler.nudge
        self.intake.renamed = self.delivery.moved = self.changes.moved = self._chat_renamed
        store.tell_posts(lambda lanes: self.delivery.wake(lanes, eager=True))
        self.runner.nudge = self.scheduler.nudge
        self.runner.on_begun = self._run_begun
        self.runner.on_ended = self._run_ended
        router.accepted = self.runner.accepted = self._accepted

    async def start(self) -> None:
        """Free what was held, start the adapters, wake what is overdue, give turns to agents."""
        await self.scheduler.look_at_clock()  # before anything is decided by the time
        await self.runner.start()  # before holds are freed: a surviving process of a run must end first
        await self.delivery.start()
        # Now that it is known what was given up after a crash.
        await self._store.timed_write_until_done(chat_notes.tell_of_restart)
        self.intake.start()
        kinds = self.supervisor.threads(), self.supervisor.closed()
        await self._store.write(lambda tx: bindings.note_kinds(tx, *kinds))
        for row in self._store.read(bindings.list_all):
            self.supervisor.add(row)
        self.scheduler.start()
        self.runner.begin()

    async def close(self) -> None:
        self.facts.close()
        await (
            self.runner.close()
        )  # first (if the doors have not done it): its answers must still be delivered
        await self.scheduler.close()
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

    # --- who wakes whom --------------------------------------------------------------

    def _arrived(self, recipients: list[int]) -> None:
        """After each COMMIT: something arrived for these address ids, or may be due again."""
        self.waiters.wake(recipients)
        self.runner.wake(recipients, eager=True)
        self.queue_notes.look(filter(self.runner.gives_turns, recipients))

    def _run_begun(self, execution: Execution) -> None:
        self.delivery.live.follow(execution)
        self.queue_notes.run_begun(execution.turn.agent)

    def _run_ended(self, run: int) -> None:
        self.delivery.live.run_ended(run)
        self.queue_notes.run_ended(run)

    def _chat_renamed(self, binding: int) -> None:
        """A chat of a binding has another id: its lanes may have something new to do."""
        self.runner.chat_renamed()
        self.delivery.wake([Lane(0, binding)], eager=True)
        self.changes.look(binding, again=True)

    def _accepted(self, what: Accepted) -> None:
        """A message was accepted: deliver it now, or set the timer for it."""
        if what.deliver_at is not None:
            self.scheduler.nudge(what.deliver_at)
            return
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

    async def _heartbeat(self) -> None:
        await self.presence.flush()
        await self.delivery.endings.follow()
        self.changes.look()
        await self.intake.empty_old()
