"""Whatever is sent and changed in whatever order, the store is the same with kept destinations and without."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hiboss.core.address import Address
from hiboss.core.envelope import Draft
from hiboss.store import agents, group_members, groups, messages, users
from hiboss.store.group_commit import Tx
from hiboss.store.writer_cache import LiveAddress, WriterCache
from tests.store.chat_scene import BOSS_ID
from tests.store.group_house import House
from tests.store.written_house import Operation, Template, WrittenHouse, written_house

pytestmark = pytest.mark.slow

NAMES = ("agent:nex", "agent:kai", "agent:max", "user:ann", "user:boss", "agent:Kai", "group:core")
TABLES = ("message", "envelope", "participant", "unread", "conversation", "address", "conversation_route")
CORE, TALK = 3, 4  # numbers of conversations: the group, and the first one that is begun
Before = Callable[[WriterCache], None]


class Step(NamedTuple):
    """One operation: what it is, and with which of the few names and numbers there are."""

    what: str
    who: str = "agent:nex"
    to: tuple[str, ...] = ("agent:kai",)
    number: int = 1  # of a conversation
    fails: bool = False  # after its work


def address(text: str) -> Address:
    kind, _, name = text.partition(":")
    return Address(kind, name)


def now_of(tx: Tx, text: str) -> LiveAddress:
    return tx.cache.live_address(address(text)) or LiveAddress(4711, address(text))


def send(tx: Tx, step: Step, now: int) -> Any:
    caller = now_of(tx, step.who)
    to = tuple(address(one) for one in step.to)
    return messages.insert(tx, Draft(address(step.who), caller.id, to, "x", caller.id == BOSS_ID), now)


def change(tx: Tx, step: Step, house: WrittenHouse, now: int) -> Any:
    boss, name = house.actor(BOSS_ID), step.who.partition(":")[2]
    if step.what == "leave":
        return (
            users.delete(tx, users.get(tx, name), now) if "user" in step.who else agents.delete(tx, name, now)
        )
    if step.what == "come":
        return (
            users.register(tx, name, name, now) if "user" in step.who else agents.register(tx, name, {}, now)
        )
    if step.what in ("archive", "reopen"):
        return groups.archive(tx, step.number, boss, step.what == "archive", now)[1]
    if step.what == "delete":
        return groups.delete(tx, step.number, boss, None, now)[1]
    if step.what == "join":
        return group_members.add(tx, "core", boss, address(step.who), now)[1]
    assert step.what == "part", step
    return tuple(group_members.remove(tx, "core", boss, address(step.who), now))


class _Planned(House):
    """Returns what a house would write, and writes nothing."""

    def __init__(self, house: WrittenHouse) -> None:
        self.__dict__ = {**house.__dict__}

    def write(self, operation: Any) -> Any:
        return operation


def operation(house: WrittenHouse, step: Step, before: Before) -> Operation:
    house.now += 1_000
    now = house.now

    def run(tx: Tx) -> Any:
        before(tx.cache)
        if step.what == "send":
            result = send(tx, step, now)
        elif step.what in ("route", "handoff"):
            agent, to = now_of(tx, step.to[0]).id, now_of(tx, step.who).id
            order: Any = _Planned(house).order(step.what, to, agent=agent, conversation=step.number)
            result = order(tx).outcome
        else:
            result = change(tx, step, house, now)
        if step.fails:
            raise ValueError("after its work")
        return result

    return run


def nothing(cache: WriterCache) -> None:
    pass


def forget(cache: WriterCache) -> None:
    """Let the cache know nobody, no conversation and no route: everything is read again."""
    cache._forget_addresses()
    cache.forget_conversations()
    cache.forget_routes()
    cache.forget_closed()


def told(house: WrittenHouse, story: list[list[Step]], before: Before) -> tuple[list[Any], dict[str, Any]]:
    """Return the outcome of each step and what is stored afterwards."""
    outcomes: list[Any] = []
    for group in story:
        for one in house.group(*[operation(house, step, before) for step in group]):
            outcomes.append((type(one), str(one)) if isinstance(one, Exception) else one)
    return outcomes, {table: house.execute(f"SELECT * FROM {table} ORDER BY 1, 2, 3") for table in TABLES}


SENDS = st.builds(
    Step,
    st.just("send"),
    st.sampled_from(NAMES[:5]),
    st.lists(st.sampled_from(NAMES), min_size=1, max_size=2, unique=True).map(tuple),
    fails=st.sampled_from([False, False, False, True]),
)
CHANGES = st.builds(
    Step,
    st.sampled_from(["leave", "come", "archive", "reopen", "delete", "join", "part", "route", "handoff"]),
    st.sampled_from(NAMES[:4]),
    st.sampled_from(NAMES[:3]).map(lambda one: (one,)),
    st.integers(CORE, CORE + 5),
    st.sampled_from([False, False, False, True]),
)
STORIES = st.lists(st.lists(SENDS | CHANGES, min_size=1, max_size=5), min_size=1, max_size=8)
SENT, TO_ANN = Step("send"), Step("send", to=("user:ann",))
IN_PLACE = Step("send", "agent:max", ("user:ann",))
JOINED = [Step("join", "agent:kai"), IN_PLACE]


@settings(max_examples=40)
@example([[SENT, Step("archive", number=TALK), SENT], [Step("reopen", number=TALK)], [SENT]])
@example([[SENT], [Step("route", "agent:max", number=TALK), SENT], [Step("leave", "agent:max"), SENT]])
@example([[SENT], [Step("leave", "agent:kai"), Step("come", "agent:kai"), SENT]])
@example([[TO_ANN], [Step("leave", "user:ann"), Step("come", "user:ann")], [TO_ANN]])
@example(
    [
        [SENT],
        [Step("handoff", "agent:max", number=TALK), SENT],
        [Step("route", "agent:kai", number=TALK), SENT],
    ]
)
@example([[SENT], [Step("delete", number=TALK), SENT]])
@example([[SENT], [Step("leave", "agent:kai", fails=True), SENT], [SENT]])
@example([[Step("join", "user:ann"), Step("route", "agent:max", ("agent:nex",), CORE), IN_PLACE], JOINED])
@given(story=STORIES)
def test_the_rows_are_the_same_with_kept_destinations_and_without(
    empty: Template, story: list[list[Step]]
) -> None:
    found = []
    for before in (nothing, forget):
        with tempfile.TemporaryDirectory() as made, written_house(empty, Path(made) / "copy") as house:
            assert house.create() == CORE
            found.append(told(house, story, before))
    assert found[0] == found[1]
