"""Post changes: envelopes whose posts differ from their message, because it was edited or deleted.

A change is written in the transaction that edits or deletes the message, and stays until its posts are in
line (hiboss/routing/post_changes.py). Its steps are stored before the first is done, and each is removed when
it is done: so it ends the same, however often it is broken off. What takes a Tx runs inside the writer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..core.address import BACKGROUND, BOSS, SYSTEM, Address
from ..core.envelope import Lane, Status
from ..core.escaping import quote, visible
from . import notices, posts
from .accounts import SAME_ACCOUNT
from .breaker_holds import CHANGE_HOLDS
from .connection import Connection, Row
from .group_commit import Tx
from .lane_failures import GIVE_UP_FAILURES, GIVE_UP_MS
from .stray_forwards import STRAYS

# --- writing them down ---------------------------------------------------------------


def add(tx: Tx, message: int, asker: int) -> int:
    """Note that a message was edited or deleted: what is posted of it must follow. Return of how many.

    What is being posted now, or is posted in part, is finished as it is, and changed then. What was planned
    and not begun is planned anew. Of a deleted message also what may be there: nobody can take it back, but
    `finish` tells of it.
    """
    tx.execute(
        """
        DELETE FROM post WHERE envelope IN (
            SELECT e.id FROM envelope e WHERE e.message = ? AND e.status IN (0, 2) AND e.held_by IS NULL
              AND NOT EXISTS (SELECT 1 FROM post p WHERE p.envelope = e.id AND p.posted_at IS NOT NULL))
        """,
        (message,),
    )
    return tx.execute(
        """
        INSERT INTO post_change (envelope, asker)
        SELECT e.id, ?2 FROM envelope e INDEXED BY envelope_message
        WHERE e.message = ?1 AND e.binding IS NOT NULL
          AND (e.held_by IS NOT NULL
               OR (e.unconfirmed AND e.status <> 1
                   AND (SELECT m.deleted_at FROM message m WHERE m.id = ?1) IS NOT NULL)
               OR EXISTS (SELECT 1 FROM post p
                          WHERE p.envelope = e.id AND p.posted_at IS NOT NULL AND p.deleted_at IS NULL))
        ON CONFLICT (envelope) DO UPDATE SET asker = ?2, planned = 0, failures = 0, first_failed_at = NULL
        """,
        (message, asker),
    ).rowcount


def follow_retried(tx: Tx, envelopes: Sequence[int]) -> None:
    """Note that envelopes which are posted in part, and retried now, get the wording of an edit in the end.

    While their account was not bound, their changes were given up.
    """
    marks = ",".join("?" * len(envelopes))
    tx.execute(
        f"""
        INSERT INTO post_change (envelope, asker)
        SELECT e.id, ifnull(m.caller, m.sender) FROM envelope e JOIN message m ON m.id = e.message
        WHERE e.id IN ({marks}) AND e.binding IS NOT NULL AND m.edited_at IS NOT NULL
          AND EXISTS (SELECT 1 FROM post p
                      WHERE p.envelope = e.id AND p.posted_at IS NOT NULL AND p.deleted_at IS NULL)
        ON CONFLICT (envelope) DO UPDATE SET planned = 0, problems = 0, problem = NULL
        """,
        envelopes,
    )


# --- reading -------------------------------------------------------------------------


class Waiting(NamedTuple):
    """An envelope whose posts must change, and the account that can do it."""

    envelope: int
    binding: int  # 0: the account is not bound any more


_LIVE = f"""
    ifnull((SELECT live.id FROM binding live
            WHERE live.removed_at IS NULL AND live.id IN {SAME_ACCOUNT.format("e.binding")}), 0)
"""
# When nothing more is posted of it. What failed may be retried, unless it was deleted or its account is gone.
# What an agent has changed waits while the breaker is pulled.
_READY = f"""
    ((e.status IN ({Status.DONE:d}, {Status.CANCELLED:d})
      OR (e.status = {Status.FAILED:d} AND (m.deleted_at IS NOT NULL OR {_LIVE} = 0)))
     AND NOT {CHANGE_HOLDS.format("c.asker")})
