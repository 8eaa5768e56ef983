"""Who holds the question of an ask in place of the one who is asked: it was routed, or handed over.

What takes a Tx runs inside the writer.
"""

from __future__ import annotations

from .group_commit import Tx


def follow(tx: Tx, message: int) -> None:
    """Store who holds the question that this message is, if it is one; nobody else if it came back."""
    tx.execute(
        """
        UPDATE ask SET holder = (SELECT e.recipient FROM envelope e
                                 WHERE e.message = ?1 AND e.routed_from <> e.recipient LIMIT 1)
        WHERE message = ?1
        """,
        (message,),
    )
