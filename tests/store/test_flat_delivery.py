"""Waking, lanes, claims and what comes in cost the same among 20,000 rows as among 1,000.

Counted as in test_flat.py. What fills the database lies with agent nex or in the lane of a
place, where two accounts may post.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from hiboss.core.contracts.adapter import Chat
from hiboss.core.contracts.failures import Failure
from hiboss.core.contracts.inbound import Inbound
from hiboss.core.envelope import Lane
from hiboss.store import (
    bindings,
    due_envelopes,
    envelopes,
    intake,
    lane_failures,
    lanes,
    leases,
    overdue,
    places,
    platform_updates,
    posts,
)
from hiboss.store.bindings import NewBinding
from hiboss.store.connection import Connection
from hiboss.store.group_commit import Tx
from hiboss.store.intake import NewUpdate
from hiboss.store.lane_failures import Scope
from tests.store.test_flat import FRESH, NEX_ID, NOW, POPULATIONS, Hot, not_flat, write

pytestmark = pytest.mark.slow

MINE, OTHERS = 1, 2  # the bindings
PLACE_ID = 4
PLACE = Lane(PLACE_ID, MINE)
FAILURE = Failure("network", "no route")
BOOT = 1
DAY = 24 * 3_600_000


def with_two_accounts(connection: Connection, size: int) -> Tx:
    tx = Tx(connection)
    for number, account in ((MINE, "mine"), (OTHERS, "others")):
        assert (
            bindings.add(tx, NewBinding("folder", account, {}, chats=[Chat("place")]), NEX_ID, NOW).binding
            == number
        )
    assert tx.cache.flush() is None
    found = connection.execute("SELECT id FROM address WHERE name = 'folder:place'").fetchone()[0]
    assert found == PLACE_ID
    return tx


def with_a_lane(connection: Connection, size: int) -> None:
    """Address all but the fresh envelopes to the place, by our account; add as many posts and updates."""
    with_two_accounts(connection, size)
    connection.execute("UPDATE envelope SET recipient = ?, binding = ? WHERE id <= ?", (PLACE_ID, MINE, size))
    connection.execute("INSERT INTO participant (conversation, address) VALUES (1, ?)", (PLACE_ID,))
    connection.execute("UPDATE conversation SET kind = 'adhoc'")
    connection.execute(
        "INSERT INTO post (envelope, chunk, content, platform_id, posted_at) SELECT id, 0, 'x', 'p' || id, 1 FROM envelope"
    )
    connection.execute(
        """
        INSERT INTO platform_update (binding, update_id, chat, platform_id, message, outcome, received_at)
        SELECT ?, 'u' || id, 'place', 'p' || id, id, 'accepted', 1 FROM message
        """,
        (OTHERS,),
    )


def with_the_lane_of_another(connection: Connection, size: int) -> None:
    """Fill the same place with the same due envelopes, but by the other account."""
    with_a_lane(connection, size)
    connection.execute("UPDATE envelope SET binding = ? WHERE recipient = ?", (OTHERS, PLACE_ID))


def with_the_fresh_in_hand(connection: Connection, size: int) -> None:
    """Hold ten envelopes, as after the crash of a daemon."""
    with_a_lane(connection, size)
    connection.execute("UPDATE counter SET value = ? WHERE name = 'boot'", (BOOT,))
    connection.execute(
        """
        UPDATE envelope SET recipient = ?, binding = ?, held_by = ?, handovers = 1
        WHERE id > ?
        """,
        (PLACE_ID, MINE, BOOT, size),
    )


def settling(tx: Tx, size: int) -> None:
    claimed = lanes.claim(tx, PLACE, NOW, BOOT)
    if claimed is not None:
        posts.note_post(tx, claimed["id"], 0, "x", "new", NOW)
        lanes.done(tx, PLACE, claimed["id"], NOW)


def waiting(tx: Tx, size: int) -> None:
    claimed = lanes.claim(tx, PLACE, NOW, BOOT)
    if claimed is not None:
        lane_failures.retry_later(tx, PLACE, claimed["id"], FAILURE, NOW)
        assert lanes.claim(tx, PLACE, NOW, BOOT) is None


def account_waiting(tx: Tx, size: int) -> None:
    claimed = lanes.claim(tx, PLACE, NOW, BOOT)
    if claimed is not None:
        lane_failures.retry_later(tx, PLACE, claimed["id"], FAILURE, NOW, scope=Scope.ACCOUNT)
        assert lanes.claim(tx, PLACE, NOW, BOOT) is None
        assert lanes.reopen(tx, PLACE.account, NOW)
        claimed = lanes.claim(tx, PLACE, NOW, BOOT)
        assert claimed is not None and lanes.claim(tx, PLACE, NOW, BOOT) is None  # one tries
        assert lanes.done(tx, PLACE, claimed["id"], NOW)


def partly_posting(tx: Tx, size: int) -> None:
    claimed = lanes.claim(tx, PLACE, NOW, BOOT)
    if claimed is not None:
        lanes.note_partly_posted(tx, PLACE, claimed["id"])
        lane_failures.retry_later(tx, PLACE, claimed["id"], FAILURE, NOW)
        assert lanes.reopen(tx, PLACE, NOW)
        again = lanes.claim(tx, PLACE, NOW, BOOT)
        assert again is not None and again["id"] == claimed["id"]


def failing(tx: Tx, size: int) -> None:
    claimed = lanes.claim(tx, PLACE, NOW, BOOT)
    if claimed is not None:
        lanes.fail(tx, [claimed["id"]], FAILURE, NOW)
        assert envelopes.retry(tx, [claimed["id"]], None, NOW)[0] == 1


def releasing(tx: Tx, size: int) -> None:
    taken, claim = leases.claim(tx, NEX_ID, 5, NOW + DAY, NOW)
    assert leases.release(tx, leases.Releasing(taken, NEX_ID, NOW, claim)) == 5


def receiving(answers: str | None) -> Hot:
    arrival = Inbound(chat="place", text="x", message="m1", reply_to=answers)
    return write(lambda tx, n: platform_updates.receive(tx, MINE, "folder", arrival, (), NOW))


def update(number: str) -> NewUpdate:
    return NewUpdate(number, "place", None, "{}")


def unbinding(tx: Tx, size: int) -> None:
    bindings.remove(tx, "folder", "mine", NEX_ID, NOW)
    bindings.fail_waiting(tx, MINE, NOW)


HOT: dict[str, Hot] = {
    "the next wake": lambda c, n: overdue.next_wake(c),
    "waking nothing": write(lambda tx, n: overdue.wake(tx, NOW - 1)),
    "waking ten": write(lambda tx, n: overdue.wake(tx, NOW + DAY, 10)),
    "the oldest due": lambda c, n: due_envelopes.oldest(c),
    "due in a lane": lambda c, n: due_envelopes.due(c, PLACE_ID, NOW, 1, binding=MINE),
    "ten due in a lane": lambda c, n: due_envelopes.due(c, PLACE_ID, NOW, 10, binding=MINE),
    "claiming in a lane": write(lambda tx, n: lanes.claim(tx, PLACE, NOW, BOOT)),
    "claiming where nothing is": write(lambda tx, n: lanes.claim(tx, Lane(NEX_ID, OTHERS), NOW, BOOT)),
    "settling": write(settling),
    "a lane that waits": write(waiting),
    "an account that waits, is tried and opens": write(account_waiting),
    "what is partly posted goes first": write(partly_posting),
    "giving up where nothing is old": write(lambda tx, n: lane_failures.give_up(tx, PLACE, FAILURE, NOW)),
    "giving up a slice": write(
        lambda tx, n: lane_failures.give_up(tx, PLACE.account, FAILURE, NOW + 2 * DAY)
    ),
    "one that fails and is tried again": write(failing),
    "releasing what was held": write(lambda tx, n: lanes.free_after_crash(tx, NOW)),
    "claiming": write(lambda tx, n: leases.claim(tx, NEX_ID, 10, NOW + DAY, NOW)),
    "releasing": write(releasing),
    "an update known": write(lambda tx, n: intake.take(tx, OTHERS, [update(f"u{n // 2}")], "7", NOW)),
    "an update unknown": write(lambda tx, n: intake.take(tx, MINE, [update(f"u{n // 2}")], "7", NOW)),
    "a place known": write(lambda tx, n: places.meet(tx, MINE, "folder", Inbound(chat="place"), NOW)),
    "updates that wait": write(lambda tx, n: intake.waiting(tx, OTHERS, "place", 50)),  # type: ignore[arg-type]
    "a message that comes in": receiving(None),
    "an answer that comes in": receiving("p7"),
    "an answer to nothing that comes in": receiving("none"),
}


@pytest.mark.parametrize("population", ["settled", "pending", "failed", "deferred"])
def test_delivery_costs_the_same_among_20_000_as_among_1_000(tmp_path: Path, population: str) -> None:
    # Unbinding reads also what others have in the same place: the boss does it, and rarely.
    hot = {**HOT, "a slice of unbinding": write(unbinding)}
    assert not_flat(tmp_path, POPULATIONS[population], hot, prepare=with_a_lane) == {}


def test_a_lane_does_not_walk_over_that_of_another_account_in_the_same_place(tmp_path: Path) -> None:
    assert not_flat(tmp_path, POPULATIONS["pending"], HOT, prepare=with_the_lane_of_another) == {}


def test_freeing_looks_only_at_what_was_in_hand(tmp_path: Path) -> None:
    free: dict[str, Hot] = {
        "free": write(lambda tx, n: lanes.free_after_crash(tx, NOW)),
        "next wake": lambda c, n: overdue.next_wake(c),
    }
    for population in ("pending", "deferred"):
        directory = tmp_path / population
        directory.mkdir()
        assert not_flat(directory, POPULATIONS[population], free, prepare=with_the_fresh_in_hand) == {}


def test_what_is_counted_is_really_done(tmp_path: Path) -> None:
    """In the small database: a statement that finds nothing would be flat anywhere."""

    def freed(connection: Connection, size: int) -> None:
        assert lanes.free_after_crash(Tx(connection), NOW) == FRESH

    def done(connection: Connection, size: int) -> None:
        tx = Tx(connection)
        assert overdue.next_wake(tx) == NOW + 1 and overdue.wake(tx, NOW - 1).envelopes == []
        assert len(overdue.wake(tx, NOW + DAY, 10).envelopes) == 10
        assert lanes.claim(tx, PLACE, NOW, BOOT) is not None
        assert len(leases.claim(tx, NEX_ID, 10, NOW + DAY, NOW)[0]) == 10
        assert not intake.take(tx, OTHERS, [update("u5")], None, NOW).new
        assert [*intake.take(tx, MINE, [update("u5")], None, NOW).new] == ["u5"]
        tx.cache.flush()

    kept = {"done": done}
    assert not_flat(tmp_path, POPULATIONS["deferred"], kept, large=2_000, prepare=with_a_lane) == {}
    (tmp_path / "held").mkdir()
    kept = {"freed": freed}
    held = not_flat(
        tmp_path / "held", POPULATIONS["pending"], kept, large=2_000, prepare=with_the_fresh_in_hand
    )
    assert held == {}
