"""Look up addresses by address or name, suggest one for a mistyped one, and store who was last seen when."""

from __future__ import annotations

from ..core.address import Address
from ..core.errors import NameTaken
from ..core.quoting import nearest
from .connection import Connection
from .group_commit import Tx


def note_seen(tx: Tx, seen: dict[int, int]) -> None:
    """Store when callers were last seen, by address id."""
    for address, moment in seen.items():
        tx.execute("UPDATE agent SET last_seen_at = ? WHERE address = ?", (moment, address))
        tx.execute("UPDATE user SET last_seen_at = ? WHERE address = ?", (moment, address))


def find_address(connection: Connection | Tx, address: Address) -> int | None:
    """Return the id of an address that is in use, or else was in use last; None if it never existed."""
    row = connection.execute(
        "SELECT id FROM address WHERE fold = ? ORDER BY retired_at IS NULL DESC, id DESC LIMIT 1",
        (address.fold,),
    ).fetchone()
    return row["id"] if row else None


def is_known(connection: Connection | Tx, address: int, viewer: int | None) -> bool:
    """Tell whether somebody may know that an address exists; None knows all.

    The names of agents and people are public. A group that is not open is known to those who are or were in
    it, a channel to its agents and to who was in a conversation with it.
    """
    return viewer is None or connection.execute(_KNOWN, (address, viewer)).fetchone() is not None


_KNOWN = """
    SELECT 1 FROM address a WHERE a.id = ?1 AND CASE a.kind
        WHEN 'group' THEN a.fold = 'group:all' OR EXISTS (
            SELECT 1 FROM conversation c WHERE c.address = a.id AND ((c.open AND c.deleted_at IS NULL)
              OR EXISTS (SELECT 1 FROM participant p WHERE p.conversation = c.id AND p.address = ?2)))
        WHEN 'channel' THEN a.id = ?2 OR EXISTS (
            SELECT 1 FROM place p JOIN binding_agent b ON b.binding = p.binding AND b.agent = ?2
            WHERE p.address = a.id)
          OR EXISTS (SELECT 1 FROM participant c CROSS JOIN participant p
                     ON p.conversation = c.conversation AND p.address = ?2 WHERE c.address = a.id)
        ELSE 1 END
"""


def namesakes(connection: Connection, address: Address) -> tuple[int, ...]:
    """Return the ids of all who ever had this address, so that the mail of deleted agents can be found."""
    rows = connection.execute("SELECT id FROM address WHERE fold = ?", (address.fold,))
    return tuple(row["id"] for row in rows)


def find_name(connection: Connection | Tx, name: str) -> Address | None:
    """Return the address with this bare name, or the last one that had it.

    Names are unique over agents, people and groups.
    """
    row = connection.execute(
        """
        SELECT kind, name FROM address WHERE fold IN ('agent:' || ?1, 'user:' || ?1, 'group:' || ?1)
        ORDER BY retired_at IS NULL DESC, id DESC LIMIT 1
        """,
        (name.lower(),),
    ).fetchone()
    return Address(row["kind"], row["name"]) if row else None


def is_free(tx: Tx, name: str) -> bool:
    """Tell whether no agent, person or group has this name: commands take bare names."""
    return not any(tx.cache.live_address(Address(kind, name)) for kind in ("agent", "user", "group"))


def check_free(tx: Tx, name: str) -> None:
    """Raise NameTaken if an agent, a person or a group has this name."""
    if not is_free(tx, name):
        raise NameTaken(name=name)


def near_address(tx: Tx | Connection, address: Address) -> str:
    """Return ' (did you mean agent:nex?)' for an address that nobody has."""
    # Compare the names only: with `agent:` before both, any two would be near each other.
    return nearest(address.name, _names(tx, address.kind), before=f"{address.kind}:")


def near_name(tx: Tx | Connection, name: str) -> str:
    """Return ' (did you mean nex?)' for a bare name that nobody has."""
    return nearest(name, _names(tx, "agent", "user", "group"))


def _names(tx: Tx | Connection, *kinds: str) -> list[str]:
    """Return names to suggest. A group that is not open is known only to those who are in it."""
    rows = tx.execute(
        f"""
        SELECT name FROM address
        WHERE retired_at IS NULL AND kind IN ({",".join("?" * len(kinds))}) AND kind <> 'channel'
          AND fold <> 'agent:system'
          AND (kind <> 'group'
               OR EXISTS (SELECT 1 FROM conversation c WHERE c.address = address.id AND c.open))
        LIMIT 1000
        """,
        kinds,
    )
    return [row["name"] for row in rows]
