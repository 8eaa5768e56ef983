"""Whom facts of a group concern: those who were in it when they happened, whoever is in it now."""

from __future__ import annotations

from hiboss.core.events import ControlSent, RunProgress, TypingChanged
from hiboss.store import fact_parties, groups
from tests.store.chat_scene import BOSS_ID, KAI, NEX
from tests.store.group_house import CORE, House


def progress(house: House, group: int) -> RunProgress:
    """Let nex say a part of an answer, a moment later than what was before."""
    house.now += 1_000
    return RunProgress(house.now, 1, NEX, group, 1, "text", "secret")


def test_who_joins_a_group_later_is_not_concerned_by_the_runs_from_before(house: House) -> None:
    group = house.create(NEX, "core", KAI)
    house.send(KAI, CORE)
    early = progress(house, group)
    house.add(NEX, house.ann)
    late = progress(house, group)
    assert set(fact_parties.concerned(house.connection, early).parties) == {NEX, KAI}
    assert set(fact_parties.concerned(house.connection, late).parties) == {NEX, KAI, house.ann}


def test_who_left_a_group_is_concerned_by_what_was_while_it_was_there(house: House) -> None:
    group = house.create(NEX, "core", KAI, house.ann)
    first = progress(house, group)
    house.remove(NEX, KAI)
    house.send(NEX, CORE)
    away = progress(house, group)
    house.add(NEX, KAI)
    back = progress(house, group)
    house.do(groups.delete, "core", house.actor(NEX), None)
    deleted = progress(house, group)
    seen = [KAI in fact_parties.concerned(house.connection, one).parties for one in (first, away, back)]
    assert seen == [True, False, True]
    assert fact_parties.concerned(house.connection, deleted).parties == (NEX,)


def test_typing_and_controls_of_a_group_concern_those_who_were_there(house: House) -> None:
    group = house.create(NEX, "core", KAI)
    message = house.send(NEX, CORE)
    typing = TypingChanged(house.now, NEX, group, True)
    control = ControlSent(house.now, 1, "pause", "applied", NEX, NEX, None, None, message)
    house.add(NEX, house.ann)
    assert fact_parties.concerned(house.connection, typing).parties == (KAI,)
    assert house.ann not in fact_parties.concerned(house.connection, control).parties


def test_who_gets_the_mail_of_a_member_is_concerned_from_then_on(house: House) -> None:
    group = house.create(NEX, "core", KAI)
    house.send(NEX, CORE)
    before = progress(house, group)
    house.order("handoff", house.max, actor=BOSS_ID, agent=KAI, conversation=group)
    after = progress(house, group)
    assert house.max not in fact_parties.concerned(house.connection, before).parties
    assert {KAI, house.max} <= set(fact_parties.concerned(house.connection, after).parties)


def test_the_parties_of_any_other_conversation_are_those_of_now(house: House) -> None:
    house.send(NEX, house.address(KAI))
    number = house.execute("SELECT max(conversation) AS c FROM message")[0]["c"]
    fact = RunProgress(0, 1, NEX, number, 1, "text", "hello")
    assert set(fact_parties.concerned(house.connection, fact).parties) == {NEX, KAI}
