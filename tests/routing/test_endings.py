"""Unbinding and giving up: one outcome for each envelope, and never many of them in one transaction."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hiboss.core.clock import now
from hiboss.core.envelope import Lane
from hiboss.store import bindings, lanes
from hiboss.store.envelope_rows import EnvelopeRow
from hiboss.store.group_commit import Tx
from hiboss.store.lane_failures import GIVE_UP_FAILURES, GIVE_UP_MS, SLICE
from hiboss.testing.running_daemon import RunningDaemon
from tests.support.in_process_daemon import InProcessDaemon, frozen
from tests.support.scripted_channels import SCRIPTED, Place, lane_error, notices, row
from tests.support.waits import wait_until

MANY = 2 * SLICE + 100
MODULES = {"adapter_modules": "hiboss.testing.scripted_adapter"}


# --- unbound during a post -----------------------------------------------------------


def test_what_gets_through_although_its_place_was_unbound_is_done_and_nobody_is_told_otherwise(
    daemon: RunningDaemon, tmp_path: Path
) -> None:
    place = Place(tmp_path, kind="leisurely").bound(daemon)
    place.script(place.gated())
    number = place.send("being posted")
    waiting = place.send("behind it")
    wait_until(lambda: row(daemon, number)["held_by"] is not None)
    assert place.unbind()["failed_envelopes"] == 1
    assert row(daemon, waiting)["status"] == 2
    place.open_gate()
    done = place.wait_for_status(number, "done")
    assert (done["attempts"], done["last_error"]) == (0, None)
    assert place.texts() == ["being posted"]
    (notice,) = notices(place.owner)
    assert waiting in notice["text"] and f"{number} " not in notice["text"]


def test_what_does_not_get_through_because_its_place_was_unbound_fails_once(
    daemon: RunningDaemon, tmp_path: Path
) -> None:
    place = Place(tmp_path, kind="leisurely").bound(daemon)
    place.script(place.gated(), lane_error())
    place.settings(chunk=2)
    place.unbind()
    place.bound(daemon, place.owner)
    number = place.send("abcd")
    wait_until(lambda: row(daemon, number)["held_by"] is not None)
    assert place.unbind()["failed_envelopes"] == 0
    place.open_gate()
    assert place.wait_for_status(number, "failed")["last_error"]["kind"] == "unbound"
    (notice,) = notices(place.owner)
    assert number in notice["text"] and "is no longer bound" in notice["text"]
    daemon.check()


@pytest.mark.slow
def test_a_daemon_that_dies_during_a_post_of_an_unbound_place_fails_it_at_the_next_start(
    daemon: RunningDaemon, tmp_path: Path
) -> None:
    place = Place(tmp_path, kind="leisurely").bound(daemon)
    place.script({"do": "hang", "seconds": 30})
    number = place.send("x")
    wait_until(lambda: row(daemon, number)["held_by"] is not None)
    place.unbind()
    daemon.kill()
    daemon.start(**SCRIPTED)
    assert place.wait_for_status(number, "failed")["last_error"]["kind"] == "unbound"
    assert len(notices(place.owner)) == 1
    daemon.check()


# --- many at once --------------------------------------------------------------------


@contextmanager
def failed_together(daemon: InProcessDaemon) -> Iterator[list[int]]:
    """Collect how many envelopes failed in each transaction of the writer."""
    writer = daemon.daemon.wiring.delivery._store._connection
    found: list[int] = []
    last = ""

    def note(statement: str) -> None:
        nonlocal last
        if threading.current_thread().name != "hiboss-writer":
            return
        if statement.startswith("BEGIN"):
            found.append(0)
        elif "UPDATE envelope SET status = 2" in statement and statement != last:  # again for each trigger
            found[-1] += 1
        last = statement

    writer.set_trace_callback(note)
    try:
        yield found
    finally:
        writer.set_trace_callback(None)


async def with_many(daemon: InProcessDaemon, directory: Path) -> str:
    """Let many envelopes wait in a lane, of which the first has failed."""
    address = await daemon.bind(directory, '{"do": "lane_error", "text": "no", "retry_after": 3600}')
    await daemon.send(address)
    await daemon.until(lambda: daemon.rows("SELECT 1 FROM lane WHERE state = 'waiting'"))
    await daemon.flood([None] * (MANY - 1), address)  # type: ignore[list-item] # at once
    return address


def pending(daemon: InProcessDaemon) -> int:
    (found,) = daemon.rows("SELECT count(*) FROM envelope WHERE binding IS NOT NULL AND status = 0")
    return int(found[0])


@frozen(quiet=False, **MODULES)
async def test_unbinding_many_is_not_one_operation_of_the_writer(daemon: InProcessDaemon) -> None:
    await with_many(daemon, Path(daemon.home.path).parent / "chat")
    with failed_together(daemon) as found:
        answer = await daemon.ask("agent.unbind", name="nex", adapter_type="scripted")
    assert answer["failed_envelopes"] == MANY
    assert sum(found) == MANY and max(found) <= SLICE
    assert pending(daemon) == 0
    told = await daemon.inbox("nex")
    assert len(told) == 3 and all("is no longer bound" in text for text in told)  # one for each slice


@frozen(quiet=False, **MODULES)
async def test_nothing_more_is_posted_for_a_place_from_the_moment_it_was_unbound(
    daemon: InProcessDaemon,
) -> None:
    await with_many(daemon, Path(daemon.home.path).parent / "chat")
    store = daemon.daemon.wiring.delivery._store
    (row,) = daemon.rows("SELECT b.*, l.address FROM binding b JOIN lane l ON l.binding = b.id")
    lane, agent = Lane(row["address"], row["id"]), daemon.rows("SELECT agent FROM binding_agent")[0][0]

    def unbind_and_claim(tx: Tx) -> EnvelopeRow | None:
        bindings.remove(tx, row["adapter"], row["account"], agent, now())
        return lanes.claim(tx, lane, now(), store.boot, eager=True)

    assert await store.write(unbind_and_claim) is None
    await daemon.daemon.wiring.delivery.endings.follow()  # as at a heartbeat, for one who is gone
    assert pending(daemon) == 0 and daemon.daemon.wiring.supervisor.slots == {}
    assert daemon.rows("SELECT 1 FROM lane") == []


@frozen(quiet=False, **MODULES)
async def test_giving_up_many_is_not_one_operation_of_the_writer(daemon: InProcessDaemon) -> None:
    address = await with_many(daemon, Path(daemon.home.path).parent / "chat")
    script = Path(daemon.home.path).parent / "chat" / "script.jsonl"
    script.write_text('{"do": "lane_error", "text": "still nothing", "retry_after": 3600}\n')
    daemon.change("UPDATE lane SET first_failed_at = ?, failures = ?", now() - GIVE_UP_MS, GIVE_UP_FAILURES)
    daemon.change("UPDATE message SET arrived_at = arrived_at - ?", GIVE_UP_MS)
    daemon.change("UPDATE envelope SET first_failed_at = first_failed_at - ?", GIVE_UP_MS)
    with failed_together(daemon) as found:
        await daemon.ask("lane.retry", address=address)
        await daemon.until(lambda: pending(daemon) == 0)
    assert sum(found) == MANY and max(found) <= SLICE
    assert len(await daemon.inbox("nex")) == 3


@frozen(quiet=False, **MODULES)
async def test_a_daemon_that_ends_in_the_middle_of_an_unbinding_goes_on_at_the_next_start(
    daemon: InProcessDaemon,
) -> None:
    await with_many(daemon, Path(daemon.home.path).parent / "chat")
    await daemon.close()
    daemon.change("DELETE FROM lane WHERE binding IS NOT NULL")  # as after the first transaction
    daemon.change("INSERT INTO lane (binding, state) SELECT id, 'paused' FROM binding")
    daemon.change("DELETE FROM binding_agent")
    daemon.change("UPDATE binding SET removed_at = ?", now())
    daemon.check()
    await daemon.open()
    assert pending(daemon) == 0 and len(await daemon.inbox("nex")) == 3
