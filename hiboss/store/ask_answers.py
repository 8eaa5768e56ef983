"""Who may answer or cancel an ask, which option is meant, and who gets to see it.

Who asks never answers itself, by none of its tokens. Only the one who was asked, whoever holds the question
in its place, and the boss answer; only the asker and the boss cancel. What takes a Tx runs inside the writer.
"""

from __future__ import annotations

from typing import NamedTuple

from ..core.address import Address
from ..core.choices import chosen
from ..core.errors import BadChoice, NotAsker, NotFound, OwnAsk
from ..core.ids import LARGEST
from . import ask_mail, ask_messages, ask_rules, asks, envelope_marks
from .ask_closing import Settlement
from .connection import Connection, Row
from .group_commit import Tx

STATES = ("open", "answered", "expired", "cancelled")


class Query(NamedTuple):
    """Which asks to list, newest first."""

    sees: int | None  # the address id of who looks: what it asked or is asked; None: the boss, all
    state: str | None = "open"  # None: all
    before: int | None = None  # only older ones
    limit: int = 100


def visible(connection: Connection | Tx, ask: int, sees: int | None) -> Row:
    """Return an ask that this address id asked, is asked or holds; None sees all. Else raise NotFound."""
    row = asks.need(connection, ask)
    if sees is not None and sees not in (row["asker"], row["asked"], row["holder"]):
        raise NotFound(what="ask", value=f"q{ask}", where=asks.WHERE)
    return row


def listed(connection: Connection, query: Query) -> list[Row]:
    """Return asks, newest first. A page costs the same, however many others there are."""
    states = STATES if query.state is None else (query.state,)
    roles = ("state",) if query.sees is None else ("asker", "asked", "holder")
    walks = " UNION ALL ".join(_walk(role, state) for role in roles for state in states)
    before = LARGEST if query.before is None else query.before
    return connection.execute(
        f"{asks.SELECT} WHERE k.id IN ({walks}) ORDER BY k.id DESC LIMIT ?3",
        (query.sees, before, query.limit),
    ).fetchall()


def _walk(role: str, state: str) -> str:
    """Return the statement for the newest asks in one state: all, or those in which ?1 has a role."""
    whose = "" if role == "state" else f"{role} = ?1 AND "
    return f"""
        SELECT * FROM (SELECT id FROM ask INDEXED BY ask_{role} WHERE {whose}state = '{state}' AND id < ?2
                       ORDER BY id DESC LIMIT ?3)"""


# --- answer --------------------------------------------------------------------------


def answer(
    tx: Tx,
    ask: int,
    choice: str,
    by: int,
    now: int,
    *,
    comment: str | None = None,
    scope: str | None = None,
    place: Address | None = None,
) -> Row:
    """Answer an ask in the name of an address; the first answer counts. `place`: where it was said."""
    row = visible(tx, ask, None if by == tx.cache.reach().boss else by)
    if by == row["asker"]:
        raise OwnAsk(id=f"q{ask}", asker=row["asker_address"])
    option = chosen(asks.options_of(row), choice)
    if option is None:
        raise BadChoice(id=f"q{ask}", choice=choice[:100] or "''", options=ask_messages.options_list(row))
    if row["state"] == "open":  # else it is told who was first
        ask_rules.check(tx, row, scope)
    return asks.settle(tx, ask, Settlement("answered", option, by, comment or None, scope, place), now)


def of_message(tx: Tx, message: int | None) -> Row | None:
    """Return the ask that a message is about: its question, or a reminder of it."""
    row = tx.execute(
        """
        SELECT id FROM ask WHERE message = ?1
        UNION ALL SELECT CAST(argument AS INTEGER) FROM button WHERE message = ?1 AND action = 'ask.answer'
        LIMIT 1
        """,
        (message,),
    ).fetchone()
    return None if row is None else asks.get(tx, row["id"])


# --- cancel --------------------------------------------------------------------------


def cancel(tx: Tx, ask: int, by: int, now: int, reason: str | None = None) -> Row:
    """Take an ask back in the name of an address."""
    boss = by == tx.cache.reach().boss
    row = visible(tx, ask, None if boss else by)
    if not boss and by != row["asker"]:
        raise NotAsker(id=f"q{ask}", asker=row["asker_address"])
    if not boss and row["kind"] == "limit":
        raise ask_mail.limit_ask(ask, "cancelled")
    return asks.settle(tx, ask, Settlement("cancelled", None, by, reason or None), now)


def end_of_party(tx: Tx, address: int, why: str, now: int) -> None:
    """Cancel the open asks of somebody who was deleted, and those asked of them."""
    rows = tx.execute(
        """
        SELECT id FROM ask INDEXED BY ask_asker WHERE asker = ?1 AND state = 'open'
        UNION SELECT id FROM ask INDEXED BY ask_asked WHERE asked = ?1 AND state = 'open' ORDER BY id
        """,
        (address,),
    ).fetchall()
    for row in rows:
        asks.settle(tx, row["id"], Settlement("cancelled", None, None, why), now)


def end_of_message(tx: Tx, message: int, by: int, why: str | None, now: int) -> None:
    """Cancel the open ask whose question was deleted."""
    row = tx.execute("SELECT id FROM ask WHERE message = ? AND state = 'open'", (message,)).fetchone()
    if row is not None:
        said = f"its message was deleted{f': {why}' if why else ''}"
        asks.settle(tx, row["id"], Settlement("cancelled", None, by, said), now)


# --- the asker has the answer --------------------------------------------------------


def received(tx: Tx, ask: int, now: int) -> None:
    """Store that the asker says that it has the answer: no turn need bring it again.

    Not before it says so: what was written to a connection may never be read.
    """
    row = asks.need(tx, ask)
    mail = tx.execute(
        "SELECT id, status, held_by FROM envelope WHERE message = ? AND recipient = ?",
        (row["reply"], row["asker"]),
    ).fetchone()
    if mail is None or mail["held_by"] is not None:  # it is being handed over anyway
        return
    if mail["status"] == 0:
        envelope_marks.acknowledge(tx, mail["id"], now)
    else:
        envelope_marks.mark_read(tx, [mail["id"]], row["asker"], now)
