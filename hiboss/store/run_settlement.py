"""Settle runs: the answer (run_answers.py), the outcome and the envelopes of a run, in one transaction."""

from __future__ import annotations

from ..core import backoff
from ..core.contracts.failures import Failure
from ..core.contracts.provider import Answer, Usage
from ..core.envelope import Accepted, Priority, Waits
from ..core.events import AgentChanged, RunEnded
from . import (
    chat_notes,
    envelopes,
    giving_up,
    lane_failures,
    lanes,
    reactions,
    run_answers,
    run_asks,
    run_cancels,
    run_limits,
    run_pauses,
    steering,
    surroundings,
)
from .connection import Connection, Row
from .group_commit import Tx
from .run_start import Turn

ATTEMPTS = 5  # failures of an envelope alone, before it is given up
LOOKED_BACK = 50  # runs of an agent, for what waits for its retry
PAUSED_AT_END = "the daemon ended while it was paused; it begins again when it is resumed"


def complete(tx: Tx, turn: Turn, answer: Answer, now: int) -> list[Accepted]:
    """Settle a successful run: send its answer, mark its envelopes done. Return what was sent.

    Nothing is sent if somebody told it to end before this was written: then it ends so.
    """
    if (running := _still_running(tx, turn, now)) is None:
        return []
    turn = running
    sent, remark = run_answers.send(tx, turn, answer, now)
    later = [run_answers.send_or_tell_boss(tx, turn, one.text, now, one.deliver_at) for one in answer.later]
    remarks = (answer.note, remark, *(remark for _, remark in later))
    note = "; ".join(filter(None, remarks)) or None
    tx.execute(
        """
        UPDATE run SET final_text = ?, tokens_in = ifnull(?, tokens_in), tokens_out = ifnull(?, tokens_out),
               cost = ifnull(?, cost), context = ifnull(?, context), answer = ? WHERE id = ?
        """,
        (
            answer.text,
            answer.tokens_in,
            answer.tokens_out,
            answer.cost,
            answer.context,
            sent.message if sent else None,
            turn.run,
        ),
    )
    _end(tx, turn, "completed", now, note=note)
    for number in turn.envelopes + turn.notices:
        envelopes.done(tx, number, now, read_in=f"r{turn.run}")
    for shown in (turn.beside.around, turn.beside.meanwhile):
        if shown is not None:
            surroundings.mark_shown(tx, turn.run, shown, turn.agent, now)
    if turn.beside.reactions.shown:
        reactions.mark_shown(tx, turn.run)
    lanes.recovered(tx, turn.lane)
    return [one for one in (sent, *(one for one, _ in later)) if one is not None]


def note_usage(tx: Tx, turn: Turn, usage: Usage, *, has_answer: bool) -> None:
    """Store the usage of a run so far; it counts however the run ends.

    It is estimated if the run ends without an answer, and the provider did not say that it is final.
    """
    tx.execute(
        """
        UPDATE run SET tokens_in = ?, tokens_out = ?, cost = ?, context = ?, usage_estimated = ?
        WHERE id = ? AND status = 'running'
        """,
        (*usage[:4], not (usage.exact or has_answer), turn.run),
    )


def note_model(tx: Tx, turn: Turn, model: str) -> None:
    """Store which model answered."""
    tx.execute("UPDATE run SET model = ? WHERE id = ? AND status = 'running'", (model, turn.run))


# --- failed and ended runs -----------------------------------------------------------


def give_up(tx: Tx, turn: Turn, failure: Failure, now: int) -> None:
    """Settle a failed turn that is not repeated: its envelopes fail, and people can retry them."""
    if (running := _still_running(tx, turn, now)) is None:
        return
    turn = running
    _end(tx, turn, "failed", now, failure=failure, scope="turn")
    _free(tx, turn.notices)
    told = chat_notes.given_up(tx, turn, failure, now, counted=False)
    lanes.fail(tx, list(turn.envelopes), failure, now, tried=True, forward=not told)


