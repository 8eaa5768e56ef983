"""Answers to asks that the boss writes in a chat, as replies to their posts.

What takes a Tx runs inside the writer.
"""

from __future__ import annotations

from ..core.address import Address
from ..core.choices import chosen
from ..core.contracts.inbound import Inbound
from ..core.envelope import Lane
from ..core.errors import AskSettled, HibossError
from . import ask_answers, asks, notices, platform_updates, speakers
from .group_commit import Tx


def answer(tx: Tx, binding: int, adapter: str, inbound: Inbound, chat: str, now: int) -> int | None:
    """Take a reply of the boss to the post of an ask as its answer, if its whole text is an option.

    Return the message that it became; None: it is an ordinary message. So is what comes too late, and the
    boss is told who was first.
    """
    if inbound.reply_to is None or inbound.chat_kind != "private" or inbound.forwarded is not None:
        return None
    replied = platform_updates.replied_to(tx, binding, adapter, inbound, chat)
    ask = None if replied is None or replied.stands_for else ask_answers.of_message(tx, replied.message)
    boss = tx.cache.reach().boss
    if ask is None or boss is None or not speakers.is_boss(tx, binding, adapter, inbound.author.id):
        return None
    option = chosen(asks.options_of(ask), inbound.text)
    if option is None:
        return None
    place = Address("channel", f"{adapter}:{inbound.place}")
    try:
        settled = ask_answers.answer(tx, ask["id"], option, boss, now, place=place)
    except AskSettled as late:
        _tell(tx, place, binding, late.message, now)
        return None
    except HibossError:  # he asked it himself
        return None
    # A question that a turn waits for has no reply of its own: then this belongs to the question.
    return int(settled["reply"] or settled["message"])


def _tell(tx: Tx, place: Address, binding: int, text: str, now: int) -> None:
    entry = tx.cache.live_address(place)
    notices.answer_command(tx, None if entry is None else Lane(entry.id, binding), text, now)
