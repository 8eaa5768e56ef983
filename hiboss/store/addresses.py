"""Finding addresses: who has one, who had one, what is near a mistyped one, and who was last seen when."""

from __future__ import annotations

from ..core.address import Address
from ..core.quoting import nearest
from .connection import Connection
from .group_commit import Tx


def note_seen(tx: Tx, seen: dict[int, int]) -> None:
    """When callers were last seen, by address id."""
    for address, moment in seen.items():
        tx.execute("UPDATE agent SET last_seen_at = ? WHERE address = ?", (moment, address))
        tx.execute("UPDATE user SET last_seen_at = ? WHERE address = ?", (moment, address))


def find_address(connection: Connection | Tx, address: Address) -> int | None:
    """Whoever lives there, or lived there last."""
    row = connection.execute(
        "SELECT id FROM address WHERE fold = ? ORDER BY retired_at IS NULL DESC, id DESC LIMIT 1",
        (address.fold,),
    ).fetchone()
    return row["id"] if row else None


def namesakes(connection: Connection, address: Address) -> tuple[int, ...]:
    """All who ever had this address: mail of a deleted agent can still be looked for."""
    rows = connection.execute("SELECT id FROM address WHERE fold = ?", (address.fold,))
    return tuple(row["id"] for row in rows)


def near_address(tx: Tx | Connection, address: Address) -> str:
    """' (did you mean agent:nex?)' from those who are here."""
    rows = tx.execute(
        """
        SELECT name FROM address
        WHERE retired_at IS NULL AND kind = ? AND kind <> 'channel' AND fold <> 'agent:system' LIMIT 1000
        """,
        (address.kind,),
    )
    # By the name alone: with `agent:` before both, any two would be near each other.
    return nearest(address.name, [row["name"] for row in rows], before=f"{address.kind}:")
