"""Notes of hiboss in chats where people wait for an agent: why no answer comes, and that work begins again.

A note is a post of agent:system in the place where somebody wrote what it is about, which it quotes. It is
written in one transaction with what it tells, so it comes once. It is no mail: it lies in no box, starts no
turn and causes no notice. Who wrote by no channel is told by notices. What takes a Tx runs inside the writer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from ..core.clock import local, zone
from ..core.contracts.failures import Failure
from ..core.envelope import Lane
from ..core.escaping import name, quote
from . import breaker, breaker_holds, due_envelopes, lanes
from .accounts import SAME_ACCOUNT
from .boss import boss_timezone
from .connection import Row
from .group_commit import Tx
from .pairing import post
from .run_start import Turn

REASON_CHARACTERS = 200
NAME_CHARACTERS = 60
LOOKED_THROUGH = 50  # envelopes that wait for an agent which fails


class Worker(NamedTuple):
    """A run that ended with its daemon, as far as notes are about it."""

    kind: str  # turn, background
    agent: int
    name: str
    envelopes: tuple[int, ...]


class Asked(NamedTuple):
    """A place where people wait for an answer."""

    place: Lane
    message: int  # the last one that they wrote there, of those that are not answered
    is_his: bool  # it is a private chat of the boss: he is told the details
    from_boss: bool  # he wrote it
    since: int  # when the first of them came
    is_first: bool  # there is no other one


# --- failures ------------------------------------------------------------------------


def first_failures(tx: Tx, turn: Turn) -> list[int]:
    """Return which envelopes of a run that has just failed have failed for the first time.

    After `envelope retry` they begin anew.
    """
    return [number for number in turn.envelopes if _failures(tx, number) == 1]


def _failures(tx: Tx, envelope: int) -> int:
    row = tx.execute(
        """
        SELECT count(*) FROM run_envelope x INDEXED BY run_envelope_envelope
        JOIN run r ON r.id = x.run JOIN envelope e ON e.id = x.envelope
        WHERE x.envelope = ? AND r.status = 'failed' AND r.ended_at >= ifnull(e.first_failed_at, 0)
        """,
        (envelope,),
    ).fetchone()
    return int(row[0])


def failed(
    tx: Tx, turn: Turn, envelopes: Sequence[int], failure: Failure, retry_at: int, now: int
) -> list[Asked]:
    """Say, where these envelopes of a turn were written, that it failed; return where that was said."""
    return _tell(tx, turn, _asked(tx, envelopes), _of_failure(tx, turn, failure, retry_at, now), now)


def lane_waits(tx: Tx, turn: Turn, failure: Failure, until: int, now: int) -> bool:
    """Say where people wait for an agent that no turn of it can work now: once in each chat while that lasts.

    Return whether the boss was told in a chat of his, now or before. To be called when the mail of the turn
    is due again, and before the failure of the lane is stored.
    """
    state = lanes.get(tx, turn.lane)
    last = state["error_at"] if state is not None and state["failures"] else None
    asked = _waiting(tx, turn.agent, now)
    # Where somebody waits since before the last failure, that was told then.
    fresh = [one for one in asked if last is None or one.since > last]
    _tell(tx, turn, fresh, _of_failure(tx, turn, failure, until, now), now)
    return any(one.is_his for one in asked)


def came_in_vain(tx: Tx, agent: int, message: int, now: int) -> None:
    """Say where a message came in that its agent gets no turn now: all is stopped, or it is paused, or waits.

    Not where somebody was told so already: the first one there, or the first one since the stop, is.
    """
    stopped = _while_stopped(tx, agent)
    since, said = (0, _why_in_vain(tx, agent, now)) if stopped is None else stopped
    for one in _waiting(tx, agent, now, since) if said is not None else ():
        if said is not None and one.message == message and one.is_first:
            post(tx, one.place, said(one), now, message)


def _while_stopped(tx: Tx, agent: int) -> tuple[int, Callable[[Asked], str]] | None:
    """Return when everything was stopped, and what says so; None: it is not, or this is no agent."""
    pulled = breaker.get(tx)
    if pulled is None or not breaker_holds.holds_mail(tx, agent):
        return None
    name = _shown_name(tx, agent)
    reason = f" ({quote(pulled['reason'], REASON_CHARACTERS)})" if pulled["reason"] else ""
    his = f"⏹ Everything is stopped{reason}; /go lets everybody go on. {name} reads this then."
    return pulled[
        "pulled_at"
    ], lambda one: his if one.is_his else f"⏹ {name} is stopped. It reads this later."


def _why_in_vain(tx: Tx, agent: int, now: int) -> Callable[[Asked], str] | None:
    """Return what says why an agent gets no turn now; None: it does."""
    paused = tx.execute(
        "SELECT paused_why FROM agent WHERE address = ? AND paused_at IS NOT NULL AND mode = 'run'", (agent,)
    ).fetchone()
    if paused is not None:
        name, reason = _shown_name(tx, agent), quote(paused["paused_why"] or "", REASON_CHARACTERS)
        details = f" ({reason}); /resume lets it go on"
        return lambda one: f"⏸ {name} is paused{details if one.is_his else ''}. It reads this later."
    state = lanes.get(tx, Lane(agent, None))
    if state is None or state["state"] != "waiting" or (state["not_before"] or 0) <= now:
        return None
    again, why = _when(tx, state["wake_at"], now), quote(state["error_text"] or "", REASON_CHARACTERS)
    return lambda one: _text(tx, agent, one, f"{why}; tried again {again}.")


def _waiting(tx: Tx, agent: int, now: int, since: int = 0) -> list[Asked]:
    """Return where people wait for an agent that has not failed with what they wrote `since` a moment."""
    due = [one.id for one in due_envelopes.due(tx, agent, now, LOOKED_THROUGH, notices=False)]
    marks = ",".join("?" * len(due))
    rows = tx.execute(
        f"""
        SELECT e.message FROM envelope e JOIN message m ON m.id = e.message
        WHERE e.id IN ({marks}) AND e.attempts = 0 AND m.arrived_at >= ?
        """,
        (*due, since),
    )
    return _asked_in(tx, [row["message"] for row in rows])


def given_up(
    tx: Tx,
    turn: Turn | Worker,
    failure: Failure,
    now: int,
    by: int | None = None,
    *,
    counted: bool = True,
) -> bool:
    """Say where the envelopes of a turn were written that they are given up.

    `by`: the address id of who did that, and is not told. `counted`: this try is among their attempts.
    Return whether the boss was told in a chat of his. To be called before they fail.
    """
    by_boss = by is not None and by == tx.cache.reach().boss
    asked = [
        one
        for one in _asked(tx, turn.envelopes)
        if not (by_boss and (one.is_his or one.from_boss)) and one.place.address != by
    ]
    reason = quote(failure.text, REASON_CHARACTERS)

    def text(one: Asked) -> str:
        if not one.is_his and by is not None:
            return f"{_shown_name(tx, turn.agent)} was stopped before it could answer this."
        if not one.is_his:
            return f"⚠️ {_shown_name(tx, turn.agent)} could not answer this."
        number, attempts = _envelope_of(tx, turn, one.message)
        attempts += not counted
        tries = f" after {attempts} tries" if attempts > 1 else ""
        return f"⚠️ {turn.name} gave up on this{tries}: {reason}\nTo retry: hiboss envelope retry e{number}"

    return any(one.is_his for one in _tell(tx, turn, asked, text, now))


def _envelope_of(tx: Tx, turn: Turn | Worker, message: int) -> tuple[int, int]:
    """Return the envelope by which the agent of a turn got a message, and how often it has failed."""
    marks = ",".join("?" * len(turn.envelopes))
    row = tx.execute(
        f"SELECT id, attempts FROM envelope WHERE message = ? AND id IN ({marks})", (message, *turn.envelopes)
    ).fetchone()
    return row["id"], row["attempts"]


def _of_failure(tx: Tx, turn: Turn, failure: Failure, retry_at: int, now: int) -> Callable[[Asked], str]:
    """Return what says that a turn failed and is tried again."""
    reason, again = quote(failure.text, REASON_CHARACTERS), _when(tx, retry_at, now)
    return lambda one: _text(tx, turn.agent, one, f"{reason}; tried again {again} (r{turn.run}).")


def _text(tx: Tx, agent: int, asked: Asked, details: str) -> str:
    """Return what says that an answer comes later: the details to the boss, and no more to others."""
    if asked.is_his:
        row = tx.execute("SELECT name FROM address WHERE id = ?", (agent,)).fetchone()
        return f"⚠️ {row['name']} failed: {details}"
    return f"⚠️ {_shown_name(tx, agent)} could not answer yet; it will be tried again."


def _when(tx: Tx, at: int, now: int) -> str:
    seconds = max(0, at - now) / 1000
    if seconds < 120:
        return f"in {seconds:.0f} s"
    return f"in {seconds / 60:.0f} min" if seconds < 7200 else f"at {local(at, zone(boss_timezone(tx)))}"


def _tell(
    tx: Tx, turn: Turn | Worker, asked: list[Asked], text: Callable[[Asked], str], now: int
) -> list[Asked]:
    """Post a note in each of these places. A task in the background was given by an agent: none is posted."""
    if turn.kind != "turn":
        return []
    for one in asked:
        post(tx, one.place, text(one), now, one.message)
    return asked


def _shown_name(tx: Tx, agent: int) -> str:
    """Return the name of an agent that people who do not know it otherwise are shown."""
    row = tx.execute(
        "SELECT ifnull(g.display, a.name) FROM address a JOIN agent g ON g.address = a.id WHERE a.id = ?",
        (agent,),
    ).fetchone()
    return name(row[0], NAME_CHARACTERS)


# --- where people wait ---------------------------------------------------------------


def _asked(tx: Tx, envelopes: Sequence[int]) -> list[Asked]:
    """Return where the messages of these envelopes were written: each place once."""
    marks = ",".join("?" * len(envelopes))
    rows = tx.execute(f"SELECT message FROM envelope WHERE id IN ({marks})", tuple(envelopes))
    return _asked_in(tx, [row["message"] for row in rows])


def _asked_in(tx: Tx, found: Sequence[int]) -> list[Asked]:
    """Return where these messages were written, with the last one there. By the account that they came by."""
    if not found:
        return []
    marks = ",".join("?" * len(found))
    rows = tx.execute(
        f"""
        SELECT p.address, p.binding, max(m.id) AS message, c.state = 'boss' AS is_his, m.from_boss,
               min(m.arrived_at) AS since, min(m.id) = max(m.id) AS is_first
        FROM message m
        JOIN platform_update u INDEXED BY platform_update_message
            ON u.message = m.id AND u.outcome IN ('accepted', 'edited', 'pressed')
        JOIN place p ON p.address = ifnull(m.place, m.sender)
            AND p.binding IN {SAME_ACCOUNT.format("u.binding")}
        JOIN contact c ON c.id = p.contact AND c.state IN ('allowed', 'boss')
        JOIN binding b ON b.id = p.binding AND b.removed_at IS NULL
        -- Nobody waits for an answer to what a machine sent from outside, like a webhook.
        WHERE m.id IN ({marks}) AND NOT (m.auto AND m.caller IS NULL)
        GROUP BY p.address, p.binding ORDER BY message
        """,
        tuple(found),
    ).fetchall()
    return [_asked_of(row) for row in rows]


def _asked_of(row: Row) -> Asked:
    place = Lane(row["address"], row["binding"])
    flags = bool(row["is_his"]), bool(row["from_boss"])
    return Asked(place, row["message"], *flags, row["since"], bool(row["is_first"]))


# --- after a restart -----------------------------------------------------------------


def interrupted(tx: Tx, run: int) -> None:
    """Note that a run ended with the daemon: after the next start those who wait for it are told."""
    tx.execute("INSERT OR IGNORE INTO interrupted_run (run) VALUES (?)", (run,))


def tell_of_restart(tx: Tx, now: int) -> int:
    """Say where people wait for runs that ended with the last daemon; return in how many places.

    Each is told once, whatever the number of runs. What was given up has a notice of its own.
    """
    runs = tx.execute(
        """
        SELECT r.id, r.kind, r.agent, a.name FROM interrupted_run i JOIN run r ON r.id = i.run
        JOIN address a ON a.id = r.agent ORDER BY r.id
        """
    ).fetchall()
    found: dict[Lane, list[tuple[Row, Asked]]] = {}
    for run in runs:
        for one in _asked_in(tx, _worked_on(tx, run)):
            found.setdefault(one.place, []).append((run, one))
    for place, told in found.items():
        last = max(one.message for _, one in told)
        post(tx, place, _of_restart(tx, [run for run, _ in told], told[0][1].is_his), now, last)
    tx.execute("DELETE FROM interrupted_run")
    return len(found)


def _of_restart(tx: Tx, runs: list[Row], is_his: bool) -> str:
    agents = dict.fromkeys(run["name"] if is_his else _shown_name(tx, run["agent"]) for run in runs)
    numbers = ", ".join(f"r{run['id']}" for run in runs)
    which = f" ({numbers})" if is_his else ""
    return f"hiboss was restarted while {' and '.join(agents)} worked on this{which}; it begins again."


def _worked_on(tx: Tx, run: Row) -> list[int]:
    """Return the messages for which a run worked that are still to be worked on.

    For a task in the background: what the agent that gave it was working on.
    """
    rows = tx.execute(
        """
        SELECT m.id, m.run, m.sender, m.caller FROM run_envelope x
        JOIN envelope e ON e.id = x.envelope AND e.status = 0 JOIN message m ON m.id = e.message
        WHERE x.run = ?
        """,
        (run["id"],),
    ).fetchall()
    if run["kind"] == "turn":
        return [row["id"] for row in rows]
    givers = [row["run"] for row in rows if row["run"] is not None and row["caller"] == row["sender"]]
    return [one for one in (_given_for(tx, giver) for giver in givers) if one is not None]


def _given_for(tx: Tx, run: int | None) -> int | None:
    """Return the message that began what a run works on: a task can be given by another task."""
    while run is not None:  # each step leads to an earlier run
        row = tx.execute(
            """
            SELECT r.kind, r.reply_message, m.run FROM run r LEFT JOIN message m ON m.id = r.reply_message
            WHERE r.id = ?
            """,
            (run,),
        ).fetchone()
        if row["kind"] == "turn":
            return None if row["reply_message"] is None else int(row["reply_message"])
        run = row["run"]
    return None
