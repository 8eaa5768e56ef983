"""What a run is given, and what its provider reports that must be stored: its process, its session.

Between the two transactions of a run (hiboss/agents/runner.py).
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from functools import partial

from ..core import clock, option_models
from ..core.contracts.failures import LaneError, Refused
from ..core.contracts.provider import Provider, TurnInput
from ..core.crashpoint import RUN_SESSION, RUN_STARTED, crashpoint
from ..core.paths import Home
from ..core.settings import Settings
from ..store import provider_sessions, run_start
from ..store.boss import boss_timezone
from ..store.connection import Connection
from ..store.run_start import Turn
from ..store.store import Store
from . import left_processes, process_control, turn_input
from .providers.registry import Providers


class RunInputs:
    """Prepares the turns of runs."""

    def __init__(self, store: Store, home: Home, settings: Settings, providers: Providers) -> None:
        self._store = store
        self._home = home
        self._settings = settings
        self._providers = providers

    async def prepare(self, turn: Turn, token: str) -> tuple[TurnInput, Callable[[], Provider]]:
        try:
            return await self._turn_input(turn, token), partial(self._provider, turn)
        except OSError as error:
            raise LaneError("no_workspace", f"its workspace or token file cannot be made: {error}") from error

    def _provider(self, turn: Turn) -> Provider:
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

    async def _turn_input(self, turn: Turn, token: str) -> TurnInput:
        now = clock.now()
        zone = self._store.read(boss_timezone)
        exact_to = self._settings.count_exact_to

        def read(connection: Connection) -> turn_input.Content:
            agent, shown = (turn.agent, turn.name), turn.envelopes + turn.notices
            there = clock.zone(zone)
            return turn_input.content(connection, self._home, agent, shown, now, there, exact_to, turn.beside)

        content = await self._store.read_in_thread(read)
        mark = self.mark(turn.run)
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
            environment=await asyncio.to_thread(
                turn_input.environment, self._home, turn.name, mark, token, self._settings.environment_deny
            ),
            session=turn.session,
            answer_bytes=self._settings.text_bytes,
            output_bytes=self._settings.output_bytes,
        )

    def mark(self, run: int) -> str:
        return left_processes.mark(self._store.run_marks, run)

    async def store_pid(self, run: int, pid: int) -> None:
        crashpoint(RUN_STARTED)
        started = process_control.started_at(pid)
        await self._store.write(lambda tx: run_start.note_process(tx, run, pid, started))

    async def store_session(self, turn: Turn, session: str) -> None:
        now = clock.now()
        await self._store.write(lambda tx: provider_sessions.note(tx, turn.run, turn.settings, session, now))
        crashpoint(RUN_SESSION)

    async def session_lost(self, turn: Turn, session: str) -> None:
        now = clock.now()
        await self._store.write(lambda tx: provider_sessions.lost(tx, turn.run, session, now))
