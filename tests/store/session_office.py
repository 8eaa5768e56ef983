"""Material for tests of sessions in the store: agents that have sessions, and what ends them."""

from __future__ import annotations

import itertools
from typing import Any

from hiboss.core.address import Address
from hiboss.store import (
    agents,
    provider_sessions,
    run_start,
    session_scopes,
)
from hiboss.store.group_commit import Tx
from hiboss.store.provider_sessions import SessionKind, SessionStart
from hiboss.store.run_limits import Bounds
from hiboss.store.run_start import Start, Turn
from tests.store.chat_scene import BOSS_ID, HOUR, KAI, NEX, Scene
from tests.store.route_cast import Cast

NEX_ADDRESS, KAI_ADDRESS = Address("agent", "nex"), Address("agent", "kai")
OWN = {"demo": SessionKind(own_ids=True, settings=frozenset({"program"}))}
THEIRS = {"demo": SessionKind(settings=frozenset({"program"}))}


class Office(Cast):
    """The scene of routes, whose agents have sessions; hiboss makes their ids."""

    def __init__(self, chat: Scene) -> None:
        super().__init__(chat)
        self.kinds = OWN
        self._ids = (f"s-{number}" for number in itertools.count(1))

    def begins(self, agent: int = NEX) -> Turn | None:
        self.now += 1_000
        bounds = Bounds(16, 50, self.now - HOUR, self.now + HOUR)
        session = SessionStart(next(self._ids), self.kinds)
        start = Start(f"hbr_{next(self._numbers)}", self.now, 1, bounds, session)
        return self.write(lambda tx: run_start.begin(tx, agent, start))

    def notes(self, turn: Turn, session: str | None = None) -> None:
        """Let a provider say that it uses a session; by default the one that it was given."""
        named = session or turn.session
        assert named is not None
        kind = self.kinds.get(turn.provider, SessionKind())
        self.write(lambda tx: provider_sessions.note(tx, turn.told, named, kind, self.now))

    def ends(self, turn: Turn, text: str = "NO_REPLY", **how: Any) -> None:
        self.complete(turn, text)
        self.write(lambda tx: provider_sessions.settled(tx, turn.run, self.now, **how))

    def finishes(self, turn: Turn, session: str | None = None) -> Turn:
        """Let a provider say that it uses a session, and the turn end."""
        self.notes(turn, session)
        self.ends(turn)
        return turn

    def thinks(self, agent: int = NEX) -> Turn:
        """Let an agent take a turn in its session."""
        return self.finishes(self.begin(agent))

    def asked(self, sender: int = BOSS_ID, to: Address = NEX_ADDRESS) -> str:
        """Let somebody write to an agent, and it think; return the session of its turn."""
        self.send(sender, to)
        session = self.thinks(agents.get(self.connection, to.name)["id"]).session
        assert session is not None
        return session

    def waits(self, sender: int = BOSS_ID, to: Address = NEX_ADDRESS) -> Turn:
        """Let somebody write to an agent, and its turn begin."""
        self.send(sender, to)
        return self.begin(agents.get(self.connection, to.name)["id"])

    def set(self, agent: int = NEX, **columns: Any) -> None:
        """Change an agent, as `agent.set` does."""
        name = {NEX: "nex", KAI: "kai"}[agent]

        def write(tx: Tx) -> None:
            agents.change(tx, name, columns)
            if "session_scope" in columns:
                provider_sessions.scope_changed(tx, agent, self.now)

        self.write(write)

    def refresh(self, agent: str = "nex", conversation: int | None = None) -> int:
        return self.write(
            lambda tx: provider_sessions.refresh(tx, agents.get(tx, agent), conversation, self.now)
        )

    def sessions(self, agent: int = NEX) -> dict[str, tuple[str, str | None]]:
        """The session of each scope, and why it is not resumed."""
        rows = self.execute("SELECT * FROM provider_session WHERE agent = ?", agent)
        return {one["scope"]: (one["session"], one["stale_why"]) for one in rows}

    def scope(self, conversation: int, agent: int = NEX) -> str:
        row = agents.by_id(self.connection, agent)
        assert row is not None
        return session_scopes.key(self.connection, row, conversation)
