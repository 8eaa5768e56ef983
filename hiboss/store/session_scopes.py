"""Whose memory a session is: the key of a conversation of an agent, by the agent's `session_scope`.

person: one session for all that one person says to the agent, wherever that is. conversation: one for each
conversation. agent: one for everything. A group, the talk of agents, and a conversation that somebody has in
the place of an agent are no person: each has a session of its own also with `person`.
"""

from __future__ import annotations

from .connection import Connection, Row
from .group_commit import Tx

PERSON, CONVERSATION, AGENT = "person", "conversation", "agent"
WORDS = (PERSON, CONVERSATION, AGENT)
ALL = "all"


def key(connection: Connection | Tx, agent: Row, conversation: int) -> str:
    """Return the key of the session that a turn of an agent in a conversation uses.

    `agent`: its `id` and `session_scope`.
    """
    if agent["session_scope"] == AGENT:
        return ALL
    person = None
    if agent["session_scope"] == PERSON:
        person = _person(connection, agent["id"], conversation)
    return of_conversation(conversation) if person is None else of_person(person)


def takes_part(connection: Connection | Tx, conversation: int, address: int) -> bool:
    """Tell whether somebody is, or was, a party or a guest of a conversation."""
    row = connection.execute(
        "SELECT 1 FROM participant WHERE conversation = ? AND address = ?", (conversation, address)
    ).fetchone()
    return row is not None


def of_conversation(conversation: int) -> str:
    return f"c{conversation}"


def of_person(person: int) -> str:
    return f"u{person}"


# --- which conversation a message belongs to ------------------------------------------

# Whether a conversation is the talk of agents: each of them may ask there for several people.
_OF_AGENTS = """
    NOT EXISTS (SELECT 1 FROM conversation c WHERE c.id = {0} AND c.kind = 'group')
    AND NOT EXISTS (SELECT 1 FROM participant p JOIN address a ON a.id = p.address AND a.kind <> 'agent'
                    WHERE p.conversation = {0} AND p.role <> 'guest')
"""
# The question of each run on the way, each older than the one before.
_CAUSES = f"""
    WITH RECURSIVE cause (message, conversation, run) AS (
        SELECT ?1, ?2, (SELECT run FROM message WHERE id = ?1)
        UNION
        SELECT q.id, r.reply_conversation, q.run FROM cause c
        JOIN run r ON r.id = c.run JOIN message q ON q.id = r.reply_message AND q.id < c.message
        WHERE {_OF_AGENTS.format("c.conversation")})
    SELECT conversation FROM cause ORDER BY message LIMIT 1
"""


def is_of_agents(connection: Connection | Tx, conversation: int) -> bool:
    row = connection.execute(f"SELECT {_OF_AGENTS.format('?1')}", (conversation,)).fetchone()
    return bool(row[0])


def belongs_to(connection: Connection | Tx, message: int, conversation: int) -> int:
    """Return the conversation that a message belongs to: its own, which is given.

    What a run says to another agent belongs where the run is answered, and so on: to the people who began it.
    """
    found: int = connection.execute(_CAUSES, (message, conversation)).fetchone()[0]
    return found


def belongs(connection: Connection | Tx, message: int) -> int:
    """Return the conversation that a stored message belongs to."""
    query = "SELECT ifnull(about, conversation) AS place FROM message WHERE id = ?"
    return belongs_to(connection, message, connection.execute(query, (message,)).fetchone()["place"])


# --- scopes --------------------------------------------------------------------------


def _person(connection: Connection | Tx, agent: int, conversation: int) -> int | None:
    """Return the one person whom an agent talks with in a conversation, by address id; None: it is no such.

    A private chat of the boss is him, also as the sender of what came in before it was known to be his.
    A chat that is somebody else's by another account is not.
    """
    rows = connection.execute(
        """
        SELECT DISTINCT a.id, a.kind FROM participant p JOIN address a ON a.id = p.address
        JOIN conversation c ON c.id = p.conversation AND c.kind <> 'group'  -- others may join it later
        WHERE p.conversation = ? AND p.role <> 'guest' AND p.address <> ? LIMIT 2
        """,
        (conversation, agent),
    ).fetchall()
    if len(rows) != 1:
        return None
    [other] = rows
    if other["kind"] != "channel":
        return int(other["id"]) if other["kind"] == "user" else None
    row = connection.execute(
        """
        SELECT u.address FROM user u WHERE u.boss = 1
          AND EXISTS (SELECT 1 FROM place p JOIN contact c ON c.id = p.contact
                      WHERE p.address = ?1 AND c.state = 'boss' AND c.kind = 'private')
          AND NOT EXISTS (SELECT 1 FROM place p JOIN contact c ON c.id = p.contact
                          WHERE p.address = ?1 AND c.state IN ('allowed', 'blocked'))
        """,
        (other["id"],),
    ).fetchone()
    return None if row is None else int(row["address"])
