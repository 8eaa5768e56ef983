"""Due envelopes, in the order of claiming: priority, then arrival; after 15 minutes each is critical.

In a real database, with the rows that the store itself writes.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hiboss.core.address import BOSS, Address
from hiboss.core.contracts.adapter import Chat
from hiboss.core.envelope import Draft, Priority
from hiboss.store import agents, bindings, boss, due_envelopes, envelope_rows, messages
from hiboss.store.bindings import NewBinding
from hiboss.store.connection import Connection
from hiboss.store.group_commit import Tx
from tests.store.chat_scene import fresh
from tests.store.test_flat import BOSS_ID, NEX_ID, NOW, POPULATIONS, Hot, not_flat

MINUTE = 60_000
NEX = Address("agent", "nex")
WRITERS = [Address("agent", "ada"), Address("agent", "bob"), BOSS]
CRITICAL, HIGH, NORMAL, LOW, NOTICE = Priority


class Box:
    """The box of agent nex, to which envelopes are added in the order of arrival."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.tx = Tx(connection)
        boss.add_boss(self.tx, "Ada", "UTC", NOW)
        self.nex = agents.register(self.tx, "nex", {}, NOW)
        self.ids = {one: agents.register(self.tx, one.name, {}, NOW) for one in WRITERS[:2]} | {BOSS: 1}

    def put(self, priority: Priority = NORMAL, minutes: float = 0, writer: int = 0, **columns: Any) -> int:
        """Add an envelope written this many minutes ago; then change `columns`."""
        sender = WRITERS[writer]
        draft = Draft(sender=sender, caller=self.ids[sender], to=(NEX,), text="x", priority=priority)
        (number,) = messages.insert(self.tx, draft, NOW - round(minutes * MINUTE)).envelopes
        if columns:
            names = ", ".join(f"{name} = ?" for name in columns)
            self.connection.execute(f"UPDATE envelope SET {names} WHERE id = ?", (*columns.values(), number))
        return number

    def due(self, limit: int = 100, conversation: int | None = None) -> list[int]:
        return [
            one.id
            for one in due_envelopes.due(self.connection, self.nex, NOW, limit, conversation=conversation)
        ]


@pytest.fixture(scope="module")
def opened_box(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Box]:
    with fresh(tmp_path_factory.mktemp("due")) as (connection, _):
        connection.execute("BEGIN")
        yield Box(connection)


@contextmanager
def emptied(found: Box) -> Iterator[Box]:
    found.connection.execute("SAVEPOINT example")
    try:
        yield found
    finally:
        found.tx.cache.flush()
        found.connection.execute("ROLLBACK TO example")
        found.connection.execute("RELEASE example")
        found.tx = Tx(found.connection)


@pytest.fixture
def box(opened_box: Box) -> Iterator[Box]:
    with emptied(opened_box) as found:
        yield found


# --- the order -----------------------------------------------------------------------------


def test_nothing_is_due_in_an_empty_box(box: Box) -> None:
    assert box.due() == [] and due_envelopes.count(box.connection, box.nex, 10) == 0


@pytest.mark.parametrize(("minutes", "first"), [(14.99, "high"), (15, "low"), (16, "low")])
def test_after_15_minutes_anything_counts_as_critical(box: Box, minutes: float, first: str) -> None:
    low, high = box.put(LOW, minutes), box.put(HIGH)
    assert box.due() == ([low, high] if first == "low" else [high, low])


def test_deferred_mail_waits_from_its_arrival_and_not_from_its_writing(box: Box) -> None:
    """Also not from its delivery time, which may have passed while no daemon was running."""
    late, high = box.put(LOW, 600), box.put(HIGH)
    change = "UPDATE message SET deliver_at = ?, arrived_at = ? WHERE id = (SELECT message FROM envelope WHERE id = ?)"
    box.connection.execute(change, (NOW - 300 * MINUTE, NOW - MINUTE, late))
    assert box.due() == [high, late]
    box.connection.execute(change, (NOW - 300 * MINUTE, NOW - 15 * MINUTE, late))
    assert box.due() == [late, high]


def test_of_one_account_only_what_it_carries_comes_in_the_same_order(box: Box) -> None:
    mine, other = (
        bindings.add(box.tx, NewBinding("folder", name, {}, chats=[Chat(name)]), box.nex, NOW).binding
        for name in ("mine", "other")
    )
    first, _, last, urgent = (
        box.put(binding=mine),
        box.put(CRITICAL, binding=other),
        box.put(LOW, 20, binding=mine),
        box.put(HIGH, binding=mine),
    )
    box.put(CRITICAL)  # by nobody
    found = [one.id for one in due_envelopes.due(box.connection, box.nex, NOW, 10, binding=mine)]
    assert found == [last, urgent, first]
    assert [one.id for one in due_envelopes.due(box.connection, box.nex, NOW, 1, binding=mine)] == [last]


@pytest.mark.parametrize(
    "columns",
    [
        {"status": 1, "done_at": NOW},
        {"status": 2, "done_at": NOW},
        {"status": 3, "done_at": NOW},
        {"waits": 0, "wait_until": NOW, "arrived": None},
        {"waits": 1, "wait_until": NOW},
        {"waits": 2, "wait_until": NOW},
        {"waits": 3, "wait_until": NOW},
        {"held_by": 1},
        {"recipient": BOSS_ID},
    ],
    ids=["done", "failed", "cancelled", "deferred", "retry", "lease", "snooze", "held", "another's"],
)
def test_what_is_not_due_is_passed_over(box: Box, columns: dict[str, Any]) -> None:
    before, _, after = box.put(), box.put(CRITICAL, 60, **columns), box.put()
    assert box.due() == [before, after] and box.due(1) == [before]