def fail(tx: Tx, turn: Turn, failure: Failure, delays: tuple[int, ...], now: int) -> int | None:
    """Settle a failed turn: retry its envelopes one at a time; give up one that fails alone too often.

    `delays`: how long to wait after each failure, in milliseconds (core/backoff.py). Return the
    time of the retry, or None. If turns with other envelopes fail too, the lane waits instead.
    """
    if (running := _still_running(tx, turn, now)) is None:
        return None
    turn = running
    _end(tx, turn, "failed", now, failure=failure, scope="turn")
    fresh = chat_notes.first_failures(tx, turn)
    _free(tx, turn.notices)
    retry_at = now
    for number in turn.envelopes:
        retry_at = max(retry_at, _retry_later(tx, number, failure, delays, now))
    chat_notes.failed(tx, turn, fresh, failure, retry_at, now)
    if len(turn.envelopes) > 1:
        return retry_at
    [number] = turn.envelopes
    if _failed_alone(tx, number) < ATTEMPTS:
        return retry_at
    if turn.kind == "background" or not _fails_for_others_too(tx, turn, number):
        told = chat_notes.given_up(tx, turn, failure, now)
        lanes.fail(tx, [number], failure, now, forward=not told)
        return None
    until = now + delays[backoff.step(lane_failures.failing_seconds(tx, turn.lane, now))]
    lane_failures.record_failure(tx, turn.lane, failure, until, now)
    # A little after the lane, so that another envelope can show whether the provider is the cause.
    envelopes.retry_at(tx, number, until + 1)
    return until


def _retry_later(tx: Tx, number: int, failure: Failure, delays: tuple[int, ...], now: int) -> int:
    row = tx.execute("SELECT attempts FROM envelope WHERE id = ?", (number,)).fetchone()
    # After `envelope retry` the delays begin again from the first.
    step = min(row["attempts"], _failed_alone(tx, number), len(delays) - 1)
    retry_at: int = max(now + delays[step], _retried_before(tx, number) or 0)
    envelopes.failed_once(tx, number, failure, now, retry_at=retry_at)
    return retry_at


def _retried_before(tx: Tx, number: int) -> int | None:
    """Return until when mail before this in its conversation waits for its retry; None: none waits.

    It is looked for in the last LOOKED_BACK runs of the agent.
    """
    row = tx.execute(
        """
        SELECT max(b.wait_until) AS until
        FROM envelope e JOIN message m ON m.id = e.message
        CROSS JOIN (SELECT id FROM run INDEXED BY run_agent
                    WHERE agent = (SELECT recipient FROM envelope WHERE id = ?1) ORDER BY id DESC LIMIT ?2) r
        CROSS JOIN run_envelope x ON x.run = r.id
        CROSS JOIN envelope b ON b.id = x.envelope
        CROSS JOIN message n ON n.id = b.message
        WHERE e.id = ?1 AND n.conversation = m.conversation AND b.recipient = e.recipient
          AND b.priority <= e.priority AND b.arrived < e.arrived AND b.status = 0 AND b.waits = ?3
        """,
        (number, LOOKED_BACK, int(Waits.RETRY)),
    ).fetchone()
    until: int | None = row["until"]
    return until


def _failed_alone(tx: Tx, number: int) -> int:
    """Return how often a turn with only this envelope failed, since it was last made pending."""
    return int(
        tx.execute(
            """
            SELECT count(*) FROM run_envelope x INDEXED BY run_envelope_envelope
            JOIN run r ON r.id = x.run JOIN envelope e ON e.id = x.envelope
            WHERE x.envelope = ? AND r.status = 'failed' AND r.error_scope = 'turn'
              AND r.ended_at >= e.first_failed_at
              AND (SELECT count(*) FROM run_envelope y WHERE y.run = r.id) = 1
            """,
            (number,),
        ).fetchone()[0]
    )


def _fails_for_others_too(tx: Tx, turn: Turn, number: int) -> bool:
    """Tell whether other envelopes were tried since this one first failed, and no turn was successful."""
    # Not since its first run: it may have failed long ago and been retried by `envelope retry`.
    rows = tx.execute(
        """
        SELECT r.status, EXISTS (SELECT 1 FROM run_envelope x WHERE x.run = r.id AND x.envelope = ?2) AS own
        FROM run r INDEXED BY run_agent
        WHERE r.agent = ?1 AND r.kind = 'turn' AND r.status IN ('completed', 'failed') AND r.id >= (
            SELECT min(o.id) FROM run_envelope x INDEXED BY run_envelope_envelope
            JOIN run o ON o.id = x.run JOIN envelope e ON e.id = x.envelope
            WHERE x.envelope = ?2 AND o.ended_at >= e.first_failed_at)
        """,
        (turn.agent, number),
    ).fetchall()
    if any(row["status"] == "completed" for row in rows):
        return False
    return any(not row["own"] for row in rows)


