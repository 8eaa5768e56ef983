"""Who is in a group: add and remove members, join and leave, roles, and when they answer.

One row of `participant` for each stay. Who leaves sees nothing that is said later; who comes back begins a
new stay, as a plain member. What takes a Tx runs inside the writer.
"""

from __future__ import annotations

from ..core import clock
from ..core.address import BACKGROUND, SYSTEM, Address
from ..core.errors import (
    CannotBeMember,
    GroupClosed,
    InvalidParams,
    NotBound,
    OwnerStays,
    UnknownAddress,
)
from ..core.events import ParticipantChanged
from . import conversation_routes, groups, offers, topics
from .addresses import near_address
from .connection import Connection, Row
from .group_commit import Tx
from .groups import Actor
from .recipients import account_for
from .writer_cache import LiveAddress


def listed(connection: Connection | Tx, conversation: int) -> list[Row]:
    """Return those who are in a conversation now, those who manage it first."""
    return connection.execute(
        """
        SELECT p.address, a.kind, a.name, p.role, p.respond, p.binding, p.joined_at, p.joined_seq
        FROM participant p JOIN address a ON a.id = p.address
        WHERE p.conversation = ? AND p.left_seq IS NULL
        ORDER BY p.role = 'owner' DESC, p.role = 'admin' DESC, p.joined_at, p.address
        """,
        (conversation,),
    ).fetchall()


def stays(connection: Connection | Tx, conversation: int, address: int) -> list[Row]:
    """Return the stays of somebody in a conversation, oldest first."""
    return connection.execute(
        """
        SELECT role, respond, joined_at, left_at, joined_seq, left_seq, last_read_seq FROM participant
        WHERE conversation = ? AND address = ? ORDER BY joined_seq
        """,
        (conversation, address),
    ).fetchall()


# --- coming --------------------------------------------------------------------------


def add(
    tx: Tx,
    which: int | str,
    actor: Actor,
    who: Address,
    now: int,
    *,
    role: str = "member",
    respond: str | None = None,
    history: int | None = None,
) -> tuple[Row, bool]:
    """Add a member; return the group, and whether that changed anything.

    Who is in it already keeps its role. `history`: how many earlier messages it may see, in place of what
    the group gives newcomers; never more than who adds it sees. The boss sees all.
    """
    row = groups.managed(tx, which, actor, "add members", by_owner=role == "admin")
    entry, binding = _new_member(tx, who, actor)
    before = _stay(tx, row["id"], entry.id)
    if before is not None and before["role"] != "guest":
        return row, respond is not None and _set_respond(tx, row, entry, before, respond, actor, now)
    _check_one_group(tx, entry)
    own = None if actor.is_boss else _stay(tx, row["id"], actor.id)
    since = 1 if own is None else own["joined_seq"]
    _enter(tx, row, entry, actor, now, role, respond, history=history, since=since, binding=binding)
    return row, True


def _check_one_group(tx: Tx, entry: LiveAddress) -> None:
    """Refuse a chat that is in another group: what is written there could go to one of them only."""
    if entry.address.kind != "channel":
        return
    other = tx.execute(
        """
        SELECT c.name FROM participant p JOIN conversation c ON c.id = p.conversation
        WHERE p.address = ? AND p.left_seq IS NULL AND p.role <> 'guest' AND c.kind = 'group'
          AND c.deleted_at IS NULL
        """,
        (entry.id,),
    ).fetchone()
    if other is not None:
        why = f"it is in group:{other['name']}, and what is written there goes to one group"
        raise CannotBeMember(address=str(entry.address), what="a member", why=why)


def join(tx: Tx, which: int | str, actor: Actor, respond: str | None, now: int) -> tuple[Row, bool]:
    """Let somebody come into an open group by itself; return whether that changed anything."""
    row = groups.living_group(tx, which, actor)
    before = _stay(tx, row["id"], actor.id)
    if before is not None and before["role"] != "guest":
        return row, respond is not None and _set_respond(tx, row, actor.entry, before, respond, actor, now)
    if not row["open"] and not actor.is_boss:
        raise GroupClosed(name=groups.called(row))
    entry, _ = _new_member(tx, actor.entry.address, actor)
    _enter(tx, row, entry, actor, now, respond=respond)
    return row, True


def _new_member(tx: Tx, who: Address, actor: Actor) -> tuple[LiveAddress, int | None]:
    """Return an address that can be in a group; of a channel, with the account that posts there."""
    why = "its members are added one by one" if who.kind == "group" else None
    entry = tx.cache.live_address(who)
    if who.fold in (SYSTEM.fold, BACKGROUND.fold):
        why = "it is a part of hiboss"
    if why is not None:
        raise CannotBeMember(address=str(who), what="in a conversation like this", why=why)
    if who.kind == "channel":
        return _new_channel(tx, who, entry, actor)
    if entry is None:
        raise UnknownAddress(address=str(who), hint=near_address(tx, who))
    return entry, None