def test_what_must_be_acknowledged_by_a_time_is_due_all_the_same(box: Box) -> None:
    number = box.put(ack_by=NOW)
    assert box.due() == [number]


def test_what_was_overdue_when_it_arrived_does_not_change_who_is_first_of_one(box: Box) -> None:
    high, fresh, overdue = box.put(HIGH), box.put(NORMAL), box.put(NORMAL, 90)
    assert box.due() == [high, fresh, overdue] and box.due(1) == [high]


ENVELOPES = st.lists(
    st.tuples(st.sampled_from(list(Priority)), st.sampled_from([0, 10, 14, 15, 20, 90]), st.integers(0, 2)),
    max_size=12,
)


@given(plan=ENVELOPES)
def test_the_order_is_that_of_the_rule(opened_box: Box, plan: list[tuple[Priority, int, int]]) -> None:
    """Arrival in the order of writing, as it is while the daemon runs."""
    with emptied(opened_box) as box:
        plan.sort(key=lambda one: -one[1])
        numbers = [box.put(*one) for one in plan]
        rank = {n: CRITICAL if one[1] >= 15 else one[0] for n, one in zip(numbers, plan, strict=True)}
        assert box.due() == sorted(numbers, key=lambda number: (rank[number], number))


@given(plan=ENVELOPES)
def test_whoever_asks_for_fewer_or_for_one_conversation_sees_the_same_order(
    opened_box: Box, plan: list[tuple[Priority, int, int]]
) -> None:
    """Also when what was overdue arrives behind what is fresh."""
    with emptied(opened_box) as box:
        for one in plan:
            box.put(*one)
        everything = due_envelopes.due(box.connection, box.nex, NOW, 100)
        assert len(everything) == len(plan)
        for limit in range(1, len(plan) + 1):
            assert due_envelopes.due(box.connection, box.nex, NOW, limit) == everything[:limit]
        for conversation in {one.conversation for one in everything}:
            own = [one for one in everything if one.conversation == conversation]
            assert due_envelopes.due(box.connection, box.nex, NOW, 100, conversation=conversation) == own
            assert due_envelopes.due(box.connection, box.nex, NOW, 1, conversation=conversation) == own[:1]


# --- counting, and what it costs -------------------------------------------------------------


def test_the_number_due_is_exact_up_to_its_limit(box: Box) -> None:
    for _ in range(5):
        box.put()
    box.put(status=1, done_at=NOW)
    box.put(waits=3, wait_until=NOW)
    assert [due_envelopes.count(box.connection, box.nex, limit) for limit in (4, 5, 6)] == ["4+", 5, 5]


HOT: dict[str, Hot] = {
    "the first": lambda c, n: due_envelopes.due(c, NEX_ID, NOW, 1),
    "the first ten": lambda c, n: due_envelopes.due(c, NEX_ID, NOW, 10),
    "the first thousand": lambda c, n: due_envelopes.due(c, NEX_ID, NOW, 1_000),
    "of one conversation": lambda c, n: due_envelopes.due(c, NEX_ID, NOW, 10, conversation=1),
    "of a conversation with one letter": lambda c, n: due_envelopes.due(c, NEX_ID, NOW, 10, conversation=2),
    "how many": lambda c, n: due_envelopes.count(c, NEX_ID, 1_000),
    "a quote": lambda c, n: envelope_rows.quotes(c, [n // 2], NEX_ID),
    "ten quotes": lambda c, n: envelope_rows.quotes(c, range(n // 2, n // 2 + 10), NEX_ID),
    "a quote for a stranger": lambda c, n: envelope_rows.quotes(c, [n // 2], BOSS_ID),
    "a quote for the boss": lambda c, n: envelope_rows.quotes(c, [n // 2], None),
}


def a_letter_of_the_boss(connection: Connection, size: int) -> None:
    tx = Tx(connection)
    draft = Draft(sender=BOSS, caller=BOSS_ID, to=(NEX,), text="x", priority=LOW)
    assert messages.insert(tx, draft, NOW).conversation == 2
    tx.cache.flush()


@pytest.mark.slow
@pytest.mark.parametrize("population", ["pending", "settled", "deferred"])
def test_what_is_due_costs_the_same_among_20_000_as_among_1_000(tmp_path: Path, population: str) -> None:
    assert not_flat(tmp_path, POPULATIONS[population], HOT, prepare=a_letter_of_the_boss) == {}


@pytest.mark.slow
def test_the_counting_notices_when_a_conversation_is_looked_for_in_all_that_is_due(tmp_path: Path) -> None:
    slow: dict[str, Hot] = {
        "one conversation": lambda c, n: c.execute(
            """
            SELECT e.id FROM envelope e INDEXED BY envelope_due JOIN message m ON m.id = e.message
            WHERE e.recipient = 2 AND e.priority = 2 AND e.status = 0 AND e.arrived IS NOT NULL
              AND e.waits IS NULL AND m.conversation = 2 ORDER BY e.arrived LIMIT 10
            """
        ).fetchall()
    }
    assert set(
        not_flat(tmp_path, POPULATIONS["pending"], slow, large=5_000, prepare=a_letter_of_the_boss)
    ) == set(slow)
