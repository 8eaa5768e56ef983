"""Groups in the store: who is in them, with which role, and what each stay shows."""

from __future__ import annotations

import pytest

from hiboss.core.address import BACKGROUND, SYSTEM, Address
from hiboss.core.errors import (
    BuiltInGroup,
    CannotBeMember,
    InvalidParams,
    NoGroup,
    NotBound,
    NotFound,
    NotManager,
    NotMember,
    UnknownAddress,
)
from hiboss.store import group_members, groups
from tests.store.chat_scene import BOSS_ID, KAI, NEX
from tests.store.group_house import CORE, House
from tests.support.raising import raised

# --- members -------------------------------------------------------------------------


def test_nobody_joins_or_leaves_the_group_of_all_agents(house: House) -> None:
    house.send(BOSS_ID, Address("group", "all"))
    for act in (
        lambda: house.do(group_members.join, "all", house.actor(KAI), None),
        lambda: house.do(group_members.leave, "all", house.actor(KAI)),
    ):
        with pytest.raises(BuiltInGroup):
            act()


def test_a_group_is_transferred_only_to_somebody_who_is_in_it_and_can_act(house: House) -> None:
    house.create(NEX, "core", KAI)
    house.add(NEX, house.execute("SELECT id FROM address WHERE name = 'folder:7'")[0]["id"])
    with pytest.raises(NotMember):
        house.transfer(NEX, house.max)
    with pytest.raises(CannotBeMember):
        house.do(group_members.transfer, "core", house.actor(NEX), Address("channel", "folder:7"))
    with pytest.raises(CannotBeMember):
        house.do(group_members.set_role, "core", house.actor(NEX), Address("channel", "folder:7"), "admin")
    with pytest.raises(UnknownAddress):
        house.do(group_members.transfer, "core", house.actor(NEX), Address("agent", "nobody"))
    assert house.transfer(NEX, NEX) is False


def test_if_nothing_was_said_since_the_same_stay_goes_on(house: House) -> None:
    group = house.create(NEX, "core", KAI)
    house.send(NEX, CORE, text="one")
    for _ in range(3):
        house.remove(NEX, KAI)
        house.add(NEX, KAI)
    assert house.stays(group, KAI) == [(1, None)] and house.roles(group)["kai"] == "member"
    house.add(NEX, house.max)
    house.remove(NEX, house.max)  # a stay in which nothing was said
    house.send(NEX, CORE, text="two")
    house.add(NEX, house.max, history=1)  # it would begin where that one began
    assert house.stays(group, house.max) == [(2, None)] and house.texts(group, house.max) == ["two"]


def test_nobody_gives_a_newcomer_more_history_than_he_sees_himself(house: House) -> None:
    group = house.create(NEX, "core", KAI, history=1)
    for text in ("one", "two", "three"):
        house.send(NEX, CORE, text=text)
    house.add(NEX, house.ann)
    house.role(NEX, house.ann, "admin")
    house.send(NEX, CORE, text="four")
    house.add(house.ann, house.max, history=1_000)
    assert house.texts(group, house.ann) == house.texts(group, house.max) == ["three", "four"]
    house.remove(NEX, house.max)
    house.add(NEX, house.max, history=1_000)  # the owner sees it from the first on
    assert house.texts(group, house.max) == ["one", "two", "three", "four"]
    house.add(BOSS_ID, BOSS_ID, history=3)
    assert house.stays(group, BOSS_ID) == [(2, None)]


def test_an_agent_that_is_to_answer_nothing_any_more_gives_back_what_it_was_offered(house: House) -> None:
    house.create(NEX)
    for one in (KAI, house.max):
        house.add(NEX, one, respond="claim")
    message = house.send(NEX, CORE, text="who does it?")
    house.do(group_members.set_respond, "core", house.actor(NEX), house.address(KAI), "never")
    rows = house.execute("SELECT recipient, status, context FROM envelope WHERE message = ?", message)
    found = {row["recipient"]: (row["status"], row["context"]) for row in rows}
    assert (found[KAI], found[house.max]) == ((1, 1), (0, 0))


def test_a_long_history_shows_nothing_twice_to_who_comes_back(house: House) -> None:
    group = house.create(NEX, "core", KAI, history=100)
    house.send(NEX, CORE, text="one")
    house.remove(NEX, KAI)
    house.send(BOSS_ID, CORE, text="two")
    house.add(NEX, KAI)
    assert house.stays(group, KAI) == [(1, 1), (2, None)] and house.texts(group, KAI) == ["one", "two"]


# --- who can be a member -------------------------------------------------------------


def test_a_channel_is_added_by_who_may_post_there_and_keeps_that_account(house: House) -> None:
    group = house.create(NEX, "core")
    house.create(house.max, "other")
    channel = Address("channel", "folder:7")
    house.do(group_members.add, "core", house.actor(NEX), channel)
    [row] = house.execute("SELECT p.binding FROM participant p WHERE p.binding IS NOT NULL")
    assert row["binding"] == house.binding
    with pytest.raises(NotBound):
        house.do(group_members.add, "other", house.actor(house.max), channel)
    with pytest.raises(NotBound):
        house.do(group_members.add, "core", house.actor(NEX), Address("channel", "folder:nowhere"))
    assert house.got(house.send(NEX, CORE)) == {"folder:7"} and "folder:7" in house.roles(group)


