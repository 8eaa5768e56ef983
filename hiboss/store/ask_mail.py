"""The mail of asks: a question and its answer stay as they were sent, so that both mean what was decided.

What takes a Tx runs inside the writer.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..core.errors import AskFixed
from . import asks
from .ask_closing import Settlement
from .connection import Row
from .group_commit import Tx

_OF_MESSAGE = """
    SELECT id, kind, state, asker, answered_by, 'question' AS role FROM ask WHERE message = ?1
    UNION ALL
    SELECT id, kind, state, asker, answered_by, 'answer' FROM ask INDEXED BY ask_reply WHERE reply = ?1
    LIMIT 1
"""


def check_edit(tx: Tx, message: int) -> None:
    """Raise AskFixed if a message is the question or the answer of an ask: nobody edits those."""
    found = _of_message(tx, message)
    if found is None:
        return
    if found["role"] == "answer":
        raise _fixed_answer(found, "edited")
    again = f"cancel it and ask again: hiboss ask cancel q{found['id']}"
    raise _fixed(found, "edited", "what is decided must be what was asked; " + again)


def check_delete(tx: Tx, message: int, caller: int, *, boss: bool) -> None:
    """Raise AskFixed if a message must not be deleted: one's own answer, or the agent's plea at a limit."""
    found = _of_message(tx, message)
    if found is not None and found["role"] == "answer" and caller == found["answered_by"]:
        raise _fixed_answer(found, "deleted")
    if found is not None and found["role"] == "question" and found["kind"] == "limit" and not boss:
        raise limit_ask(found["id"], "deleted")


def check_cancel(tx: Tx, envelopes: Iterable[int], caller: int, now: int, *, boss: bool) -> None:
    """Raise AskFixed if one of these envelopes brings a question or an answer. Called when all are cancelled.

    The boss may stop a question on its way: that takes the ask back.
    """
    for number in envelopes:
        row = tx.execute(
            "SELECT message FROM envelope WHERE id = ? AND forwards IS NULL", (number,)
        ).fetchone()
        found = None if row is None else _of_message(tx, row["message"])
        if found is None:
            continue
        if found["role"] == "answer":
            if caller == found["answered_by"]:
                raise _fixed_answer(found, "cancelled")
        elif not boss:
            raise _fixed(
                found,
                "cancelled",
                f"the question would wait for ever; hiboss ask cancel q{found['id']} ends it",
            )
        elif found["state"] == "open":
            asks.settle(tx, found["id"], Settlement("cancelled", None, caller, "its mail was cancelled"), now)


def limit_ask(number: int, action: str) -> AskFixed:
    """Return the error for an agent that would get rid of what it must ask."""
    return AskFixed(
        what=f"q{number}", action=action, why="a limit was reached, and only the boss decides what follows"
    )


def about(tx: Tx, *messages: int | None) -> int | None:
    """Return the ask of which one of these messages is the question or the answer."""
    found = (_of_message(tx, one) for one in messages if one is not None)
    return next((int(one["id"]) for one in found if one is not None), None)


def _of_message(tx: Tx, message: int) -> Row | None:
    row: Row | None = tx.execute(_OF_MESSAGE, (message,)).fetchone()
    return row


def _fixed(found: Row, action: str, why: str) -> AskFixed:
    return AskFixed(what=f"the {found['role']} of q{found['id']}", action=action, why=why)


def _fixed_answer(found: Row, action: str) -> AskFixed:
    why = f"it counts as it was given; hiboss ask get q{found['id']} shows it. Send another message"
    return _fixed(found, action, why)
