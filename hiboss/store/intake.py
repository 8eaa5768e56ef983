"""The two stages of what comes in from a platform: store updates as they came, then what they mean.

Each stage is one transaction. An update waits for the second as long as it has no outcome. The
outcomes are: accepted, edited, pressed, reacted, command, joined, left, renamed, ignored, failed, unbound;
of what does not come in: held, paired, blocked (hiboss/store/admission.py).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from ..core.address import BOSS
from ..core.contracts.inbound import Inbound
from ..core.envelope import Accepted, Attachment, Lane
from ..core.errors import UnknownBinding
from ..core.escaping import quote, visible
from . import (
    admission,
    buttons,
    chat_answers,
    chat_notes,
    contacts,
    live_posts,
    message_edits,
    notices,
    places,
    platform_updates,
    post_changes,
    presses,
    reactions,
    speakers,
)
from .accounts import KNOWN_AS
from .connection import Connection, Row
from .group_commit import Tx
from .lane_failures import SLICE

ACT = '{"act":'  # how the stored form of an update begins that acts at once


class NewUpdate(NamedTuple):
    """An update to be stored."""

    id: str
    chat: str
    platform_id: str | None
    raw: str | None  # None: it cannot be stored, for the reason in `problem`
    problem: str | None = None
    act: Inbound | None = None  # what it does at once; its stored form is in `raw`
    about: Inbound | None = None  # who wrote it, where and what, as far as that is known already


class Stored(NamedTuple):
    """What `take` did."""

    new: set[str]  # the ids of the updates that were not stored before
    waiting: dict[str, int]  # the numbers of those without an outcome, new or not
    digested: dict[str, str | None]  # those that were digested before, and why it failed


class Meaning(NamedTuple):
    """What was written about updates that were digested."""

    accepted: Accepted | None = None  # a message, to be delivered
    left: str | None = None  # the account left this chat: more that waits for it is to be failed
    unknown: str | None = None  # a press on this post was ignored: it is not ours
    answer: str | None = None  # what to tell whoever pressed a button
    decided: int | None = None  # the message whose buttons are not needed any more
    renamed: bool = False  # lanes of the binding may have something new to do
    reposted: bool = False  # posts of ours must change
    by_boss: bool = False  # the boss did this
    stored_files: bool = False


def take(
    tx: Tx,
    binding: int,
    updates: Sequence[NewUpdate],
    position: str | None,
    now: int,
    missed: tuple[int, int] | None = None,
) -> Stored:
    """Store updates as they came, and the position of the platform behind them.

    `missed`: the platform may have dropped what came between these times, and the boss is told.
    """
    account = admission.binding_of(tx, binding)
    if account is None:
        raise UnknownBinding(account=f"b{binding}")
    if missed is not None:
        notices.tell_boss_of_gap(tx, account, *missed, now)
    new: set[str] = set()
    waiting: dict[str, int] = {}
    digested: dict[str, str | None] = {}
    for update in updates:
        row = _known(tx, binding, update.id)
        if row is None:
            new.add(update.id)
            row = _insert(tx, account, update, now)
        elif row["outcome"] is not None:
            digested[update.id] = row["error"] if row["outcome"] == "failed" else None
        if row["outcome"] is None:
            waiting[update.id] = row["id"]
    if position is not None:
        tx.execute("UPDATE binding SET position = ? WHERE id = ?", (position, binding))
    return Stored(new, waiting, digested)


def as_it_came(stored: str) -> str:
    """Return the stored form of an update that does not act after all, but is digested."""
    raw = json.dumps(json.loads(stored)["raw"], separators=(",", ":"))
    return f" {raw}"  # a space: it must not look like one that acts


def _known(tx: Tx, binding: int, update: str) -> Row | None:
    row: Row | None = tx.execute(
        "SELECT id, outcome, error FROM platform_update WHERE binding = ? AND update_id = ?",
        (binding, update),
    ).fetchone()
    return row


def _insert(tx: Tx, account: Row, update: NewUpdate, now: int) -> Row:
    """Store a new update, with the outcome that it has already: it cannot be stored, or does not come in."""
    outcome: str | None = "failed"
    binding = account["id"]
    if update.problem is None:
        outcome = admission.refused(tx, account, update.chat, update.about, update.act, now)
    else:
        _tell_boss(tx, binding, update.chat, update.problem, now)
    kept = None if outcome in admission.UNKEPT else update.raw
    if outcome == "held" and update.act is not None and kept is not None:
        kept = as_it_came(kept)  # a command of a stranger is a message
    row: Row = tx.execute(
        """
        INSERT INTO platform_update (binding, update_id, chat, platform_id, received_at, raw, outcome, error)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?) RETURNING id, outcome
        """,
        (binding, update.id, update.chat, update.platform_id, now, kept, outcome, update.problem),
    ).fetchone()
    return row


# --- what waits ----------------------------------------------------------------------


def waiting(connection: Connection, binding: int, chat: str, limit: int) -> list[Row]:
    """Return the first updates of a chat that are not digested, in order."""
    return connection.execute(
        """
        SELECT id, update_id, chat, platform_id, received_at, raw, attempts, crashes
        FROM platform_update INDEXED BY platform_update_waiting
        WHERE binding = ? AND chat = ? AND outcome IS NULL AND substr(raw, 1, ?) <> ? ORDER BY id LIMIT ?
        """,
        (binding, chat, len(ACT), ACT, limit),
    ).fetchall()


def earlier_id(connection: Connection, binding: int, chat: str, number: int) -> str | None:
    """Return an earlier id of a chat if updates still wait under it that came before this one."""
    row = connection.execute(
        f"""
        {KNOWN_AS}
        SELECT k.chat FROM known_as k JOIN platform_update u INDEXED BY platform_update_waiting
            ON u.binding = ?1 AND u.chat = k.chat AND u.outcome IS NULL
        WHERE k.chat <> ?2 AND u.id < ?3 AND substr(u.raw, 1, ?4) <> ?5 LIMIT 1
        """,
        (binding, chat, number, len(ACT), ACT),
    ).fetchone()
    return None if row is None else str(row["chat"])


def chats_waiting(connection: Connection, binding: int) -> list[str]:
    """Return the chats with updates that are not digested."""
    rows = connection.execute(
        """
        SELECT DISTINCT chat FROM platform_update INDEXED BY platform_update_waiting
        WHERE binding = ? AND outcome IS NULL
        """,
        (binding,),
    )
    return [row["chat"] for row in rows]


def acts_waiting(connection: Connection, binding: int) -> list[Row]:
    """Return the updates that should have acted at once: a crash came in between."""
    return connection.execute(
        """
        SELECT id, update_id, chat, raw FROM platform_update INDEXED BY platform_update_waiting
        WHERE binding = ? AND outcome IS NULL AND substr(raw, 1, ?) = ? ORDER BY id
        """,
        (binding, len(ACT), ACT),
    ).fetchall()


def position(connection: Connection, binding: int) -> str | None:
    """Return the position that was stored last."""
    row = connection.execute("SELECT position FROM binding WHERE id = ?", (binding,)).fetchone()
    return None if row is None else row["position"]


# --- what it means -------------------------------------------------------------------


def settle(
    tx: Tx,
    binding: int,
    adapter: str,
    numbers: Sequence[int],
    inbound: Inbound,
    files: tuple[Attachment, ...],
    now: int,
) -> Meaning:
    """Store what these updates mean, and their outcome; nothing if they have one already."""
    marks = ",".join("?" * len(numbers))
    row = tx.execute(
        f"SELECT count(*) AS number FROM platform_update WHERE id IN ({marks}) AND outcome IS NULL", numbers
    ).fetchone()
    if row["number"] != len(numbers):
        return Meaning()
    chat = inbound.chat
    inbound = replace(inbound, chat=places.present_chat(tx, binding, chat))
    came = _Came(binding, adapter, inbound, chat, files, now)
    late = admission.decided_meanwhile(tx, binding, inbound)
    outcome, message, meaning = _KINDS[inbound.kind](tx, came) if late is None else (late, None, Meaning())
    tx.execute(
        f"""
        UPDATE platform_update SET outcome = ?, message = ?, error = NULL, raw = iif(?, NULL, raw)
        WHERE id IN ({marks})
        """,
        (outcome, message, outcome in admission.UNKEPT, *numbers),
    )
    if late is not None:
        return meaning
    _note_id(tx, numbers[0], outcome, inbound)
    if meaning.renamed and (contact := places.contact_of(tx, binding, inbound.renamed_to or "")) is not None:
        contacts.renamed(tx, contact)  # now that the row says which id it had
    if meaning.accepted is not None and meaning.accepted.failed:
        notices.tell_boss_of_reply(tx, meaning.accepted, now)  # now that the row says where he wrote
    if meaning.accepted is not None:
        for recipient in meaning.accepted.recipients:
            chat_notes.came_in_vain(tx, recipient, meaning.accepted.message, now)
    by_boss = inbound.kind != "membership" and speakers.is_boss(tx, binding, adapter, inbound.author.id)
    return meaning._replace(by_boss=by_boss)


def _note_id(tx: Tx, number: int, outcome: str, inbound: Inbound) -> None:
    """Store the platform's id of the message, if it was not known before."""
    # A press has no message of its own on the platform: its id is that of our post.
    own = {"renamed": inbound.renamed_to, "pressed": None, "reacted": None}.get(outcome, inbound.message)
    keeps = outcome in ("accepted", "edited") and own is None
    if not keeps:
        tx.execute("UPDATE platform_update SET platform_id = ? WHERE id = ?", (own, number))


