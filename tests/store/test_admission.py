"""Whom the boss is asked about, what is held of strangers meanwhile, and whose code is the boss's."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hiboss.core.contracts.inbound import Author, Inbound
from hiboss.store import admission, bindings, contacts, identities, intake, pairing, places
from hiboss.store.connection import Connection, Row
from hiboss.store.group_commit import Tx
from hiboss.store.intake import NewUpdate
from tests.store.chat_scene import Scene
from tests.store.test_flat import NEX_ID, NOW, SETTLED, filled, not_flat, steps, write

BINDING = 1
CHATS = admission.HELD_PER_BINDING // admission.HELD_PER_CHAT  # so many fill the house


class Door:
    """A binding that holds what strangers write."""

    def __init__(self, chat: Scene) -> None:
        self.chat = chat
        self._numbers = itertools.count(1)
        chat.execute("UPDATE binding SET closed = 1")

    def comes(self, chat: str, text: str = "hello", **facts: Any) -> str:
        """Let something come in; return its outcome."""
        given = {"author": Author(id=chat, name=f"Stranger {chat}"), **facts}
        about = Inbound(chat=chat, text=text, **given)
        update = f"d{next(self._numbers)}"
        new = NewUpdate(update, chat, update, "{}", about=about)
        self.chat.write(lambda tx: intake.take(tx, self.chat.binding, [new], None, self.chat.now))
        return self.chat.outcome()

    def contact(self, chat: str) -> dict[str, Any]:
        (row,) = self.chat.execute("SELECT * FROM contact WHERE platform_id = ?", chat)
        return row

    def decides(self, chat: str, decision: Callable[[Tx, Row, int], bool]) -> None:
        def write(tx: Tx) -> bool:
            row = places.contact_of(tx, self.chat.binding, chat)
            assert row is not None
            return decision(tx, row, self.chat.now)

        assert self.chat.write(write)

    def held(self, chat: str = "%") -> int:
        query = "SELECT count(*) AS number FROM platform_update WHERE outcome = 'held' AND chat LIKE ?"
        return int(self.chat.execute(query, chat)[0]["number"])

    def asked_about(self, chat: str) -> int:
        """Return how often the boss was asked about a chat."""
        query = "SELECT count(*) AS number FROM message WHERE text LIKE ? AND text LIKE '%wants to write to%'"
        return int(self.chat.execute(query, f"%(id {chat})%")[0]["number"])

    def codes_are_over(self) -> None:
        self.chat.execute("UPDATE contact SET pairing_until = 1 WHERE pairing_until IS NOT NULL")

    def fill(self) -> None:
        """Let strangers write until there is no more room for any of them."""
        for stranger in range(CHATS):
            for _ in range(admission.HELD_PER_CHAT):
                assert self.comes(f"s{stranger}") == "held"

    def boss_code(self) -> str:
        return self.chat.write(lambda tx: pairing.new_boss_code(tx, self.chat.now))

    def is_boss(self, chat: str) -> bool:
        return self.chat.write(lambda tx: identities.is_boss(tx, "folder", chat))


@pytest.fixture
def door(scene: Scene) -> Door:
    return Door(scene)


# --- strangers -------------------------------------------------------------------------


def test_a_stranger_with_twenty_held_messages_is_asked_about_again_when_the_code_is_over(door: Door) -> None:
    outcomes = [door.comes("s") for _ in range(admission.HELD_PER_CHAT + 1)]
    assert outcomes == ["held"] * admission.HELD_PER_CHAT + ["ignored"]
    first = door.contact("s")["pairing"]
    assert door.asked_about("s") == 1
    door.codes_are_over()
    assert door.comes("s", "may I?") == "ignored"  # no more is held
    assert door.asked_about("s") == 2 and door.contact("s")["pairing"] not in (None, first)
    assert door.contact("s")["pairing_until"] > door.chat.now
    assert door.comes("s", "may I now?") == "ignored" and door.asked_about("s") == 2


def test_a_full_house_of_strangers_still_lets_a_new_one_ask(door: Door) -> None:
    door.fill()
    door.codes_are_over()
    assert door.comes("honest", "the house burns") == "held" and door.asked_about("honest") == 1
    assert door.contact("honest")["pairing_until"] > door.chat.now
    assert door.held() == admission.HELD_PER_BINDING
    assert (door.held("s0"), door.held("s1")) == (admission.HELD_PER_CHAT - 1, admission.HELD_PER_CHAT)


def test_in_a_full_house_who_has_no_valid_code_gives_way(door: Door) -> None:
    door.fill()
    asking = [f"s{number}" for number in range(pairing.MOST_ASKING)]
    assert [door.asked_about(one) for one in asking] == [1] * pairing.MOST_ASKING
    assert door.asked_about(f"s{pairing.MOST_ASKING}") == 0
    assert door.comes("honest") == "held"
    assert [door.held(one) for one in asking] == [admission.HELD_PER_CHAT] * pairing.MOST_ASKING
    assert door.held(f"s{pairing.MOST_ASKING}") == admission.HELD_PER_CHAT - 1
    (dropped,) = door.chat.execute("SELECT chat, raw FROM platform_update WHERE outcome = 'ignored'")
    assert dropped == {"chat": f"s{pairing.MOST_ASKING}", "raw": None}


# --- the boss's code -------------------------------------------------------------------


def test_a_chat_that_was_blocked_can_still_pair_with_the_boss_s_code(door: Door) -> None:
    door.comes("ivy")
    door.decides("ivy", contacts.block)
    code = door.boss_code()
    assert door.comes("ivy", "let me in") == "blocked"
    assert door.comes("ivy", code) == "paired" and door.contact("ivy")["state"] == "boss"
    assert door.is_boss("ivy")


@pytest.mark.parametrize("before", ["", "@nexbot "])
@pytest.mark.parametrize("state", ["asking", "allowed", "blocked"])
def test_a_boss_code_that_was_posted_in_a_group_counts_no_more(door: Door, state: str, before: str) -> None:
    eve = Author(id="eve", name="Eve")
    group: dict[str, Any] = {"chat_kind": "group", "title": "ops", "author": eve, "mentioned": True}
    door.comes("-5", **group)
    if state != "asking":
        door.decides("-5", contacts.approve if state == "allowed" else contacts.block)
    code = door.boss_code()
    assert door.comes("-5", before + code, **group) != "paired"
    assert door.comes("eve", code) == "held"  # like any words of a stranger
    assert (door.is_boss("eve"), door.contact("eve")["state"]) == (False, "asking")


# --- what it costs ---------------------------------------------------------------------


def with_waiting(connection: Connection, size: int) -> None:
    """Let so many updates wait in many chats, and behind them that the group -9 is -99 now."""
    tx = Tx(connection)
    new = bindings.NewBinding("folder", "mine", {}, closed=True)
    assert bindings.add(tx, new, NEX_ID, NOW).binding == BINDING
    tx.cache.flush()
    connection.execute(
        f"""
        WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < {size})
        INSERT INTO platform_update (binding, update_id, chat, received_at, raw)
        SELECT {BINDING}, n, n % 100, n, '{{"message":1}}' FROM t
        """
    )
    connection.execute(
        "INSERT INTO contact (binding, platform_id, kind, state, created_at)"
        " VALUES (?, '-9', 'group', 'blocked', 1)",
        (BINDING,),
    )
    connection.execute(
        "INSERT INTO platform_update (binding, update_id, chat, received_at, raw)"
        " VALUES (?, 'renamed', '-9', 1, ?)",
        (BINDING, '{"act":{"renamed_to":"-99"},"raw":1}'),
    )


def refused(tx: Tx, chat: str) -> str | None:
    binding = admission.binding_of(tx, BINDING)
    assert binding is not None
    about = Inbound(chat=chat, chat_kind="group", text="hello", author=Author(id="7", name="Bob"))
    return admission.refused(tx, binding, chat, about, None, NOW)


@pytest.mark.slow
def test_looking_for_a_renaming_costs_the_same_behind_many_waiting_updates(tmp_path: Path) -> None:
    statements = {
        "a group that was renamed": write(lambda tx, size: refused(tx, "-99")),
        "a group that is new": write(lambda tx, size: refused(tx, "-98")),
    }
    assert not_flat(tmp_path, SETTLED, statements, large=20_000, prepare=with_waiting) == {}


def test_the_renaming_that_is_looked_for_is_found(tmp_path: Path) -> None:
    with filled(tmp_path, SETTLED, 10) as connection:
        with_waiting(connection, 10)
        assert refused(Tx(connection), "-99") == "blocked" and refused(Tx(connection), "-98") == "ignored"
        assert steps(connection, write(lambda tx, size: refused(tx, "-98")), 10) > 0
