"""Watches: who wants to be told once when an agent is idle, waits for an answer, finished or failed.

A watch is told in the transaction that makes it true, and its row is deleted with that: so it is told once,
whatever crashes. The writer looks for that before each COMMIT (`tell_due`), by the facts of the group: no
part of hiboss has to think of it. What takes a Tx runs inside the writer.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ..core import events
from ..core.address import BACKGROUND, BOSS, SYSTEM, Address
from ..core.envelope import Draft, Waits
from ..core.escaping import quote
from . import messages, notices
from .connection import Connection, Row, about_a_statement
from .due_envelopes import MAIL
from .group_commit import Tx

log = logging.getLogger(__name__)
STATES = ("idle", "waiting", "finished", "failed")
ENDS = {
    "completed": "finished",
    "failed": "failed",
    "cancelled": "failed",
}  # of runs; what was interrupted goes on
LOOKED_THROUGH = (
    1_000  # pending envelopes, or tasks in the background, that are searched for those of an agent
)
REASON_SHOWN = 300  # characters of an error
_LEAVES = (
    events.EnvelopeSettled | events.EnvelopeCancelled | events.EnvelopeAcknowledged | events.EnvelopeMoved
)
_MAIL = ", ".join(str(int(one)) for one in MAIL)

_SELECT = """
    SELECT w.watcher, w.agent, w.state, w.created_at, w.trace, w.hops,
           g.kind || ':' || g.name AS agent_address,
           h.kind || ':' || h.name AS watcher_address, h.kind AS watcher_kind, h.name AS watcher_name
    FROM state_watch w JOIN address g ON g.id = w.agent JOIN address h ON h.id = w.watcher
