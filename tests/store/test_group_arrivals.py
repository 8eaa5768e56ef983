"""Deferred messages of groups that nobody gets when their time comes: they fail, and somebody is told."""

from __future__ import annotations

from hiboss.store import agents, groups, overdue
from tests.store.chat_scene import BOSS_ID, KAI, NEX
from tests.store.group_house import CORE, House

HOUR = 3_600_000


def later(house: House, sender: int, text: str = "later") -> int:
    """Send something to the group that arrives in an hour; return the message."""
    return house.send(sender, CORE, text=text, deliver_at=house.now + HOUR)


def hour_later(house: House) -> None:
    house.now += HOUR
    house.write(lambda tx: overdue.wake(tx, house.now))


def state(house: House, message: int) -> list[tuple[str, int, str | None]]:
    query = """
        SELECT a.name, e.status, e.error_kind FROM envelope e JOIN address a ON a.id = e.recipient
        WHERE e.message = ? ORDER BY e.id
    """
    return [(row["name"], row["status"], row["error_kind"]) for row in house.execute(query, message)]


def notices(house: House, who: int) -> list[str]:
    query = """
        SELECT m.text FROM envelope e JOIN message m ON m.id = e.message JOIN address s ON s.id = m.sender
        WHERE e.recipient = ? AND s.name = 'system' AND e.forwards IS NULL ORDER BY e.id
    """
    return [row["text"] for row in house.execute(query, who)]


def test_a_deferred_message_that_nobody_is_there_to_get_fails_and_its_sender_is_told(house: House) -> None:
    house.create(NEX, "core", KAI)
    message = later(house, NEX)
    house.remove(NEX, KAI)
    hour_later(house)
    assert state(house, message) == [("core", 2, "empty_group")]
    (told,) = notices(house, NEX)
    assert "to group:core" in told and "nobody but its sender was in the group" in told
    assert house.execute("SELECT seq, arrived_at FROM message WHERE id = ?", message) == [
        {"seq": None, "arrived_at": None}
    ]


def test_a_deferred_message_whose_sender_left_fails_and_that_one_is_told(house: House) -> None:
    house.create(NEX, "core", KAI, house.ann)
    message = later(house, house.ann)
    house.remove(NEX, house.ann)
    hour_later(house)
    assert state(house, message) == [("core", 2, "not_member")]
    (told,) = notices(house, house.ann)
    assert "its sender is not in the group any more" in told
    assert notices(house, BOSS_ID) == []


def test_a_deferred_message_whose_sender_was_deleted_fails_and_the_boss_is_told(house: House) -> None:
    house.create(NEX, "core", KAI, house.max)
    message = later(house, KAI, "what I found")
    house.do(agents.delete, "kai")
    hour_later(house)
    assert state(house, message) == [("core", 2, "not_member")]
    (told,) = notices(house, BOSS_ID)
    assert "agent:kai, who was deleted, to group:core" in told and "what I found" in told


def test_a_deferred_message_that_is_not_posted_to_a_channel_of_its_group_is_told_to_its_sender(
    house: House,
) -> None:
    house.create(NEX, "core")
    channel = house.execute("SELECT id FROM address WHERE name = 'folder:7'")[0]["id"]
    house.add(NEX, channel)
    message = later(house, NEX)
    house.execute("UPDATE contact SET state = 'blocked'")
    hour_later(house)
    assert state(house, message) == [("core", 1, None), ("folder:7", 2, "unbound")]
    (told,) = notices(house, NEX)
    assert "to channel:folder:7" in told and "no account may post there" in told


def test_a_deferred_message_still_arrives_in_a_group_that_was_archived_meanwhile(house: House) -> None:
    house.create(NEX, "core", house.ann)
    message = later(house, NEX)
    house.do(groups.archive, "core", house.actor(NEX), True)
    hour_later(house)
    assert state(house, message) == [("core", 1, None), ("ann", 1, None)]
