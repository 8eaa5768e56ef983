"""Run asks: what a provider asks people during its turn, which waits for the answer.

They end with their run. Only when the daemon ends they stay open: the turn is repeated, and if it asks the
same, it gets the same ask, or the answer that came meanwhile. What takes a Tx runs inside the writer.
"""

from __future__ import annotations

import json
from typing import NamedTuple

from ..core.contracts.provider import Question
from . import ask_rules, asks
from .ask_closing import Settlement, close
from .asks import NewAsk
from .connection import Connection, Row
from .group_commit import Tx

# The runs of the same envelopes that ended with their daemon: `?1` repeats them.
_REPEATED = """
    SELECT y.run FROM run_envelope x JOIN run_envelope y ON y.envelope = x.envelope AND y.run <> x.run
    JOIN run r ON r.id = y.run AND r.status = 'interrupted' AND r.error_kind = 'interrupted'
    WHERE x.run = ?1
"""


class Reply(NamedTuple):
    """How an ask was settled."""

    state: str  # answered, expired, cancelled
    answer: str | None
    text: str = ""  # what was said with it
    by: str | None = None  # the address of who settled it


class Asked(NamedTuple):
    """What became of a question. Without an ask and a reply: its run has ended."""

    ask: int | None = None
    reply: Reply | None = None  # None: it waits for its answer
    rule: int | None = None  # that answered it


def ask(tx: Tx, run: int, question: Question, expires_at: int, now: int) -> Asked:
    """Ask the boss what a run asks, unless a rule answers it, or the run repeats one that asked it."""
    row = tx.execute("SELECT agent FROM run WHERE id = ? AND status = 'running'", (run,)).fetchone()
    boss = tx.cache.reach().boss
    if row is None or boss is None:
        return Asked()
    rule = ask_rules.match(tx, run, question.tool, question.subject, question.options)
    if rule is not None:
        return Asked(reply=Reply("answered", rule["answer"], by=rule["by_address"]), rule=rule["id"])
    new = NewAsk(
        asker=row["agent"],
        asked=boss,
        question="\n\n".join(one for one in (question.text, question.detail) if one),
        options=question.options,
        kind="permission" if question.tool else "question",
        fallback=question.default,
        expires_at=expires_at,
        run=run,
        tool=question.tool or None,
        subject=question.subject or None,
        in_turn=True,
    )
    earlier = _asked_before(tx, new)
    if earlier is not None:
        # It is asked once: the next one with the same words is another question.
        tx.execute("UPDATE ask SET run = ? WHERE id = ?", (run, earlier))
        return Asked(earlier, reply(tx, earlier))
    return Asked(asks.create(tx, new, now).id)


def _asked_before(tx: Tx, new: NewAsk) -> int | None:
    """Return the same ask of a run that is repeated: one that is open, or that somebody answered.

    Not a permission that was given before that run ended: it may have used it, and it holds once.
    """
    row = tx.execute(
        f"""
        SELECT k.id FROM ask k INDEXED BY ask_run
        WHERE k.run IN ({_REPEATED}) AND k.in_turn AND k.state IN ('open', 'answered') AND k.asker = ?2
          AND (k.state = 'open' OR k.kind <> 'permission'
               OR k.answered_at > (SELECT r.ended_at FROM run r WHERE r.id = k.run))
          AND k.options = ?3 AND k.tool IS ?4 AND k.subject IS ?5 AND k.question = ?6
        ORDER BY k.id LIMIT 1
        """,
        (
            *(new.run, new.asker, json.dumps(new.options, ensure_ascii=False)),
            *(new.tool, new.subject, new.question),
        ),
    ).fetchone()
    return None if row is None else int(row["id"])


def reply(connection: Connection | Tx, number: int) -> Reply | None:
    """Return how an ask was settled; None: it is open."""
    row = asks.need(connection, number)
    if row["state"] == "open":
        return None
    return Reply(row["state"], row["answer"], row["comment"] or "", row["by_address"])


def open_of_run(connection: Connection, run: int) -> list[Row]:
    """Return what a run asks people now and waits for, oldest first."""
    return [row for row in asks.open_of_run(connection, run) if row["in_turn"]]


def withdraw(tx: Tx, number: int, now: int) -> None:
    """Cancel an ask, if it is open: the agent does not wait for its answer any more."""
    close(tx, number, Settlement("cancelled", None, None, "the agent took it back"), now)


def end(tx: Tx, run: int, now: int, why: str = "the run has ended") -> None:
    """Cancel the open asks of a run that has ended, and those of the runs that it repeated."""
    rows = tx.execute(
        f"""
        SELECT k.id FROM ask k INDEXED BY ask_run
        WHERE k.run IN (SELECT ?1 UNION {_REPEATED}) AND k.in_turn AND k.state = 'open'
        """,
        (run,),
    ).fetchall()
    for row in rows:
        close(tx, row["id"], Settlement("cancelled", None, None, why), now)
