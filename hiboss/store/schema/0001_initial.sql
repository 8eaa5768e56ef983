-- The data model. Tables are singular; the plural views in views.sql are the public schema.
--
-- Times are INTEGER milliseconds UTC. Flags are 1 or 0. Addresses are ids of `address`.
-- The codes of status, priority, box, waits and type are those of hiboss/core/envelope.py.
-- AUTOINCREMENT wherever an id leaves the database: an id never repeats.
-- Long texts are the last columns of their table: SQLite reads past them to reach what follows.
-- The comment beside a column also appears in docs/reference/views.md.


-- === Who: addresses, people, agents, tokens ===========================================================

-- Every name that mail can come from or go to. A deleted one is retired and keeps its row, so that
-- a new agent or person of the same name does not inherit its mail.
CREATE TABLE address (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    kind       TEXT NOT NULL CHECK (kind IN ('agent', 'user', 'channel', 'group')),
    name       TEXT NOT NULL,
    fold       TEXT NOT NULL,           -- kind:name as it is compared: names differ by more than case
    retired_at INTEGER
) STRICT;
CREATE UNIQUE INDEX address_live ON address (fold) WHERE retired_at IS NULL;
CREATE INDEX address_fold ON address (fold);

-- People. The boss is one of them.
CREATE TABLE user (
    address      INTEGER PRIMARY KEY REFERENCES address (id),
    name         TEXT NOT NULL,         -- as others see it
    boss         INTEGER NOT NULL DEFAULT 0,  -- 1 for the boss, else 0
    timezone     TEXT,
    -- Where mail for this person is also posted: only for the boss.
    reach        INTEGER REFERENCES address (id),  -- a private chat of this person; NULL: nowhere
    reach_by     INTEGER REFERENCES binding (id),  -- the account that posts there
    forward      TEXT NOT NULL DEFAULT 'all' CHECK (forward IN ('all', 'important', 'off')),  -- what is posted there
    created_at   INTEGER NOT NULL,
    last_seen_at INTEGER
) STRICT;

CREATE TABLE agent (
    address         INTEGER PRIMARY KEY REFERENCES address (id),
    kind            TEXT NOT NULL DEFAULT 'agent' CHECK (kind IN ('agent', 'service', 'bot')),
    mode            TEXT NOT NULL DEFAULT 'pull' CHECK (mode IN ('run', 'pull')),  -- run: the daemon gives it turns
    level           TEXT NOT NULL DEFAULT 'standard' CHECK (level IN ('restricted', 'standard', 'privileged')),
    -- How it works.
    provider        TEXT,
    provider_config TEXT,               -- the provider's settings, as JSON, without secrets
    provider_secrets TEXT,              -- the name of the file in secrets/ that has them; NULL: it has none
    workspace       TEXT,               -- the directory its runs start in
    reply           TEXT NOT NULL DEFAULT 'auto' CHECK (reply IN ('auto', 'explicit')),  -- auto: send its final text
    busy            TEXT NOT NULL DEFAULT 'collect',  -- collect: all waiting mail in one turn, followup: a turn each, interrupt: as collect, and a person's new message ends the run, steer: as collect, and it is given to the run if that takes it, end-of-turn: as collect, and nothing that arrives ends the run
    -- Sessions of its provider: who shares one, and when a new one is begun.
    session_scope   TEXT NOT NULL DEFAULT 'person' CHECK (session_scope IN ('person', 'conversation', 'agent')),
    session_reset   TEXT,               -- each day at this time of the boss, HH:MM; NULL: never
    session_idle    INTEGER,            -- after so many seconds without a turn; NULL: never
    session_context INTEGER,            -- when its last model call read more tokens; NULL: never
    -- How others see it.
    display         TEXT,               -- the name shown to people
    role            TEXT,
    module          TEXT,               -- the part of a project it works on
    description     TEXT,
    -- What it may use in one day of the boss. NULL: no limit.
    daily_tokens    INTEGER,
    daily_cost      REAL,               -- in US dollars
    budget_from     INTEGER,            -- what it used before this time does not count today
    -- Why it gets no turns now. paused_at is NULL while it is not paused.
    paused_at       INTEGER,
    paused_kind     TEXT CHECK (paused_kind IN ('boss', 'guard', 'budget', 'tokens')),
    paused_by       INTEGER REFERENCES address (id),  -- of kind boss: who did it in his place; NULL: the boss himself
    paused_why      TEXT,
    paused_until    INTEGER,            -- NULL: until somebody resumes it
    paused_trace    TEXT,               -- the trace that reached its limit
    paused_hops     INTEGER,            -- of the mail that reached it
    created_at      INTEGER NOT NULL,
    last_seen_at    INTEGER,
    deleted_at      INTEGER
) STRICT;
CREATE INDEX agent_paused ON agent (paused_until) WHERE paused_until IS NOT NULL;

-- Only the SHA-256 hash of a token is stored.
CREATE TABLE token (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    hash       BLOB NOT NULL UNIQUE,
    kind       TEXT NOT NULL CHECK (kind IN ('boss', 'agent', 'user', 'run', 'web')),
    holder     INTEGER NOT NULL REFERENCES address (id),
    run        INTEGER REFERENCES run (id),  -- for kind 'run': it ends with this run
    attached   INTEGER REFERENCES attached_session (id),  -- of an agent: it is for this open session
    created_at INTEGER NOT NULL,
    expires_at INTEGER,  -- for kind 'web': a browser is logged in until then
    revoked_at INTEGER
) STRICT;
CREATE INDEX token_expires ON token (expires_at) WHERE expires_at IS NOT NULL AND revoked_at IS NULL;
-- Only valid ones: an agent also has a revoked token for each of its past runs.
CREATE INDEX token_holder ON token (holder) WHERE revoked_at IS NULL;
CREATE INDEX token_run ON token (run) WHERE run IS NOT NULL;

-- Harnesses (Claude Code, Codex) that are, or were, open in a terminal as an agent. Their hooks tell what they do.
CREATE TABLE attached_session (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    agent       INTEGER NOT NULL REFERENCES agent (address),
    client      TEXT NOT NULL CHECK (client IN ('claude', 'codex')),
    session     TEXT NOT NULL,          -- the harness's own id
    named       INTEGER NOT NULL DEFAULT 0,  -- 1: a person said which agent it is, 0: it was found by its directory
    pid         INTEGER NOT NULL,       -- of the harness
    pid_started TEXT NOT NULL,          -- the start time of the process: pids are used again
    directory   TEXT NOT NULL,          -- where it was opened
    state       TEXT NOT NULL DEFAULT 'idle' CHECK (state IN ('idle', 'busy')),
    since       INTEGER NOT NULL,       -- when it came into this state
    of_person   INTEGER NOT NULL DEFAULT 0,  -- 1: its turn began with words of the person at the terminal
    last_event  TEXT,                   -- the id of the last report that was taken: one that is repeated changes nothing
    started_at  INTEGER NOT NULL,
    ended_at    INTEGER,                -- NULL while it is open
    ended_why   TEXT CHECK (ended_why IN ('closed', 'gone', 'detached', 'deleted')),
    details     TEXT NOT NULL DEFAULT '{}'  -- JSON: how its doors are found
) STRICT;
CREATE UNIQUE INDEX attached_session_name ON attached_session (client, session);
CREATE INDEX attached_session_agent ON attached_session (agent);
CREATE INDEX attached_session_place ON attached_session (client, directory);
CREATE INDEX attached_session_open ON attached_session (ended_at) WHERE ended_at IS NULL;


