"""What the press of a button of ours does: decide about a contact, or answer an ask.

It counts if the boss pressed it, under the post that has it, and if nobody did before. What takes a Tx runs
inside the writer.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from ..core.address import Address
from ..core.contracts.inbound import Inbound
from ..core.envelope import Lane
from ..core.errors import AskSettled, HibossError
from . import ask_answers, asks, buttons, contacts, platform_updates, speakers
from .connection import Row
from .group_commit import Tx
from .speakers import Answered


class Pressed(NamedTuple):
    """What became of a press."""

    answer: str  # for the person who pressed
    message: int | None = None  # whose buttons are not needed any more
    did: bool = False  # it did what the button says
    became: int | None = None  # the message that it became: an answer


def press(tx: Tx, binding: int, adapter: str, inbound: Inbound, chat: str, now: int) -> Pressed:
    """Do what a button says. `chat`: the id that the chat had when it was pressed."""
    button = buttons.find(tx, inbound.button)
    about = replace(inbound, reply_to=inbound.message)
    post = platform_updates.replied_to(tx, binding, adapter, about, chat)
    if button is None or not _is_under(tx, binding, adapter, inbound, button, post):
        return Pressed("This button does not belong to this message.")
    if not speakers.is_boss(tx, binding, adapter, inbound.author.id):
        return Pressed("Only the boss can decide this.")
    if button["action"] == "ask.answer":
        return _answer(tx, button, _place(tx, adapter, inbound), now)
    if button["decided"]:
        return Pressed("This was decided before.", button["message"])
    buttons.mark_pressed(tx, button["id"], now)
    return Pressed(_decide(tx, button, now), button["message"], did=True)


def _is_under(
    tx: Tx, binding: int, adapter: str, inbound: Inbound, button: Row, post: Answered | None
) -> bool:
    """Tell whether a button was pressed under its own message.

    A post that is not known is that message while it is being posted there: people can be faster than the
    platform's confirmation, which may also be lost.
    """
    if post is not None:
        return bool(post.message == button["message"])
    place = tx.cache.live_address(Address("channel", f"{adapter}:{inbound.place}"))
    return place is not None and buttons.is_being_posted(tx, button["message"], Lane(place.id, binding))


def _place(tx: Tx, adapter: str, inbound: Inbound) -> Address | None:
    """Return the chat where the boss pressed, if that is his own: what comes of it is shown there."""
    return Address("channel", f"{adapter}:{inbound.place}") if inbound.chat_kind == "private" else None


def _answer(tx: Tx, button: Row, place: Address | None, now: int) -> Pressed:
    """Answer an ask with the option of a button, whose argument is like 2:0 or 2:0:session."""
    ask, at, *scope = button["argument"].split(":")
    boss, row = tx.cache.reach().boss, asks.get(tx, int(ask))
    if boss is None or row is None:
        return Pressed("That question is not known any more.", button["message"])
    option = asks.options_of(row)[int(at)]
    try:
        settled = ask_answers.answer(
            tx, int(ask), option, boss, now, scope=scope[0] if scope else None, place=place
        )
    except AskSettled as late:
        return Pressed(f"Settled before: {late.first}.", button["message"])
    except HibossError as error:  # nothing was changed: it cannot be answered so
        return Pressed(error.message, None)
    return Pressed(f"q{ask}: {option}", button["message"], did=True, became=settled["reply"])


def _decide(tx: Tx, button: Row, now: int) -> str:
    contact = contacts.get(tx, int(button["argument"]))
    if contact is None:
        return "That chat is not known any more."
    if contact["state"] == "boss":
        return "That chat is yours."
    if button["action"] == "contact.approve":
        return "Approved." if contacts.approve(tx, contact, now) else "It was approved before."
    return "Blocked." if contacts.block(tx, contact, now) else "It was blocked before."
