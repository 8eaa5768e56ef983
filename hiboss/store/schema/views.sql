-- The public schema: plural names, ISO times, text addresses, public ids.
-- A start of the daemon makes them anew when they differ from this file. The program does not use them itself.

CREATE VIEW addresses AS
SELECT id, kind || ':' || name AS address, retired_at IS NOT NULL AS retired FROM address;

CREATE VIEW users AS
SELECT a.kind || ':' || a.name AS address, u.name, u.boss, u.timezone,
       (SELECT p.kind || ':' || p.name FROM address p WHERE p.id = u.reach) AS reach,
       'b' || u.reach_by AS reach_binding, u.forward,
       strftime('%Y-%m-%dT%H:%M:%fZ', u.created_at / 1000.0, 'unixepoch') AS created_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', u.last_seen_at / 1000.0, 'unixepoch') AS last_seen_at
FROM user u JOIN address a ON a.id = u.address;

CREATE VIEW agents AS
SELECT a.name, a.kind || ':' || a.name AS address, g.kind, g.mode, g.level, g.provider, g.reply, g.busy,
       g.description, g.role, g.module, g.display, g.workspace, g.daily_tokens, g.daily_cost,
       g.session_scope, g.session_reset, g.session_idle AS session_idle_seconds, g.session_context,
       strftime('%Y-%m-%dT%H:%M:%fZ', g.paused_at / 1000.0, 'unixepoch') AS paused_at, g.paused_why,
       strftime('%Y-%m-%dT%H:%M:%fZ', g.paused_until / 1000.0, 'unixepoch') AS paused_until,
       strftime('%Y-%m-%dT%H:%M:%fZ', g.created_at / 1000.0, 'unixepoch') AS created_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', g.last_seen_at / 1000.0, 'unixepoch') AS last_seen_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', g.deleted_at / 1000.0, 'unixepoch') AS deleted_at
FROM agent g JOIN address a ON a.id = g.address;

CREATE VIEW tokens AS
SELECT t.id, t.kind, a.kind || ':' || a.name AS holder, 'r' || t.run AS run,
       strftime('%Y-%m-%dT%H:%M:%fZ', t.created_at / 1000.0, 'unixepoch') AS created_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', t.revoked_at / 1000.0, 'unixepoch') AS revoked_at
FROM token t JOIN address a ON a.id = t.holder;

CREATE VIEW bindings AS
SELECT 'b' || b.id AS id, b.adapter, b.account, b.name, b.groups, b.closed,
       'channel:' || b.adapter || ':' || b.account AS address,
       (SELECT group_concat(a.name, ', ') FROM binding_agent ba JOIN address a ON a.id = ba.agent
        WHERE ba.binding = b.id) AS agents,
       strftime('%Y-%m-%dT%H:%M:%fZ', b.created_at / 1000.0, 'unixepoch') AS created_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', b.removed_at / 1000.0, 'unixepoch') AS removed_at
FROM binding b;

CREATE VIEW contacts AS
SELECT a.kind || ':' || a.name AS address, 'b' || c.binding AS binding, c.kind, c.name, c.person AS username, c.state,
       strftime('%Y-%m-%dT%H:%M:%fZ', c.created_at / 1000.0, 'unixepoch') AS created_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', c.decided_at / 1000.0, 'unixepoch') AS decided_at
FROM contact c LEFT JOIN address a ON a.id = c.address;

CREATE VIEW lanes AS
SELECT a.kind || ':' || a.name AS address, 'b' || l.binding AS binding, l.state, l.failures,
       l.error_kind, l.error_text,
       strftime('%Y-%m-%dT%H:%M:%fZ', l.wake_at / 1000.0, 'unixepoch') AS wake_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', l.first_failed_at / 1000.0, 'unixepoch') AS first_failed_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', l.error_at / 1000.0, 'unixepoch') AS error_at
FROM lane l LEFT JOIN address a ON a.id = l.address;

CREATE VIEW schedules AS
SELECT 's' || s.id AS id, s.name, a.kind || ':' || a.name AS owner, s.cron, s.every_ms / 1000.0 AS every_seconds,
       s.timezone, s.catch_up, s.overlap, s.enabled, s.draft, 'r' || s.run AS run, s.trace, s.hops,
       strftime('%Y-%m-%dT%H:%M:%fZ', s.at / 1000.0, 'unixepoch') AS at,
       strftime('%Y-%m-%dT%H:%M:%fZ', s.next_at / 1000.0, 'unixepoch') AS next_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', s.created_at / 1000.0, 'unixepoch') AS created_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', s.deleted_at / 1000.0, 'unixepoch') AS deleted_at
FROM schedule s JOIN address a ON a.id = s.owner;

