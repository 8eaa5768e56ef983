"""Material for tests of routes and handoffs: the scene of chats, with agent max and Ann, who serve no account."""

from __future__ import annotations

from typing import Any

from hiboss.core.address import Address
from hiboss.core.envelope import Draft
from hiboss.store import (
    agents,
    control_targets,
    controls,
    envelope_marks,
    envelopes,
    handoffs,
    messages,
    posts,
    route_moves,
    users,
)
from hiboss.store.controls import Control, Decision, Order
from hiboss.store.group_commit import Tx
from tests.store.chat_scene import BOSS_ID, PRIVATE, Scene

BOB = Address("channel", "folder:7")


class Cast(Scene):
    """The scene of chats, with agent max and Ann, who serve no account."""

    def __init__(self, chat: Scene) -> None:
        self.__dict__ = chat.__dict__
        self.max = self.write(lambda tx: agents.register(tx, "max", {}, self.now))
        self.execute("UPDATE agent SET mode = 'run', provider = 'demo' WHERE address = ?", self.max)
        self.ann = self.write(lambda tx: users.register(tx, "ann", "Ann", self.now))

    def order(self, event: str, to: int, *, actor: int = BOSS_ID, **which: Any) -> Decision:
        """Carry out an order as hiboss/agents/controls.py does: what it changes, and its record."""
        self.now += 1_000
        order = Order(event, actor, "the boss" if actor == BOSS_ID else "somebody", to=to, **which)
        named = {key: which.get(key) for key in ("agent", "conversation", "envelope")}
        change = {"route": route_moves.route, "handoff": handoffs.handoff}[event]

        def write(tx: Tx) -> Decision:
            target = control_targets.find(tx, **named)
            decision = change(tx, order, target, self.now)
            known = {**named, "agent": target.agent, "destination": to, "reason": order.reason}
            record = Control(event, actor, **known)
            number = controls.record(tx, record, decision.outcome, decision.why, self.now).control
            if decision.recorded is not None:
                decision.recorded(tx, number)
            return decision

        return self.write(write)

    def bob(self, text: str) -> int:
        """Let Bob write in his private chat; return the message."""
        accepted = self.comes_in(**PRIVATE, text=text, message=f"p-{text}").accepted
        assert accepted is not None
        return accepted.message

    def conversation(self, message: int) -> int:
        return int(self.execute("SELECT conversation FROM message WHERE id = ?", message)[0]["conversation"])

    def who_got(self, message: int) -> dict[str, str]:
        """Return who has an envelope of a message: pending, done, copy …"""
        rows = self.execute(
            """
            SELECT a.name, e.status, e.routed_from = e.recipient AS is_copy FROM envelope e
            JOIN address a ON a.id = e.recipient WHERE e.message = ? ORDER BY e.id
            """,
            message,
        )
        words = ["pending", "done", "failed", "cancelled"]
        return {row["name"]: "copy" if row["is_copy"] else words[row["status"]] for row in rows}

    def envelope(self, message: int, to: int) -> int:
        rows = self.execute("SELECT id FROM envelope WHERE message = ? AND recipient = ?", message, to)
        return int(rows[0]["id"])

    def reads(self, who: int, message: int) -> None:
        """Let somebody read what lies in the box."""
        number = self.envelope(message, who)
        self.write(lambda tx: envelope_marks.mark_read(tx, [number], who, self.now))

    def send(self, sender: int, *to: Address, text: str = "hello", **facts: Any) -> int:
        row = self.execute("SELECT kind, name FROM address WHERE id = ?", sender)[0]
        draft = Draft(Address(row["kind"], row["name"]), sender, to, text, **facts)
        self.now += 1_000
        return self.write(lambda tx: messages.insert(tx, draft, self.now)).message

    def posted(self, message: int, place: int, platform_id: str) -> None:
        """Let a message have been posted to a place, with this id of the platform."""
        number = self.envelope(message, place)
        self.write(lambda tx: posts.plan(tx, number, ["text"]))
        self.execute("UPDATE post SET platform_id = ?, posted_at = 1 WHERE envelope = ?", platform_id, number)
        self.write(lambda tx: envelopes.done(tx, number, self.now))

    def told(self, who: int) -> list[str]:
        """Return what hiboss itself wrote to somebody."""
        return [
            row["text"]
            for row in self.execute(
                """
                SELECT m.text FROM envelope e JOIN message m ON m.id = e.message
                JOIN address a ON a.id = m.sender AND a.fold = 'agent:system'
                WHERE e.recipient = ? ORDER BY m.id
                """,
                who,
            )
        ]
