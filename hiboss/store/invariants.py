"""What is true of every database of ours, at any moment and after any crash.

Each entry is a sentence and a query for what contradicts it. Run by the doctor, and by
the tests after every crash.
"""

from __future__ import annotations

from .connection import Connection
from .envelopes import NEXT_START

INVARIANTS: dict[str, str] = {
    "the sequence of a conversation has no gap and no double": """
        SELECT c.id FROM conversation c LEFT JOIN message m ON m.conversation = c.id AND m.seq IS NOT NULL
        GROUP BY c.id
        HAVING count(m.id) <> c.last_seq - c.first_seq + 1
            OR (count(m.id) > 0 AND (min(m.seq) <> c.first_seq OR max(m.seq) <> c.last_seq))""",
    "every message has an envelope": """
        SELECT m.id FROM message m WHERE NOT EXISTS (SELECT 1 FROM envelope e WHERE e.message = m.id)""",
    "an envelope has arrived only if its message has": """
        SELECT e.id FROM envelope e JOIN message m ON m.id = e.message
        WHERE e.arrived IS NOT NULL AND m.seq IS NULL""",
    "of a message that has arrived no envelope is left behind": """
        SELECT e.id FROM envelope e JOIN message m ON m.id = e.message
        WHERE m.seq IS NOT NULL AND e.arrived IS NULL AND e.status IN (0, 1)""",
    "what has not arrived and is pending is deferred, with its time": """
        SELECT id FROM envelope
        WHERE status = 0 AND arrived IS NULL AND (waits IS NOT 0 OR wake_at IS NULL)""",
    "what waits has a time to be looked at": """
        SELECT id FROM envelope WHERE waits IS NOT NULL AND wake_at IS NULL""",
    "only what is pending waits": """
        SELECT id FROM envelope WHERE waits IS NOT NULL AND status <> 0""",
    "arrival numbers are given once": """
        SELECT arrived FROM envelope WHERE arrived IS NOT NULL GROUP BY arrived HAVING count(*) > 1""",
    "no arrival number lies beyond the counter": """
        SELECT id FROM envelope WHERE arrived > (SELECT value FROM counter WHERE name = 'arrived')""",
    "what is settled says when": """
        SELECT id FROM envelope WHERE (status <> 0) <> (done_at IS NOT NULL)""",
    "what is held is pending and held by this boot": """
        SELECT id FROM envelope WHERE held_by IS NOT NULL
        AND (status <> 0 OR held_by <> (SELECT value FROM counter WHERE name = 'boot'))""",
    "what is in hand is marked for the next start": f"""
        SELECT id FROM envelope WHERE (held_by IS NOT NULL) <> (wake_at IS {NEXT_START})""",
    "what has arrived says when": """
        SELECT id FROM message WHERE (seq IS NULL) <> (arrived_at IS NULL)""",
    "a lane waits until a time, and only a waiting one": """
        SELECT id FROM lane WHERE (state = 'waiting') <> (wake_at IS NOT NULL)""",
    "nothing is pending for an account that is no longer bound": """
        SELECT e.id FROM envelope e JOIN binding b ON b.id = e.binding
        WHERE e.status = 0 AND b.removed_at IS NOT NULL""",
    "only a schedule in force is due": """
        SELECT id FROM schedule WHERE next_at IS NOT NULL AND (NOT enabled OR deleted_at IS NOT NULL)""",
    "a slot that fired has its message, and no other has": """
        SELECT slot FROM schedule_slot WHERE (outcome = 'fired') <> (message IS NOT NULL)""",
    "what a schedule has sent is in its slots, once": """
        SELECT message FROM schedule_slot WHERE message IS NOT NULL GROUP BY message HAVING count(*) > 1""",
    "codes are known": """
        SELECT id FROM envelope WHERE status NOT BETWEEN 0 AND 3 OR priority NOT BETWEEN 0 AND 3
        OR box NOT BETWEEN 0 AND 2 OR ifnull(waits, 0) NOT BETWEEN 0 AND 3""",
    "a thread begins with a message that begins it": """
        SELECT m.id FROM message m JOIN message t ON t.id = m.thread WHERE t.thread IS NOT NULL""",
    "a reply lies in the thread of what it replies to": """
        SELECT m.id FROM message m JOIN message p ON p.id = m.reply_to
        WHERE m.thread IS NOT ifnull(p.thread, p.id)""",
    "a private conversation is between two, or with oneself": """
        SELECT c.id FROM conversation c JOIN participant p ON p.conversation = c.id
        WHERE c.kind = 'private' GROUP BY c.id HAVING count(*) > 2""",
    "sender and recipients take part in the conversation": """
        SELECT m.id FROM message m WHERE NOT EXISTS (
            SELECT 1 FROM participant p WHERE p.conversation = m.conversation AND p.address = m.sender)
        UNION ALL
        SELECT e.message FROM envelope e JOIN message m ON m.id = e.message WHERE NOT EXISTS (
            SELECT 1 FROM participant p WHERE p.conversation = m.conversation AND p.address = e.recipient)""",
    "nobody who has left holds a token in force": """
        SELECT t.id FROM token t JOIN address a ON a.id = t.holder
        WHERE t.revoked_at IS NULL AND a.retired_at IS NOT NULL""",
    "nothing is pending for somebody who has left": """
        SELECT e.id FROM envelope e JOIN address a ON a.id = e.recipient
        WHERE e.status = 0 AND a.retired_at IS NOT NULL""",
    "a run that goes on is of this boot": """
        SELECT id FROM run
        WHERE status = 'running' AND boot <> (SELECT value FROM counter WHERE name = 'boot')""",
    "a run says when it ended, and only one that ended does": """
        SELECT id FROM run WHERE (status <> 'running') <> (ended_at IS NOT NULL)""",
    "a run that did not go well says why, and no other does": """
        SELECT id FROM run WHERE (status IN ('failed', 'cancelled', 'interrupted')) <> (error IS NOT NULL)""",
    "only a run that goes on is halted": """
        SELECT id FROM run WHERE paused_at IS NOT NULL AND status <> 'running'""",
    "an agent has one turn at a time": """
        SELECT agent FROM run WHERE status = 'running' AND kind = 'turn'
        GROUP BY agent HAVING count(*) > 1""",
    "what an agent has in hand belongs to one run that goes on": """
        SELECT e.id FROM envelope e WHERE e.held_by IS NOT NULL AND e.binding IS NULL AND 1 <> (
            SELECT count(*) FROM run_envelope x JOIN run r ON r.id = x.run
            WHERE x.envelope = e.id AND r.status = 'running')""",
    "what a run that goes on is about is in hand, or settled": """
        SELECT x.envelope FROM run r JOIN run_envelope x ON x.run = r.id JOIN envelope e ON e.id = x.envelope
        WHERE r.status = 'running' AND e.status = 0 AND e.held_by IS NULL""",
    "every run is about something": """
        SELECT r.id FROM run r WHERE NOT EXISTS (SELECT 1 FROM run_envelope x WHERE x.run = r.id)""",
    "no envelope was done by two runs": """
        SELECT x.envelope FROM run_envelope x JOIN run r ON r.id = x.run
        WHERE r.status = 'completed' GROUP BY x.envelope HAVING count(*) > 1""",
    "the token of a run is in force while it goes on, and no longer": """
        SELECT t.id FROM token t LEFT JOIN run r ON r.id = t.run
        WHERE (t.kind = 'run') <> (t.run IS NOT NULL)
           OR (t.kind = 'run' AND t.revoked_at IS NULL AND r.status IS NOT 'running')""",
    "an answer was sent by the run that says so": """
        SELECT r.id FROM run r JOIN message m ON m.id = r.answer
        WHERE m.run IS NOT r.id OR NOT m.auto OR r.status <> 'completed'""",
    "a live agent has a live address": """
        SELECT g.address FROM agent g JOIN address a ON a.id = g.address
        WHERE (g.deleted_at IS NULL) <> (a.retired_at IS NULL)""",
}


def violations(connection: Connection) -> list[str]:
    """A sentence for each invariant that does not hold; empty when all is well."""
    broken = []
    for sentence, query in INVARIANTS.items():
        rows = connection.execute(f"{query} LIMIT 5").fetchall()
        if rows:
            broken.append(f"not so: {sentence} (rows {', '.join(str(row[0]) for row in rows)})")
    foreign = connection.execute("PRAGMA foreign_key_check").fetchmany(5)
    broken += [f"not so: {row[0]} row {row[1]} points at a {row[2]} that exists" for row in foreign]
    check = connection.execute("PRAGMA integrity_check(5)").fetchall()
    broken += [f"SQLite says: {row[0]}" for row in check if row[0] != "ok"]
    return broken
