"""What asks look like in a conversation: the question, how to answer it, and how it ended. Nothing here prints."""

from __future__ import annotations

from ...core.address import BOSS
from ...core.escaping import name, quote, shell_word
from ..text_layout import cut, flat
from .asks import Ask
from .conversation import ConversationClient, Envelope
from .formatting import who

QUESTION = 200  # characters of one, where a line is about it
OPTION = 40  # of each option there


def question(one: Envelope, ask: Ask) -> Envelope:
    """The message of an ask without its last line, which names a command for another terminal."""
    lines = one["text"].rstrip().splitlines()
    if lines and lines[-1].startswith(f"To answer {ask['id']}: "):
        return one | {"text": "\n".join(lines[:-1])}
    return one


def below(ask: Ask, client: ConversationClient) -> str:
    """What to type to answer an ask, or how it ended; empty if it is not ours to answer."""
    if ask["state"] != "open":
        return ended(ask, client)
    ours = client.own in (ask["asked"], str(BOSS)) and client.own != ask["asker"]
    return f"to answer: {_command(ask)}" if ours else ""


def in_one_line(ask: Ask, client: ConversationClient, command: str = "/answer {} {}") -> str:
    """One line about an ask, with the command that answers it."""
    options = ", ".join(name(flat(one), OPTION) for one in ask["options"])
    asked = quote(cut(flat(ask["question"]), QUESTION))
    return (
        f"{flat(who(ask['asker'], client))} asks {ask['id']}: {asked} ({options}): {_command(ask, command)}"
    )


def ended(ask: Ask, client: ConversationClient) -> str:
    """One line about how an ask ended, and who did it."""
    said = f" ({quote(flat(ask['comment']))})" if ask["comment"] else ""
    by = flat(who(ask["answered_by"], client)) if ask["answered_by"] else ""
    if ask["state"] == "answered":
        return f"{by} answered {ask['id']}: {name(ask['answer'])}{said}"
    if ask["state"] == "cancelled":
        return f"{by} cancelled {ask['id']}{said}" if by else f"{ask['id']} was cancelled{said}"
    default = f"; the default counts: {name(ask['answer'])}" if ask["answer"] else ""
    return f"nobody answered {ask['id']} in time{default}"


def _command(ask: Ask, command: str = "/answer {} {}") -> str:
    return command.format(ask["id"], shell_word(ask["options"][0], "1"))