"""


class Found(NamedTuple):
    """The envelopes whose posts must change."""

    ready: list[Waiting]
    others: bool  # there are some that are still being posted


def ready(connection: Connection | Tx) -> Found:
    """Return the envelopes whose posts can be changed now, and whether there are others."""
    rows = connection.execute(
        f"""
        SELECT c.envelope, {_LIVE} AS binding, {_READY} AS ready FROM post_change c
        JOIN envelope e ON e.id = c.envelope JOIN message m ON m.id = e.message ORDER BY c.envelope
        """
    ).fetchall()
    found = [Waiting(row["envelope"], row["binding"]) for row in rows if row["ready"]]
    return Found(found, len(found) < len(rows))


class Change(NamedTuple):
    """A change as it is now."""

    lane: Lane  # where its posts are; the binding is 0 if the account is not bound any more
    place: str  # the chat and topic, as the platform calls it now
    planned: bool
    deleted: bool  # its message is
    cancelled: bool  # its envelope is: nothing is posted in addition
    revisions: int  # of its message
    failing_since: int | None
    private: bool  # ids of posts stay the same when its chat gets another id
    barred: str | None  # why no other text may be posted there


def get(connection: Connection | Tx, envelope: int) -> Change | None:
    """Return the change of an envelope; None if there is none, or if it cannot be made yet."""
    row = connection.execute(
        f"""
        SELECT c.planned, c.first_failed_at, e.recipient, e.status, a.name, m.deleted_at, {_LIVE} AS binding,
               {STRAYS} AS strays, k.kind, k.state,
               (SELECT count(*) FROM revision r WHERE r.message = m.id) AS revisions
        FROM post_change c JOIN envelope e ON e.id = c.envelope JOIN message m ON m.id = e.message
        JOIN address a ON a.id = e.recipient
        LEFT JOIN place l ON l.address = e.recipient AND l.binding = e.binding
        LEFT JOIN contact k ON k.id = l.contact
        WHERE c.envelope = ? AND {_READY}
        """,
        (envelope,),
    ).fetchone()
    if row is None:
        return None
    barred = "it is no chat of the boss any more" if row["strays"] else None
    return Change(
        lane=Lane(row["recipient"], row["binding"]),
        place=row["name"].split(":", 1)[1],
        planned=bool(row["planned"]),
        deleted=row["deleted_at"] is not None,
        cancelled=row["status"] == Status.CANCELLED,
        revisions=row["revisions"],
        failing_since=row["first_failed_at"],
        private=row["kind"] == "private",
        barred="the boss has blocked this chat" if row["state"] == "blocked" else barred,
    )


class Step(NamedTuple):
    """What is to be done next with one chunk."""

    chunk: int
    content: str | None  # what it is to show; None: it is to be deleted
    ids: tuple[str, ...]  # its posts; none: it is to be posted
    chat: str | None  # the old id of its chat, if that has another one now


def next_step(connection: Connection | Tx, envelope: int) -> Step | None:
    """Return the next step: edits first, then what is posted in addition, and deletions at the end."""
    row = connection.execute(
        """
        SELECT s.chunk, s.content, p.platform_id, p.chat FROM post_step s
        LEFT JOIN post p ON p.envelope = s.envelope AND p.chunk = s.chunk
        WHERE s.envelope = ? ORDER BY s.content IS NULL, p.platform_id IS NULL, s.chunk LIMIT 1
        """,
        (envelope,),
    ).fetchone()
    if row is None:
        return None
    if row["platform_id"] is None:
        return Step(row["chunk"], row["content"], (), None)
    others = connection.execute(
        "SELECT platform_id FROM post_part WHERE envelope = ? AND chunk = ? ORDER BY platform_id",
        (envelope, row["chunk"]),
    )
    ids = (row["platform_id"], *[one["platform_id"] for one in others])
    return Step(row["chunk"], row["content"], ids, row["chat"])


def there(connection: Connection | Tx, envelope: int) -> list[Row]:
    """Return the chunks of an envelope that are posted and were not taken back, in order."""
    return connection.execute(
        """
        SELECT chunk, content FROM post
        WHERE envelope = ? AND posted_at IS NOT NULL AND deleted_at IS NULL ORDER BY chunk
        """,
        (envelope,),
    ).fetchall()


# --- planning ------------------------------------------------------------------------


class Plan(NamedTuple):
    """What the posts of an envelope are to show."""

    shows: dict[int, str]  # by the number of the chunk that is posted; all others are to go
    added: list[str]  # what is posted in addition


NOTHING = Plan({}, [])  # all posts are to go


def plan(tx: Tx, envelope: int, seen: Change, wanted: Plan, now: int) -> bool:
    """Store the steps that bring the posts of an envelope in line; False: its message is another one again.

    `wanted` was made for the message as it was `seen`.
    """
    present = get(tx, envelope)
    if present is None or (present.deleted, present.revisions) != (seen.deleted, seen.revisions):
        return False
    # What was begun and not finished: nobody knows what these posts show.
    begun = {
        row["chunk"] for row in tx.execute("SELECT chunk FROM post_step WHERE envelope = ?", (envelope,))
    }
    tx.execute("DELETE FROM post_step WHERE envelope = ?", (envelope,))
    tx.execute(
        "UPDATE post SET deleted_at = ? WHERE envelope = ? AND posted_at IS NULL AND deleted_at IS NULL",
        (now, envelope),
    )
    for row in there(tx, envelope):
        content = wanted.shows.get(row["chunk"])
        if content is None or content != row["content"] or row["chunk"] in begun:
            _add_step(tx, envelope, row["chunk"], content)
    # Numbers of their own, also of what was deleted: a number is part of a post's idempotency key.
    last = tx.execute("SELECT max(chunk) FROM post WHERE envelope = ?", (envelope,)).fetchone()[0]
    for number, content in enumerate(wanted.added, -1 if last is None else last):
        tx.execute(
            "INSERT INTO post (envelope, chunk, content) VALUES (?, ?, ?)", (envelope, number + 1, content)
        )
        _add_step(tx, envelope, number + 1, content)
    tx.execute("UPDATE post_change SET planned = 1 WHERE envelope = ?", (envelope,))
    return True


def _add_step(tx: Tx, envelope: int, chunk: int, content: str | None) -> None:
    tx.execute(
        "INSERT INTO post_step (envelope, chunk, content) VALUES (?, ?, ?)", (envelope, chunk, content)
    )


# --- what came of a step -------------------------------------------------------------


def edited(tx: Tx, envelope: int, step: Step) -> None:
    """Record that a post shows other content now."""
    tx.execute(
        "UPDATE post SET content = ? WHERE envelope = ? AND chunk = ?", (step.content, envelope, step.chunk)
    )
    _done(tx, envelope, step)


def taken_back(tx: Tx, envelope: int, step: Step, now: int) -> None:
    """Record that the posts of a chunk are gone. Their ids stay: somebody may have replied to one."""
    tx.execute("UPDATE post SET deleted_at = ? WHERE envelope = ? AND chunk = ?", (now, envelope, step.chunk))
    _done(tx, envelope, step)


def added(tx: Tx, envelope: int, step: Step, ids: Sequence[str], now: int) -> None:
    """Record that a chunk was posted in addition."""
    posts.note_post(tx, envelope, step.chunk, step.content or "", ids, now)
    _done(tx, envelope, step)


def _done(tx: Tx, envelope: int, step: Step) -> None:
    tx.execute("DELETE FROM post_step WHERE envelope = ? AND chunk = ?", (envelope, step.chunk))
    tx.execute("UPDATE post_change SET failures = 0, first_failed_at = NULL WHERE envelope = ?", (envelope,))


def refused(tx: Tx, envelope: int, step: Step, why: str, now: int) -> None:
    """Give a step up: the post stays as it is.

    If an edit was refused, nothing more is posted or deleted: what stays could be what takes its place.
    """
    _note_problems(tx, envelope, 1, why)
    tx.execute("DELETE FROM post_step WHERE envelope = ? AND chunk = ?", (envelope, step.chunk))
    if step.content is not None:
        _drop_additions(tx, envelope, now)
        tx.execute("DELETE FROM post_step WHERE envelope = ? AND content IS NULL", (envelope,))


def give_up(tx: Tx, envelope: int, why: str, now: int) -> None:
    """Give all steps of a change up, also those that are not planned: its posts stay as they are."""
    left = tx.execute("SELECT count(*) FROM post_step WHERE envelope = ?", (envelope,)).fetchone()[0]
    planned = tx.execute("SELECT planned FROM post_change WHERE envelope = ?", (envelope,)).fetchone()
    if planned is None:
        return
    _note_problems(tx, envelope, left if planned["planned"] else len(there(tx, envelope)), why)
    _drop_additions(tx, envelope, now)
    tx.execute("DELETE FROM post_step WHERE envelope = ?", (envelope,))
    tx.execute("UPDATE post_change SET planned = 1 WHERE envelope = ?", (envelope,))


def _drop_additions(tx: Tx, envelope: int, now: int) -> None:
    """Post nothing in addition: those chunks are never posted. Those of what failed are, if it is retried."""
    rows = tx.execute(
        f"""
        UPDATE post SET deleted_at = ?1 WHERE envelope = ?2 AND posted_at IS NULL AND deleted_at IS NULL
          AND (SELECT status FROM envelope WHERE id = ?2) <> {Status.FAILED:d}
        RETURNING chunk
        """,
        (now, envelope),
    ).fetchall()
    for row in rows:
        tx.execute("DELETE FROM post_step WHERE envelope = ? AND chunk = ?", (envelope, row["chunk"]))


def _note_problems(tx: Tx, envelope: int, number: int, why: str) -> None:
    tx.execute(
        "UPDATE post_change SET problems = problems + ?, problem = ifnull(problem, ?) WHERE envelope = ?",
        (number, why, envelope),
    )


def failed(tx: Tx, envelope: int, why: str, now: int) -> bool:
    """Record that a step could not be done now; return whether the change was given up, after a day."""
    row = tx.execute(
        """
        UPDATE post_change SET failures = failures + 1, first_failed_at = ifnull(first_failed_at, ?1)
        WHERE envelope = ?2 RETURNING failures, first_failed_at
        """,
        (now, envelope),
    ).fetchone()
    if row is None or row["failures"] < GIVE_UP_FAILURES or row["first_failed_at"] > now - GIVE_UP_MS:
        return False
    give_up(tx, envelope, why, now)
    return True


def finish(tx: Tx, envelope: int, now: int) -> bool:
    """Forget a change that is made, and tell who asked for it what stays; False: there is more to do."""
    row = tx.execute(
        """
        SELECT c.asker, c.problems, c.problem, e.id, e.message, e.forwards, e.addressed, m.deleted_at,
               e.unconfirmed AND e.status <> 1 AND m.deleted_at IS NOT NULL AS unconfirmed,
               a.kind || ':' || a.name AS address
        FROM post_change c JOIN envelope e ON e.id = c.envelope JOIN message m ON m.id = e.message
        JOIN address a ON a.id = e.recipient
        WHERE c.envelope = ?1 AND c.planned
          AND NOT EXISTS (SELECT 1 FROM post_step s WHERE s.envelope = ?1)
        """,
        (envelope,),
    ).fetchone()
    if row is None:
        return False
    tx.execute("DELETE FROM post_change WHERE envelope = ?", (envelope,))
    if row["problems"] or row["unconfirmed"]:
        _tell(tx, row, now)
    return True


def _tell(tx: Tx, row: Row, now: int) -> None:
    """Tell who edited or deleted a message that posts stay, or may. Of a forward only the boss may know."""
    asker = tx.execute("SELECT kind, name, retired_at FROM address WHERE id = ?", (row["asker"],)).fetchone()
    address = Address(asker["kind"], asker["name"])
    if row["forwards"] is not None and not row["addressed"]:
        address = BOSS
    elif asker["retired_at"] is not None or address in (SYSTEM, BACKGROUND):
        return
    told = [_of_problems(row)] if row["problems"] else []
    if row["unconfirmed"]:
        told.append(
            f"e{row['id']} may still be in {visible(row['address'])}: the confirmation of a post never came, "
            "and without it the post cannot be taken back."
        )
    notices.notify(tx, address, "\n".join(told), now, about=row["message"])


def _of_problems(row: Row) -> str:
    where, number = visible(row["address"]), row["problems"]
    posted = "1 post" if number == 1 else f"{number} posts"
    if row["deleted_at"] is None:
        text = f"e{row['id']} was not changed in {where}: {posted} there did not get the new text."
    else:
        text = f"e{row['id']} was not taken back from {where}: {posted} of it are still there."
        text = text.replace("1 post of it are", "1 post of it is")
    return f"{text} Reason: {quote(row['problem'])}"