class _Came(NamedTuple):
    """What came in, as the functions below get it."""

    binding: int
    adapter: str
    inbound: Inbound  # with the id that its chat has now
    chat: str  # the id that the chat had when it came: ids of its messages belong to that one
    files: tuple[Attachment, ...]
    now: int


_Result = tuple[str, int | None, Meaning]


def _message(tx: Tx, came: _Came) -> _Result:
    binding, adapter, inbound, chat, files, now = came
    if not files and not inbound.says_something:
        return "ignored", None, Meaning()
    place = places.meet(tx, binding, adapter, inbound, now)
    if not files and (answer := chat_answers.answer(tx, binding, adapter, inbound, chat, now)) is not None:
        return "accepted", answer, Meaning()
    accepted = platform_updates.receive(tx, binding, adapter, inbound, files, now, chat)
    live_posts.overtake(tx, Lane(place.id, binding))
    return "accepted", accepted.message, Meaning(accepted, stored_files=True)


def _edit(tx: Tx, came: _Came) -> _Result:
    private = came.inbound.chat_kind == "private"
    message = platform_updates.find(tx, came.binding, came.chat, came.inbound.message, private=private)
    answer = _answer_by_edit(tx, came, message)
    if answer is not None:
        return answer
    if message is None:
        return _message(tx, came)
    if not message_edits.edit(tx, message, came.inbound.text, came.files, came.now):
        return "ignored", message, Meaning()
    writer = tx.execute("SELECT sender FROM message WHERE id = ?", (message,)).fetchone()["sender"]
    reposted = post_changes.add(tx, message, writer) > 0  # what is posted of it to the boss follows
    earlier = platform_updates.last_wording(tx, came.binding, came.chat, came.inbound.message)
    if earlier is not None and message_edits.reword(
        tx, earlier, came.inbound.text, came.files, came.now
    ):  # nobody has read the wording before this one: two of them must not become two orders
        message_edits.add_note(tx, earlier, came.inbound.note)
        return "edited", earlier, Meaning(stored_files=True, reposted=reposted)
    told = message_edits.tell(tx, message, came.inbound.note, came.now)
    # What the new wording became is linked to the same post on the platform: an answer to it goes there.
    return "edited", told.message if told else message, Meaning(told, stored_files=True, reposted=reposted)