CREATE VIEW schedule_slots AS
SELECT 's' || l.schedule AS schedule, l.era, l.number, l.outcome, l.reason, 'm' || l.message AS message,
       strftime('%Y-%m-%dT%H:%M:%fZ', l.slot / 1000.0, 'unixepoch') AS slot,
       strftime('%Y-%m-%dT%H:%M:%fZ', l.last_slot / 1000.0, 'unixepoch') AS last_slot,
       strftime('%Y-%m-%dT%H:%M:%fZ', l.at / 1000.0, 'unixepoch') AS at
FROM schedule_slot l;

CREATE VIEW runs AS
SELECT 'r' || r.id AS id, a.kind || ':' || a.name AS agent, r.kind, r.status, r.provider, r.model, r.session,
       'c' || r.conversation AS conversation,
       (SELECT group_concat('e' || x.envelope, ', ') FROM run_envelope x WHERE x.run = r.id) AS envelopes,
       r.trace, r.hops, r.final_text, 'm' || r.answer AS answer, r.note, r.error_kind, r.error, r.error_scope,
       r.ends_as, 'm' || r.preempted_by AS preempted_by, r.tokens_in, r.tokens_out, r.cost, r.usage_estimated,
       r.context, r.pid, r.paused_ms,
       strftime('%Y-%m-%dT%H:%M:%fZ', r.submitted_at / 1000.0, 'unixepoch') AS submitted_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', r.held_at / 1000.0, 'unixepoch') AS held_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', r.seen_at / 1000.0, 'unixepoch') AS seen_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', r.started_at / 1000.0, 'unixepoch') AS started_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', r.ended_at / 1000.0, 'unixepoch') AS ended_at
FROM run r JOIN address a ON a.id = r.agent;

CREATE VIEW provider_sessions AS
SELECT a.kind || ':' || a.name AS agent, s.provider,
       CASE WHEN p.id IS NULL THEN s.scope ELSE p.kind || ':' || p.name END AS scope, s.session, s.context,
       strftime('%Y-%m-%dT%H:%M:%fZ', s.begun_at / 1000.0, 'unixepoch') AS begun_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', s.used_at / 1000.0, 'unixepoch') AS used_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', s.stale_at / 1000.0, 'unixepoch') AS stale_at, s.stale_why
FROM provider_session s JOIN address a ON a.id = s.agent
LEFT JOIN address p ON s.scope GLOB 'u*' AND p.id = CAST(substr(s.scope, 2) AS INTEGER);

CREATE VIEW attached_sessions AS
SELECT s.id, a.kind || ':' || a.name AS agent, s.client, s.session, s.state, s.of_person, s.directory, s.pid,
       s.named, s.ended_why,
       strftime('%Y-%m-%dT%H:%M:%fZ', s.since / 1000.0, 'unixepoch') AS since,
       strftime('%Y-%m-%dT%H:%M:%fZ', s.started_at / 1000.0, 'unixepoch') AS started_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', s.ended_at / 1000.0, 'unixepoch') AS ended_at
FROM attached_session s JOIN address a ON a.id = s.agent;

CREATE VIEW run_turns AS
SELECT 'r' || t.run AS run, t.text FROM run_turn t;

CREATE VIEW conversations AS
SELECT 'c' || c.id AS id, c.kind, c.name, c.description, a.kind || ':' || a.name AS address, c.open, c.history,
       c.first_seq, c.last_seq, b.kind || ':' || b.name AS created_by,
       strftime('%Y-%m-%dT%H:%M:%fZ', c.created_at / 1000.0, 'unixepoch') AS created_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', c.archived_at / 1000.0, 'unixepoch') AS archived_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', c.deleted_at / 1000.0, 'unixepoch') AS deleted_at,
       (SELECT d.kind || ':' || d.name FROM address d WHERE d.id = c.deleted_by) AS deleted_by, c.delete_reason,
       c.metadata
FROM conversation c LEFT JOIN address a ON a.id = c.address LEFT JOIN address b ON b.id = c.created_by;

CREATE VIEW participants AS
SELECT 'c' || p.conversation AS conversation, a.kind || ':' || a.name AS address, p.role, p.respond,
       'b' || p.binding AS binding, p.joined_seq, p.left_seq, p.last_read_seq,
       strftime('%Y-%m-%dT%H:%M:%fZ', p.joined_at / 1000.0, 'unixepoch') AS joined_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', p.left_at / 1000.0, 'unixepoch') AS left_at
FROM participant p JOIN address a ON a.id = p.address;

CREATE VIEW threads AS
SELECT 't' || t.id AS id, 'c' || t.conversation AS conversation, t.messages, 'm' || t.last AS last_message, t.arrived,
       strftime('%Y-%m-%dT%H:%M:%fZ', m.arrived_at / 1000.0, 'unixepoch') AS last_activity_at