-- === What: conversations, messages, envelopes =========================================================

CREATE TABLE conversation (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    kind        TEXT NOT NULL CHECK (kind IN ('private', 'adhoc', 'group')),
    key         TEXT NOT NULL UNIQUE,   -- private, adhoc: the address ids of all parties, group: that of the group
    address     INTEGER UNIQUE REFERENCES address (id),  -- of a group
    name        TEXT,
    description TEXT,
    open        INTEGER NOT NULL DEFAULT 0,  -- of a group: 1 when any agent or user may join
    history     INTEGER NOT NULL DEFAULT 0,  -- of a group: how many earlier messages a newcomer may see
    first_seq   INTEGER NOT NULL DEFAULT 1,  -- the lowest seq that is kept
    last_seq    INTEGER NOT NULL DEFAULT 0,  -- the highest seq given to a message; 0: none yet
    created_at  INTEGER NOT NULL,
    created_by  INTEGER REFERENCES address (id),  -- NULL: it began with its first message
    archived_at INTEGER,                -- it takes no messages since then
    deleted_at  INTEGER,
    deleted_by  INTEGER REFERENCES address (id),
    delete_reason TEXT,
    metadata    TEXT                    -- JSON of whoever set it; no rule depends on it
) STRICT;
-- Few: each was archived or deleted by somebody.
CREATE INDEX conversation_closed ON conversation (id) WHERE archived_at IS NOT NULL OR deleted_at IS NOT NULL;

-- One row for each stay of a party: who leaves and comes back has two.
CREATE TABLE participant (
    conversation  INTEGER NOT NULL REFERENCES conversation (id),
    address       INTEGER NOT NULL REFERENCES address (id),
    -- guest: mail of the conversation was routed to it. It is none of the parties, and sees what it got.
    role          TEXT NOT NULL DEFAULT 'member' CHECK (role IN ('owner', 'admin', 'member', 'guest')),
    -- Of an agent in a group: which messages are for it to answer; the others it only reads along.
    respond       TEXT NOT NULL DEFAULT 'mentioned'
                  CHECK (respond IN ('mentioned', 'people', 'all', 'claim', 'never')),
    binding       INTEGER REFERENCES binding (id),  -- of a channel in a group: the account that posts there
    joined_at     INTEGER,              -- NULL: when the conversation began
    left_at       INTEGER,
    joined_seq    INTEGER NOT NULL DEFAULT 1,  -- the first seq it may see
    left_seq      INTEGER,              -- the last seq it may see; NULL while it is a member
    last_read_seq INTEGER NOT NULL DEFAULT 0,
    shown_upto    INTEGER NOT NULL DEFAULT 0,  -- of an agent: what was said around it in the chat is shown up to this message
    PRIMARY KEY (conversation, address, joined_seq)
) STRICT, WITHOUT ROWID;
CREATE INDEX participant_address ON participant (address);

-- One utterance. What changes from recipient to recipient is in `envelope`.
CREATE TABLE message (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    conversation  INTEGER NOT NULL REFERENCES conversation (id),
    seq           INTEGER,              -- its place in the conversation, without gaps; NULL until it arrives
    thread        INTEGER REFERENCES message (id),  -- the first message of the thread; NULL: this one
    reply_to      INTEGER REFERENCES message (id),
    repeats       INTEGER NOT NULL DEFAULT 0,  -- 1: it has the text of what it answers, like a new wording or a notice that quotes it: it is deleted with that
    -- Who sent it.
    sender        INTEGER NOT NULL REFERENCES address (id),
    caller        INTEGER REFERENCES address (id),  -- whose token was used; NULL: an adapter received it
    from_boss     INTEGER NOT NULL DEFAULT 0,  -- 1 when the boss sent it, else 0
    from_name     TEXT,                 -- a display name for this message only
    place         INTEGER REFERENCES address (id),  -- the chat in which a person wrote it; NULL: sender says it all
    about         INTEGER REFERENCES conversation (id),  -- of a notice: the conversation that it belongs to, only turns of that one show it; NULL: any turn may
    session       TEXT,                 -- the sender's session
    -- What it came from.
    run           INTEGER REFERENCES run (id),  -- the run that sent it
    trace         TEXT,                 -- NULL: it begins its own trace, named by its id
    hops          INTEGER NOT NULL DEFAULT 0,  -- runs between the start of its trace and this message
    origin        TEXT,                 -- the machine it was first accepted on; NULL: this one
    origin_id     TEXT,                 -- its id there
    -- How to treat it.
    type          INTEGER NOT NULL DEFAULT 0,
    parse_mode    INTEGER,              -- how channels read its text, in place of its type; NULL: by its type
    interruptible INTEGER NOT NULL DEFAULT 1,  -- 0: do not interrupt the run that works on it
    auto          INTEGER NOT NULL DEFAULT 0,  -- 1 when a machine made it: it gets no automatic reply
    context       INTEGER NOT NULL DEFAULT 0,  -- 1 when it was said in a group, to nobody of us: it starts no turn
    deliver_at    INTEGER,              -- NULL: at once
    ack_within    INTEGER,              -- milliseconds after its arrival in which it is to be acknowledged
    created_at    INTEGER NOT NULL,
    arrived_at    INTEGER,
    edited_at     INTEGER,
    deleted_at    INTEGER,              -- it shows no text any more; what was posted of it is taken back
    deleted_by    INTEGER REFERENCES address (id),  -- its author, or the boss
    deleted_why   TEXT,                 -- the reason that was given
    -- The content.
    subject       TEXT,
    text          TEXT NOT NULL,        -- the current wording
    attachments   TEXT,                 -- a JSON array
    channel       TEXT,                 -- JSON from the platform: author, chat, message id
    metadata      TEXT                  -- the sender's own JSON; no rule depends on it
) STRICT;
CREATE UNIQUE INDEX message_seq ON message (conversation, seq) WHERE seq IS NOT NULL;
CREATE INDEX message_thread ON message (thread) WHERE thread IS NOT NULL;
CREATE INDEX message_sender ON message (sender);

