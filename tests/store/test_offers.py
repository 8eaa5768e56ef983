"""What is offered to several members of a group: who takes it, who gives it back, and routes of members."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from hiboss.core.address import Address
from hiboss.core.contracts.failures import Failure
from hiboss.core.envelope import Box
from hiboss.store import (
    agents,
    conversation_routes,
    envelope_marks,
    envelopes,
    offers,
    overdue,
    run_settlement,
)
from hiboss.store.invariants import violations
from hiboss.store.run_start import Turn
from hiboss.store.writer_cache import LiveAddress
from tests.store.chat_scene import BOSS_ID, HOUR, KAI, NEX
from tests.store.group_house import CORE, House

BROKEN = Failure("broken", "it is broken")
OPEN, ALONG, DONE, FAILED = "open", "along", "done", "failed"


@pytest.fixture
def house(house: House) -> House:
    house.create(BOSS_ID)
    for one in (NEX, KAI, house.max):
        house.add(BOSS_ID, one, respond="claim")
    return house


def states(house: House, message: int) -> list[str]:
    """Return how nex, kai and max have a message."""
    rows = house.execute(
        """
        SELECT CASE WHEN e.context THEN 'along' WHEN e.status = 2 THEN 'failed'
                    WHEN e.status = 1 THEN 'done' ELSE 'open' END AS state
        FROM envelope e WHERE e.message = ? AND e.offered ORDER BY e.recipient
        """,
        message,
    )
    return [row["state"] for row in rows]


def held(house: House) -> int:
    return int(
        house.execute("SELECT count(*) AS number FROM envelope WHERE held_by IS NOT NULL")[0]["number"]
    )


def test_who_begins_a_turn_takes_it_from_the_others_who_read_it_along(house: House) -> None:
    message = house.send(BOSS_ID, CORE)
    assert states(house, message) == [OPEN] * 3
    turn = house.begin(KAI)
    assert states(house, message) == [ALONG, OPEN, ALONG] and held(house) == 1 and house.begins(NEX) is None
    house.complete(turn)
    assert states(house, message) == [ALONG, DONE, ALONG]


ENDS: dict[str, tuple[Callable[[House, Turn], object], str, int]] = {  # how, kai's state, who takes it then
    "failed": (
        lambda house, turn: house.write(lambda tx: run_settlement.give_up(tx, turn, BROKEN, house.now)),
        FAILED,
        NEX,
    ),
    "ended and given up": (
        lambda house, turn: house.write(
            lambda tx: run_settlement.cancel(tx, turn, "interrupted", "deaf", house.now, gives_up=True)
        ),
        FAILED,
        NEX,
    ),
    "failed, to be repeated": (lambda house, turn: house.fail(turn), OPEN, KAI),
    "ended, and due again": (
        lambda house, turn: house.write(
            lambda tx: run_settlement.cancel(tx, turn, "interrupted", "its session ended", house.now)
        ),
        OPEN,
        NEX,
    ),
}


@pytest.mark.parametrize("way", ENDS)
def test_a_turn_that_does_not_end_well_gives_it_back(house: House, way: str) -> None:
    end, of_kai, next_one = ENDS[way]
    message = house.send(BOSS_ID, CORE)
    end(house, house.begin(KAI))
    assert states(house, message) == [OPEN, of_kai, OPEN]
    house.complete(house.begin(next_one))
    along = FAILED if of_kai == FAILED else ALONG
    assert states(house, message) == ([ALONG, DONE, ALONG] if next_one == KAI else [DONE, along, ALONG])


def test_what_may_have_crashed_the_daemon_is_given_to_nobody_else(house: House) -> None:
    message = house.send(BOSS_ID, CORE)
    for _ in range(3):
        house.begin(KAI)
        house.crash()
    assert states(house, message) == [ALONG, FAILED, ALONG] and house.begins(NEX) is None


def test_what_waits_for_a_retry_ends_when_another_one_takes_it(house: House) -> None:
    message = house.send(BOSS_ID, CORE)
    turn = house.begin(KAI)
    house.write(lambda tx: run_settlement.fail(tx, turn, BROKEN, (HOUR,) * 5, house.now))
    assert states(house, message) == [OPEN, OPEN, OPEN]
    house.complete(house.begin(NEX))
    assert states(house, message) == [DONE, ALONG, ALONG] and violations(house.connection) == []
    house.now += 2 * HOUR
    house.write(lambda tx: overdue.wake(tx, house.now))
    assert states(house, message) == [DONE, ALONG, ALONG] and house.begins(KAI) is None


def test_who_gives_back_what_was_deleted_gives_nobody_anything(house: House) -> None:
    message = house.send(BOSS_ID, CORE)
    turn = house.begin(KAI)
    house.execute("UPDATE message SET deleted_at = 1 WHERE id = ?", message)
    house.write(lambda tx: offers.give_back(tx, turn.envelopes[0], house.now))
    assert states(house, message) == [ALONG, OPEN, ALONG]
    house.execute("UPDATE message SET deleted_at = NULL WHERE id = ?", message)
    house.complete(turn)


def test_taking_and_giving_back_count_unread_mail_rightly(house: House) -> None:
    message = house.send(BOSS_ID, CORE)

    def unread() -> list[int]:
        rows = house.execute("SELECT address FROM unread WHERE address <> ? ORDER BY address", BOSS_ID)
        return [row["address"] for row in rows]

    assert unread() == [NEX, KAI, house.max]
    turn = house.begin(KAI)
    assert unread() == [KAI]
    house.write(lambda tx: run_settlement.wait(tx, turn, BROKEN, house.now + HOUR, house.now))
    assert unread() == [NEX, KAI, house.max] and states(house, message) == [OPEN] * 3


def test_what_an_agent_would_read_along_its_stand_in_reads_along_too(house: House) -> None:
    eve = house.write(lambda tx: agents.register(tx, "eve", {}, house.now))
    [group] = [row["id"] for row in house.execute("SELECT id FROM conversation WHERE name = 'core'")]
    house.execute("UPDATE participant SET respond = 'mentioned' WHERE conversation = ?", group)
    assert house.order("route", eve, conversation=group, agent=KAI).outcome == "applied"
    for deliver_at in (None, house.now + HOUR):
        calm = house.send(BOSS_ID, CORE, text="to nobody", deliver_at=deliver_at)
        called = house.send(BOSS_ID, CORE, text="@kai, you", deliver_at=deliver_at)
        if deliver_at is not None:
            house.now = deliver_at + 1
            house.write(lambda tx: overdue.wake(tx, house.now))
        found = {
            message: house.execute(
                "SELECT context, status, routed_from FROM envelope WHERE message = ? AND recipient = ?",
                message,
                eve,
            )
            for message in (calm, called)
        }
        assert found[calm] == [{"context": 1, "status": 1, "routed_from": KAI}]
        assert found[called] == [{"context": 0, "status": 0, "routed_from": KAI}]
        number = house.execute("SELECT id FROM envelope WHERE message = ? AND recipient = ?", called, eve)[0][
            "id"
        ]
        house.write(partial(envelope_marks.acknowledge, number=number, now=house.now))


# --- members who go, copies that were put away, and routes ---------------------------------------


def numbers(house: House, message: int) -> dict[int, int]:
    rows = house.execute("SELECT id, recipient FROM envelope WHERE message = ?", message)
    return {row["recipient"]: row["id"] for row in rows}


def test_who_is_removed_before_it_takes_an_offer_takes_nothing_and_the_others_have_it(house: House) -> None:
    message = house.send(BOSS_ID, CORE)
    house.remove(BOSS_ID, KAI)
    assert house.begins(KAI) is None
    house.complete(house.begin(NEX))
    assert states(house, message) == [DONE, ALONG]  # kai has no offer any more


def test_who_is_removed_with_an_offer_in_hand_gives_it_to_the_others(house: House) -> None:
    message = house.send(BOSS_ID, CORE)
    house.begin(KAI)
    house.remove(BOSS_ID, KAI)
    assert states(house, message) == [OPEN, OPEN]
    house.complete(house.begin(house.max))
    assert states(house, message) == [ALONG, DONE]


@pytest.mark.parametrize("put_away", ["acknowledged", "trashed"])
def test_who_has_put_its_copy_away_is_not_offered_it_again(house: House, put_away: str) -> None:
    message = house.send(BOSS_ID, CORE)
    turn = house.begin(KAI)
    copy = numbers(house, message)[NEX]
    if put_away == "trashed":
        house.write(lambda tx: envelope_marks.put_into(tx, [copy], NEX, Box.TRASH, house.now))
    else:
        house.write(lambda tx: envelope_marks.acknowledge(tx, copy, house.now))
    house.write(lambda tx: run_settlement.wait(tx, turn, BROKEN, house.now + HOUR, house.now))
    assert states(house, message) == [ALONG, OPEN, OPEN] and violations(house.connection) == []
    house.complete(house.begin(house.max))


def test_what_is_given_to_a_run_in_the_middle_of_its_turn_is_taken_from_the_others(house: House) -> None:
    message = house.send(BOSS_ID, CORE)
    number = numbers(house, message)[KAI]
    boot = house.execute("SELECT value FROM counter WHERE name = 'boot'")[0]["value"]
    house.write(lambda tx: envelopes.hold(tx, number, boot, house.now))
    assert states(house, message) == [ALONG, OPEN, ALONG]
    house.write(lambda tx: envelopes.free(tx, number, given=False))
    assert states(house, message) == [OPEN] * 3


def test_an_offer_that_is_routed_to_somebody_is_taken_from_the_others(house: House) -> None:
    message = house.send(BOSS_ID, CORE)
    number = numbers(house, message)[KAI]
    eve = house.write(
        lambda tx: LiveAddress(agents.register(tx, "eve", {}, house.now), Address("agent", "eve"))
    )
    house.write(lambda tx: envelopes.reroute(tx, number, eve, KAI, house.now))
    (row,) = house.execute("SELECT conversation FROM message WHERE id = ?", message)
    house.write(lambda tx: conversation_routes.enter(tx, row["conversation"], eve.id))
    assert states(house, message) == [ALONG, ALONG] and house.begins(NEX) is None
