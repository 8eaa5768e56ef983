"""Answers to asks that the boss writes in a chat: as replies to their posts, by the command, by an edit.

What takes a Tx runs inside the writer.
"""

from __future__ import annotations

import re

from ..core import ids
from ..core.address import Address
from ..core.choices import chosen, first_option
from ..core.contracts.inbound import Inbound
from ..core.envelope import Lane
from ..core.errors import AskSettled, BadChoice, HibossError
from ..core.escaping import name, visible
from . import ask_answers, ask_mail, ask_messages, asks, notices, platform_updates, speakers
from .group_commit import Tx

HOW = "Write for example: /answer q2 yes (and a comment, if you like)."
_COMMAND = re.compile(r"/answer(?:@\w+)?\s+", re.IGNORECASE)


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
    return int(settled["reply"] or settled["message"])  # as in `by_command`


def by_command(tx: Tx, words: str, boss: int, place: Address | None, now: int) -> tuple[str, int | None]:
    """Carry out `/answer q2 yes [comment]`; return what to tell the boss, and the message that it became."""
    option: str | None = None
    given, said = [*words.split(maxsplit=1), "", ""][:2]
    try:
        number = ids.number(given, "ask")
        row = ask_answers.visible(tx, number, None)
        option, comment = first_option(asks.options_of(row), said)
        if option is None:
            shown = ask_messages.options_list(row)
            raise BadChoice(id=f"q{number}", choice=said[:100] or "nothing", options=shown)
        settled = ask_answers.answer(tx, number, option, boss, now, comment=comment, place=place)
    except AskSettled as late:
        # The daemon may have died before it was noted that this very command was carried out.
        if late.by == "user:boss" and late.answer == option:
            return f"{late.id} is answered: {name(option or '')}.", None
        return f"{visible(late.message)}.", None
    except HibossError as error:
        return f"{visible(error.message)}. {HOW}", None
    # A question that a turn waits for has no reply of its own: then this belongs to the question.
    became = int(settled["reply"] or settled["message"])
    return f"q{number} is answered: {name(settled['answer'])}.", became


# --- edited --------------------------------------------------------------------------


def edited(tx: Tx, binding: int, adapter: str, inbound: Inbound, known: int | None, now: int) -> bool:
    """Tell the boss that an answer stays as it was, if he edited one. `known`: what it had become."""
    ask = ask_mail.about(tx, known)
    if ask is None:
        return False
    row = asks.need(tx, ask)
    command = _COMMAND.match(inbound.text)
    said = inbound.text[command.end() :].partition(f"q{ask}")[2] if command else inbound.text
    if first_option(asks.options_of(row), said) != (row["answer"], row["comment"] or ""):
        place = Address("channel", f"{adapter}:{inbound.place}")
        _tell(tx, place, binding, f"q{ask} was answered before: {name(row['answer'] or 'nothing')}.", now)
    return True


def edited_command(tx: Tx, binding: int, adapter: str, inbound: Inbound, now: int) -> tuple[bool, int | None]:
    """Carry out what an edit made an `/answer` of the boss; return whether it is one, and what it became."""
    command = _COMMAND.match(inbound.text)
    boss = tx.cache.reach().boss
    if command is None or boss is None or inbound.chat_kind != "private" or inbound.forwarded is not None:
        return False, None
    if not speakers.is_boss(tx, binding, adapter, inbound.author.id):
        return False, None
    place = Address("channel", f"{adapter}:{inbound.place}")
    text, became = by_command(tx, inbound.text[command.end() :], boss, place, now)
    _tell(tx, place, binding, text, now)
    return True, became


def _tell(tx: Tx, place: Address, binding: int, text: str, now: int) -> None:
    entry = tx.cache.live_address(place)
    notices.answer_command(tx, None if entry is None else Lane(entry.id, binding), text, now)