-- One message on its way to one address, or in its box. Only hiboss/store/envelopes.py writes to it.
CREATE TABLE envelope (
    id              INTEGER PRIMARY KEY AUTOINCREMENT,
    message         INTEGER NOT NULL REFERENCES message (id),
    recipient       INTEGER NOT NULL REFERENCES address (id),
    binding         INTEGER REFERENCES binding (id),  -- the platform account that posts it
    status          INTEGER NOT NULL DEFAULT 0,
    priority        INTEGER NOT NULL DEFAULT 2,
    box             INTEGER NOT NULL DEFAULT 0,
    arrived         INTEGER,            -- its place in the order of arrival over all envelopes; NULL until it arrives
    due_again       INTEGER,            -- a number of the same order, given when it came back: `poll` announces it again
    -- What it waits for, and who has it now.
    context         INTEGER NOT NULL DEFAULT 0,  -- 1: its recipient only reads it along: it starts no turn, and is not counted as unread
    offered         INTEGER NOT NULL DEFAULT 0,  -- 1: it was offered to several members of a group, of whom one takes it
    waits           INTEGER,            -- why it is not due; NULL: it waits for nothing
    wait_until      INTEGER,            -- when that wait ends
    held_by         INTEGER,            -- the boot number of the daemon that is delivering it
    claim           INTEGER,            -- the number of the claim that has it
    -- How delivery went.
    handovers       INTEGER NOT NULL DEFAULT 0,  -- times it was handed over or claimed
    handed_at       INTEGER,            -- when that was last
    attempts        INTEGER NOT NULL DEFAULT 0,  -- failed deliveries
    crashes         INTEGER NOT NULL DEFAULT 0,  -- of the daemon in a row, while it was being delivered
    unconfirmed     INTEGER NOT NULL DEFAULT 0,  -- 1: a post of it got no answer, and may be there all the same
    after_stop      INTEGER,            -- how often the daemon had stopped normally before these crashes
    first_failed_at INTEGER,
    error_kind      TEXT,               -- of the last failure
    error_text      TEXT,
    error_at        INTEGER,
    done_at         INTEGER,            -- when status became done, failed or cancelled
    -- What the recipient did with it.
    read_at         INTEGER,
    acked_at        INTEGER,
    ack_by          INTEGER,            -- the deadline for acknowledging it
    snoozed_until   INTEGER,
    preempted_by    INTEGER REFERENCES message (id),  -- the message that interrupted its run
    forwards        INTEGER REFERENCES envelope (id),  -- the one in the boss's box that this one posts to a chat of his
    addressed       INTEGER NOT NULL DEFAULT 0,  -- of a forward: 1 when the sender named this chat; else only the boss knows of it
    routed_from     INTEGER REFERENCES address (id),  -- who it was for, before it was routed to this recipient; the recipient itself: a copy to read along
    -- When the daemon must look at this row again; NULL: never. 2**62: the next start of a daemon looks at it.
    -- Computed here and nowhere else, so it cannot contradict the row.
    wake_at         INTEGER GENERATED ALWAYS AS (iif(held_by IS NULL, wait_until, 4611686018427387904)) VIRTUAL,
    -- 1: it is in the inbox, and its recipient has not read it. Snoozed mail is in a box of its own until it wakes.
    unread          INTEGER GENERATED ALWAYS AS (read_at IS NULL AND box = 0 AND context = 0
                        AND arrived IS NOT NULL AND status <> 3) VIRTUAL,
    CHECK ((waits IS NULL) = (wait_until IS NULL))
) STRICT;
CREATE UNIQUE INDEX envelope_message ON envelope (message, recipient);
-- With the binding: two accounts in one chat are two lanes, and neither reads the other's rows.
CREATE INDEX envelope_due ON envelope (recipient, binding, priority, arrived)
    WHERE status = 0 AND arrived IS NOT NULL AND waits IS NULL;
CREATE INDEX envelope_wake ON envelope (wake_at) WHERE wake_at IS NOT NULL;
-- Status before arrived: one page of a box, of one status or of all, merges at most four index
-- ranges, so a million settled rows cost nothing.
CREATE INDEX envelope_box ON envelope (recipient, box, status, arrived);
CREATE INDEX envelope_unread ON envelope (recipient, ifnull(due_again, arrived))
    WHERE unread = 1;

-- Who has seen an envelope, and in which session of theirs: by a mark, a run, or a poll. `read_at` of the
-- envelope is the first time that it was read.
CREATE TABLE reading (
    envelope INTEGER NOT NULL REFERENCES envelope (id),
    reader   INTEGER NOT NULL REFERENCES address (id),  -- the recipient, or the boss in its place
    session  TEXT NOT NULL DEFAULT '',  -- like r9 for a run; empty: it was not named
    at       INTEGER NOT NULL,
    read     INTEGER NOT NULL DEFAULT 1,  -- 0: a poll has shown it to this session, and nobody said that it was read
    PRIMARY KEY (envelope, reader, session)
) STRICT, WITHOUT ROWID;

-- Envelopes that are to be acknowledged until a time. The row goes when that is done in time. When it is too late,
-- the sender and the boss are told.
CREATE TABLE ack_deadline (
    envelope INTEGER PRIMARY KEY REFERENCES envelope (id),
    at       INTEGER NOT NULL,
    told_at  INTEGER                    -- when it had passed, and they were told: that happens once
) STRICT;
CREATE INDEX ack_deadline_at ON ack_deadline (at) WHERE told_at IS NULL;

