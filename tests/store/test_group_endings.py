"""How groups and stays end in the store: archived, deleted, owners that go; and what is told of it."""

from __future__ import annotations

from typing import Any

import pytest

from hiboss.core.address import Address
from hiboss.core.errors import (
    BossOnly,
    HibossError,
    UnknownGroup,
)
from hiboss.core.events import ConversationChanged, ParticipantChanged
from hiboss.store import agents, groups, places, users
from hiboss.store.group_commit import Tx
from tests.store.chat_scene import BOSS_ID, KAI, NEX
from tests.store.group_house import CORE, House
from tests.support.raising import raised

# --- archiving and deleting ----------------------------------------------------------


def test_the_boss_deletes_a_private_conversation_and_the_next_mail_begins_a_new_one(house: House) -> None:
    kai = Address("agent", "kai")
    message = house.send(NEX, kai, text="one")
    number = house.execute("SELECT conversation FROM message WHERE id = ?", message)[0]["conversation"]
    for act in (groups.archive, groups.delete):
        with pytest.raises(BossOnly):
            house.do(act, number, house.actor(NEX), True)
    house.do(groups.delete, number, house.actor(BOSS_ID), "a mistake")
    again = house.send(NEX, kai, text="two")
    new = house.execute("SELECT conversation FROM message WHERE id = ?", again)[0]["conversation"]
    assert new != number and house.texts(number, KAI) == ["one"] and house.texts(new, KAI) == ["two"]
    house.do(groups.archive, new, house.actor(BOSS_ID), True)
    assert raised(HibossError, house.send, KAI, Address("agent", "nex")).code == "archived"


def test_private_is_begun_once_and_keeps_who_began_it(house: House) -> None:
    def begin(tx: Tx, fields: dict[str, Any], now: int) -> Any:
        return groups.begin_private(tx, house.actor(NEX), KAI, fields, now)

    row, new = house.do(begin, {"metadata": {"ticket": 7}})
    assert new and row["created_by"] == NEX and row["kind"] == "private"
    again, new = house.do(begin, {})
    assert not new and again["id"] == row["id"] and again["metadata"] == '{"ticket": 7}'
    message = house.send(KAI, Address("agent", "nex"))
    assert house.execute("SELECT conversation FROM message WHERE id = ?", message) == [
        {"conversation": row["id"]}
    ]


# --- when somebody is deleted --------------------------------------------------------


def test_the_deletion_of_the_owner_gives_the_group_to_the_oldest_admin(house: House) -> None:
    group = house.create(NEX, "core", KAI, house.ann, house.max)
    house.role(NEX, house.max, "admin")
    house.do(agents.delete, "nex")
    assert house.roles(group) == {"max": "owner", "kai": "member", "ann": "member"}
    house.do(agents.delete, "max")
    assert house.roles(group) == {"ann": "owner", "kai": "member"}  # a person before an agent
    [ann] = [one for one in users.list_all(house.connection) if one["login"] == "ann"]
    house.do(users.delete, ann)
    assert house.roles(group) == {"kai": "owner"}
    house.do(agents.delete, "kai")
    assert house.roles(group) == {}
    house.add(BOSS_ID, BOSS_ID)
    assert house.transfer(BOSS_ID, BOSS_ID) is True  # nobody had it


def test_a_new_agent_of_the_name_of_a_deleted_one_is_in_no_group(house: House) -> None:
    group = house.create(NEX, "core", KAI)
    house.do(agents.delete, "kai")
    new = house.write(lambda tx: agents.register(tx, "kai", {}, house.now))
    assert house.stays(group, new) == [] and house.stays(group, KAI) == [(1, 0)]
    with pytest.raises(UnknownGroup):
        groups.visible(house.connection, "core", new)


# --- facts ---------------------------------------------------------------------------


def test_those_who_are_in_a_group_are_told_what_changes_and_who_leaves_is_told_too(house: House) -> None:
    group = house.create(NEX, "core", KAI, house.ann)
    house.facts()
    house.remove(NEX, KAI)
    [fact] = house.facts()
    assert fact == ParticipantChanged(house.now, group, KAI, "left", None, NEX, [NEX, house.ann, KAI])
    house.do(groups.change, "core", house.actor(NEX), {"description": "new"})
    house.do(groups.change, "core", house.actor(NEX), {"description": "new"})  # it is so already
    [fact] = house.facts()
    assert isinstance(fact, ConversationChanged) and set(fact.parties) == {NEX, house.ann}
    house.do(groups.delete, "core", house.actor(NEX), None)
    [deleted] = [one for one in house.facts() if isinstance(one, ConversationChanged)]
    assert (deleted.change, set(deleted.parties)) == ("deleted", {NEX, house.ann})


# --- when chats become one -----------------------------------------------------------


def _channel(house: House, chat: str) -> int:
    return int(house.execute("SELECT id FROM address WHERE name = ?", f"folder:{chat}")[0]["id"])


def _rename(house: House, old: str, new: str) -> None:
    house.write(lambda tx: places.rename_chat(tx, house.binding, "folder", old, new, house.now))


@pytest.mark.parametrize("chats", [("7",), ("7", "8")])
def test_a_chat_that_becomes_another_one_stays_in_its_group_and_of_two_there_is_one(
    house: House, chats: tuple[str, ...]
) -> None:
    group = house.create(NEX, "core", KAI)
    for chat in chats:
        house.add(NEX, _channel(house, chat))
    house.send(NEX, CORE, text="one")
    _rename(house, "7", "8")  # both are known: mail of one goes to the other
    assert set(house.roles(group)) == {"nex", "kai", "folder:8"}
    assert house.got(house.send(NEX, CORE, text="two")) == {"kai", "folder:8"}
    assert house.texts(group, KAI) == ["one", "two"]
