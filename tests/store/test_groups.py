"""Groups in the store: who is in them, with which role, and what each stay shows."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hiboss.core.address import BACKGROUND, SYSTEM, Address
from hiboss.core.errors import (
    BuiltInGroup,
    CannotBeMember,
    GroupClosed,
    HibossError,
    InvalidParams,
    NameTaken,
    NoGroup,
    NotBound,
    NotFound,
    NotManager,
    NotMember,
    OwnerStays,
    UnknownAddress,
    UnknownGroup,
    UnknownRecipient,
)
from hiboss.store import agents, group_members, groups, users
from tests.store.chat_scene import BOSS_ID, KAI, NEX
from tests.store.group_house import CORE, House

# --- creating, and names -------------------------------------------------------------


def test_who_creates_a_group_owns_it_and_is_alone_in_it(house: House) -> None:
    group = house.create(NEX, description="the core", metadata={"wiki": "/core"}, history=3)
    row = groups.by_id(house.connection, group)
    assert row is not None and row["created_by"] == NEX and row["kind"] == "group" and row["history"] == 3
    assert house.roles(group) == {"nex": "owner"}
    assert house.stays(group, NEX) == [(1, None)]


@pytest.mark.parametrize("name", ["nex", "NEX", "Ann", "boss", "core", "CoRe"])
def test_the_name_of_a_group_is_nobody_elses_whatever_the_case(house: House, name: str) -> None:
    house.create(NEX, "core")
    with pytest.raises(HibossError) as caught:
        house.create(KAI, name)
    assert caught.value.code == ("bad_name" if name == "boss" else "name_taken")


def test_no_agent_and_no_person_gets_the_name_of_a_group(house: House) -> None:
    house.create(NEX, "core")
    with pytest.raises(NameTaken):
        house.write(lambda tx: agents.register(tx, "Core", {}, house.now))
    with pytest.raises(NameTaken):
        house.write(lambda tx: users.register(tx, "CORE", "C", house.now))


def test_the_group_of_all_agents_is_nobodys(house: House) -> None:
    for name in ("all", "ALL"):
        with pytest.raises(BuiltInGroup):
            house.create(NEX, name)
    with pytest.raises(BuiltInGroup):
        house.add(BOSS_ID, KAI, "all")
    house.send(BOSS_ID, Address("group", "all"))
    for act in (
        lambda: house.add(BOSS_ID, KAI, "all"),
        lambda: house.do(group_members.join, "all", house.actor(KAI), None),
        lambda: house.do(group_members.leave, "all", house.actor(KAI)),
        lambda: house.do(groups.delete, "all", house.actor(BOSS_ID), None),
        lambda: house.do(groups.archive, "all", house.actor(BOSS_ID), True),
    ):
        with pytest.raises(BuiltInGroup):
            act()


# --- members -------------------------------------------------------------------------


def test_re_adding_a_member_keeps_its_role_and_changes_nothing(house: House) -> None:
    group = house.create(NEX, "core", KAI, house.ann)
    house.role(NEX, KAI, "admin")
    house.send(NEX, CORE)
    house.facts()
    assert house.add(NEX, KAI) is False
    assert house.add(BOSS_ID, NEX) is False
    assert house.add(NEX, KAI, role="admin") is False and house.add(NEX, house.ann, role="admin") is False
    assert house.roles(group) == {"nex": "owner", "kai": "admin", "ann": "member"}
    assert house.stays(group, KAI) == [(1, None)] and house.facts() == []
    assert house.add(NEX, KAI, respond="all") is True
    assert house.roles(group)["kai"] == "admin"


def test_the_owner_cannot_leave_nor_be_removed_but_can_transfer(house: House) -> None:
    group = house.create(NEX, "core", KAI)
    house.role(NEX, KAI, "admin")
    for act in (
        lambda: house.do(group_members.leave, "core", house.actor(NEX)),
        lambda: house.remove(KAI, NEX),
        lambda: house.remove(BOSS_ID, NEX),
        lambda: house.remove(NEX, NEX),
        lambda: house.role(BOSS_ID, NEX, "member"),
    ):
        with pytest.raises(OwnerStays) as caught:
            act()
        assert "hiboss group transfer group:core" in caught.value.message
    assert house.transfer(NEX, KAI) is True
    assert house.roles(group) == {"kai": "owner", "nex": "admin"}
    house.do(group_members.leave, "core", house.actor(NEX))
    assert house.roles(group) == {"kai": "owner"}


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


def test_of_two_transfers_at_once_the_second_is_refused(house: House) -> None:
    group = house.create(NEX, "core", KAI, house.max)
    house.transfer(NEX, KAI)
    with pytest.raises(NotManager):
        house.transfer(NEX, house.max)
    assert house.roles(group) == {"kai": "owner", "nex": "admin", "max": "member"}


def test_admins_add_and_remove_members_and_only_the_owner_makes_or_removes_admins(house: House) -> None:
    group = house.create(NEX, "core", KAI, house.max)
    with pytest.raises(NotManager) as caught:
        house.add(KAI, house.ann)
    assert "the owner and the admins of group:core" in caught.value.message
    assert house.role(NEX, KAI, "admin") is True and house.role(NEX, KAI, "admin") is False
    house.add(KAI, house.ann)
    house.remove(KAI, house.ann)
    refused: list[Callable[[], object]] = [
        lambda: house.role(KAI, house.max, "admin"),
        lambda: house.add(KAI, house.ann, role="admin"),
        lambda: house.transfer(KAI, KAI),
    ]
    for act in refused:
        with pytest.raises(NotManager):
            act()
    house.role(BOSS_ID, house.max, "admin")  # the boss manages every group
    with pytest.raises(NotManager):
        house.remove(KAI, house.max)
    house.role(NEX, house.max, "member")
    house.remove(KAI, house.max)
    assert house.roles(group) == {"nex": "owner", "kai": "admin"}


def test_a_removed_member_neither_sends_nor_gets_anything_from_the_next_moment_on(house: House) -> None:
    group = house.create(NEX, "core", KAI, house.ann)
    assert house.got(house.send(NEX, CORE, text="one")) == {"kai", "ann"}
    house.remove(NEX, KAI)
    assert house.got(house.send(NEX, CORE, text="two")) == {"ann"}
    with pytest.raises(UnknownRecipient):  # to others a closed group is not there
        house.send(KAI, CORE)
    assert house.stays(group, KAI) == [(1, 1)]
    assert house.texts(group, KAI) == ["one"] and house.texts(group, house.ann) == ["one", "two"]


def test_who_comes_back_begins_a_new_stay_as_a_member_and_does_not_see_what_was_said_meanwhile(
    house: House,
) -> None:
    group = house.create(NEX, "core", KAI)
    house.role(NEX, KAI, "admin")
    house.send(NEX, CORE, text="one")
    house.remove(NEX, KAI)
    house.send(BOSS_ID, CORE, text="two")
    house.add(NEX, KAI)
    house.send(NEX, CORE, text="three")
    assert house.roles(group)["kai"] == "member"
    assert house.stays(group, KAI) == [(1, 1), (3, None)]
    assert house.texts(group, KAI) == ["one", "three"]
    assert house.texts(group, KAI, after=1) == ["three"] and house.texts(group, KAI, before=3) == ["one"]


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


def test_history_shows_a_newcomer_the_last_messages(house: House) -> None:
    group = house.create(NEX, "core", KAI, history=2)
    for text in ("one", "two", "three"):
        house.send(NEX, CORE, text=text)
    house.add(NEX, house.max)
    house.add(NEX, house.ann, history=0)
    house.add(NEX, BOSS_ID, history=100)
    house.send(NEX, CORE, text="four")
    assert house.texts(group, house.max) == ["two", "three", "four"]
    assert house.texts(group, house.ann) == ["four"]
    assert house.texts(group, BOSS_ID) == ["one", "two", "three", "four"]


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


def test_open_groups_can_be_joined_and_closed_ones_only_by_being_added(house: House) -> None:
    group = house.create(NEX, "core", open=True)
    row, changed = house.do(group_members.join, "core", house.actor(house.ann), None)
    assert (row["id"], changed) == (group, True)
    assert house.do(group_members.join, "core", house.actor(KAI), "all")[1] is True
    assert house.do(group_members.join, "core", house.actor(KAI), None)[1] is False
    with pytest.raises(NotMember) as caught:
        house.send(house.max, CORE)
    assert "hiboss group join core" in caught.value.message
    house.do(group_members.leave, "core", house.actor(KAI))
    house.do(groups.change, "core", house.actor(NEX), {"open": False})
    with pytest.raises(GroupClosed):  # it knows the group
        house.do(group_members.join, "core", house.actor(KAI), None)
    with pytest.raises(UnknownGroup):
        house.do(group_members.join, "core", house.actor(house.max), None)
    house.do(group_members.join, "core", house.actor(BOSS_ID), None)
    assert set(house.roles(group)) == {"nex", "ann", "boss"}


def test_a_closed_group_is_not_there_for_those_who_never_were_in_it(house: House) -> None:
    group = house.create(NEX, "core", KAI)
    stranger = house.actor(house.max)
    for which, error in (("core", UnknownGroup), ("CORE", UnknownGroup), (group, NotFound), (999, NotFound)):
        for act in (
            lambda which=which: groups.visible(house.connection, which, house.max),
            lambda which=which: house.do(group_members.add, which, stranger, house.address(house.max)),
            lambda which=which: house.do(group_members.remove, which, stranger, house.address(KAI)),
            lambda which=which: house.do(group_members.leave, which, stranger),
            lambda which=which: house.do(groups.delete, which, stranger, None),
            lambda which=which: house.do(groups.change, which, stranger, {"open": True}),
        ):
            with pytest.raises(error):
                act()
    with pytest.raises(UnknownGroup) as there:
        groups.visible(house.connection, "core", house.max)
    with pytest.raises(UnknownGroup) as nowhere:
        groups.visible(house.connection, "none", house.max)
    assert there.value.message.replace("core", "none") == nowhere.value.message


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
    assert house.got(house.send(NEX, CORE)) == {"folder:7"}
    assert "folder:7" in house.roles(group)


def test_a_chat_is_in_one_group_at_a_time(house: House) -> None:
    house.create(NEX, "core")
    house.create(NEX, "other")
    channel = Address("channel", "folder:7")
    house.do(group_members.add, "core", house.actor(NEX), channel)
    with pytest.raises(CannotBeMember) as caught:
        house.do(group_members.add, "other", house.actor(BOSS_ID), channel)
    assert "group:core" in caught.value.message
    house.do(group_members.remove, "core", house.actor(NEX), channel)
    house.do(group_members.add, "other", house.actor(NEX), channel)


def test_a_private_chat_of_the_boss_is_refused_and_the_boss_himself_named(house: House) -> None:
    house.create(NEX, "core")
    house.execute("UPDATE contact SET state = 'boss', kind = 'private' WHERE platform_id = '777'")
    with pytest.raises(CannotBeMember) as caught:
        house.do(group_members.add, "core", house.actor(NEX), Address("channel", "folder:777"))
    assert "user:boss" in caught.value.message
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
    with pytest.raises(CannotBeMember) as caught:
        house.add(NEX, house.ann)
    assert "agent:kai" in caught.value.message
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