"""


class Origin(NamedTuple):
    """The run in which an agent asked to be told: the turn that this starts belongs to its trace."""

    trace: str | None = None
    hops: int = 0


def add(tx: Tx, watcher: int, agent: int, state: str, origin: Origin, now: int) -> bool:
    """Let somebody be told; return whether that is done already, since the agent is in this state.

    The next end of a run counts, also of one that is active; not one that was before.
    """
    tx.execute(
        """
        INSERT OR REPLACE INTO state_watch (watcher, agent, state, trace, hops, created_at)
        VALUES (?, ?, ?, ?, ?, ?)
        """,
        (watcher, agent, state, *origin, now),
    )
    tx.cache.forget_watched()
    if not _holds(tx, agent, state):
        return False
    rows = tx.execute(
        f"{_SELECT} WHERE w.agent = ? AND w.state = ? AND w.watcher = ?", (agent, state, watcher)
    )
    _tell(tx, rows.fetchall(), now)
    return True


def remove(tx: Tx, watcher: int, agent: int, state: str | None) -> int:
    """Tell somebody nothing more about an agent, or nothing of this state; return how many were removed."""
    tx.cache.forget_watched()
    return tx.execute(
        "DELETE FROM state_watch WHERE watcher = ?1 AND agent = ?2 AND (?3 IS NULL OR state = ?3)",
        (watcher, agent, state),
    ).rowcount


def listed(connection: Connection, watcher: int | None) -> list[Row]:
    """Return what somebody waits to be told; None: what everybody does."""
    return connection.execute(
        f"{_SELECT} WHERE ?1 IS NULL OR w.watcher = ?1 ORDER BY g.fold, w.state, h.fold", (watcher,)
    ).fetchall()


def end_of(tx: Tx, address: int, now: int) -> None:
    """End the watches of somebody who is deleted, and tell those who watch that agent that it is gone."""
    tx.execute("DELETE FROM state_watch WHERE watcher = ?", (address,))
    rows = tx.execute(f"{_SELECT} WHERE w.agent = ?", (address,)).fetchall()
    for row in rows:
        what = f"{row['agent_address']} was deleted. You wanted to be told when it is {_WORDS[row['state']]}."
        _send(tx, row, what, now)
    tx.execute("DELETE FROM state_watch WHERE agent = ?", (address,))
    tx.cache.forget_watched()


# --- before each COMMIT --------------------------------------------------------------


def tell_due(tx: Tx) -> None:
    """Tell whoever waits for what the facts of this group made true. Called once, before its COMMIT.

    A defect here costs nobody the change of his own: then nothing is told, and the watches stay.
    """
    if not tx.facts or not tx.cache.watched():
        return
    facts = len(tx.facts)
    tx.execute("SAVEPOINT watches")
    tx.cache.mark()
    try:
        _tell_due(tx)
    except Exception as error:
        if isinstance(error, sqlite3.Error) and not about_a_statement(error):
            raise  # about the file: the whole group is lost
        log.exception("Those who watch an agent were not told.", extra={"action": "write"})
        tx.execute("ROLLBACK TO watches")
        tx.cache.back_to_mark(wrote=True)
        del tx.facts[facts:]
    tx.execute("RELEASE watches")


def _tell_due(tx: Tx) -> None:
    touched: dict[int, int] = {}  # agents, with the time of the last fact about them
    for fact in list(tx.facts):  # more come while they are told
        if isinstance(fact, events.RunEnded) and fact.status in ENDS:
            _tell_of_end(tx, fact)
        for agent in _agents(tx, fact):
            if agent in tx.cache.watched():
                touched[agent] = fact.at
    for agent, now in touched.items():
        for state in ("idle", "waiting"):
            rows = tx.execute(f"{_SELECT} WHERE w.agent = ? AND w.state = ?", (agent, state)).fetchall()
            if rows and _holds(tx, agent, state):
                _tell(tx, rows, now)


def _agents(tx: Tx, fact: events.Fact) -> Iterator[int]:
    """Yield the agents that may be idle, or may wait for an answer, since this fact."""
    if isinstance(fact, events.RunEnded | events.AgentChanged):
        yield fact.agent
    elif isinstance(fact, _LEAVES):
        row = tx.execute(
            "SELECT e.recipient, m.sender FROM envelope e JOIN message m ON m.id = e.message WHERE e.id = ?",
            (fact.envelope,),
        ).fetchone()
        yield from (row["recipient"], row["sender"]) if row is not None else ()  # who gave a task sent it
    elif isinstance(fact, events.AskCreated):
        row = tx.execute("SELECT asker FROM ask WHERE id = ?", (fact.ask,)).fetchone()
        yield from (row["asker"],) if row is not None else ()


def _tell_of_end(tx: Tx, fact: events.RunEnded) -> None:
    run = tx.execute("SELECT id, error, ends_as FROM run WHERE id = ?", (fact.run,)).fetchone()
    if run["ends_as"] == "requeued":  # it begins anew
        return
    rows = tx.execute(
        f"{_SELECT} WHERE w.agent = ? AND w.state = ?", (fact.agent, ENDS[fact.status])
    ).fetchall()
    _tell(tx, rows, fact.at, run)


def _holds(tx: Tx, agent: int, state: str) -> bool:
    """Tell whether an agent is idle, or waits for an answer. The other states are ends, and do not last."""
    return (state == "idle" and is_idle(tx, agent)) or (state == "waiting" and waits_for_answer(tx, agent))


def is_idle(tx: Tx | Connection, agent: int) -> bool:
    """Tell whether an agent has nothing to do: no run, no mail, no task that has not begun.

    Mail that waits for a retry or is claimed counts, and so does the mail of a paused agent. Deferred mail
    and notices do not.
    """
    row = tx.execute(
        f"""
        SELECT EXISTS (SELECT 1 FROM run INDEXED BY run_running WHERE status = 'running' AND agent = ?1)
            OR EXISTS (SELECT 1 FROM envelope INDEXED BY envelope_due
                       WHERE recipient = ?1 AND binding IS NULL AND priority IN ({_MAIL}) AND status = 0
                         AND arrived IS NOT NULL AND waits IS NULL)
            OR EXISTS (SELECT 1 FROM (
                           SELECT waits, priority FROM envelope INDEXED BY envelope_box
                           WHERE recipient = ?1 AND box = 0 AND status = 0 AND arrived IS NOT NULL
                           ORDER BY arrived LIMIT {LOOKED_THROUGH})
                       WHERE waits IN ({Waits.RETRY:d}, {Waits.LEASE:d}) AND priority IN ({_MAIL}))
            OR EXISTS (SELECT 1 FROM (
                           SELECT message FROM envelope INDEXED BY envelope_box
                           WHERE recipient = (SELECT id FROM address WHERE fold = ?2 AND retired_at IS NULL)
                             AND box = 0 AND status = 0 AND arrived IS NOT NULL
                           ORDER BY arrived LIMIT {LOOKED_THROUGH}) e
                       JOIN message m ON m.id = e.message WHERE m.sender = ?1) AS busy
        """,
        (agent, BACKGROUND.fold),
    ).fetchone()
    return not row["busy"]


def waits_for_answer(tx: Tx | Connection, agent: int) -> bool:
    """Tell whether an agent waits for an answer: an active run of it asks, or it asked without a run."""
    row = tx.execute(
        """
        SELECT 1 FROM ask k LEFT JOIN run r ON r.id = k.run
        WHERE k.asker = ? AND k.state = 'open' AND (k.run IS NULL OR r.status = 'running') LIMIT 1
        """,
        (agent,),
    ).fetchone()
    return row is not None


# --- telling -------------------------------------------------------------------------

_WORDS = {
    "idle": "idle",
    "waiting": "waiting for an answer",
    "finished": "finished",
    "failed": "failed",
}


def _tell(tx: Tx, rows: Iterable[Row], now: int, run: Row | None = None) -> None:
    """Tell some, and delete their watches."""
    for row in rows:
        tx.execute(
            "DELETE FROM state_watch WHERE agent = ? AND state = ? AND watcher = ?",
            (row["agent"], row["state"], row["watcher"]),
        )
        tx.cache.forget_watched()
        _send(tx, row, _text(row, run), now)


def _text(watch: Row, run: Row | None) -> str:
    agent, state = watch["agent_address"], watch["state"]
    name = agent.removeprefix("agent:")
    if state == "idle":
        return f"{agent} is idle: nothing runs, and no mail waits for it."
    if state == "waiting":
        return f"{agent} waits for an answer.\nSee: hiboss agent status {name}"
    text = f"{agent} has {state}."
    if run is None or watch["watcher_address"] != str(BOSS):  # what a run did is for the boss alone
        return text
    why = f" {quote(run['error'], REASON_SHOWN)}" if run["error"] and state == "failed" else ""
    return f"{text}{why}\nSee: hiboss run get r{run['id']}"


def _send(tx: Tx, watch: Row, text: str, now: int) -> None:
    """Tell a person by a notice. An agent gets mail that starts a turn: it wanted to go on then."""
    to = Address(watch["watcher_kind"], watch["watcher_name"])
    if to.kind != "agent":
        notices.notify(tx, to, text, now, urgent=True)  # he asked for it: also in his quiet hours
        return
    entry = tx.cache.live_address(SYSTEM) or tx.cache.add_address(SYSTEM)
    draft = Draft(
        sender=SYSTEM,
        caller=entry.id,
        sees_all=True,
        to=(to,),
        text=text,
        auto=True,
        trace=watch["trace"],
        hops=watch["hops"],
    )
    messages.insert(tx, draft, now)
