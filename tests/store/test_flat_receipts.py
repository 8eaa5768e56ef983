"""Receipts, traces and briefings cost the same among 20,000 rows as among 1,000.

Counted as in test_flat.py. Nex has taken a turn for every old envelope, in which it answered; every
message has tags, and every envelope was read.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from hiboss.api import agent_briefing, receipts
from hiboss.api.agent_states import Live
from hiboss.store import briefings, envelope_details, envelope_rows, traces
from hiboss.store.connection import Connection
from tests.store.test_flat import ADA_ID, FRESH, NEX_ID, NOW, POPULATIONS, Hot, not_flat
from tests.store.test_flat_runs import with_runs


def worked_on(connection: Connection, size: int) -> None:
    """Let nex have had a run for each old envelope, which sent something; each message has three tags."""
    with_runs(connection, size)
    connection.execute("INSERT INTO tag (message, kind, name) SELECT id, 'mention', 'nex' FROM message")
    for kind in ("scope", "ref"):
        connection.execute(
            "INSERT INTO tag (message, kind, name, value) SELECT id, ?, 'x', id FROM message", (kind,)
        )
    connection.execute(
        "INSERT OR IGNORE INTO reading (envelope, reader, at) SELECT id, recipient, 1 FROM envelope"
    )


def middle(size: int) -> list[int]:
    return list(range(size // 2, size // 2 + 10))


def traced(connection: Connection, size: int) -> None:
    message = size // 2
    assert traces.visible(connection, [message], ADA_ID, 1)
    mine = traces.envelopes_of(connection, message, ADA_ID)
    assert [row["id"] for row in traces.runs_of(connection, mine.ids)] == [message]
    walk = traces.came_of(connection, message)
    assert walk.ids == [size + FRESH + message] and not walk.more
    traces.visible(connection, walk.ids, ADA_ID, 101)
    traces.recipients(connection, walk.ids, 10)


def paged(connection: Connection, size: int) -> None:
    rows = envelope_rows.shown(connection, middle(size))
    found = envelope_details.of_page(connection, rows, NEX_ID)
    assert len(found.tags) == len(found.read_by) == 10


def briefed(connection: Connection, size: int) -> None:
    found = agent_briefing.of_address(connection, NEX_ID, NOW, Live())
    assert found is not None and found["newest"]


HOT: dict[str, Hot] = {
    "receipts of a page": lambda c, n: receipts.of_envelopes(c, middle(n), ADA_ID, NOW),
    "a trace": traced,
    "what a page shows beside its envelopes": paged,
    "groups of somebody": lambda c, n: briefings.groups(c, NEX_ID, 20),
    "schedules of somebody": lambda c, n: briefings.next_schedules(c, NEX_ID, 5),
}


def test_receipts_traces_and_details_are_flat(tmp_path: Path) -> None:
    assert not_flat(tmp_path, POPULATIONS["settled"], HOT, prepare=worked_on) == {}


@pytest.mark.parametrize("population", ["settled", "archived", "pending"])
def test_a_briefing_is_flat_whatever_the_box_has(tmp_path: Path, population: str) -> None:
    assert not_flat(tmp_path, POPULATIONS[population], {"a briefing": briefed}, prepare=worked_on) == {}
