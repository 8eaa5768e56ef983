"""Who may see a message: who sent it, who got it, and who was a member of its group when it was said.

The one place of this rule. The boss sees all: his queries do without it (`viewer` None).
"""

from __future__ import annotations

from .connection import Connection
from .group_commit import Tx

# Of a group, `participant` has the stays: what was said between joined_seq and left_seq of one of them.
# Elsewhere parties see what they sent or got: a message can be for some of them only.
_RULE = """
(m.sender = {viewer}
 OR EXISTS (SELECT 1 FROM envelope seen WHERE seen.message = m.id AND seen.recipient = {viewer}
            AND seen.arrived IS NOT NULL)
 OR EXISTS (SELECT 1 FROM participant stay JOIN conversation talk ON talk.id = stay.conversation
            WHERE talk.kind = 'group' AND stay.conversation = m.conversation AND stay.address = {viewer}
              AND m.seq >= stay.joined_seq AND (stay.left_seq IS NULL OR m.seq <= stay.left_seq)))
"""


def sees(viewer: str) -> str:
    """Return the condition that the viewer sees the message `m`. `viewer`: a parameter, or a column."""
    return _RULE.format(viewer=viewer)


def may_see(connection: Connection | Tx, message: int, viewer: int | None) -> bool:
    """Tell whether somebody may see a message; None sees all that there are."""
    row = connection.execute(
        f"SELECT 1 FROM message m WHERE m.id = ?1 AND (?2 IS NULL OR {sees('?2')})", (message, viewer)
    ).fetchone()
    return row is not None
