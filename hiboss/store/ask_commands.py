"""The command /answer of the boss: `/answer q2 yes`, and what to tell him.

What takes a Tx runs inside the writer.
"""

from __future__ import annotations

from ..core import ids
from ..core.choices import first_option
from ..core.errors import AskSettled, BadChoice, HibossError
from ..core.escaping import name, visible
from . import ask_answers, ask_messages, ask_replies, asks
from .commands import Order
from .group_commit import Tx

HOW = "Write for example: /answer q2 yes (and a comment, if you like)."


def answer(tx: Tx, order: Order, now: int) -> str:
    """Carry out `/answer q2 yes [comment]`; return what to tell the boss."""
    option: str | None = None
    given, _, words = order.arguments.strip().partition(" ")
    try:
        number = ids.number(given, "ask")
        row = ask_answers.visible(tx, number, None)
        option, comment = first_option(asks.options_of(row), words)
        if option is None:
            raise BadChoice(
                id=f"q{number}", choice=words[:100] or "nothing", options=ask_messages.options_list(row)
            )
        place = None if order.place is None else ask_replies.address_of(tx, order.place.address)
        settled = ask_answers.answer(tx, number, option, order.boss, now, comment=comment, place=place)
    except AskSettled as late:
        # The daemon may have died before it was noted that this very command was carried out.
        if late.by == "user:boss" and late.answer == option:
            return f"{late.id} is answered: {name(option or '')}."
        return f"{visible(late.message)}."
    except HibossError as error:
        return f"{visible(error.message)}. {HOW}"
    # What the agent says to it is posted where the command was given.
    tx.execute("UPDATE platform_update SET message = ? WHERE id = ?", (settled["reply"], order.number))
    return f"q{number} is answered: {name(settled['answer'])}."