def test_a_chat_is_in_one_group_at_a_time(house: House) -> None:
    house.create(NEX, "core")
    house.create(NEX, "other")
    channel = Address("channel", "folder:7")
    house.do(group_members.add, "core", house.actor(NEX), channel)
    error = raised(CannotBeMember, house.do, group_members.add, "other", house.actor(BOSS_ID), channel)
    assert "group:core" in error.message
    house.do(group_members.remove, "core", house.actor(NEX), channel)
    house.do(group_members.add, "other", house.actor(NEX), channel)


def test_a_private_chat_of_the_boss_is_refused_and_the_boss_himself_named(house: House) -> None:
    house.create(NEX, "core")
    house.execute("UPDATE contact SET state = 'boss', kind = 'private' WHERE platform_id = '777'")
    error = raised(
        CannotBeMember,
        house.do,
        group_members.add,
        "core",
        house.actor(NEX),
        Address("channel", "folder:777"),
    )
    assert "user:boss" in error.message
    house.add(NEX, BOSS_ID)


@pytest.mark.parametrize("who", [SYSTEM, BACKGROUND, Address("group", "core"), Address("group", "all")])
def test_parts_of_hiboss_and_groups_are_no_members(house: House, who: Address) -> None:
    house.create(NEX, "core")
    with pytest.raises(CannotBeMember):
        house.do(group_members.add, "core", house.actor(NEX), who)


def test_respond_is_for_agents(house: House) -> None:
    house.create(NEX, "core", KAI)
    with pytest.raises(InvalidParams):
        house.add(NEX, house.ann, respond="all")
    house.add(NEX, house.max, respond="claim")
    _, changed = house.do(
        group_members.set_respond, "core", house.actor(KAI), house.address(KAI), "never"
    )  # itself
    assert changed
    with pytest.raises(NotManager):
        house.do(group_members.set_respond, "core", house.actor(KAI), house.address(house.max), "never")
    rows = house.execute("SELECT a.name, p.respond FROM participant p JOIN address a ON a.id = p.address")
    assert {row["name"]: row["respond"] for row in rows} == {
        "nex": "mentioned",
        "kai": "never",
        "max": "claim",
    }


def test_who_stands_in_for_a_member_is_added_when_that_is_over(house: House) -> None:
    group = house.create(NEX, "core", KAI)
    house.send(NEX, CORE, text="one")
    house.order("handoff", house.ann, conversation=group, agent=KAI)
    assert "agent:kai" in raised(CannotBeMember, house.add, NEX, house.ann).message
    with pytest.raises(NotMember):
        house.do(groups.change, group, house.actor(house.ann), {"description": "mine"})
    house.send(NEX, CORE, text="two")
    house.order("handoff", KAI, conversation=group, agent=KAI)
    house.add(NEX, house.ann)
    house.send(NEX, CORE, text="three")
    assert house.texts(group, house.ann) == ["three"]
    house.order("handoff", house.max, conversation=group, agent=KAI)
    house.remove(NEX, KAI)  # the handoff ends with that
    assert house.got(house.send(NEX, CORE, text="four")) == {"ann"}


def test_other_conversations_keep_their_parties(house: House) -> None:
    message = house.send(NEX, Address("agent", "kai"))
    number = house.execute("SELECT conversation FROM message WHERE id = ?", message)[0]["conversation"]
    with pytest.raises(NoGroup):
        house.add(NEX, house.max, number)
    with pytest.raises(NoGroup):
        house.do(group_members.leave, number, house.actor(NEX))
    with pytest.raises(NotFound):
        house.add(house.max, house.max, number)


def test_an_admin_who_came_late_opens_no_earlier_message_to_newcomers_and_to_nobody_by_coming_again(
    house: House,
) -> None:
    group = house.create(NEX, "core", KAI)

    def change(who: int, **fields: object) -> None:
        house.do(groups.change, "core", house.actor(who), fields)

    for text in ("one", "two", "three"):
        house.send(NEX, CORE, text=text)
    house.add(NEX, house.ann)
    house.role(NEX, house.ann, "admin")
    house.send(NEX, CORE, text="four")
    change(house.ann, history=1, open=True)  # what she sees she may open
    with pytest.raises(InvalidParams):
        change(house.ann, history=2)
    house.do(group_members.leave, "core", house.actor(house.ann))
    house.do(group_members.join, "core", house.actor(house.ann), None)
    house.do(group_members.join, "core", house.actor(house.max), None)
    assert house.texts(group, house.ann) == house.texts(group, house.max) == ["four"]
    change(NEX, history=4)  # the owner sees it from the first on
    house.do(group_members.leave, "core", house.actor(house.max))
    house.do(group_members.join, "core", house.actor(house.max), None)
    assert house.texts(group, house.max) == ["one", "two", "three", "four"]