def partner(tx: Tx, who: Address, actor: Actor) -> LiveAddress:
    """Return an address that can be the other one of a private conversation."""
    return _new_member(tx, who, actor)[0]


def _new_channel(
    tx: Tx, who: Address, entry: LiveAddress | None, actor: Actor
) -> tuple[LiveAddress, int | None]:
    entry = entry or topics.meet_topic(tx, who, actor.entry, clock.now())
    found = None if entry is None else account_for(tx, actor.id, entry.id, None, for_all=actor.is_boss)
    if entry is None or found is None:
        raise NotBound(sender=str(actor.entry.address), adapter=who.adapter, address=str(who))
    binding, of_boss = found
    if of_boss:
        raise CannotBeMember(
            address=str(who),
            what="a member of a group",
            why="it is a chat of the boss; add user:boss, who gets it there",
        )
    return entry, binding


def _enter(
    tx: Tx,
    row: Row,
    entry: LiveAddress,
    actor: Actor,
    now: int,
    role: str = "member",
    respond: str | None = None,
    *,
    history: int | None = None,
    since: int = 1,
    binding: int | None = None,
) -> None:
    """Begin a stay; if nothing was said since the last one ended, that one goes on.

    `since`: nothing before this number is shown to it, however much `history` it is given.
    """
    _check_respond(entry, respond)
    number = row["id"]
    _end_guest(tx, number, entry)
    tx.cache.flush()  # the last number is read below
    numbers = tx.execute("SELECT first_seq, last_seq FROM conversation WHERE id = ?", (number,)).fetchone()
    before = stays(tx, number, entry.id)
    shown = row["history"] if history is None else history
    joined = max(numbers["first_seq"], since, numbers["last_seq"] + 1 - shown)
    begun = _goes_on(tx, number, entry.id, before, joined, numbers["last_seq"])
    facts = (role, respond or "mentioned", binding, now)
    if begun is not None:
        tx.execute(
            """
            UPDATE participant SET role = ?, respond = ?, binding = ?, joined_at = ?,
                   left_at = NULL, left_seq = NULL, joined_seq = ?
            WHERE conversation = ? AND address = ? AND joined_seq = ?
            """,
            (*facts, begun, number, entry.id, before[-1]["joined_seq"]),
        )
    else:
        # What was said before is shown to it as its own reading, and not around its next turn.
        tx.execute(
            """
            INSERT INTO participant (role, respond, binding, joined_at, conversation, address, joined_seq,
                                     last_read_seq, shown_upto)
            VALUES (?, ?, ?, ?, ?5, ?6, ?7, ?7 - 1,
                    ifnull((SELECT id FROM message WHERE conversation = ?5 AND seq = ?7 - 1), 0))
            """,
            (*facts, number, entry.id, max(joined, before[-1]["left_seq"] + 1 if before else 1)),
        )
    _tell(tx, number, entry.id, "joined", role, actor, now)


def _goes_on(
    tx: Tx, conversation: int, address: int, before: list[Row], joined: int, last: int
) -> int | None:
    """Return from which number on the last stay of somebody goes on; None: a new one begins.

    It goes on if nothing was said since it ended; also if what a newcomer may see, from `joined` on, was said
    before earlier stays or between them. Then all of them become one, so that nothing is shown twice.
    """
    within = [one for one in before if one["left_seq"] >= joined - 1]
    seen = joined - 1  # all from `joined` up to here is in one of these stays
    for one in within:
        if one["joined_seq"] > seen + 1:
            for other in within[:-1]:
                which = (conversation, address, other["joined_seq"])
                tx.execute(
                    "DELETE FROM participant WHERE conversation = ? AND address = ? AND joined_seq = ?", which
                )
            return min(joined, int(within[0]["joined_seq"]))
        seen = max(seen, one["left_seq"])
    if not before:
        return None
    begun, left = before[-1]["joined_seq"], before[-1]["left_seq"]
    return int(begun) if left == last or begun == max(joined, left + 1) else None


def _end_guest(tx: Tx, conversation: int, entry: LiveAddress) -> None:
    """Forget that somebody was a guest: what it got then it still sees. Refuse one who is a guest now."""
    for route in tx.cache.routes().of.get(conversation, ()):
        if route.destination.id == entry.id:
            why = f"it gets the mail of {route.agent.address} there; give that back first"
            raise CannotBeMember(address=str(entry.address), what="a member of a group", why=why)
    tx.execute(
        "DELETE FROM participant WHERE conversation = ? AND address = ? AND role = 'guest'",
        (conversation, entry.id),
    )