def wait(tx: Tx, turn: Turn, failure: Failure, until: int, now: int, *, told: bool = False) -> None:
    """Settle a run that failed by a LaneError: its envelopes are due again, and the lane waits.

    `told`: the provider named the time, so nothing is tried before it.
    """
    if (running := _still_running(tx, turn, now)) is None:
        return
    turn = running
    _end(tx, turn, "failed", now, failure=failure, scope="lane")
    _free(tx, turn.envelopes + turn.notices)
    knows = chat_notes.lane_waits(tx, turn, failure, until, now)
    lane_failures.record_failure(tx, turn.lane, failure, until, now, told=told, forward=not knows)


def cancel(tx: Tx, turn: Turn, status: str, why: str, now: int, *, gives_up: bool = False) -> None:
    """Settle a run that was ended: as it was told to (run_cancels.py), else with this status.

    `gives_up`: its envelopes fail, and can be retried. Else they are due again.
    """
    if status == "interrupted" and run_pauses.stands_still(tx, turn.run):
        run_cancels.note(tx, turn.run, PAUSED_AT_END, None, run_cancels.PAUSED)
    if (running := _still_running(tx, turn, now)) is None:
        return
    turn = running
    failure = Failure(status, why)
    _end(tx, turn, status, now, failure=failure)
    if status == "interrupted":
        chat_notes.interrupted(tx, turn.run)
    if gives_up:
        told = chat_notes.given_up(tx, turn, failure, now)
        lanes.fail(tx, list(turn.envelopes), failure, now, forward=not told)
    _free(tx, turn.envelopes + turn.notices)


def _end_as_told(tx: Tx, turn: Turn, ending: run_cancels.Ending, now: int) -> None:
    _end(tx, turn, ending.status, now, failure=ending.failure)
    if ending.cancels:
        _cancel_envelopes(tx, turn, turn.envelopes, ending, now)
    _free(tx, turn.envelopes + turn.notices)


def _cancel_envelopes(
    tx: Tx, worker: Turn | chat_notes.Worker, numbers: tuple[int, ...], ending: run_cancels.Ending, now: int
) -> None:
    """Cancel what a run worked on, and tell those who sent it; not who cancelled it."""
    told = chat_notes.given_up(tx, worker, ending.failure, now, ending.by)
    giving_up.cancel(tx, numbers, ending.failure, now, not_told=ending.by, forward=not told)


def _free(tx: Tx, numbers: tuple[int, ...]) -> None:
    for number in numbers:
        envelopes.free(tx, number)


def _still_running(tx: Tx, turn: Turn, now: int) -> Turn | None:
    """Return a turn with the conversation that it answers in now; None if it has ended already.

    One that was told to end is settled here as it was told, whatever it would be settled as otherwise.
    """
    row = tx.execute(
        "SELECT status, reply_conversation, ends_as, cancelled_why, cancelled_by FROM run WHERE id = ?",
        (turn.run,),
    ).fetchone()
    if row["status"] != "running":
        return None
    turn = turn.answering_in(row["reply_conversation"])
    later = steering.given_later(tx, turn.run, turn.envelopes + turn.notices)
    turn = turn._replace(envelopes=turn.envelopes + later)
    for number in turn.envelopes + turn.notices if turn.attached is not None else ():
        envelopes.take_back(tx, number)
    ending = run_cancels.of_row(row)
    if ending is None:
        return turn
    _end_as_told(tx, turn, ending, now)
    return None


def _end(
    tx: Tx,
    turn: Turn,
    status: str,
    now: int,
    *,
    failure: Failure | None = None,
    scope: str | None = None,
    note: str | None = None,
) -> None:
    kind, error = failure or (None, None)
    tx.execute(
        """
        UPDATE run SET status = ?1, ended_at = ?2, error_kind = ?3, error = ?4, error_scope = ?5, note = ?6,
               last_message = (SELECT ifnull(max(id), 0) FROM message),
               paused_ms = paused_ms + CASE WHEN paused_at IS NULL THEN 0 ELSE max(0, ?2 - paused_at) END,
               paused_at = NULL, paused_by = iif(ends_as IN ('paused', 'stopped'), paused_by, NULL)
        WHERE id = ?7
        """,
        (status, now, kind, error, scope, note, turn.run),
    )
    run_limits.add_usage(tx, turn.run)
    tx.execute("UPDATE token SET revoked_at = ? WHERE run = ? AND revoked_at IS NULL", (now, turn.run))
    if (status, kind) != ("interrupted", "interrupted"):  # it ended with the daemon: its turn asks again
        run_asks.end(tx, turn.run, now)
    tx.facts.append(RunEnded(now, turn.run, turn.agent, turn.followed_in, status))
    tx.facts.append(AgentChanged(now, turn.agent))


