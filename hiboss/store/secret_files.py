"""Which files of secrets/ the store names."""

from __future__ import annotations

from .connection import Connection


def named(connection: Connection) -> set[str]:
    """Return the names of the files that bindings and agents have; not of those that were removed."""
    rows = connection.execute(
        """
        SELECT secrets FROM binding WHERE secrets IS NOT NULL AND removed_at IS NULL
        UNION ALL
        SELECT provider_secrets FROM agent WHERE provider_secrets IS NOT NULL AND deleted_at IS NULL
        """
    )
    return {row[0] for row in rows}