-- How many unread envelopes somebody has in a conversation, for each thread there: 0 for what is the first of
-- its thread. Counted by triggers (triggers.sql) and
-- nowhere else. A list of conversations need not read a box.
CREATE TABLE unread (
    address      INTEGER NOT NULL REFERENCES address (id),
    conversation INTEGER NOT NULL REFERENCES conversation (id),
    thread       INTEGER NOT NULL,
    number       INTEGER NOT NULL,
    PRIMARY KEY (address, conversation, thread)
) STRICT, WITHOUT ROWID;
-- Threads that have a reply: what of each is in a conversation. One that goes on in another one has a row there.
CREATE TABLE thread (
    conversation INTEGER NOT NULL REFERENCES conversation (id),
    id           INTEGER NOT NULL REFERENCES message (id),  -- its first message, which may be elsewhere
    messages     INTEGER NOT NULL,      -- that have arrived here
    last         INTEGER NOT NULL REFERENCES message (id),  -- the one that arrived last
    arrived      INTEGER NOT NULL,      -- when that was, in the order of arrival over all envelopes
    PRIMARY KEY (conversation, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX thread_activity ON thread (conversation, arrived);
CREATE INDEX thread_id ON thread (id);

-- Idempotency keys. Not columns of message: a send without a key pays for no index.
CREATE TABLE sent_key (
    caller  INTEGER NOT NULL REFERENCES address (id),
    key     TEXT NOT NULL,
    message INTEGER NOT NULL REFERENCES message (id),
    digest  BLOB NOT NULL,              -- of the content: the same key with other content is refused
    skipped TEXT,                       -- of a reply: a JSON array of the parties whom its sender may not write to
    PRIMARY KEY (caller, key)
) STRICT, WITHOUT ROWID;

-- Files that somebody uploaded, and that no message uses yet. The bytes are in media/.uploads/.
CREATE TABLE upload (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    holder     INTEGER NOT NULL REFERENCES address (id),  -- who may use it
    file       TEXT NOT NULL UNIQUE,    -- its name there, which nobody can guess
    name       TEXT NOT NULL,           -- as its holder named it
    mime       TEXT NOT NULL,
    size       INTEGER NOT NULL,
    sha256     TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL
) STRICT;
CREATE INDEX upload_holder ON upload (holder);
CREATE INDEX upload_expires ON upload (expires_at);

CREATE TABLE tag (
    message INTEGER NOT NULL REFERENCES message (id),
    kind    TEXT NOT NULL CHECK (kind IN ('mention', 'scope', 'ref')),
    name    TEXT NOT NULL,
    value   TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (kind, name, value, message)
) STRICT, WITHOUT ROWID;
CREATE INDEX tag_message ON tag (message);

-- Older wordings of an edited message.
CREATE TABLE revision (
    message     INTEGER NOT NULL REFERENCES message (id),
    number      INTEGER NOT NULL,
    replaced_at INTEGER NOT NULL,
    text        TEXT NOT NULL,
    attachments TEXT,                   -- a JSON array, as in message
    PRIMARY KEY (message, number)
) STRICT, WITHOUT ROWID;

-- What became of messages in the chat of an agent and the boss: edited, deleted, restored. Each change has a place
-- in the order of the conversation, after the message that was its last one then (store/chat_entries.py).
CREATE TABLE chat_change (
    conversation INTEGER NOT NULL REFERENCES conversation (id),
    after_seq    INTEGER NOT NULL,
    number       INTEGER NOT NULL,      -- of the changes after that message, from 1
    message      INTEGER NOT NULL REFERENCES message (id),  -- what was changed
    changed_at   INTEGER NOT NULL,
    PRIMARY KEY (conversation, after_seq, number)
) STRICT, WITHOUT ROWID;

-- Up to which entry of a chat a subscriber has acknowledged. Each is of the caller who named it.
CREATE TABLE chat_position (
    holder       INTEGER NOT NULL REFERENCES address (id),
    conversation INTEGER NOT NULL REFERENCES conversation (id),
    subscriber   TEXT NOT NULL DEFAULT '',  -- as the caller named it; empty: it has no name
    seq          INTEGER NOT NULL,
    number       INTEGER NOT NULL DEFAULT 0,  -- of a change after that message; 0: the message itself
    updated_at   INTEGER NOT NULL,
    PRIMARY KEY (holder, conversation, subscriber)
) STRICT, WITHOUT ROWID;


-- The reactions to a message: of people on platforms each emoji once, of agents and users here one each.
CREATE TABLE reaction (
    message   INTEGER NOT NULL REFERENCES message (id),
    person    TEXT NOT NULL,            -- the platform's id of the person, or the name if it has none; else the address
    emoji     TEXT NOT NULL,
    setter    INTEGER REFERENCES address (id),  -- the agent or user who set it here; NULL: a person on a platform
    name      TEXT,                     -- of the person, as people see it
    username  TEXT,                     -- the short name on the platform, without @
    from_boss INTEGER NOT NULL DEFAULT 0,  -- 1 when it is the boss's
    agent     INTEGER REFERENCES agent (address),  -- the agent that is shown it, who wrote the message; NULL: nobody
    shown     INTEGER NOT NULL DEFAULT 0,  -- 1 when a turn of that agent has shown it
    at        INTEGER NOT NULL,
    PRIMARY KEY (message, person, emoji)
) STRICT, WITHOUT ROWID;
CREATE INDEX reaction_unshown ON reaction (agent, message) WHERE shown = 0 AND agent IS NOT NULL;

-- The buttons under a message. What a press does is decided here, and never by what the platform sends.
CREATE TABLE button (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    message    INTEGER NOT NULL REFERENCES message (id),
    label      TEXT NOT NULL,           -- what people see
    action     TEXT NOT NULL CHECK (action IN ('contact.approve', 'contact.block', 'ask.answer')),
    argument   TEXT NOT NULL,           -- what the action is about
    pressed_at INTEGER                  -- NULL: nobody has pressed it
) STRICT;
CREATE INDEX button_message ON button (message);
CREATE INDEX button_about ON button (action, argument);


-- === Outside: platform accounts, places, what came in and went out ====================================

-- A platform account. Its secrets are files in secrets/, never here.
CREATE TABLE binding (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    adapter    TEXT NOT NULL,
    account    TEXT NOT NULL,           -- the platform's name for the account, not its secret
    name       TEXT,                    -- the account as people know it, like @nexbot; NULL: as `account`
    groups     TEXT NOT NULL DEFAULT 'mentioned' CHECK (groups IN ('mentioned', 'replied', 'always')),  -- what of a group is for its agents
    closed     INTEGER NOT NULL DEFAULT 0,  -- 1: what comes in from a chat that nobody approved is held
    settings   TEXT,                    -- JSON, without secrets
    secrets    TEXT,                    -- the name of the file in secrets/ that has them; NULL: it has none
    threads    INTEGER NOT NULL DEFAULT 0,  -- 1 when its chats can have topics, else 0
    position   TEXT,                    -- up to where its updates are stored; only the adapter knows what it means
    created_at INTEGER NOT NULL,
    removed_at INTEGER
) STRICT;
CREATE UNIQUE INDEX binding_account ON binding (adapter, account) WHERE removed_at IS NULL;
CREATE INDEX binding_lives ON binding (adapter, account);

CREATE TABLE binding_agent (
    binding   INTEGER NOT NULL REFERENCES binding (id),
    agent     INTEGER NOT NULL REFERENCES agent (address),
    leads     INTEGER NOT NULL DEFAULT 0,  -- 1: it gets what is not for another agent of the binding
    own_topic INTEGER NOT NULL DEFAULT 0,  -- 1: it has a topic of its own in the private chat of the boss
    PRIMARY KEY (agent, binding)
) STRICT, WITHOUT ROWID;

-- Webhooks that send facts: which ones, and how far they are. Each is a binding without agents.
CREATE TABLE webhook_subscription (
    binding INTEGER PRIMARY KEY REFERENCES binding (id),
    address INTEGER NOT NULL REFERENCES address (id),  -- of the webhook
    topics  TEXT NOT NULL,              -- a JSON array; empty: all
    parties TEXT NOT NULL,              -- a JSON array of address ids, one of which is a party of the fact; empty: whoever is
    arrived INTEGER NOT NULL,           -- what arrived up to this number is in envelopes for it, or need not be
    gap     INTEGER REFERENCES envelope (id)  -- the last one that says that facts may be missing
) STRICT;

-- Who people are on platforms: what they write in a private chat there is theirs. Only the boss has rows.
CREATE TABLE identity (
    adapter     TEXT NOT NULL,
    platform_id TEXT NOT NULL,          -- the platform's id of the person
    user        INTEGER NOT NULL REFERENCES user (address),
    created_at  INTEGER NOT NULL,
    PRIMARY KEY (adapter, platform_id)
) STRICT, WITHOUT ROWID;

-- A chat that a binding met, and whether it may write and be written to. A private chat of the boss has state 'boss'.
CREATE TABLE contact (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    binding     INTEGER NOT NULL REFERENCES binding (id),
    platform_id TEXT NOT NULL,          -- of the chat
    was         TEXT,                   -- the platform id that it had before; NULL: always this one
    address     INTEGER REFERENCES address (id),  -- of the chat
    kind        TEXT NOT NULL DEFAULT 'private' CHECK (kind IN ('private', 'group', 'channel')),
    name        TEXT,                   -- of the person, or the title of the group
    state       TEXT NOT NULL DEFAULT 'asking' CHECK (state IN ('asking', 'allowed', 'blocked', 'boss')),
    person      TEXT,                   -- a private chat: the short name of the person, without @
    pairing     TEXT,                   -- the code with which the boss approves it
    pairing_until INTEGER,              -- when the code ends
    created_at  INTEGER NOT NULL,
    decided_at  INTEGER,
    UNIQUE (binding, platform_id)
) STRICT;
CREATE INDEX contact_address ON contact (address);

-- A chat, or a topic of a chat, where a binding receives and posts. Whether it may is decided by the chat.
CREATE TABLE place (
    address INTEGER NOT NULL REFERENCES address (id),
    binding INTEGER NOT NULL REFERENCES binding (id),
    contact INTEGER NOT NULL REFERENCES contact (id),
    agent   INTEGER REFERENCES agent (address),  -- who gets what is written there; NULL: who leads the binding
    gone_at INTEGER,                    -- of a topic: since when the platform says that it is gone, and the chat itself is posted to
    PRIMARY KEY (address, binding)
) STRICT, WITHOUT ROWID;
CREATE INDEX place_binding ON place (binding);
CREATE INDEX place_contact ON place (contact);

-- One row for each update of a platform, so that one that comes again is known. It is stored as it
-- came, in one transaction with the position of its binding, and digested later (hiboss/routing/intake.py):
-- several can become one message. Replies also find here what they answer.
CREATE TABLE platform_update (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,  -- the order in which they came
    binding     INTEGER NOT NULL REFERENCES binding (id),
    update_id   TEXT NOT NULL,          -- the platform's
    chat        TEXT NOT NULL,          -- the platform's id of the chat: updates of one chat are digested in order
    platform_id TEXT,                   -- the platform's id of the message
    message     INTEGER REFERENCES message (id),
    outcome     TEXT,                   -- what became of it, like accepted, held or failed; NULL: it is not digested yet
    attempts    INTEGER NOT NULL DEFAULT 0,  -- to digest it, that failed
    crashes     INTEGER NOT NULL DEFAULT 0,  -- of the daemon in a row, while it was digested again after a start
    error       TEXT,                   -- of the last one
    received_at INTEGER NOT NULL,
    raw         TEXT,                   -- as it was received, in JSON; emptied after a week
    UNIQUE (binding, update_id)
) STRICT;
CREATE INDEX platform_update_waiting ON platform_update (binding, chat, id) WHERE outcome IS NULL;
CREATE INDEX platform_update_acting ON platform_update (binding)
    WHERE outcome IS NULL AND substr(raw, 1, 7) = '{"act":';
CREATE INDEX platform_update_held ON platform_update (binding, chat, id) WHERE outcome = 'held';
CREATE INDEX platform_update_raw ON platform_update (received_at) WHERE raw IS NOT NULL;
CREATE INDEX platform_update_place ON platform_update (binding, chat, platform_id);
CREATE INDEX platform_update_renamed ON platform_update (platform_id) WHERE outcome = 'renamed';
CREATE INDEX platform_update_message ON platform_update (message) WHERE message IS NOT NULL;

-- The rendered chunks of an envelope, stored before the first is posted; a retry continues with the
-- first that was not posted.
CREATE TABLE post (
    envelope    INTEGER NOT NULL REFERENCES envelope (id),
    chunk       INTEGER NOT NULL,
    platform_id TEXT,                   -- given by the platform when it was posted
    chat        TEXT,                   -- the platform id of its chat, if that has another one now
    posted_at   INTEGER,
    deleted_at  INTEGER,                -- when it was taken back there, with its parts; NULL: it was not
    content     TEXT NOT NULL,
    PRIMARY KEY (envelope, chunk)
) STRICT, WITHOUT ROWID;
CREATE INDEX post_platform ON post (platform_id) WHERE platform_id IS NOT NULL;

-- The other posts that one chunk made: those of an album behind the first.
CREATE TABLE post_part (
    envelope    INTEGER NOT NULL REFERENCES envelope (id),
    chunk       INTEGER NOT NULL,
    platform_id TEXT NOT NULL,
    chat        TEXT,                   -- as in post
    PRIMARY KEY (envelope, chunk, platform_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX post_part_platform ON post_part (platform_id);

-- The posts of an envelope differ from its message, which was edited or deleted (hiboss/routing/post_changes.py).
CREATE TABLE post_change (
    envelope        INTEGER PRIMARY KEY REFERENCES envelope (id),
    asker           INTEGER NOT NULL REFERENCES address (id),  -- who edited or deleted it last
    planned         INTEGER NOT NULL DEFAULT 0,  -- 1: the steps for the present wording are stored
    failures        INTEGER NOT NULL DEFAULT 0,  -- in a row
    first_failed_at INTEGER,
    problems        INTEGER NOT NULL DEFAULT 0,  -- posts that stay as they are
    problem         TEXT                -- why, for the first of them
) STRICT;

-- What is still to be done with a post of such an envelope. While there is a row, nobody knows what the post shows.
CREATE TABLE post_step (
    envelope INTEGER NOT NULL REFERENCES post_change (envelope) ON DELETE CASCADE,
    chunk    INTEGER NOT NULL,          -- of post; one that is not there is to be posted
    content  TEXT,                      -- what it is to show; NULL: it is to be deleted
    PRIMARY KEY (envelope, chunk)
) STRICT, WITHOUT ROWID;

-- The reaction that an account is to have on a message, because agents of it have reacted.
CREATE TABLE reaction_change (
    message         INTEGER NOT NULL REFERENCES message (id),
    binding         INTEGER NOT NULL REFERENCES binding (id),
    asker           INTEGER NOT NULL REFERENCES address (id),  -- the agent that set or removed its reaction last
    emoji           TEXT,               -- NULL: none
    changes         INTEGER NOT NULL DEFAULT 1,  -- how often it was changed
    failures        INTEGER NOT NULL DEFAULT 0,  -- in a row
    first_failed_at INTEGER,
    PRIMARY KEY (message, binding)
) STRICT, WITHOUT ROWID;

-- Files that an account has posted: it posts them again by the platform's id.
CREATE TABLE posted_file (
    binding     INTEGER NOT NULL REFERENCES binding (id),
    sha256      TEXT NOT NULL,
    name        TEXT NOT NULL,
    mime        TEXT NOT NULL,
    platform_id TEXT NOT NULL,          -- in the adapter's own form
    posted_at   INTEGER NOT NULL,
    PRIMARY KEY (binding, sha256, name, mime)
) STRICT, WITHOUT ROWID;

-- A post that grows while a run works. When the run has ended it becomes the answer, or is removed.
CREATE TABLE live_post (
    run         INTEGER NOT NULL REFERENCES run (id),
    address     INTEGER NOT NULL REFERENCES address (id),
    binding     INTEGER NOT NULL REFERENCES binding (id),
    platform_id TEXT,                   -- NULL: it is being posted
    note        INTEGER NOT NULL DEFAULT 0,  -- 1: it says that mail waits for this run, and goes when the run has ended
    overtaken   INTEGER NOT NULL DEFAULT 0,  -- 1: something else was posted there after it, so the answer is posted anew
    place       TEXT,                   -- the chat and topic where it is, if the chat has got another id since
    created_at  INTEGER NOT NULL,
    PRIMARY KEY (run, address, binding, note)
) STRICT, WITHOUT ROWID;

-- Live posts that were deleted: somebody may have replied to one before he saw that. Kept for a week.
CREATE TABLE deleted_live_post (
    id          INTEGER PRIMARY KEY,
    run         INTEGER NOT NULL REFERENCES run (id),
    address     INTEGER NOT NULL REFERENCES address (id),
    binding     INTEGER NOT NULL REFERENCES binding (id),
    platform_id TEXT NOT NULL,
    place       TEXT,                   -- the chat and topic where it was, if the chat has got another id since
    deleted_at  INTEGER NOT NULL
) STRICT;
CREATE INDEX deleted_live_post_platform ON deleted_live_post (platform_id);

-- The state of the line of one address, or of one binding in one place; without an address, of a whole
-- account: while it fails, one lane of the binding at a time tries it; when the binding has ended, it is
-- paused until all that waits for it is failed. A lane without a row is open and has not failed.
CREATE TABLE lane (
    id              INTEGER PRIMARY KEY AUTOINCREMENT,
    address         INTEGER REFERENCES address (id),  -- NULL: the account of the binding
    binding         INTEGER REFERENCES binding (id),
    -- trying: an account that failed, while one of its lanes posts something.
    state           TEXT NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'waiting', 'paused', 'trying')),
    wake_at         INTEGER,            -- when a waiting lane is tried again
    not_before      INTEGER,            -- the platform named this time: nothing is tried before it
    tried_at        INTEGER,            -- when it was last tried: new mail tries a waiting lane, but not all the time
    failures        INTEGER NOT NULL DEFAULT 0,  -- in a row
    first_failed_at INTEGER,
    error_kind      TEXT,               -- of the last failure
    error_text      TEXT,
    error_at        INTEGER,
    boss_told_at    INTEGER,            -- the boss is told once per outage
    partly_posted   INTEGER REFERENCES envelope (id),  -- some of its chunks are posted: it goes first
    paused_run      INTEGER REFERENCES run (id),  -- of an agent: it is paused because this run was paused
    next_envelope   INTEGER REFERENCES envelope (id),  -- of an agent: a run was set aside for it, so it is the next
    CHECK (address IS NOT NULL OR binding IS NOT NULL)
) STRICT;
CREATE UNIQUE INDEX lane_place ON lane (ifnull(address, 0), ifnull(binding, 0));
CREATE INDEX lane_wake ON lane (wake_at) WHERE wake_at IS NOT NULL;


-- === Schedules ========================================================================================

-- Exactly one of cron, every_ms and at says when.
CREATE TABLE schedule (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    owner        INTEGER NOT NULL REFERENCES address (id),
    name         TEXT,
    cron         TEXT,
    every_ms     INTEGER,
    at           INTEGER,
    timezone     TEXT,                  -- NULL: the boss's
    catch_up     TEXT NOT NULL DEFAULT 'once' CHECK (catch_up IN ('skip', 'once', 'all')),  -- missed slots to send late
    overlap      TEXT NOT NULL DEFAULT 'skip' CHECK (overlap IN ('skip', 'queue')),  -- when the last message is pending
    enabled      INTEGER NOT NULL DEFAULT 1,  -- 1 or 0
    next_at      INTEGER,               -- NULL: it does not fire again
    begun_at     INTEGER NOT NULL,      -- intervals are counted from here; moves when the clock is set back
    era          INTEGER NOT NULL DEFAULT 0,  -- of an interval: how often the clock was set back
    last_message INTEGER REFERENCES message (id),
    -- The run that set its time. NULL: none did.
    run          INTEGER REFERENCES run (id),
    trace        TEXT,                  -- of all its messages: that of its run; NULL: each slot begins a trace, like s3@2026-01-28T…
    hops         INTEGER NOT NULL DEFAULT 0,  -- of its messages
    created_at   INTEGER NOT NULL,
    deleted_at   INTEGER,
    draft        TEXT NOT NULL          -- JSON: the message to send
) STRICT;
CREATE INDEX schedule_next ON schedule (next_at) WHERE next_at IS NOT NULL;
CREATE INDEX schedule_owner ON schedule (owner) WHERE deleted_at IS NULL;

-- The slots of a schedule and the outcome of each. Consecutive missed slots are one row: a year of
-- missed minutes is not half a million rows. No two rows of one era overlap.
CREATE TABLE schedule_slot (
    schedule  INTEGER NOT NULL REFERENCES schedule (id),
    era       INTEGER NOT NULL DEFAULT 0,  -- of an interval: after a clock set back, times come again
    slot      INTEGER NOT NULL,         -- the planned time
    last_slot INTEGER NOT NULL,         -- the last planned time of consecutive missed slots, else the same as slot
    number    INTEGER NOT NULL DEFAULT 1,  -- how many slots this row stands for
    outcome   TEXT NOT NULL CHECK (outcome IN ('fired', 'missed', 'skipped', 'failed')),
    reason    TEXT,
    message   INTEGER REFERENCES message (id),
    at        INTEGER NOT NULL,         -- when this was recorded
    PRIMARY KEY (schedule, era, slot)
) STRICT, WITHOUT ROWID;


-- === Runs =============================================================================================

-- One execution of a turn, or of a background task.
CREATE TABLE run (
    id                 INTEGER PRIMARY KEY AUTOINCREMENT,
    agent              INTEGER NOT NULL REFERENCES agent (address),
    kind               TEXT NOT NULL DEFAULT 'turn' CHECK (kind IN ('turn', 'background')),
    status             TEXT NOT NULL CHECK (status IN ('running', 'completed', 'failed', 'cancelled', 'interrupted')),
    conversation       INTEGER REFERENCES conversation (id),
    trace              TEXT,
    hops               INTEGER NOT NULL DEFAULT 0,  -- of what it works on; what it sends has one more
    provider           TEXT NOT NULL,
    session            TEXT,            -- the provider's own id of its memory, as soon as it is known
    session_scope      TEXT,            -- the provider_session that its session is kept in; NULL: in none, the next turn does not get it
    -- Of a turn that an open session takes: how far it got.
    attached           INTEGER REFERENCES attached_session (id),
    submitted_at       INTEGER,         -- the session was told of the mail
    submitted_by       TEXT CHECK (submitted_by IN ('nudge', 'stop', 'step')),  -- how: woken, or by the hook that reported this
    held_at            INTEGER,         -- the harness holds it back, until a person allows it
    seen_at            INTEGER,         -- the session has the mail
    model              TEXT,            -- that answered, as the provider named it
    -- Its process, so that the next daemon can end one that survived a crash.
    boot               INTEGER NOT NULL,  -- of the daemon that started it
    pid                INTEGER,
    pid_started        TEXT,            -- the start time of the process: pids are used again
    started_at         INTEGER NOT NULL,
    ended_at           INTEGER,
    paused_at          INTEGER,         -- NULL while it is not paused
    paused_by          INTEGER REFERENCES address (id),  -- who paused it; also after its end, until it is resumed
    paused_ms          INTEGER NOT NULL DEFAULT 0,  -- how long it was paused, without its current pause
    -- Somebody was told that it is cancelled: so it ends, also if the daemon dies before its processes have ended.
    cancelled_by       INTEGER REFERENCES address (id),
    cancelled_why      TEXT,
    -- What that means for its envelopes. cancelled: they are cancelled. The others: they are due again.
    ends_as            TEXT CHECK (ends_as IN ('cancelled', 'requeued', 'preempted', 'stopped', 'paused')),
    preempted_by       INTEGER REFERENCES message (id),  -- the message that it was ended for
    -- Where the answer goes, and what was sent.
    reply_conversation INTEGER REFERENCES conversation (id),
    reply_message      INTEGER REFERENCES message (id),  -- the message it answers there
    answer             INTEGER REFERENCES message (id),  -- the message sent with its final text
    after_message      INTEGER NOT NULL DEFAULT 0,  -- the last message id when it started
    last_message       INTEGER,         -- the last message id when it ended: it sent only ids between the two
    reactions          TEXT,            -- those that it was shown, as JSON: [[message, person, emoji], …]
    -- What it used.
    tokens_in          INTEGER,
    tokens_out         INTEGER,
    cost               REAL,            -- in US dollars
    context            INTEGER,         -- tokens that its last model call read
    usage_estimated    INTEGER NOT NULL DEFAULT 0,  -- 1: it ended without a result, and this is what was seen until then
    -- How it ended.
    error_kind         TEXT,
    error_scope        TEXT CHECK (error_scope IN ('turn', 'lane')),  -- lane: every turn would have failed
    error              TEXT,
    note               TEXT,            -- remarks on the answer, like why it was not sent
    final_text         TEXT
) STRICT;
CREATE INDEX run_agent ON run (agent, id);
CREATE INDEX run_day ON run (agent, started_at);
CREATE INDEX run_trace ON run (trace) WHERE trace IS NOT NULL;
CREATE INDEX run_running ON run (status) WHERE status = 'running';
CREATE INDEX run_attached ON run (attached) WHERE attached IS NOT NULL AND status = 'running';
CREATE INDEX run_paused ON run (agent) WHERE paused_by IS NOT NULL;
CREATE INDEX run_told ON run (ended_at) WHERE ends_as IS NOT NULL;  -- those that the breaker ended, among them

CREATE TABLE run_envelope (
    run      INTEGER NOT NULL REFERENCES run (id),
    envelope INTEGER NOT NULL REFERENCES envelope (id),
    PRIMARY KEY (run, envelope)
) STRICT, WITHOUT ROWID;
CREATE INDEX run_envelope_envelope ON run_envelope (envelope);

-- Runs that ended with the daemon: at its next start those who wait for them are told, and the row goes.
CREATE TABLE interrupted_run (
    run INTEGER PRIMARY KEY REFERENCES run (id)
) STRICT;

-- What the runs of an agent used, by the quarter of an hour in which they started. Only of runs that
-- have ended. So a day is at most a hundred rows, however many runs it had.
CREATE TABLE usage (
    agent   INTEGER NOT NULL REFERENCES agent (address),
    quarter INTEGER NOT NULL,           -- quarters of an hour since 1970
    tokens  INTEGER NOT NULL,
    cost    REAL NOT NULL,              -- in US dollars
    PRIMARY KEY (agent, quarter)
) STRICT, WITHOUT ROWID;

-- Limits of one trace, where the boss raised them; all others have those of the settings.
CREATE TABLE trace_limit (
    trace TEXT PRIMARY KEY,
    hops  INTEGER NOT NULL,
    runs  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- The sessions of providers, their own memory, resumed from turn to turn: the last one for each scope.
CREATE TABLE provider_session (
    agent        INTEGER NOT NULL REFERENCES agent (address),
    provider     TEXT NOT NULL,
    scope        TEXT NOT NULL,         -- whose memory it is: 'u3' (a person), 'c4' (a conversation), 'all'
    session      TEXT NOT NULL,         -- the provider's id for it
    begun_at     INTEGER,               -- when it was known to exist; NULL: hiboss made the id, and no turn has confirmed it
    used_at      INTEGER NOT NULL,
    context      INTEGER,               -- tokens that its last model call read
    cost         REAL NOT NULL DEFAULT 0,  -- the sum of what its turns have reported, in US dollars
    memory_hash  TEXT,                  -- of the files of memory that it was last shown
    settings     TEXT,                  -- those of the provider that it depends on, as JSON, as they were
    stale_at     INTEGER,               -- since when it must not be resumed
    -- Why it must not. While it is unconfirmed: why the one before it must not.
    stale_why    TEXT CHECK (stale_why IN ('lost', 'refreshed', 'reset', 'idle', 'full', 'changed')),
    PRIMARY KEY (agent, provider, scope)
) STRICT, WITHOUT ROWID;

-- The text of a turn, as the provider got it. Only of the latest runs.
CREATE TABLE run_turn (
    run  INTEGER PRIMARY KEY REFERENCES run (id),
    text TEXT NOT NULL
) STRICT;


-- === Asks =============================================================================================

-- A question with options that waits for an answer. The first of answer, time-out and cancel settles it.
CREATE TABLE ask (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    -- question: somebody asked. permission: a provider asks whether a tool may be used. limit: an agent
    -- has reached a limit, and asks to go on.
    kind        TEXT NOT NULL DEFAULT 'question' CHECK (kind IN ('question', 'permission', 'limit')),
    asker       INTEGER NOT NULL REFERENCES address (id),
    asked       INTEGER NOT NULL REFERENCES address (id),  -- who is to answer
    holder      INTEGER REFERENCES address (id),  -- who got the question in place of that one: it was routed, or handed over
    run         INTEGER REFERENCES run (id),  -- the run that asked
    message     INTEGER NOT NULL REFERENCES message (id),  -- the question, in the box of who is asked
    digest      BLOB NOT NULL,          -- of the question, its options and who is asked: a repeated turn finds it by this
    state       TEXT NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'answered', 'expired', 'cancelled')),
    created_at  INTEGER NOT NULL,
    expires_at  INTEGER,                -- NULL: it waits until somebody answers
    reminders   INTEGER NOT NULL DEFAULT 0,  -- how many were sent
    wake_at     INTEGER,                -- when the daemon must look at this row again: a reminder, or the end
    in_turn     INTEGER NOT NULL DEFAULT 0,  -- 1: a provider asked it in its turn, which waits for the answer: it ends with the run
    -- How it was settled.
    answer      TEXT,                   -- one of the options; of an expired one the default, if there is one
    scope       TEXT CHECK (scope IN ('once', 'session', 'rule')),  -- of the answer to a permission
    answered_by INTEGER REFERENCES address (id),  -- who settled it; NULL: the time was over
    answered_at INTEGER,                -- when it was settled
    reply       INTEGER REFERENCES message (id),  -- the message that told the asker
    comment     TEXT,                   -- what was said with the answer, or why it was cancelled
    tool        TEXT,                   -- of a permission: the tool that would be used
    fallback    TEXT,                   -- the answer when the time is over
    options     TEXT NOT NULL,          -- a JSON array
    subject     TEXT,                   -- of a permission: exactly what a rule would be about, like a command line; of a limit: schedules, or every and milliseconds
    question    TEXT NOT NULL
) STRICT;
CREATE INDEX ask_wake ON ask (wake_at) WHERE wake_at IS NOT NULL;
CREATE INDEX ask_state ON ask (state);
CREATE INDEX ask_asker ON ask (asker, state);
CREATE INDEX ask_asked ON ask (asked, state);
CREATE INDEX ask_holder ON ask (holder, state) WHERE holder IS NOT NULL;
CREATE INDEX ask_message ON ask (message);
CREATE INDEX ask_reply ON ask (reply) WHERE reply IS NOT NULL;
CREATE INDEX ask_run ON ask (run) WHERE run IS NOT NULL;

-- Answers to permissions that hold for more than once: for exactly this agent, tool and subject.
CREATE TABLE ask_rule (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    agent      INTEGER NOT NULL REFERENCES agent (address),
    tool       TEXT NOT NULL,
    session    TEXT,                    -- the provider's session that it holds for; NULL: for all
    answer     TEXT NOT NULL,
    ask        INTEGER NOT NULL REFERENCES ask (id),  -- whose answer it is
    created_by INTEGER NOT NULL REFERENCES address (id),
    created_at INTEGER NOT NULL,
    removed_at INTEGER,                 -- when the boss took it back, or its session ended
    subject    TEXT NOT NULL
) STRICT;
CREATE INDEX ask_rule_agent ON ask_rule (agent, tool) WHERE removed_at IS NULL;


-- === Controls =========================================================================================

-- Orders about something that runs or waits, each with its outcome. The message is in the log.
CREATE TABLE control (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    message      INTEGER NOT NULL REFERENCES message (id),  -- of type event
    event        TEXT NOT NULL CHECK (event IN ('pause', 'resume', 'cancel', 'preempt', 'priority', 'route', 'handoff')),
    actor        INTEGER NOT NULL REFERENCES address (id),
    agent        INTEGER REFERENCES address (id),  -- whom it is about
    run          INTEGER REFERENCES run (id),
    conversation INTEGER REFERENCES conversation (id),
    envelope     INTEGER REFERENCES envelope (id),
    destination  INTEGER REFERENCES address (id),  -- of route and handoff
    outcome      TEXT NOT NULL CHECK (outcome IN ('applied', 'too-late', 'refused')),
    why          TEXT,                  -- of what was not applied
    reason       TEXT,                  -- that the actor gave
    at           INTEGER NOT NULL
) STRICT;
CREATE INDEX control_agent ON control (agent, id);
CREATE INDEX control_conversation ON control (conversation, id);
CREATE INDEX control_actor ON control (actor, id);

-- Who gets what is sent to an agent in a conversation, in its place, until that is undone.
CREATE TABLE conversation_route (
    conversation INTEGER NOT NULL REFERENCES conversation (id),
    agent        INTEGER NOT NULL REFERENCES address (id),  -- in whose place
    destination  INTEGER NOT NULL REFERENCES address (id),
    kind         TEXT NOT NULL CHECK (kind IN ('route', 'handoff')),  -- handoff: the agent reads along
    control      INTEGER NOT NULL REFERENCES control (id),
    PRIMARY KEY (conversation, agent)
) STRICT, WITHOUT ROWID;

-- The breaker. While there is a row nobody gets a turn, schedules hold, and what agents post to channels
-- holds, except to the boss.
CREATE TABLE breaker (
    id        INTEGER PRIMARY KEY CHECK (id = 1),
    pulled_at INTEGER NOT NULL,
    pulled_by INTEGER REFERENCES address (id),  -- NULL: by the command line, while the daemon did not answer
    reason    TEXT,
    pull      TEXT NOT NULL  -- the last pull, also if it was pulled before: who releases it names that one
) STRICT;

-- Who is told once when an agent is in a state. The row goes in the transaction that tells it.
CREATE TABLE state_watch (
    watcher    INTEGER NOT NULL REFERENCES address (id),
    agent      INTEGER NOT NULL REFERENCES agent (address),
    state      TEXT NOT NULL CHECK (state IN ('idle', 'waiting', 'finished', 'failed')),
    created_at INTEGER NOT NULL,
    hops       INTEGER NOT NULL DEFAULT 0,
    trace      TEXT,                    -- of the run in which an agent asked for it: being told continues it
    PRIMARY KEY (agent, state, watcher)
) STRICT, WITHOUT ROWID;

-- Notices in the boss's box that came in his quiet hours: one message about all of them follows. When those
-- end is not stored: it follows from a setting and his time zone, which may change meanwhile.
CREATE TABLE quiet_notice (
    envelope INTEGER PRIMARY KEY REFERENCES envelope (id)
) STRICT;


-- === The store's own ==================================================================================

-- 'epoch' (which life of the store a cursor belongs to), 'home' (the directory in which a daemon last
-- opened it: a copy has another one), 'policy', 'indexed_upto' (the last message in `search`).
CREATE TABLE config (
    key   TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- The last number given out: 'arrived' (order of arrival over all envelopes), 'boot' (starts of the
-- daemon), 'claim' (of leases), 'stop' (normal stops of the daemon).
CREATE TABLE counter (
    name  TEXT PRIMARY KEY,
    value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Up to which arrival number an agent, or one of its sessions, was told of its mail by `poll`.
CREATE TABLE poll_position (
    holder     INTEGER NOT NULL REFERENCES address (id),
    session    TEXT NOT NULL DEFAULT '',
    position   INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (holder, session)
) STRICT, WITHOUT ROWID;

-- Full-text index over `message`, filled when the writer is idle and never while it handles a send.
CREATE VIRTUAL TABLE search USING fts5 (
    subject, text, content = 'message', content_rowid = 'id', tokenize = 'trigram'
);
