"""Who wrote what came in from a platform, and to whom it goes.

`user:boss` is the sender of what the boss writes in a private chat of his, wherever that is: it belongs
to his conversation with the agents of the binding. In a group the chat is the sender, and `from_boss`
says that he wrote it.
"""

from __future__ import annotations

from typing import NamedTuple

from ..core.address import BACKGROUND, BOSS, SYSTEM, Address
from ..core.contracts.inbound import Inbound
from . import group_delivery, identities, stand_ins
from .agent_routing import route
from .connection import Row
from .group_commit import Tx


class Answered(NamedTuple):
    """What something that came in replies to."""

    message: int | None  # of a post that still grows: what its run answers
    writer: int  # address id
    stands_for: bool = False  # it is not that message itself, but a live post


class Speaker(NamedTuple):
    """The sender of a message that came in, and its recipients: the fields of its draft."""

    sender: Address
    place: Address | None  # where it was written, if the sender does not say it
    from_boss: bool
    to: tuple[Address, ...]
    gone: tuple[int, ...] = ()  # address ids of recipients who were deleted
    context: bool = False  # it was said in a group, and is for nobody of us

    @property
    def has_recipients(self) -> bool:
        """False: the account serves no agent any more."""
        return bool(self.to or self.gone)


def speaker(tx: Tx, binding: int, adapter: str, inbound: Inbound, answers: Answered | None) -> Speaker:
    """Return who wrote something, and to whom it goes."""
    place = Address("channel", f"{adapter}:{inbound.place}")
    answers = _in_its_place(tx, answers)
    to, context = route(tx, binding, adapter, inbound, None if answers is None else answers.writer)
    own = inbound.forwarded is None  # what he passes on is not his word
    # What a machine sends is never his word, wherever it comes in.
    private = inbound.chat_kind == "private" and not inbound.auto
    in_his_chat = private and is_boss(tx, binding, adapter, inbound.chat)
    group = group_delivery.of_channel(tx, place) if to and not in_his_chat else None
    if group is not None:  # the chat is a member of a group of ours: what is written there is for all of it
        to, context = (group,), False
    if inbound.chat_kind != "private":
        from_boss = own and is_boss(tx, binding, adapter, inbound.author.id)
        return Speaker(place, None, from_boss, to, context=context)
    if not in_his_chat:
        return Speaker(place, None, False, to)
    found = [] if answers is None or not to else _parties(tx, answers)
    live = tuple(Address(one["kind"], one["name"]) for one in found if one["retired_at"] is None)
    gone = tuple(one["id"] for one in found if one["retired_at"] is not None)
    return Speaker(BOSS, place, own, live if found else to, gone)


def _in_its_place(tx: Tx, answers: Answered | None) -> Answered | None:
    """Return what is answered as written by the agent in whose place somebody writes there now.

    So the answer is for the agent, like everything in that conversation, and goes where its mail goes.
    """
    if answers is None or answers.message is None or answers.stands_for:
        return answers
    row = tx.execute("SELECT conversation FROM message WHERE id = ?", (answers.message,)).fetchone()
    instead = stand_ins.stood_in_for(tx, row["conversation"], answers.writer)
    return answers if not instead else answers._replace(writer=instead[0].id)


def is_boss(tx: Tx, binding: int, adapter: str, person: str | None) -> bool:
    """Tell whether a person is the boss: by his id there, or because a private chat is his.

    Such a chat has the same platform id as the person.
    """
    if person is None:
        return False
    row = tx.execute(
        "SELECT 1 FROM contact WHERE binding = ? AND platform_id = ? AND state = 'boss'", (binding, person)
    ).fetchone()
    return row is not None or identities.is_boss(tx, adapter, person)


def _group_of(tx: Tx, answers: Answered) -> Row | None:
    """Return the group in which something was said that the boss answers: so his reply is for all of it."""
    row: Row | None = tx.execute(
        """
        SELECT a.* FROM message m JOIN conversation c ON c.id = m.conversation AND c.kind = 'group'
            AND c.deleted_at IS NULL
        JOIN address a ON a.id = c.address AND a.retired_at IS NULL
        WHERE m.id = ?
        """,
        (answers.message,),
    ).fetchone()
    return row


def _parties(tx: Tx, answers: Answered) -> list[Row]:
    """Return who gets a reply of the boss: who wrote what he answers; if he did, those who got it then.

    Also who was deleted since: nobody else may get it. Nobody: it was a notice, or a note to himself.
    """
    writer = tx.execute("SELECT * FROM address WHERE id = ?", (answers.writer,)).fetchone()
    if answers.message is not None and stand_ins.was_routed(tx, answers.message, BOSS):
        return [writer]  # he has it in the place of an agent
    if (group := _group_of(tx, answers)) is not None:
        return [group]
    # What came in from a chat before it was his is from the chat: that was him too.
    own = writer["kind"] == "channel" or Address(writer["kind"], writer["name"]) == BOSS
    rows = (
        tx.execute(
            """
            SELECT a.* FROM envelope e JOIN address a ON a.id = e.recipient
            WHERE e.message = ? AND a.kind IN ('agent', 'user') ORDER BY e.id
            """,
            (answers.message,),
        ).fetchall()
        if own
        else [writer]
    )
    return [one for one in rows if Address(one["kind"], one["name"]) not in (SYSTEM, BACKGROUND, BOSS)]
