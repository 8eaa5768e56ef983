"""Material for tests of groups in the store: who does what there, a moment later than what was before."""

from __future__ import annotations

from typing import Any

from hiboss.core.address import Address
from hiboss.core.envelope import Draft
from hiboss.store import conversations, group_members, groups, messages
from hiboss.store.groups import Actor
from hiboss.store.writer_cache import LiveAddress
from tests.store.chat_scene import BOSS_ID, NEX
from tests.store.route_cast import Cast

CORE = Address("group", "core")


class House(Cast):
    """Agents nex, kai and max, Ann, the boss, and a group `core` of nex."""

    def actor(self, number: int) -> Actor:
        [row] = self.execute("SELECT kind, name FROM address WHERE id = ?", number)
        return Actor(LiveAddress(number, Address(row["kind"], row["name"])), is_boss=number == BOSS_ID)

    def address(self, number: int) -> Address:
        return self.actor(number).entry.address

    def do(self, what: Any, *args: Any, **more: Any) -> Any:
        """Do something a moment later than what was before."""
        self.now += 1_000
        return self.write(lambda tx: what(tx, *args, self.now, **more))

    def create(self, owner: int = NEX, name: str = "core", *members: int, **fields: Any) -> int:
        row = self.do(groups.create, name, self.actor(owner), fields)
        for one in members:
            self.add(owner, one, row["id"])
        return int(row["id"])

    def add(self, by: int, who: int, group: int | str = "core", **more: Any) -> bool:
        _, changed = self.do(group_members.add, group, self.actor(by), self.address(who), **more)
        return bool(changed)

    def remove(self, by: int, who: int, group: int | str = "core") -> None:
        self.do(group_members.remove, group, self.actor(by), self.address(who))

    def role(self, by: int, who: int, role: str, group: int | str = "core") -> bool:
        _, changed = self.do(group_members.set_role, group, self.actor(by), self.address(who), role)
        return bool(changed)

    def transfer(self, by: int, who: int, group: int | str = "core") -> bool:
        _, changed = self.do(group_members.transfer, group, self.actor(by), self.address(who))
        return bool(changed)

    def send(self, sender: int, *to: Address, text: str = "hello", **facts: Any) -> int:
        facts.setdefault("sees_all", sender == BOSS_ID)
        draft = Draft(self.address(sender), sender, to, text, **facts)
        self.now += 1_000
        return int(self.write(lambda tx: messages.insert(tx, draft, self.now)).message)

    def roles(self, group: int) -> dict[str, str]:
        return {
            row["name"]: row["role"] for row in group_members.listed(self.connection, group)
        }  # those who manage it first

    def stays(self, group: int, who: int) -> list[tuple[int, int | None]]:
        return [
            (row["joined_seq"], row["left_seq"]) for row in group_members.stays(self.connection, group, who)
        ]

    def texts(self, group: int, who: int | None, **which: Any) -> list[str]:
        """Return the texts that somebody sees of a conversation."""
        row = groups.by_id(self.connection, group)
        assert row is not None
        parts = conversations.stretches(self.connection, row, who)
        found = conversations.piece(self.connection, conversations.Piece(group, parts, who, **which), 100)
        return [
            self.execute(
                "SELECT m.text FROM envelope e JOIN message m ON m.id = e.message WHERE e.id = ?", envelope
            )[0]["text"]
            for _, envelope in found
        ]

    def got(self, message: int) -> set[str]:
        rows = self.execute(
            "SELECT a.name FROM envelope e JOIN address a ON a.id = e.recipient WHERE e.message = ?", message
        )
        return {row["name"] for row in rows} - {"core"}
