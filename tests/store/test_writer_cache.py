"""The address book: whatever is rolled back, the numbers it gives out have no gap and no double.

Driven through the real writer over a real database; `house.group` writes several operations in one transaction.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hiboss.core.address import Address
from hiboss.core.errors import NotFound, StoreFull, UnknownRecipient
from hiboss.store import agents, writer_cache
from hiboss.store.group_commit import Tx
from hiboss.store.invariants import violations
from tests.store.chat_scene import KAI, NEX
from tests.store.written_house import Operation, Template, WrittenHouse, written_house
from tests.support.raising import raised

TO_NEX, TO_KAI, TO_MAX, NOBODY = (Address("agent", name) for name in ("nex", "kai", "max", "nobody"))
BEFORE = 2  # messages in an empty house


class Refused(Exception):
    """What an operation of these tests fails with."""


def check(house: WrittenHouse, sent: int) -> None:
    """So many messages were sent. Those of each conversation, and all arrivals, are numbered without gap or double."""
    assert violations(house.connection) == []
    arrived = [row["arrived"] for row in house.execute("SELECT arrived FROM envelope ORDER BY arrived")]
    assert arrived == list(range(1, len(arrived) + 1))
    assert house.execute("SELECT value FROM counter WHERE name = 'arrived'") == [{"value": len(arrived)}]
    assert house.execute("SELECT count(*) AS number FROM message") == [{"number": BEFORE + sent}]


# --- operations ----------------------------------------------------------------------


def half_done(house: WrittenHouse, sender: int, to: Address) -> Operation:
    """Writes two messages, then fails."""
    sends = [house.sending(sender, to), house.sending(sender, to)]

    def operation(tx: Tx) -> None:
        for send in sends:
            send(tx)
        raise Refused

    return operation


def breaks_the_group(house: WrittenHouse, sender: int, to: Address) -> Operation:
    """Fails in a way that speaks of the file, not of this operation: all of its group is lost."""
    send = house.sending(sender, to)

    def operation(tx: Tx) -> None:
        send(tx)
        tx.execute(f"PRAGMA max_page_count = {tx.execute('PRAGMA page_count').fetchone()[0]}")
        try:  # there is no room for so much
            tx.execute("INSERT INTO config (key, value) VALUES ('x', CAST(zeroblob(10000000) AS TEXT))")
        finally:
            tx.execute("PRAGMA max_page_count = 4294967294")

    return operation


# --- tests ---------------------------------------------------------------------------


def test_an_operation_that_takes_numbers_and_writes_nothing_gives_them_back(written: WrittenHouse) -> None:
    conversation = written.sends(NEX, TO_KAI).conversation

    def takes(tx: Tx) -> None:
        tx.cache.next_seq(conversation)
        tx.cache.next_arrived()
        raise Refused

    sends = [written.sending(NEX, TO_KAI) for _ in range(3)]
    answers = written.group(takes, sends[0], takes, sends[1], takes)
    assert [type(answer) for answer in answers[::2]] == [Refused] * 3
    check(written, sent=3)
    written.write(sends[2])
    check(written, sent=4)


def test_a_conversation_begun_by_what_was_rolled_back_is_begun_anew(written: WrittenHouse) -> None:
    written.group(half_done(written, NEX, TO_KAI), written.sending(NEX, TO_MAX))
    written.group(half_done(written, NEX, TO_KAI))
    check(written, sent=1)
    begun, other = written.group(written.sending(NEX, TO_KAI), written.sending(NEX, TO_MAX))
    rows = written.execute("SELECT id, last_seq FROM conversation WHERE kind = 'private' AND last_seq > 0")
    assert {(begun.conversation, 1), (other.conversation, 2)} <= {
        (row["id"], row["last_seq"]) for row in rows
    }
    check(written, sent=3)


def test_an_agent_registered_or_deleted_by_what_was_rolled_back_is_as_it_was(written: WrittenHouse) -> None:
    kim = Address("agent", "kim")

    def comes_and_goes(tx: Tx) -> None:
        agents.register(tx, "kim", {}, written.now)
        agents.delete(tx, "kai", written.now)
        assert tx.cache.live_address(kim) is not None and tx.cache.live_address(TO_KAI) is None
        raise Refused

    _, known, unknown = written.group(comes_and_goes, written.sending(NEX, TO_KAI), written.sending(NEX, kim))
    assert known.recipients == (KAI,) and isinstance(unknown, UnknownRecipient)
    written.group(lambda tx: agents.register(tx, "kim", {}, written.now), written.sending(NEX, kim))
    check(written, sent=2)
    _, unknown = written.group(lambda tx: agents.delete(tx, "kai", written.now), written.sending(NEX, TO_KAI))
    assert isinstance(unknown, UnknownRecipient)


def test_a_full_disk_loses_the_group_and_no_number(written: WrittenHouse) -> None:
    def allow(pages: int) -> int:
        found: int = written.write(lambda tx: tx.execute(f"PRAGMA max_page_count = {pages}").fetchone()[0])
        return found

    most = allow(1)  # fewer than there are already means: no page more
    small, big = written.sending(NEX, TO_KAI), written.sending(NEX, TO_KAI, text="x" * 500_000)
    answers = written.group(small, big, written.sending(NEX, TO_MAX))
    assert [type(answer) for answer in answers] == [StoreFull] * 3
    check(written, sent=0)
    assert allow(most + 1_000) == most + 1_000
    written.group(small, big)
    check(written, sent=2)


def test_a_number_in_a_conversation_that_is_not_there_is_refused(written: WrittenHouse) -> None:
    with pytest.raises(NotFound):
        written.write(lambda tx: tx.cache.next_seq(4711))


def test_without_a_boss_no_mail_is_posted_for_one(written: WrittenHouse) -> None:
    def looks(tx: Tx) -> None:
        tx.execute("UPDATE user SET boss = 0")
        raise Refused(tx.cache.reach())

    assert raised(Refused, written.write, looks).args == ((None, None, "off"),)


def test_the_books_memory_stays_bounded_also_when_many_sends_are_refused(
    written: WrittenHouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer_cache, "MEMORY", 20)
    for number in range(60):
        name = f"agent-{number}"
        written.write(lambda tx, name=name: agents.register(tx, name, {}, written.now))  # type: ignore[misc]
        written.group(written.sending(NEX, Address("agent", name)), written.sending(NEX, NOBODY))
    held = sum(len(kept) for kept in vars(written._tx.cache).values() if isinstance(kept, (dict, list)))
    assert held <= 2 * writer_cache.MEMORY
    check(written, sent=60)


NAMES = st.sampled_from([TO_NEX, TO_KAI, TO_MAX])
OPERATIONS = st.one_of(
    st.tuples(st.just(WrittenHouse.sending), NAMES, NAMES | st.just(NOBODY)),
    st.tuples(st.sampled_from([half_done, breaks_the_group]), NAMES, NAMES),
)


@settings(max_examples=30)
@given(groups=st.lists(st.lists(OPERATIONS, min_size=1, max_size=6), max_size=6))
def test_whatever_fails_in_whatever_group_the_numbers_have_no_gap(
    empty: Template, groups: list[list[Any]]
) -> None:
    sent = 0
    with tempfile.TemporaryDirectory() as directory, written_house(empty, Path(directory)) as house:
        numbers = {TO_NEX: NEX, TO_KAI: KAI, TO_MAX: house.max}
        for group in groups:
            answers = house.group(*(make(house, numbers[sender], to) for make, sender, to in group))
            lost = any(make is breaks_the_group for make, _, _ in group)
            good = [make is WrittenHouse.sending and to != NOBODY and not lost for make, _, to in group]
            assert [not isinstance(answer, Exception) for answer in answers] == good
            sent += sum(good)
            check(house, sent)