FROM thread t JOIN message m ON m.id = t.last;

CREATE VIEW tags AS
SELECT 'm' || t.message AS message, t.kind, t.name, t.value
FROM tag t JOIN message m ON m.id = t.message WHERE m.deleted_at IS NULL;

CREATE VIEW readings AS
SELECT 'e' || r.envelope AS envelope, a.kind || ':' || a.name AS address, nullif(r.session, '') AS session, r.read,
       strftime('%Y-%m-%dT%H:%M:%fZ', r.at / 1000.0, 'unixepoch') AS at
FROM reading r JOIN address a ON a.id = r.reader;

CREATE VIEW messages AS
SELECT 'm' || m.id AS id, 'c' || m.conversation AS conversation, m.seq,
       't' || ifnull(m.thread, m.id) AS thread, 'm' || m.reply_to AS reply_to,
       CASE WHEN p.id IS NULL THEN s.kind || ':' || s.name ELSE p.kind || ':' || p.name END AS "from",
       s.kind || ':' || s.name AS sender, m.from_boss, coalesce(m.from_name, u.name, g.display) AS from_name,
       iif(m.deleted_at IS NULL, m.subject, NULL) AS subject,
       CASE m.type WHEN 0 THEN 'text' WHEN 1 THEN 'markdown' WHEN 2 THEN 'json'
                   WHEN 3 THEN 'html' WHEN 4 THEN 'event' END AS type,
       CASE m.parse_mode WHEN 0 THEN 'plain' WHEN 1 THEN 'markdown' WHEN 3 THEN 'html' END AS parse_mode,
       iif(m.deleted_at IS NULL, m.text, '') AS text,
       iif(m.deleted_at IS NULL, m.attachments, NULL) AS attachments, m.interruptible, m.auto, m.context,
       strftime('%Y-%m-%dT%H:%M:%fZ', m.deliver_at / 1000.0, 'unixepoch') AS deliver_at,
       'r' || m.run AS run, ifnull(m.trace, 'm' || m.id) AS trace, m.hops, m.channel, m.metadata,
       strftime('%Y-%m-%dT%H:%M:%fZ', m.created_at / 1000.0, 'unixepoch') AS created_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', m.arrived_at / 1000.0, 'unixepoch') AS arrived_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', m.edited_at / 1000.0, 'unixepoch') AS edited_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', m.deleted_at / 1000.0, 'unixepoch') AS deleted_at,
       (SELECT d.kind || ':' || d.name FROM address d WHERE d.id = m.deleted_by) AS deleted_by, m.deleted_why
FROM message m JOIN address s ON s.id = m.sender
LEFT JOIN address p ON p.id = m.place
LEFT JOIN user u ON u.address = m.sender
LEFT JOIN agent g ON g.address = m.sender;

CREATE VIEW envelopes AS
SELECT 'e' || e.id AS id, 'm' || m.id AS message, 'c' || m.conversation AS conversation, m.seq,
       't' || ifnull(m.thread, m.id) AS thread, 'm' || m.reply_to AS reply_to,
       CASE WHEN p.id IS NULL THEN s.kind || ':' || s.name ELSE p.kind || ':' || p.name END AS "from",
       s.kind || ':' || s.name AS sender, r.kind || ':' || r.name AS "to", 'e' || e.forwards AS forwards,
       (SELECT f.kind || ':' || f.name FROM address f
        WHERE f.id = e.routed_from AND f.id <> e.recipient) AS routed_from,
       m.from_boss, coalesce(m.from_name, u.name, g.display) AS from_name,
       iif(m.deleted_at IS NULL, m.subject, NULL) AS subject,
       CASE m.type WHEN 0 THEN 'text' WHEN 1 THEN 'markdown' WHEN 2 THEN 'json'
                   WHEN 3 THEN 'html' WHEN 4 THEN 'event' END AS type,
       iif(m.deleted_at IS NULL, m.text, '') AS text,
       iif(m.deleted_at IS NULL, m.attachments, NULL) AS attachments,
       CASE e.status WHEN 0 THEN 'pending' WHEN 1 THEN 'done' WHEN 2 THEN 'failed'
                     WHEN 3 THEN 'cancelled' END AS status,
       CASE e.priority WHEN 0 THEN 'critical' WHEN 1 THEN 'high' WHEN 2 THEN 'normal'
                       WHEN 3 THEN 'low' WHEN 4 THEN 'normal' END AS priority,
       CASE e.box WHEN 0 THEN 'inbox' WHEN 1 THEN 'archived' WHEN 2 THEN 'trash'
                  WHEN 3 THEN 'snoozed' END AS box,
       CASE e.waits WHEN 0 THEN 'deferred' WHEN 1 THEN 'retry' WHEN 2 THEN 'lease'
                    WHEN 3 THEN 'snooze' END AS waits,
       e.arrived, e.attempts, e.handovers, 'm' || e.preempted_by AS preempted_by, e.error_kind, e.error_text,
       e.context OR m.context OR e.routed_from IS e.recipient AS context, m.metadata,
       strftime('%Y-%m-%dT%H:%M:%fZ', m.deliver_at / 1000.0, 'unixepoch') AS deliver_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', e.wake_at / 1000.0, 'unixepoch') AS wake_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', m.created_at / 1000.0, 'unixepoch') AS created_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', e.read_at / 1000.0, 'unixepoch') AS read_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', e.acked_at / 1000.0, 'unixepoch') AS acked_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', e.ack_by / 1000.0, 'unixepoch') AS ack_by,
       strftime('%Y-%m-%dT%H:%M:%fZ', e.snoozed_until / 1000.0, 'unixepoch') AS snoozed_until,
       strftime('%Y-%m-%dT%H:%M:%fZ', e.handed_at / 1000.0, 'unixepoch') AS handed_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', e.done_at / 1000.0, 'unixepoch') AS done_at
