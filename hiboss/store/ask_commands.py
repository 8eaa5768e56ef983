"""The command /answer of the boss: `/answer q2 yes`, and what to tell him.

What takes a Tx runs inside the writer.
"""

from __future__ import annotations

from . import ask_replies, chat_answers
from .commands import Order
from .group_commit import Tx


def answer(tx: Tx, order: Order, now: int) -> str:
    """Carry out `/answer q2 yes [comment]`; return what to tell the boss."""
    place = None if order.place is None else ask_replies.address_of(tx, order.place.address)
    text, became = chat_answers.by_command(tx, order.arguments, order.boss, place, now)
    if became is not None:  # what the agent says to it is posted where the command was given
        tx.execute("UPDATE platform_update SET message = ? WHERE id = ?", (became, order.number))
    return text
