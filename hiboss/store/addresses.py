"""Look up addresses by address or name, suggest one for a mistyped one, and store who was last seen when."""

from __future__ import annotations

from ..core.address import Address
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


def near_address(tx: Tx | Connection, address: Address) -> str:
    """Return ' (did you mean agent:nex?)' for an address that nobody has."""
    # Compare the names only: with `agent:` before both, any two would be near each other.
    return nearest(address.name, _names(tx, address.kind), before=f"{address.kind}:")


def near_name(tx: Tx | Connection, name: str) -> str:
    """Return ' (did you mean nex?)' for a bare name that nobody has."""
    return nearest(name, _names(tx, "agent", "user", "group"))


def _names(tx: Tx | Connection, *kinds: str) -> list[str]:
    rows = tx.execute(
        f"""
        SELECT name FROM address
        WHERE retired_at IS NULL AND kind IN ({",".join("?" * len(kinds))}) AND kind <> 'channel'
          AND fold <> 'agent:system' LIMIT 1000
        """,
        kinds,
    )
    return [row["name"] for row in rows]