# --- going ---------------------------------------------------------------------------


def leave(tx: Tx, which: int | str, actor: Actor, now: int) -> Row:
    """Let somebody leave a group; the owner cannot."""
    row = groups.living_group(tx, which, actor)
    _end_stay(tx, row, actor.entry, _member(tx, row, actor.entry), actor, now)
    return row


def remove(tx: Tx, which: int | str, actor: Actor, who: Address, now: int) -> Row:
    """Remove a member. The owner cannot be removed, and an admin only by the owner or the boss."""
    entry = tx.cache.live_address(who)
    if entry is not None and entry.id == actor.id:
        return leave(tx, which, actor, now)
    row = groups.managed(tx, which, actor, "remove members")
    if entry is None:
        raise UnknownAddress(address=str(who), hint=near_address(tx, who))
    stay = _member(tx, row, entry)
    if stay["role"] == "admin":
        groups.managed(tx, which, actor, "remove an admin", by_owner=True)
    _end_stay(tx, row, entry, stay, actor, now)
    return row


def _end_stay(
    tx: Tx, row: Row, entry: LiveAddress, stay: Row, by: Actor | None, now: int, *, deleted: bool = False
) -> None:
    if stay["role"] == "owner" and not deleted:
        raise OwnerStays(address=str(entry.address), name=groups.called(row))
    number = row["id"]
    if conversation_routes.find(tx, number, entry.id) is not None:
        conversation_routes.end(tx, number, entry.id)
    tx.cache.flush()
    tx.execute(
        """
        UPDATE participant SET left_at = ?3, left_seq = (SELECT last_seq FROM conversation WHERE id = ?1)
        WHERE conversation = ?1 AND address = ?2 AND left_seq IS NULL
        """,
        (number, entry.id, now),
    )
    offers.withdraw(tx, entry.id, now, number)
    _tell(tx, number, entry.id, "left", None, by, now)


# --- roles ---------------------------------------------------------------------------


def set_role(tx: Tx, which: int | str, actor: Actor, who: Address, role: str, now: int) -> tuple[Row, bool]:
    """Make a member an admin, or an admin a member; return whether that changed anything."""
    row = groups.managed(tx, which, actor, "make or remove admins", by_owner=True)
    entry = _live(tx, who)
    stay = _member(tx, row, entry)
    if stay["role"] == "owner":
        raise OwnerStays(address=str(who), name=groups.called(row))
    if role == "admin":
        _check_can_manage(entry, "an admin of a group")
    if stay["role"] == role:
        return row, False
    _put_role(tx, row["id"], entry.id, role, actor, now)
    return row, True


def set_respond(
    tx: Tx, which: int | str, actor: Actor, who: Address, respond: str, now: int
) -> tuple[Row, bool]:
    """Set which messages are for an agent to answer: itself, or those who manage the group."""
    row = groups.living_group(tx, which, actor)
    entry = _live(tx, who)
    if entry.id != actor.id:
        row = groups.managed(tx, which, actor, "set when others answer")
    return row, _set_respond(tx, row, entry, _member(tx, row, entry), respond, actor, now)


def transfer(tx: Tx, which: int | str, actor: Actor, who: Address, now: int) -> tuple[Row, bool]:
    """Give a group to another owner, who is in it; the old one becomes an admin."""
    row = groups.managed(tx, which, actor, "transfer it", by_owner=True)
    entry = _live(tx, who)
    stay = _member(tx, row, entry)
    _check_can_manage(entry, "the owner of a group")
    if stay["role"] == "owner":
        return row, False
    for owner in tx.execute(
        "SELECT address FROM participant WHERE conversation = ? AND role = 'owner' AND left_seq IS NULL",
        (row["id"],),
    ).fetchall():
        _put_role(tx, row["id"], owner["address"], "admin", actor, now)
    _put_role(tx, row["id"], entry.id, "owner", actor, now)
    return row, True


def _check_can_manage(entry: LiveAddress, what: str) -> None:
    if entry.address.kind == "channel":
        why = "a channel has no token, so it cannot manage anything"
        raise CannotBeMember(address=str(entry.address), what=what, why=why)


def _check_respond(entry: LiveAddress, respond: str | None) -> None:
    if respond is not None and entry.address.kind != "agent":
        raise InvalidParams(detail=f"respond (--respond) is for agents, and {entry.address} is none")


