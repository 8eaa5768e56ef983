"""What people and agents read about asks."""

from __future__ import annotations

import json
import re

from ..core.clock import local, zone
from ..core.escaping import exposed, exposed_lines, name, quote, shell_word, visible
from ..core.shortening import shorten
from .boss import boss_timezone
from .connection import Connection, Row
from .group_commit import Tx

SHOWN_CHARACTERS = 200  # of a question, where it is only named
TOOL_CHARACTERS = 2_500  # of what a tool would do, where a chat shows it: one post on every platform
END_CHARACTERS = 800  # of these, for the end of what is too long: it must not be pushed out of sight
SUBJECT_CHARACTERS = 1_500  # of what a rule would be about
POST_CHARACTERS = 3_500  # of a text that is one post, with the buttons under it
_GAP = re.compile(r"\s{3,}")


def question(
    tx: Tx | Connection,
    number: int,
    text: str,
    options: tuple[str, ...],
    *,
    until: int | None,
    fallback: str | None,
) -> str:
    """Return the text of an ask: the question, its options, its end, and how to answer it."""
    numbered = [f"{at}. {visible(one)}" for at, one in enumerate(options, 1)]
    lines = [text.rstrip(), "", *numbered]
    if until is not None:
        end = local(until, zone(boss_timezone(tx)))
        then = "it ends without an answer" if fallback is None else f"the answer is {name(fallback)}"
        lines.append(f"Without an answer by {end} {then}.")
    lines.append(f"To answer q{number}: {command(number, options)}")
    return "\n".join(lines)


def body(number: int, text: str, tool: str | None, subject: str | None) -> str:
    """Return what is asked as a chat shows it. Of a permission, first what a rule would be about.

    Nothing in that can be hidden, nor pushed out of sight by what follows.
    """
    if not tool:
        return in_short(number, text)
    lines = [f"Tool: {exposed(tool)}"]
    if subject:
        shown = exposed(subject)
        whole = len(shown) <= SUBJECT_CHARACTERS
        all_of_it = f"… (to read all: hiboss ask get q{number})"
        lines.append(f"For exactly: {shown if whole else shown[:SUBJECT_CHARACTERS] + all_of_it}")
        text = text.removesuffix(f"\n\n{subject}")
    rest = exposed_lines(_GAP.sub(_narrow, text.strip()))
    return "\n".join([*lines, "", in_short(number, rest, TOOL_CHARACTERS - sum(map(len, lines)))])


def _narrow(gap: re.Match[str]) -> str:
    """Return less of a gap that would push the rest of a text out of sight."""
    if gap[0].count("\n") > 2:
        return "\n\n"
    return " … " if len(gap[0]) >= 40 else gap[0]


def shows_all(text: str, tool: str | None, subject: str | None) -> bool:
    """Tell whether a message shows all that a rule would be about, in one post with its buttons."""
    head = f"Tool: {exposed(tool or '')}\nFor exactly: {exposed(subject or '')}\n"
    return text.startswith(head) and len(text) <= POST_CHARACTERS


def in_short(number: int, text: str, most: int = TOOL_CHARACTERS) -> str:
    """Return what somebody asks as a message shows it: what a tool would do can be a megabyte."""
    most = max(most, 2 * END_CHARACTERS)
    if len(text) <= most:
        return text
    begin, end = text[: most - END_CHARACTERS], text[-END_CHARACTERS:]
    left = f"({len(text) - most} more characters; to read all: hiboss ask get q{number})"
    return f"{begin}…\n{left}\n…{end}"


def command(number: int, options: tuple[str, ...]) -> str:
    """Return the command that answers an ask; an option that a shell would misread goes by its number."""
    first = shell_word(options[0], "1")
    return f"hiboss ask answer q{number} --choice {first}"


def label(option: str, characters: int) -> str:
    """Return what a button for this option shows."""
    return shorten(visible(option), characters) or "…"


def _named(ask: Row) -> str:
    """Return which ask it is; not what it asked, if that was deleted."""
    number = f"q{ask['id']}"
    if ask["question_deleted"] is not None:
        return number
    return f"{number} ({quote(ask['question'], SHOWN_CHARACTERS)})"


def answer(ask: Row) -> str:
    """Return the message that brings the asker its answer."""
    text = f"Answer to {_named(ask)}: {ask['answer']}"
    return f"{text}\n{ask['comment']}" if ask["comment"] else text


def outcome(ask: Row) -> str:
    """Return how an ask ended and by whom, in a few words."""
    by = ask["by_address"] or "the time-out"
    if ask["state"] == "answered":
        return f"{by} answered {name(ask['answer'])}"
    if ask["state"] == "cancelled":
        return f"{by} cancelled it" if ask["answered_by"] else "it was cancelled"
    return "its time was over" + (f", so the answer is {name(ask['answer'])}" if ask["answer"] else "")


def outcome_for_asker(ask: Row) -> str:
    """Return what tells the asker how its ask ended without an answer of a person."""
    why = f"\nReason: {quote(ask['comment'])}" if ask["comment"] else ""
    if ask["state"] == "expired":
        by_default = (
            f" The default counts: {name(ask['answer'])}" if ask["answer"] else " There is no default."
        )
        return f"Nobody answered {_named(ask)} in time.{by_default}{why}"
    return f"{_named(ask)} was not answered: {outcome(ask)}.{why}"


def over(ask: Row) -> str:
    """Return what tells the one who was asked that no answer is needed any more."""
    return f"No answer is needed any more to {_named(ask)}: {outcome(ask)}."


def reminder(tx: Tx | Connection, ask: Row) -> str:
    """Return what reminds somebody of an open ask."""
    options = tuple(json.loads(ask["options"]))
    since = local(ask["created_at"], zone(boss_timezone(tx)))
    what = body(ask["id"], ask["question"], ask["tool"], ask["subject"])
    text = question(tx, ask["id"], what, options, until=ask["expires_at"], fallback=ask["fallback"])
    return f"{ask['asker_address']} has waited for your answer to q{ask['id']} since {since}:\n{text}"


def options_list(ask: Row) -> str:
    return ", ".join(name(one) for one in json.loads(ask["options"]))
