"""What a run is given, and what its provider reports that must be stored: its process, its session.

Between the two transactions of a run (hiboss/agents/runner.py).
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from ..core import clock, option_models
from ..core.contracts.failures import LaneError, Refused
from ..core.contracts.provider import Provider, TurnInput
from ..core.crashpoint import RUN_SESSION, RUN_STARTED, crashpoint
from ..core.paths import Home
from ..core.settings import Settings
from ..store import provider_sessions, run_start, run_turns
from ..store.boss import boss_timezone
from ..store.connection import Connection
from ..store.group_commit import Tx
from ..store.run_start import Turn
from ..store.session_policy import LOST
from ..store.store import Store
from . import instructions, left_processes, memory_files, process_control, turn_input
from .providers.registry import Providers
from .session_notes import session_note

log = logging.getLogger(__name__)


class Given(NamedTuple):
    """What a run is given, until its outcome is stored."""

    text: str  # of its turn
    seen: str | None  # of memory, by its session, when the turn is over; None: its provider takes none
    is_stored: bool = False


class _Read(NamedTuple):
    """What the store says for a turn."""

    zone: str
    content: turn_input.Content
    facts: instructions.Facts | None  # None: its provider takes no instructions
    seen: str | None  # of memory, by its session so far
    note: str  # what the turn says of a new session
    session_cost: float | None  # of the session so far


class RunInputs:
    """Prepares the turns of runs."""

    def __init__(self, store: Store, home: Home, settings: Settings, providers: Providers) -> None:
        self._store = store
        self._home = home
        self._settings = settings
        self._providers = providers
        self._given: dict[int, Given] = {}  # by run id
        self.attached: Callable[[Turn], Provider]  # gives a turn to an open session; set by the runner

    async def prepare(self, turn: Turn, token: str) -> tuple[TurnInput, Callable[[], Provider]]:
        return await self._given_input(turn, token), partial(self._provider, turn)

    async def _given_input(self, turn: Turn, token: str, said: Sequence[str] = ()) -> TurnInput:
        try:
            return await self._turn_input(turn, token, said)
        except OSError as error:
            raise LaneError("no_workspace", f"its workspace or token file cannot be made: {error}") from error

    def _provider(self, turn: Turn) -> Provider:
        if turn.attached is not None:
            return self.attached(turn)
        kind = self._providers.kind(turn.provider)
        again = f"set the provider again (hiboss agent set {turn.name} --provider {turn.provider} …)"
        try:
            secrets = self._home.needed_secrets(turn.secrets)
            settings = json.loads(turn.settings) if turn.settings else {}
            return kind(option_models.load(kind.Settings, settings, secrets))
        except OSError as error:
            raise LaneError("no_secret", f"its secrets cannot be read ({error.strerror}); {again}") from None
        except Refused as refused:
            raise LaneError("bad_settings", f"its settings fit no longer: {refused.why}; {again}") from None

    async def _turn_input(self, turn: Turn, token: str, said: Sequence[str]) -> TurnInput:
        now, exact_to = clock.now(), self._settings.count_exact_to
        takes = self._providers.takes_instructions(turn.provider)
        mark = self.mark(turn.run)
        workspace = turn_input.workspace(self._home, turn.name, turn.workspace)

        def read(connection: Connection) -> _Read:
            agent, shown = (turn.agent, turn.name), turn.envelopes + turn.notices
            zone = boss_timezone(connection)
            there = clock.zone(zone)
            content = turn_input.content(
                connection, self._home, agent, shown, now, there, exact_to, turn.beside
            )
            facts = instructions.facts(connection, turn.agent) if takes else None
            note = session_note(connection, turn, turn.session_why_new) if takes else ""
            seen = provider_sessions.memory_hash(connection, turn.run)
            return _Read(zone, content, facts, seen, note, provider_sessions.cost(connection, turn.run))

        def look(found: _Read) -> tuple[_Read, dict[str, str], memory_files.Memory | None]:
            deny = self._settings.environment_deny
            environment = turn_input.environment(self._home, turn.name, mark, token, deny)
            if found.facts is None:
                return found, environment, None
            today = clock.from_ms(now, clock.zone(found.zone)).date()
            return found, environment, memory_files.read(self._home, workspace, today)

        found, environment, memory = await self._store.read_and_go_on(read, look)
        told, text, seen = "", found.content.text, None
        if found.facts is not None and memory is not None:
            told = instructions.text(found.facts, self._home, workspace, turn.reply)
            text = "\n\n".join(filter(None, [memory_files.block(memory, told, found.seen), found.note, text]))
            seen = memory_files.seen(memory, told)
        text = "\n\n".join((text, *said))
        self._given[turn.run] = Given(text, seen)
        return TurnInput(
            run=f"r{turn.run}",
            delivery=mark,
            agent=turn.name,
            text=text,
            envelopes=found.content.envelopes,
            due=found.content.due,
            now=now,
            timezone=found.zone,
            workspace=workspace,
            environment=environment,
            session=turn.session,
            session_is_new=turn.session_is_new,
            session_cost=found.session_cost,
            instructions=told,
            answer_bytes=self._settings.text_bytes,
            output_bytes=self._settings.output_bytes,
        )

    async def text_now(self, turn: Turn) -> str:
        """Return the text that a turn has now, for an open session: it may get it long after it began."""
        there, exact_to = clock.zone(self._store.read(boss_timezone)), self._settings.count_exact_to
        agent, shown = (turn.agent, turn.name), turn.envelopes + turn.notices
        given = (self._home, agent, shown, clock.now(), there, exact_to, turn.beside)
        return (await self._store.read_in_thread(lambda c: turn_input.content(c, *given))).text

    def mark(self, run: int) -> str:
        return left_processes.mark(self._store.run_marks, run)

    async def store_pid(self, run: int, pid: int) -> None:
        crashpoint(RUN_STARTED)
        started, given = process_control.started_at(pid), self._given.get(run)

        def write(tx: Tx) -> None:
            run_start.note_process(tx, run, pid, started)
            if given is not None and not given.is_stored:
                run_turns.put(tx, run, given.text)

        await self._store.write(write)
        if given is not None and self._given.get(run) is given:
            self._given[run] = given._replace(is_stored=True)

    def turn_text(self, run: int) -> str | None:
        """Return the text of the turn of a run that is under way; None if it is not, or has none yet."""
        given = self._given.get(run)
        return None if given is None else given.text

    def note_given(self, tx: Tx, run: int, *, has_answer: bool) -> None:
        """Store, with the outcome of a run, what its turn said, and what its session has seen of memory.

        The latter only with an answer: a turn that failed may not have reached the model.
        """
        given = self._given.get(run)
        if given is None:
            return
        if not given.is_stored:
            run_turns.put(tx, run, given.text)
        if has_answer and given.seen is not None:
            provider_sessions.note_memory(tx, run, given.seen)

    def forget(self, run: int) -> None:
        """The outcome of a run is stored: delete its token file. The token is invalid, so this may fail."""
        self._given.pop(run, None)
        try:
            self._home.forget_run_token(self.mark(run))
        except OSError as error:  # its program may have changed the file
            log.warning("The token file of r%d stays: %s", run, error, extra={"action": "run"})

    async def store_session(self, turn: Turn, session: str) -> None:
        now, kind = clock.now(), self._providers.session_kinds()[turn.provider]
        await self._store.write(lambda tx: provider_sessions.note(tx, turn.told, session, kind, now))
        crashpoint(RUN_SESSION)

    async def session_lost(self, turn: Turn, token: str, session: str, said: Sequence[str]) -> TurnInput:
        """Return what the turn is given instead: it begins a new session, and is told so.

        `said`: by people, while it ran; the lost session may have had these words.
        """
        now = clock.now()
        own_ids = self._providers.session_kinds()[turn.provider].own_ids
        new = provider_sessions.new_id() if own_ids else None
        await self._store.write(lambda tx: provider_sessions.lost(tx, turn.told, session, new, now))
        return await self._given_input(
            turn._replace(session=new, session_is_new=own_ids, session_why_new=LOST), token, said
        )
