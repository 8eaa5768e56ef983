"""The answer of a run: whether it is sent, to whom, and who is told if it cannot be.

What takes a Tx runs inside the writer.
"""

from __future__ import annotations

from ..core.address import BACKGROUND, BOSS, Address
from ..core.contracts.provider import Answer
from ..core.envelope import Accepted, Draft, Kind, Priority
from ..core.errors import HibossError
from ..core.escaping import mark_lines, quote
from . import messages, notices, stand_ins
from .group_commit import Tx
from .run_start import Turn

SILENT = "NO_REPLY"  # a final text that is not sent


def send(tx: Tx, turn: Turn, answer: Answer, now: int) -> tuple[Accepted | None, str | None]:
    """Send the answer; return it as sent, or the reason why it was not sent."""
    text = answer.text.strip()
    if not text:
        return None, "not sent: the run ended without an answer"
    if text == SILENT:
        return None, f"not sent: the answer was {SILENT}"
    if turn.reply != "auto":
        return None, "not sent: this agent sends its answers itself (reply explicit)"
    if turn.reply_conversation is None:
        return None, "not sent: it would answer only automatic messages or the agent's own notes"
    if _already_sent(tx, turn, text):
        return None, "not sent: the agent had already sent this text there"
    return send_or_tell_boss(tx, turn, answer.text, now, got_it=_got_it(tx, turn, text))


def send_or_tell_boss(
    tx: Tx,
    turn: Turn,
    text: str,
    now: int,
    deliver_at: int | None = None,
    got_it: frozenset[Address] = frozenset(),
) -> tuple[Accepted | None, str | None]:
    """Send a text; if it cannot be sent, tell the boss. The run is successful all the same.

    `got_it`: who has it already. Return what was sent, or the reason why it was not.
    """
    try:
        sent = _send(tx, turn, text, now, deliver_at, got_it)
    except HibossError as error:
        _tell_boss(tx, turn, text, error.message, now)
        return None, f"not sent: {error.message}"
    if sent is not None:
        return sent, None
    if (group := _deleted_group(tx, turn.reply_conversation)) is not None:
        why = f"{group} was deleted"
        _tell_boss(tx, turn, text, why, now)
        return None, f"not sent: {why}"
    nobody = "all others have it already" if got_it else "nobody else is in the conversation"
    return None, f"not sent: {nobody}"


def _tell_boss(tx: Tx, turn: Turn, text: str, why: str, now: int) -> None:
    told = f"The answer of agent:{turn.name} could not be sent: {quote(why)}"
    shown = f"Its text:\n{mark_lines(text[:1_000])}\nSee: hiboss run get r{turn.run}"
    notices.notify(tx, BOSS, f"{told}\n{shown}", now)


def _deleted_group(tx: Tx, conversation: int | None) -> str | None:
    """Return what a group was called that was deleted; None: it is none, or still there."""
    row = tx.execute(
        "SELECT name FROM conversation WHERE id = ? AND kind = 'group' AND deleted_at IS NOT NULL",
        (conversation,),
    ).fetchone()
    return None if row is None else f"group:{row['name']}"


def _already_sent(tx: Tx, turn: Turn, text: str) -> bool:
    """Tell whether the agent sent exactly this text there in this run; deferred messages do not count."""
    rows = tx.execute(
        """
        SELECT text FROM message INDEXED BY message_sender
        WHERE sender = ? AND id > ? AND run = ? AND conversation = ? AND deliver_at IS NULL
          AND deleted_at IS NULL
        """,
        (turn.agent, turn.after_message, turn.run, turn.reply_conversation),
    )
    return any(row["text"].strip() == text for row in rows)


def _got_it(tx: Tx, turn: Turn, text: str) -> frozenset[Address]:
    """Return to whom the agent sent exactly this text in this run as a reply to what is answered.

    Such a reply goes to one party, and the answer to all: nobody gets it twice.
    """
    rows = tx.execute(
        """
        SELECT m.text, a.kind, a.name FROM message m INDEXED BY message_sender
        CROSS JOIN envelope e INDEXED BY envelope_message ON e.message = m.id AND e.forwards IS NULL
        JOIN address a ON a.id = e.recipient AND a.retired_at IS NULL
        WHERE m.sender = ? AND m.id > ? AND m.run = ? AND m.reply_to = ? AND m.deliver_at IS NULL
          AND m.deleted_at IS NULL
        """,
        (turn.agent, turn.after_message, turn.run, turn.reply_message),
    )
    return frozenset(Address(row["kind"], row["name"]) for row in rows if row["text"].strip() == text)


def _send(
    tx: Tx,
    turn: Turn,
    text: str,
    now: int,
    deliver_at: int | None = None,
    got_it: frozenset[Address] = frozenset(),
) -> Accepted | None:
    """Send a text to the conversation that is answered, marked `auto`; None if nobody can get it."""
    sender = BACKGROUND if turn.kind == "background" else Address("agent", turn.name)
    entry = tx.cache.live_address(sender)
    if entry is not None and turn.kind == "turn" and entry.id != turn.agent:
        entry = None  # the name now belongs to another agent, registered during the run
    giver = _task_giver(tx, turn)
    to = [giver] if giver else []
    if entry is not None and not giver:
        to = stand_ins.others(tx, turn.reply_conversation, entry.id, turn.run)
    to = [one for one in to if one not in got_it]
    if entry is None or not to:
        return None
    is_summary = stand_ins.is_summary(tx, turn.reply_message)
    draft = Draft(
        sender=sender,
        caller=entry.id,
        to=tuple(to),
        text=text,
        kind=Kind.MARKDOWN,  # providers write it
        deliver_at=deliver_at,
        reply_to=None if turn.reply_message is None else ("message", turn.reply_message),
        auto=True,
        run=turn.run,
        trace=turn.trace,
        hops=turn.hops + 1,
        conversation=None if giver else turn.reply_conversation,
        # A summary is shown with the next turn of who gets it, and starts none.
        priority=Priority.NOTICE if is_summary else Priority.NORMAL,
        about=turn.conversation if is_summary else None,
    )
    return messages.insert(tx, draft, now)


def _task_giver(tx: Tx, turn: Turn) -> Address | None:
    """Return who gave a background task in the name of an agent: not the conversation gets the result."""
    if turn.kind != "background":
        return None
    row = tx.execute(
        """
        SELECT a.kind, a.name FROM message m JOIN address a ON a.id = m.caller
        WHERE m.id = ? AND m.caller <> m.sender AND a.retired_at IS NULL
        """,
        (turn.reply_message,),
    ).fetchone()
    return None if row is None else Address(row["kind"], row["name"])