def _answer_by_edit(tx: Tx, came: _Came, message: int | None) -> _Result | None:
    """Take an edit as the answer to an ask; what was an answer stays as it was. None: it is no answer."""
    binding, adapter, inbound, chat, files, now = came
    last = platform_updates.last_wording(tx, binding, chat, inbound.message)
    if any(chat_answers.edited(tx, binding, adapter, inbound, one, now) for one in (message, last)):
        return "ignored", message, Meaning()
    if message is None:
        ours, answer = chat_answers.edited_command(tx, binding, adapter, inbound, now)
        return ("edited" if answer else "ignored", answer, Meaning()) if ours else None
    answer = None if files else chat_answers.answer(tx, binding, adapter, inbound, chat, now)
    return None if answer is None else ("edited", answer, Meaning())


def _press(tx: Tx, came: _Came) -> _Result:
    """A press of a button of ours decides something; of any other it answers the post (provisional)."""
    binding, adapter, inbound, chat, _, now = came
    if buttons.looks_ours(inbound.button):
        pressed = presses.press(tx, binding, adapter, inbound, chat, now)
        outcome = "pressed" if pressed.did else "ignored"
        made = pressed.became or pressed.message
        return outcome, made, Meaning(answer=pressed.answer, decided=pressed.message)
    answer = replace(inbound, text=inbound.button or "", reply_to=inbound.message, message=None)
    if not answer.text.strip() or not platform_updates.is_post(tx, binding, adapter, answer, chat):
        return "ignored", None, Meaning(unknown=inbound.message or "")
    places.meet(tx, binding, adapter, inbound, now)
    accepted = platform_updates.receive(tx, binding, adapter, answer, (), now, chat)
    return "pressed", accepted.message, Meaning(accepted)