# --- after a crash -------------------------------------------------------------------


def left_over(connection: Connection | Tx, boot: int) -> list[Row]:
    """Return the runs of earlier boots that never ended, not those of open sessions (attached_turns.py)."""
    return connection.execute(
        """
        SELECT r.id, r.kind, r.agent, a.name, r.pid, r.pid_started, r.paused_at, r.ends_as, r.cancelled_why,
               r.cancelled_by
        FROM run r INDEXED BY run_running JOIN address a ON a.id = r.agent
        WHERE r.status = 'running' AND r.boot <> ? AND (r.attached IS NULL OR r.submitted_at IS NULL)
        """,
        (boot,),
    ).fetchall()


def interrupt_left_over(tx: Tx, boot: int, now: int) -> int:
    """End the runs of earlier boots: as they were told to, as if their daemon had gone on; else interrupted.

    `envelopes.free_after_crash` frees the envelopes of those that were interrupted.
    """
    tx.execute(
        """
        UPDATE run INDEXED BY run_running SET ends_as = ?, cancelled_why = ?
        WHERE status = 'running' AND boot <> ? AND paused_at IS NOT NULL AND ends_as IS NULL
          AND submitted_at IS NULL
        """,
        (run_cancels.PAUSED, PAUSED_AT_END, boot),
    )
    rows = left_over(tx, boot)
    for row in rows:
        ending = run_cancels.of_row(row)
        why = Failure("interrupted", "the daemon ended during the run; its envelopes are redelivered")
        status, failure = ("interrupted", why) if ending is None else (ending.status, ending.failure)
        tx.execute(
            """
            UPDATE run SET status = ?1, ended_at = ?2, error_kind = ?3, error = ?4, paused_at = NULL,
                   paused_by = iif(ends_as IN ('paused', 'stopped'), paused_by, NULL),
                   last_message = (SELECT ifnull(max(id), 0) FROM message)
            WHERE id = ?5
            """,
            (status, now, *failure, row["id"]),
        )
        run_limits.add_usage(tx, row["id"])
        tx.execute("UPDATE token SET revoked_at = ? WHERE run = ? AND revoked_at IS NULL", (now, row["id"]))
        tx.facts.append(RunEnded(now, row["id"], row["agent"], None, status))
        if ending is not None:
            run_asks.end(tx, row["id"], now)
            _free_as_told(tx, row, ending, now)
        else:
            chat_notes.interrupted(tx, row["id"])
    return len(rows)


def cancel_held(tx: Tx, run: Row, why: str, by: int, now: int) -> None:
    """Cancel what a run worked on that has ended in its pause (control_targets.py), and tell the senders."""
    rows = tx.execute(
        """
        SELECT e.id FROM run_envelope x JOIN envelope e ON e.id = x.envelope
        WHERE x.run = ?1 AND e.status = 0 AND e.held_by IS NULL AND e.priority <> ?2 AND NOT EXISTS (
            SELECT 1 FROM run_envelope y WHERE y.envelope = x.envelope AND y.run > ?1)
        ORDER BY e.id
        """,
        (run["id"], Priority.NOTICE),
    ).fetchall()
    worked_on = tuple(int(row["id"]) for row in rows)
    worker = chat_notes.Worker(run["kind"], run["agent"], run["agent_name"], worked_on)
    _cancel_envelopes(tx, worker, worked_on, run_cancels.Ending(run_cancels.CANCELLED, why, by), now)


def _free_as_told(tx: Tx, run: Row, ending: run_cancels.Ending, now: int) -> None:
    """Cancel or free the envelopes of a run that was told to end before its daemon died."""
    query = "SELECT e.id, e.priority FROM run_envelope x JOIN envelope e ON e.id = x.envelope"
    rows = tx.execute(f"{query} WHERE x.run = ? AND e.status = 0 ORDER BY e.id", (run["id"],)).fetchall()
    worked_on = tuple(int(row["id"]) for row in rows if row["priority"] != Priority.NOTICE)
    if ending.cancels:
        worker = chat_notes.Worker(run["kind"], run["agent"], run["name"], worked_on)
        _cancel_envelopes(tx, worker, worked_on, ending, now)
    _free(tx, tuple(int(row["id"]) for row in rows))
