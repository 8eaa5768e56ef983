"""Material for tests of what comes in from chats: a real database, a binding with two agents, and their turns.

Nothing runs by itself: the test lets updates come in, begins runs, and settles them.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, TypeVar
from zoneinfo import ZoneInfo

from hiboss.agents import turn_input
from hiboss.core.contracts.adapter import Chat
from hiboss.core.contracts.failures import Failure
from hiboss.core.contracts.inbound import Author, Inbound
from hiboss.core.contracts.provider import Answer
from hiboss.core.envelope import Attachment
from hiboss.core.paths import Home
from hiboss.store import (
    agents,
    bindings,
    boss,
    due_envelopes,
    intake,
    lanes,
    run_settlement,
    run_start,
    turn_selection,
)
from hiboss.store.bindings import NewBinding
from hiboss.store.connection import Connection, connect
from hiboss.store.group_commit import Tx
from hiboss.store.intake import Meaning, NewUpdate
from hiboss.store.invariants import violations
from hiboss.store.migrations import migrate
from hiboss.store.run_limits import Bounds
from hiboss.store.run_start import Start, Turn
from tests.support.turn_reader import Turn as Read
from tests.support.turn_reader import read_turn

NOW = 1_800_000_000_000
HOUR = 3_600_000
BOSS_ID, NEX, KAI = 1, 2, 3
GROUP: dict[str, Any] = {
    "chat": "-9",
    "chat_kind": "group",
    "title": "ops",
    "author": Author(id="7", name="Bob"),
}
PRIVATE: dict[str, Any] = {"chat": "7", "author": Author(id="7", name="Bob", username="bob")}
HIS: dict[str, Any] = {
    "chat": "777",
    "author": Author(id="777", name="Ada", username="ada"),
}  # a private chat of the boss
BOSS_IN_GROUP: dict[str, Any] = {**GROUP, "author": HIS["author"]}
ZONE = ZoneInfo("UTC")
T = TypeVar("T")


def _binding() -> NewBinding:
    chats = [Chat(one) for one in ("-9", "7", "8", "777")]
    return NewBinding("folder", "mine", {}, chats=chats, groups="mentioned")


class Scene:
    """A store with the agents nex, who leads the binding, and kai."""

    def __init__(self, connection: Connection, home: Home) -> None:
        self.connection, self.home, self.now = connection, home, NOW
        self._tx = Tx(connection)
        self._numbers = itertools.count(1)
        boss.add_boss(self._tx, "Ada", "UTC", NOW)
        for name, number in (("nex", NEX), ("kai", KAI)):
            assert agents.register(self._tx, name, {}, NOW) == number
            self.execute("UPDATE agent SET mode = 'run', provider = 'demo' WHERE address = ?", number)
        for number in (NEX, KAI):
            self.binding = bindings.add(self._tx, _binding(), number, NOW).binding
        self.execute("UPDATE counter SET value = 1 WHERE name = 'boot'")
        self.execute(
            "INSERT INTO identity (adapter, platform_id, user, created_at) VALUES ('folder', '777', 1, 1)"
        )

    def write(self, operation: Callable[[Tx], T]) -> T:
        result = operation(self._tx)
        self._tx.cache.flush()
        return result

    def execute(self, statement: str, *values: Any) -> list[dict[str, Any]]:
        return [dict(row) for row in self.connection.execute(statement, values).fetchall()]

    def facts(self) -> list[Any]:
        """Return what changed since this was last called."""
        found, self._tx.facts = self._tx.facts, []
        return found

    # --- what comes in ---------------------------------------------------------------

    def comes_in(self, files: tuple[Attachment, ...] = (), /, **facts: Any) -> Meaning:
        """Let an update come in, and store what it means."""
        inbound = Inbound(**facts)
        self.now += 1_000
        update = f"u{next(self._numbers)}"

        def settle(tx: Tx) -> Meaning:
            new = NewUpdate(update, inbound.chat, inbound.message, "{}", about=inbound)
            number = intake.take(tx, self.binding, [new], None, self.now).waiting[update]
            return intake.settle(tx, self.binding, "folder", [number], inbound, files, self.now)

        return self.write(settle)

    def outcome(self) -> str:
        """Return what became of the last update."""
        [row] = self.execute("SELECT outcome FROM platform_update ORDER BY id DESC LIMIT 1")
        return str(row["outcome"])

    def asks(self, text: str = "hello", *, agent: str = "", **facts: Any) -> Meaning:
        """Let somebody in the group write to nex, or to the agent named."""
        named = f"@{agent} {text}" if agent else text
        return self.comes_in(**{**GROUP, "text": named, "mentioned": True, **facts})

    def says(self, text: str, **facts: Any) -> Meaning:
        """Let somebody in the group say something to nobody of us."""
        return self.comes_in(**{**GROUP, "text": text, **facts})

    # --- turns -----------------------------------------------------------------------

    def begin(self, agent: int = NEX) -> Turn:
        turn = self.begins(agent)
        assert turn is not None
        return turn

    def begins(self, agent: int = NEX) -> Turn | None:
        self.now += 1_000
        bounds = Bounds(16, 50, self.now - HOUR, self.now + HOUR)
        start = Start(f"hbr_{next(self._numbers)}", self.now, 1, bounds)
        return self.write(lambda tx: run_start.begin(tx, agent, start))

    def shown(self, turn: Turn) -> str:
        """Return the text that a run is given."""
        return self._content(turn.agent, [*turn.envelopes, *turn.notices], turn.beside)

    def read(self, turn: Turn) -> Read:
        return read_turn(self.shown(turn))

    def preview(self, agent: int = NEX) -> str:
        """Return what the next turn shows, if it began now."""
        row = agents.with_provider(self.connection, agent)
        assert row is not None
        numbers = turn_selection.preview(self.connection, row, self.now)
        return self._content(agent, numbers, turn_selection.preview_beside(self.connection, agent, numbers))

    def _content(self, agent: int, numbers: list[int], beside: turn_selection.Beside) -> str:
        name = {NEX: "nex", KAI: "kai"}.get(agent, "max")
        args = (self.connection, self.home, (agent, name), numbers, NOW, ZONE, 1_000)
        return turn_input.content(*args, beside).text

    def complete(self, turn: Turn, text: str = "NO_REPLY") -> int | None:
        """Settle a run as completed; return the message that was sent."""
        sent = self.write(lambda tx: run_settlement.complete(tx, turn, Answer(text=text), self.now))
        return sent[0].message if sent else None

    def fail(self, turn: Turn) -> None:
        """Settle a run as failed, and let the time of the retry come."""
        failure = Failure("exit_status", "it ended with exit status 1")
        self.write(lambda tx: run_settlement.fail(tx, turn, failure, (1, 1, 1, 1, 1), self.now))
        self.execute("UPDATE envelope SET waits = NULL, wait_until = NULL WHERE waits = 1")

    def crash(self) -> None:
        """Let the daemon die while a run works, and start again."""
        self.execute("UPDATE counter SET value = value + 1 WHERE name = 'boot'")

        def start(tx: Tx) -> None:
            run_settlement.interrupt_left_over(tx, 2, self.now)
            lanes.free_after_crash(tx, self.now)

        self.write(start)
        self.execute("UPDATE counter SET value = 1 WHERE name = 'boot'")

    def due(self, agent: int = NEX) -> list[int]:
        return [one.id for one in due_envelopes.due(self.connection, agent, self.now, 100)]

    def text_of(self, message: int) -> str:
        return str(self.execute("SELECT text FROM message WHERE id = ?", message)[0]["text"])


@contextmanager
def fresh(directory: Path | str) -> Iterator[tuple[Connection, Home]]:
    """Make a home with an empty database of today."""
    home = Home(str(directory))
    home.create()
    with closing(connect(home, wait_seconds=1)) as connection:
        migrate(connection, home)
        connection.execute("PRAGMA synchronous = OFF")
        yield connection, home


@contextmanager
def scene(directory: Path) -> Iterator[Scene]:
    """Make a store, and check its invariants at the end."""
    with fresh(directory / "home") as (connection, home):
        yield Scene(connection, home)
        assert violations(connection) == []