def _reaction(tx: Tx, came: _Came) -> _Result:
    inbound = came.inbound
    about = replace(inbound, reply_to=inbound.message)
    answers = platform_updates.replied_to(tx, came.binding, came.adapter, about, came.chat)
    if answers is None or answers.stands_for or (message := answers.message) is None:
        return "ignored", None, Meaning()
    author, now = inbound.author, came.now
    boss = speakers.is_boss(tx, came.binding, came.adapter, author.id)
    if inbound.emojis is not None:
        changed = reactions.replace(tx, message, author, inbound.emojis, now, boss=boss)
    elif not inbound.emoji:
        changed = False
    elif inbound.removed:
        changed = reactions.remove(tx, message, author, inbound.emoji, now)
    else:
        changed = reactions.add(tx, message, author, inbound.emoji, now, boss=boss)
    return ("reacted", message, Meaning()) if changed else ("ignored", None, Meaning())


def _membership(tx: Tx, came: _Came) -> _Result:
    binding, adapter, inbound, _, _, now = came
    if inbound.membership == "renamed" and inbound.renamed_to:
        known = places.rename_chat(tx, binding, adapter, inbound.chat, inbound.renamed_to, now)
        return "renamed", None, Meaning(renamed=known)
    if inbound.membership == "left":
        if (contact := places.contact_of(tx, binding, inbound.chat)) is not None:
            notices.end_reach(tx, binding, now, contact["id"])
        more = places.fail_left(tx, binding, inbound.chat, now) == SLICE
        return "left", None, Meaning(left=inbound.chat if more else None)
    if inbound.membership == "joined":
        places.meet(tx, binding, adapter, inbound, now)
        admission.joined(tx, binding, inbound, now)
        return "joined", None, Meaning()
    return "ignored", None, Meaning()


def _ignored(tx: Tx, came: _Came) -> _Result:
    return "ignored", None, Meaning()


# A command that was not carried out (hiboss/store/commands.py) is a message.
_KINDS = {
    "message": _message,
    "command": _message,
    "edit": _edit,
    "press": _press,
    "reaction": _reaction,
    "membership": _membership,
    "stop": _ignored,  # it acts at once, or not at all (hiboss/store/commands.py)
    "ignored": _ignored,
}


# --- what failed ---------------------------------------------------------------------


def failed_once(tx: Tx, number: int, problem: str) -> None:
    """Store that a try to digest an update failed."""
    tx.execute(
        """
        UPDATE platform_update SET attempts = attempts + 1, crashes = 0, error = ?
        WHERE id = ? AND outcome IS NULL
        """,
        (problem, number),
    )


def last(connection: Connection) -> int:
    """Return the number of the last update; 0 if there is none."""
    row = connection.execute("SELECT ifnull(max(id), 0) AS last FROM platform_update").fetchone()
    return int(row["last"])


def begin(tx: Tx, number: int) -> None:
    """Store that an update is being digested: if the daemon dies of it, that counts."""
    tx.execute("UPDATE platform_update SET crashes = crashes + 1 WHERE id = ? AND outcome IS NULL", (number,))


def survived(tx: Tx, number: int | None = None) -> None:
    """Store that the daemon did not die of an update, or of none that waits."""
    tx.execute(
        """
        UPDATE platform_update SET crashes = 0
        WHERE outcome IS NULL AND crashes > 0 AND (?1 IS NULL OR id = ?1)
        """,
        (number,),
    )


def give_up(tx: Tx, number: int, problem: str, now: int, *, tell: bool = True) -> bool:
    """Store that an update becomes nothing; return False if it has an outcome already.

    `tell`: the boss is told. Not of what a stranger can send at will, like an empty message.
    """
    row = tx.execute(
        """
        UPDATE platform_update SET outcome = 'failed', attempts = attempts + 1, error = ?
        WHERE id = ? AND outcome IS NULL RETURNING binding, chat
        """,
        (problem, number),
    ).fetchone()
    if row is not None and tell:
        _tell_boss(tx, row["binding"], row["chat"], problem, now)
    return row is not None


def _tell_boss(tx: Tx, binding: int, chat: str, problem: str, now: int) -> None:
    row = tx.execute("SELECT adapter, account FROM binding WHERE id = ?", (binding,)).fetchone()
    place = f"channel:{row['adapter']}:{visible(chat)}"
    text = (
        f"Something that came in from {place} (account {visible(row['account'])}) was not accepted: "
        f"{quote(problem)}"
    )
    notices.notify(tx, BOSS, text, now)


# --- emptying ------------------------------------------------------------------------


def empty_raw(tx: Tx, before: int) -> int:
    """Forget how updates came that were stored before this time; return how many, at most SLICE.

    Their rows stay: replies find there what they answer. What is not digested yet, or held, stays whole.
    """
    cursor = tx.execute(
        """
        UPDATE platform_update SET raw = NULL WHERE id IN (
            SELECT id FROM platform_update INDEXED BY platform_update_raw
            WHERE raw IS NOT NULL AND received_at < ? AND outcome IS NOT NULL AND outcome <> 'held' LIMIT ?)
        """,
        (before, SLICE),
    )
    return cursor.rowcount
