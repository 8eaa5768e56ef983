"""Invariants: what is true of every database, at any moment and after any crash.

Each entry is a sentence and a query for the rows that contradict it. The tests run them after
every crash.
"""

from __future__ import annotations

from .connection import Connection

INVARIANTS: dict[str, str] = {
    "the sequence numbers of a conversation have no gap and no duplicate": """
        SELECT c.id FROM conversation c LEFT JOIN message m ON m.conversation = c.id AND m.seq IS NOT NULL
        GROUP BY c.id
        HAVING count(m.id) <> c.last_seq - c.first_seq + 1
            OR (count(m.id) > 0 AND (min(m.seq) <> c.first_seq OR max(m.seq) <> c.last_seq))""",
    "every message has an envelope": """
        SELECT m.id FROM message m WHERE NOT EXISTS (SELECT 1 FROM envelope e WHERE e.message = m.id)""",
    "a change in a chat is of a message there, and after one that has arrived": """
        SELECT x.message FROM chat_change x JOIN message m ON m.id = x.message
        WHERE m.conversation <> x.conversation OR m.seq IS NULL OR m.repeats OR NOT EXISTS (
            SELECT 1 FROM message l WHERE l.conversation = x.conversation AND l.seq = x.after_seq)""",
    "an envelope has arrived only if its message has arrived": """
        SELECT e.id FROM envelope e JOIN message m ON m.id = e.message
        WHERE e.arrived IS NOT NULL AND m.seq IS NULL""",
    "all pending or done envelopes of an arrived message have arrived": """
        SELECT e.id FROM envelope e JOIN message m ON m.id = e.message
        WHERE m.seq IS NOT NULL AND e.arrived IS NULL AND e.status IN (0, 1)""",
    "a pending envelope that has not arrived is deferred": """
        SELECT id FROM envelope
        WHERE status = 0 AND arrived IS NULL AND waits IS NOT 0""",
    "only pending envelopes wait, and what somebody has snoozed": """
        SELECT id FROM envelope WHERE waits IS NOT NULL AND status <> 0 AND NOT (status = 1 AND waits = 3)""",
    "what is snoozed is in a box of its own, and nothing else is": """
        SELECT id FROM envelope WHERE (box = 3) <> (waits IS 3) OR (waits IS 3) <> (snoozed_until IS NOT NULL)
           OR (waits IS 3 AND snoozed_until <> wait_until)""",
    "nobody is to do anything with what is only read along": """
        SELECT id FROM envelope WHERE context = 1 AND status = 0 AND arrived IS NOT NULL""",
    "one at most has what was offered to several": """
        SELECT message FROM envelope WHERE offered = 1 AND status = 0 AND (held_by IS NOT NULL OR waits IS 2)
        GROUP BY message HAVING count(*) > 1""",
    "who has read an envelope is known": """
        SELECT id FROM envelope
        WHERE read_at IS NOT NULL AND NOT EXISTS (
            SELECT 1 FROM reading WHERE envelope = envelope.id AND read = 1)""",
    "unread mail is counted for each conversation and thread": """
        SELECT address FROM (
            SELECT address, conversation, thread, number FROM unread
            UNION ALL
            SELECT e.recipient, m.conversation, ifnull(m.thread, 0), -1
            FROM envelope e JOIN message m ON m.id = e.message WHERE e.unread = 1 AND e.binding IS NULL)
        GROUP BY address, conversation, thread HAVING sum(number) <> 0""",
    "a thread counts its messages in each conversation where a reply has arrived": """
        SELECT id FROM (
            SELECT conversation, id, messages AS number FROM thread
            UNION ALL
            SELECT r.conversation, r.thread, -1 FROM message r
            WHERE r.thread IS NOT NULL AND r.seq IS NOT NULL
            UNION ALL
            SELECT f.conversation, f.id, -1 FROM message f WHERE f.seq IS NOT NULL AND EXISTS (
                SELECT 1 FROM message r WHERE r.thread = f.id AND r.conversation = f.conversation
                  AND r.seq IS NOT NULL))
        GROUP BY conversation, id HAVING sum(number) <> 0""",
    "the last message of a thread belongs to it": """
        SELECT t.id FROM thread t JOIN message m ON m.id = t.last
        WHERE m.conversation <> t.conversation OR m.thread IS NOT t.id OR m.seq IS NULL""",
    "only mail that has arrived and was not acknowledged has a deadline for that": """
        SELECT e.id FROM ack_deadline d JOIN envelope e ON e.id = d.envelope AND d.told_at IS NULL
        WHERE e.arrived IS NULL OR e.acked_at IS NOT NULL OR e.ack_by IS NULL""",
    "a group has an address in use exactly until it is deleted": """
        SELECT c.id FROM conversation c LEFT JOIN address a ON a.id = c.address
        WHERE (c.kind = 'group') <> (c.address IS NOT NULL)
           OR (c.kind = 'group' AND a.kind <> 'group')
           OR (c.kind = 'group' AND (c.deleted_at IS NULL) <> (a.retired_at IS NULL))""",
    "a group has at most one owner, and nobody is in it twice": """
        SELECT p.conversation FROM participant p JOIN conversation c ON c.id = p.conversation
        WHERE c.kind = 'group' AND p.left_seq IS NULL GROUP BY p.conversation
        HAVING sum(p.role = 'owner') > 1 OR count(*) <> count(DISTINCT p.address)""",
    "what is being delivered waits for nothing": """
        SELECT id FROM envelope WHERE held_by IS NOT NULL AND waits IS NOT NULL""",
    "what was said to nobody of us is done": """
        SELECT e.id FROM envelope e JOIN message m ON m.id = e.message WHERE m.context AND e.status <> 1""",
    "a pending envelope is in the inbox, or snoozed": """
        SELECT id FROM envelope WHERE status = 0 AND box NOT IN (0, 3)""",
    "every arrival number is given once": """
        SELECT arrived FROM envelope WHERE arrived IS NOT NULL GROUP BY arrived HAVING count(*) > 1""",
    "no arrival number is larger than the counter": """
        SELECT id FROM envelope WHERE arrived > (SELECT value FROM counter WHERE name = 'arrived')""",
    "what came back has a later number than its arrival, and none larger than the counter": """
        SELECT id FROM envelope WHERE due_again IS NOT NULL AND NOT ifnull(due_again > arrived
        AND due_again <= (SELECT value FROM counter WHERE name = 'arrived'), 0)""",
    "an envelope has a claim exactly if it is leased": """
        SELECT id FROM envelope WHERE (waits IS 2) <> (claim IS NOT NULL)""",
    "an envelope has a done time exactly if it is settled": """
        SELECT id FROM envelope WHERE (status <> 0) <> (done_at IS NOT NULL)""",
    "a held envelope is pending and held by this boot": """
        SELECT id FROM envelope WHERE held_by IS NOT NULL
        AND (status <> 0 OR held_by <> (SELECT value FROM counter WHERE name = 'boot'))""",
    "a message has an arrival time exactly if it has arrived": """
        SELECT id FROM message WHERE (seq IS NULL) <> (arrived_at IS NULL)""",
    "a lane has a wake time exactly if it waits": """
        SELECT id FROM lane WHERE (state = 'waiting') <> (wake_at IS NOT NULL)""",
    "a lane waits at least until the time that the platform named": """
        SELECT id FROM lane WHERE wake_at < not_before""",
    "an account is tried only while one of its envelopes is being delivered": """
        SELECT l.id FROM lane l WHERE l.state = 'trying' AND (l.address IS NOT NULL OR NOT EXISTS (
            SELECT 1 FROM envelope e WHERE e.binding = l.binding AND e.held_by IS NOT NULL))""",
    "an account is paused only when it is no longer bound": """
        SELECT l.id FROM lane l JOIN binding b ON b.id = l.binding
        WHERE l.address IS NULL AND l.state = 'paused' AND b.removed_at IS NULL""",
    "what is partly posted belongs to its lane": """
        SELECT l.id FROM lane l JOIN envelope e ON e.id = l.partly_posted
        WHERE e.recipient IS NOT l.address OR e.binding IS NOT l.binding""",
    "no account that is no longer bound has a lane, unless its mail is being failed": """
        SELECT l.id FROM lane l JOIN binding b ON b.id = l.binding
        WHERE b.removed_at IS NOT NULL AND NOT (l.address IS NULL AND l.state = 'paused')""",
    "no envelope is pending for an account that is no longer bound, unless its mail is being failed": """
        SELECT e.id FROM envelope e JOIN binding b ON b.id = e.binding
        WHERE e.status = 0 AND b.removed_at IS NOT NULL AND NOT EXISTS (
            SELECT 1 FROM lane l WHERE l.binding = b.id AND l.address IS NULL AND l.state = 'paused')""",
    "an update is kept as it came until it is digested": """
        SELECT id FROM platform_update
        WHERE ((outcome IS NULL OR outcome = 'held') AND raw IS NULL)
           OR (raw IS NOT NULL AND outcome IN ('ignored', 'blocked', 'paired', 'unbound'))""",
    "an update is held only while the boss has not decided about its chat": """
        SELECT u.id FROM platform_update u JOIN binding b ON b.id = u.binding
        WHERE u.outcome = 'held' AND (b.removed_at IS NOT NULL OR EXISTS (
            SELECT 1 FROM contact c WHERE c.binding = u.binding AND c.platform_id = u.chat
              AND c.state <> 'asking'))""",
    "at most one agent leads a binding": """
        SELECT b.id FROM binding b WHERE b.removed_at IS NULL
          AND (SELECT sum(leads) FROM binding_agent ba WHERE ba.binding = b.id) > 1""",
    "a chat or topic belongs to an agent that its binding serves": """
        SELECT p.address FROM place p WHERE p.agent IS NOT NULL AND NOT EXISTS (
            SELECT 1 FROM binding_agent ba WHERE ba.binding = p.binding AND ba.agent = p.agent)""",
    "an update that became a message names it": """
        SELECT id FROM platform_update
        WHERE (outcome IN ('accepted', 'edited', 'pressed', 'reacted') AND message IS NULL)
           OR (outcome IN ('failed', 'unbound') AND message IS NOT NULL)""",
    "no update of an account that is no longer bound waits to be digested": """
        SELECT u.id FROM platform_update u JOIN binding b ON b.id = u.binding
        WHERE u.outcome IS NULL AND b.removed_at IS NOT NULL""",
    "a place belongs to a chat of its account": """
        SELECT p.address FROM place p JOIN contact c ON c.id = p.contact WHERE c.binding <> p.binding""",
    "only a topic is gone, and not the chat that is used in its place": """
        SELECT p.address FROM place p JOIN contact c ON c.id = p.contact
        WHERE p.gone_at IS NOT NULL AND p.address IS c.address""",
    "a run that people are to be told of was interrupted": """
        SELECT i.run FROM interrupted_run i JOIN run r ON r.id = i.run WHERE r.status <> 'interrupted'""",
    "only an enabled schedule has a next slot": """
        SELECT id FROM schedule WHERE next_at IS NOT NULL AND (NOT enabled OR deleted_at IS NOT NULL)""",
    "a slot has a message exactly if it fired": """
        SELECT slot FROM schedule_slot WHERE (outcome = 'fired') <> (message IS NOT NULL)""",
    "the slots of a schedule are recorded once": """
        SELECT a.schedule FROM schedule_slot a JOIN schedule_slot b
            ON b.schedule = a.schedule AND b.era = a.era AND b.slot > a.slot AND b.slot <= a.last_slot
        UNION ALL
        SELECT schedule FROM schedule_slot
        WHERE last_slot < slot OR number < 1 OR (number = 1) <> (slot = last_slot)""",
    "every message of a schedule belongs to one slot": """
        SELECT message FROM schedule_slot WHERE message IS NOT NULL GROUP BY message HAVING count(*) > 1""",
    "all status, priority, box and wait codes are known": """
        SELECT id FROM envelope WHERE status NOT BETWEEN 0 AND 3 OR priority NOT BETWEEN 0 AND 4
        OR box NOT BETWEEN 0 AND 3 OR ifnull(waits, 0) NOT BETWEEN 0 AND 3""",
    "the first message of a thread is in no other thread": """
        SELECT m.id FROM message m JOIN message t ON t.id = m.thread WHERE t.thread IS NOT NULL""",
    "a reply is in the thread of the message it replies to": """
        SELECT m.id FROM message m JOIN message p ON p.id = m.reply_to
        WHERE m.thread IS NOT ifnull(p.thread, p.id)""",
    "a private conversation has at most two participants": """
        SELECT c.id FROM conversation c JOIN participant p ON p.conversation = c.id
        WHERE c.kind = 'private' AND p.role <> 'guest' GROUP BY c.id HAVING count(DISTINCT p.address) > 2""",
    "mail is routed only from an agent of the conversation, and a copy is done on arrival": """
        SELECT e.id FROM envelope e JOIN message m ON m.id = e.message JOIN address a ON a.id = e.recipient
        WHERE e.routed_from IS NOT NULL AND (e.forwards IS NOT NULL
           OR (e.routed_from <> e.recipient AND NOT EXISTS (SELECT 1 FROM participant p JOIN agent g
               ON g.address = p.address WHERE p.conversation = m.conversation AND p.address = e.routed_from))
           OR (e.routed_from = e.recipient AND (e.status = 0 OR e.handovers > 0)))""",
    "what somebody reads along, somebody else has got: moved mail is never lost": """
        SELECT e.id FROM envelope e WHERE e.routed_from = e.recipient AND NOT EXISTS (
            SELECT 1 FROM envelope r WHERE r.message = e.message AND r.routed_from IS NOT r.recipient
              AND r.forwards IS NULL)""",
    "a route goes from a live agent that takes part in the conversation to somebody else who lives": """
        SELECT r.conversation FROM conversation_route r JOIN address a ON a.id = r.agent
        JOIN address d ON d.id = r.destination
        WHERE a.kind <> 'agent' OR a.retired_at IS NOT NULL OR d.retired_at IS NOT NULL
           OR d.kind NOT IN ('agent', 'user') OR (d.kind = 'user' AND r.kind = 'route') OR NOT EXISTS (
               SELECT 1 FROM participant p WHERE p.conversation = r.conversation AND p.address = r.agent
                 AND p.role <> 'guest' AND p.left_seq IS NULL)""",
    "the destination of a route is a guest of the conversation": """
        SELECT r.conversation FROM conversation_route r WHERE NOT EXISTS (
            SELECT 1 FROM participant p WHERE p.conversation = r.conversation AND p.address = r.destination
              AND p.role = 'guest' AND p.left_seq IS NULL)
        UNION ALL
        SELECT p.conversation FROM participant p WHERE p.role = 'guest' AND p.left_seq IS NULL
          AND NOT EXISTS (SELECT 1 FROM conversation_route r
                          WHERE r.conversation = p.conversation AND r.destination = p.address)""",
    # Who left a group may have its mail later, as a guest; who joins it again was none.
    "nobody who is a party of a conversation is or was a guest of it": """
        SELECT p.conversation FROM participant p JOIN participant g
            ON g.conversation = p.conversation AND g.address = p.address AND g.role = 'guest'
        WHERE p.role <> 'guest' AND p.left_seq IS NULL""",
    "the stays of a participant do not overlap, and only the last one is not over": """
        SELECT a.conversation FROM participant a JOIN participant b
            ON b.conversation = a.conversation AND b.address = a.address AND b.joined_seq > a.joined_seq
        WHERE a.left_seq IS NULL OR a.left_seq >= b.joined_seq
        UNION ALL
        SELECT conversation FROM participant WHERE left_seq < joined_seq - 1""",
    # A control (event) is recorded where it acts, whoever sends it. group:all has no participants. The boss
    # may write to every group; and a group has an envelope of its own for each message.
    "sender and recipients are participants of the conversation": """
        SELECT m.id FROM message m JOIN conversation c ON c.id = m.conversation
        WHERE m.type <> 4 AND NOT (c.kind = 'group' AND (c.name = 'all' OR EXISTS (
            SELECT 1 FROM user u WHERE u.address = m.sender AND u.boss)))
          AND NOT EXISTS (
            SELECT 1 FROM participant p WHERE p.conversation = m.conversation AND p.address = m.sender)
        UNION ALL
        SELECT e.message FROM envelope e JOIN message m ON m.id = e.message
        JOIN conversation c ON c.id = m.conversation
        WHERE e.forwards IS NULL AND m.type <> 4 AND e.recipient IS NOT c.address
          AND NOT (c.kind = 'group' AND c.name = 'all') AND NOT EXISTS (
            SELECT 1 FROM participant p WHERE p.conversation = m.conversation AND p.address = e.recipient)""",
    "nobody gets what is said in a group before it came or after it left": """
        SELECT e.id FROM envelope e JOIN message m ON m.id = e.message AND m.seq IS NOT NULL AND m.type <> 4
        JOIN conversation c ON c.id = m.conversation AND c.kind = 'group' AND c.name <> 'all'
        WHERE e.recipient <> c.address AND e.forwards IS NULL AND e.routed_from IS NULL AND NOT EXISTS (
            SELECT 1 FROM participant p WHERE p.conversation = c.id AND p.address = e.recipient
              AND m.seq >= p.joined_seq AND (p.left_seq IS NULL OR m.seq <= p.left_seq))""",
    "the record of a control is a message of the type event that nobody has to do anything with": """
        SELECT k.id FROM control k JOIN message m ON m.id = k.message WHERE m.type <> 4 OR NOT m.context""",
    "a lane that is paused because of a run is the lane of its agent": """
        SELECT l.id FROM lane l JOIN run r ON r.id = l.paused_run
        WHERE l.state <> 'paused' OR l.address <> r.agent OR l.binding IS NOT NULL""",
    "a run that was told to end has ended so": """
        SELECT id FROM run WHERE ends_as IS NOT NULL AND status <> 'running' AND
            status <> iif(ends_as IN ('cancelled', 'requeued'), 'cancelled', 'interrupted')""",
    "a forward posts to a chat the same message that is in the box of the boss": """
        SELECT f.id FROM envelope f JOIN address a ON a.id = f.recipient
        JOIN envelope box ON box.id = f.forwards LEFT JOIN user u ON u.address = box.recipient
        WHERE f.message <> box.message OR a.kind <> 'channel' OR f.binding IS NULL OR ifnull(u.boss, 0) <> 1
           OR (f.arrived IS NOT NULL AND box.arrived IS NULL)""",
    "what was written in a chat by the boss has him as its sender": """
        SELECT m.id FROM message m JOIN address p ON p.id = m.place LEFT JOIN user u ON u.address = m.sender
        WHERE p.kind <> 'channel' OR ifnull(u.boss, 0) <> 1
           OR m.from_boss <> (json_extract(m.channel, '$.forwarded') IS NULL)""",
    "the boss is reached in a chat of his, by an account that is bound": """
        SELECT u.address FROM user u WHERE (u.reach IS NULL) <> (u.reach_by IS NULL)
           OR (u.reach IS NOT NULL AND NOT (u.boss = 1 AND EXISTS (
               SELECT 1 FROM place p JOIN binding b ON b.id = p.binding AND b.removed_at IS NULL
               JOIN contact c ON c.id = p.contact AND c.state = 'boss'
               WHERE p.address = u.reach AND p.binding = u.reach_by)))""",
    "no deleted agent or person has a valid token": """
        SELECT t.id FROM token t JOIN address a ON a.id = t.holder
        WHERE t.revoked_at IS NULL AND a.retired_at IS NOT NULL""",
    "no envelope is pending for a deleted agent or person": """
        SELECT e.id FROM envelope e JOIN address a ON a.id = e.recipient
        WHERE e.status = 0 AND a.retired_at IS NOT NULL""",
    "nobody watches a deleted agent, and no deleted agent or person watches": """
        SELECT w.agent FROM state_watch w JOIN address a ON a.id IN (w.agent, w.watcher)
        WHERE a.retired_at IS NOT NULL""",
    "an active run belongs to this boot": """
        SELECT id FROM run
        WHERE status = 'running' AND boot <> (SELECT value FROM counter WHERE name = 'boot')""",
    "a run has an end time exactly if it has ended": """
        SELECT id FROM run WHERE (status <> 'running') <> (ended_at IS NOT NULL)""",
    "a run has an error exactly if it was not successful": """
        SELECT id FROM run WHERE (status IN ('failed', 'cancelled', 'interrupted')) <> (error IS NOT NULL)""",
    "an ask has a time at which it was settled exactly if it is settled": """
        SELECT id FROM ask WHERE (state = 'open') <> (answered_at IS NULL)""",
    "the daemon looks again at every open ask that has an end, and at no settled one": """
        SELECT id FROM ask WHERE (wake_at IS NOT NULL AND state <> 'open')
           OR (wake_at IS NULL AND state = 'open' AND expires_at IS NOT NULL)""",
    "an answered ask has one of its options, an expired one its default, a cancelled one no answer": """
        SELECT id FROM ask WHERE CASE state
            WHEN 'answered' THEN NOT EXISTS (SELECT 1 FROM json_each(options) WHERE value = answer)
            WHEN 'expired' THEN answer IS NOT fallback ELSE answer IS NOT NULL END""",
    "nobody answers what it asked itself": """
        SELECT id FROM ask
        WHERE asker = asked OR (state = 'answered' AND ifnull(answered_by, asker) = asker)""",
    "the asker of an answered question was told": """
        SELECT id FROM ask
        WHERE state = 'answered' AND kind = 'question' AND in_turn = 0 AND reply IS NULL""",
    "no open ask is from or for somebody who was deleted": """
        SELECT k.id FROM ask k JOIN address a ON a.id IN (k.asker, k.asked)
        WHERE k.state = 'open' AND a.retired_at IS NOT NULL""",
    "no button of a settled ask does anything": """
        SELECT b.id FROM button b JOIN ask k ON k.id = CAST(b.argument AS INTEGER)
        WHERE b.action = 'ask.answer' AND b.pressed_at IS NULL AND k.state <> 'open'""",
    "only an active run is paused": """
        SELECT id FROM run WHERE paused_at IS NOT NULL AND status <> 'running'""",
    "who paused a run is known until it is resumed, or ends in another way": """
        SELECT id FROM run
        WHERE CASE status WHEN 'running' THEN (paused_at IS NULL) <> (paused_by IS NULL)
            ELSE paused_by IS NOT NULL AND ifnull(ends_as, '') NOT IN ('paused', 'stopped') END""",
    "an agent has one turn at a time": """
        SELECT agent FROM run WHERE status = 'running' AND kind = 'turn'
        GROUP BY agent HAVING count(*) > 1""",
    "a session that is not resumed says why, and belongs to an agent and a person who exist": """
        SELECT s.agent FROM provider_session s JOIN agent g ON g.address = s.agent
        WHERE (s.stale_at IS NOT NULL AND s.stale_why IS NULL) OR g.deleted_at IS NOT NULL
           OR (s.stale_at IS NULL AND s.begun_at IS NOT NULL AND s.stale_why IS NOT NULL)
           OR (s.scope GLOB 'u*' AND NOT EXISTS (SELECT 1 FROM address p WHERE p.retired_at IS NULL
               AND p.kind = 'user' AND s.scope = 'u' || p.id))""",
    "an active run that keeps a session has the one that the next turn would resume": """
        SELECT r.id FROM run r WHERE r.status = 'running' AND r.session_scope IS NOT NULL
          AND (r.kind <> 'turn' OR (r.session IS NOT NULL AND NOT EXISTS (
               SELECT 1 FROM provider_session s WHERE s.agent = r.agent AND s.provider = r.provider
                 AND s.scope = r.session_scope AND s.session = r.session AND s.stale_at IS NULL)))""",
    "what an agent used is the sum over its runs that have ended": """
        SELECT u.agent FROM (
            SELECT agent, quarter, tokens, cost FROM usage
            UNION ALL
            SELECT agent, started_at / 900000, -ifnull(tokens_in, 0) - ifnull(tokens_out, 0), -ifnull(cost, 0)
            FROM run WHERE status <> 'running') u
        GROUP BY u.agent, u.quarter HAVING sum(u.tokens) <> 0 OR abs(sum(u.cost)) > 0.001""",
    "an envelope that an agent holds belongs to one active run": """
        SELECT e.id FROM envelope e WHERE e.held_by IS NOT NULL AND e.binding IS NULL AND 1 <> (
            SELECT count(*) FROM run_envelope x JOIN run r ON r.id = x.run
            WHERE x.envelope = e.id AND r.status = 'running')""",
    "the envelopes of an active run are held or settled": """
        SELECT x.envelope FROM run r JOIN run_envelope x ON x.run = r.id JOIN envelope e ON e.id = x.envelope
        WHERE r.status = 'running' AND e.status = 0 AND e.held_by IS NULL
          AND NOT (e.waits IS 2 AND r.submitted_at IS NOT NULL)""",
    "what an open session was told of, it has": """
        SELECT x.envelope FROM run r JOIN run_envelope x ON x.run = r.id JOIN envelope e ON e.id = x.envelope
        WHERE r.status = 'running' AND r.submitted_at IS NOT NULL AND e.status = 0 AND e.waits IS NOT 2""",
    "an open session has at most one turn": """
        SELECT attached FROM run WHERE status = 'running' AND attached IS NOT NULL
        GROUP BY attached HAVING count(*) > 1""",
    "every run has an envelope": """
        SELECT r.id FROM run r WHERE NOT EXISTS (SELECT 1 FROM run_envelope x WHERE x.run = r.id)""",
    "no envelope belongs to two successful runs": """
        SELECT x.envelope FROM run_envelope x JOIN run r ON r.id = x.run
        WHERE r.status = 'completed' GROUP BY x.envelope HAVING count(*) > 1""",
    "the token of a run is valid only while the run is active": """
        SELECT t.id FROM token t LEFT JOIN run r ON r.id = t.run
        WHERE (t.kind = 'run') <> (t.run IS NOT NULL)
           OR (t.kind = 'run' AND t.revoked_at IS NULL AND r.status IS NOT 'running')""",
    "the answer of a run was sent by that run": """
        SELECT r.id FROM run r JOIN message m ON m.id = r.answer
        WHERE m.run IS NOT r.id OR NOT m.auto OR r.status <> 'completed'""",
    "an agent is deleted exactly if its address is retired": """
        SELECT g.address FROM agent g JOIN address a ON a.id = g.address
        WHERE (g.deleted_at IS NULL) <> (a.retired_at IS NULL)""",
}


def violations(connection: Connection) -> list[str]:
    """Return a sentence for each invariant that is broken; empty if none is."""
    broken = []
    for sentence, query in INVARIANTS.items():
        rows = connection.execute(f"{query} LIMIT 5").fetchall()
        if rows:
            broken.append(f"broken: {sentence} (rows {', '.join(str(row[0]) for row in rows)})")
    foreign = connection.execute("PRAGMA foreign_key_check").fetchmany(5)
    broken += [f"broken: {row[0]} row {row[1]} refers to a {row[2]} that exists" for row in foreign]
    check = connection.execute("PRAGMA integrity_check(5)").fetchall()
    broken += [f"SQLite says: {row[0]}" for row in check if row[0] != "ok"]
    return broken