FROM envelope e
JOIN message m ON m.id = e.message
JOIN address s ON s.id = m.sender
JOIN address r ON r.id = e.recipient
LEFT JOIN address p ON p.id = m.place
LEFT JOIN user u ON u.address = m.sender
LEFT JOIN agent g ON g.address = m.sender;

CREATE VIEW asks AS
SELECT 'q' || k.id AS id, k.kind, k.state, a.kind || ':' || a.name AS "from", d.kind || ':' || d.name AS "to",
       'r' || k.run AS run, 'm' || k.message AS message, iif(m.deleted_at IS NULL, k.question, '') AS question,
       k.options, k.fallback AS "default", k.in_turn, k.reminders, k.answer, k.scope, k.comment,
       b.kind || ':' || b.name AS answered_by, 'm' || k.reply AS reply, k.tool, k.subject,
       strftime('%Y-%m-%dT%H:%M:%fZ', k.created_at / 1000.0, 'unixepoch') AS created_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', k.expires_at / 1000.0, 'unixepoch') AS expires_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', k.wake_at / 1000.0, 'unixepoch') AS wake_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', k.answered_at / 1000.0, 'unixepoch') AS answered_at
FROM ask k JOIN address a ON a.id = k.asker JOIN address d ON d.id = k.asked JOIN message m ON m.id = k.message
LEFT JOIN address b ON b.id = k.answered_by;

CREATE VIEW ask_rules AS
SELECT u.id AS number, a.kind || ':' || a.name AS agent, u.tool, u.subject, u.answer, u.session, 'q' || u.ask AS ask,
       b.kind || ':' || b.name AS created_by,
       strftime('%Y-%m-%dT%H:%M:%fZ', u.created_at / 1000.0, 'unixepoch') AS created_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', u.removed_at / 1000.0, 'unixepoch') AS removed_at
FROM ask_rule u JOIN address a ON a.id = u.agent JOIN address b ON b.id = u.created_by;

CREATE VIEW controls AS
SELECT 'stream.' || k.event AS event, k.outcome, k.why, a.kind || ':' || a.name AS actor,
       g.kind || ':' || g.name AS agent, 'r' || k.run AS run, 'c' || k.conversation AS conversation,
       'e' || k.envelope AS envelope, d.kind || ':' || d.name AS "to", k.reason, 'm' || k.message AS message,
       strftime('%Y-%m-%dT%H:%M:%fZ', k.at / 1000.0, 'unixepoch') AS at
FROM control k JOIN address a ON a.id = k.actor LEFT JOIN address g ON g.id = k.agent
LEFT JOIN address d ON d.id = k.destination;

CREATE VIEW conversation_routes AS
SELECT 'c' || r.conversation AS conversation, a.kind || ':' || a.name AS agent,
       d.kind || ':' || d.name AS destination, r.kind, 'm' || k.message AS control
FROM conversation_route r JOIN address a ON a.id = r.agent JOIN address d ON d.id = r.destination
JOIN control k ON k.id = r.control;

CREATE VIEW reactions AS
SELECT 'm' || r.message AS message, r.emoji, r.person, r.name, r.username, r.from_boss, r.shown,
       r.setter IS NOT NULL AS set_here,
       a.kind || ':' || a.name AS agent,
       strftime('%Y-%m-%dT%H:%M:%fZ', r.at / 1000.0, 'unixepoch') AS at
FROM reaction r LEFT JOIN address a ON a.id = r.agent;