def _set_respond(
    tx: Tx, row: Row, entry: LiveAddress, stay: Row, respond: str, actor: Actor, now: int
) -> bool:
    _check_respond(entry, respond)
    if stay["respond"] == respond:
        return False
    tx.execute(
        "UPDATE participant SET respond = ? WHERE conversation = ? AND address = ? AND left_seq IS NULL",
        (respond, row["id"], entry.id),
    )
    if respond == "never":
        offers.withdraw(tx, entry.id, now, row["id"])
    _tell(tx, row["id"], entry.id, "changed", stay["role"], actor, now)
    return True


def _put_role(tx: Tx, conversation: int, address: int, role: str, by: Actor | None, now: int) -> None:
    tx.execute(
        "UPDATE participant SET role = ? WHERE conversation = ? AND address = ? AND left_seq IS NULL",
        (role, conversation, address),
    )
    _tell(tx, conversation, address, "changed", role, by, now)


# --- when somebody is deleted, or a chat becomes another one ---------------------------


def end_of(tx: Tx, address: int, now: int) -> None:
    """End the stays of somebody who is about to be deleted. A group of its own gets another owner:
    the oldest admin, else the oldest member, people before agents."""
    rows = tx.execute(
        f"""
        {groups.COLUMNS} JOIN participant p ON p.conversation = c.id AND p.left_seq IS NULL
        WHERE p.address = ? AND c.kind = 'group' AND p.role <> 'guest' ORDER BY c.id
        """,
        (address,),
    ).fetchall()
    for row in rows:
        stay = _stay(tx, row["id"], address)
        assert stay is not None
        found = tx.execute("SELECT kind, name FROM address WHERE id = ?", (address,)).fetchone()
        entry = LiveAddress(address, Address(found["kind"], found["name"]))
        _end_stay(tx, row, entry, stay, None, now, deleted=True)
        if stay["role"] == "owner" and (heir := _heir(tx, row["id"])) is not None:
            _put_role(tx, row["id"], heir, "owner", None, now)


def _heir(tx: Tx, conversation: int) -> int | None:
    row = tx.execute(
        """
        SELECT p.address FROM participant p JOIN address a ON a.id = p.address
        WHERE p.conversation = ? AND p.left_seq IS NULL AND p.role <> 'guest' AND a.kind IN ('agent', 'user')
          AND a.retired_at IS NULL
        ORDER BY p.role = 'admin' DESC, iif(p.role = 'admin', 0, a.kind <> 'user'), p.joined_at, p.address
        LIMIT 1
        """,
        (conversation,),
    ).fetchone()
    return None if row is None else int(row["address"])


def keeps_its_place(tx: Tx, conversation: int) -> bool:
    """Tell whether a conversation stays what it is when a party has another address: a group, or deleted."""
    row = groups.by_id(tx, conversation)
    return row is not None and (row["kind"] == "group" or row["deleted_at"] is not None)


def readdress(tx: Tx, conversation: int, gone: int, kept: int, now: int) -> None:
    """Let one chat be in a conversation in the place of another, which it became. Of two that were in it,
    one stays: the numbers of messages are written (`cache.flush`)."""
    if stays(tx, conversation, kept):
        query = "left_at = ?3, left_seq = (SELECT last_seq FROM conversation WHERE id = ?1)"
        which = "conversation = ?1 AND address = ?2 AND left_seq IS NULL"
        tx.execute(f"UPDATE participant SET {query} WHERE {which}", (conversation, gone, now))
    else:
        tx.execute(
            "UPDATE participant SET address = ?3 WHERE conversation = ?1 AND address = ?2",
            (conversation, gone, kept),
        )


# --- small things --------------------------------------------------------------------


def _live(tx: Tx, who: Address) -> LiveAddress:
    entry = tx.cache.live_address(who)
    if entry is None:
        raise UnknownAddress(address=str(who), hint=near_address(tx, who))
    return entry


def _stay(tx: Tx, conversation: int, address: int) -> Row | None:
    row: Row | None = tx.execute(
        """
        SELECT role, respond, joined_seq FROM participant
        WHERE conversation = ? AND address = ? AND left_seq IS NULL
        """,
        (conversation, address),
    ).fetchone()
    return row


def _member(tx: Tx, row: Row, entry: LiveAddress) -> Row:
    """Return the stay of somebody who is in a group now; raise NotMember for any other one."""
    stay = _stay(tx, row["id"], entry.id)
    if stay is None or stay["role"] == "guest":
        raise groups.not_member(row, str(entry.address))
    return stay


def _tell(
    tx: Tx, conversation: int, who: int, change: str, role: str | None, by: Actor | None, now: int
) -> None:
    parties = groups.present(tx, conversation)
    if who not in parties:
        parties.append(who)
    number = None if by is None else by.id
    tx.facts.append(ParticipantChanged(now, conversation, who, change, role, number, parties))
