-- The whole data model (DESIGN §4). Times are INTEGER milliseconds UTC. Codes for status,
-- priority, box, type and waits are those of hiboss/core/envelope.py; the plural views decode them.
-- Ids never repeat: AUTOINCREMENT everywhere an id leaves the database.

CREATE TABLE config (
    key   TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Numbers the daemon hands out: 'arrived' (order of arrival over all envelopes), 'boot'.
CREATE TABLE counter (
    name  TEXT PRIMARY KEY,
    value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- A name given back is retired and keeps its row, so a namesake inherits no mail.
CREATE TABLE address (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    kind       TEXT NOT NULL CHECK (kind IN ('agent', 'user', 'channel', 'group')),
    name       TEXT NOT NULL,
    fold       TEXT NOT NULL,
    retired_at INTEGER
) STRICT;
CREATE UNIQUE INDEX address_live ON address (fold) WHERE retired_at IS NULL;
CREATE INDEX address_fold ON address (fold);

CREATE TABLE user (
    address    INTEGER PRIMARY KEY REFERENCES address (id),
    name       TEXT NOT NULL,
    boss       INTEGER NOT NULL DEFAULT 0,
    timezone   TEXT,
    created_at INTEGER NOT NULL,
    last_seen_at INTEGER
) STRICT;

CREATE TABLE agent (
    address      INTEGER PRIMARY KEY REFERENCES address (id),
    kind         TEXT NOT NULL DEFAULT 'agent' CHECK (kind IN ('agent', 'service', 'bot')),
    mode         TEXT NOT NULL DEFAULT 'pull' CHECK (mode IN ('run', 'pull')),
    level        TEXT NOT NULL DEFAULT 'standard' CHECK (level IN ('restricted', 'standard', 'privileged')),
    provider     TEXT,
    provider_config TEXT,
    reply        TEXT NOT NULL DEFAULT 'auto' CHECK (reply IN ('auto', 'explicit')),
    busy         TEXT NOT NULL DEFAULT 'collect',
    description  TEXT,
    role         TEXT,
    module       TEXT,
    display      TEXT,
    workspace    TEXT,
    budget       TEXT,
    paused_at    INTEGER,
    paused_why   TEXT,
    created_at   INTEGER NOT NULL,
    last_seen_at INTEGER,
    deleted_at   INTEGER
) STRICT;

-- Only the hash of a token is ever stored.
CREATE TABLE token (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    hash       BLOB NOT NULL UNIQUE,
    kind       TEXT NOT NULL CHECK (kind IN ('boss', 'agent', 'user', 'run')),
    holder     INTEGER NOT NULL REFERENCES address (id),
    run        INTEGER REFERENCES run (id),
    created_at INTEGER NOT NULL,
    revoked_at INTEGER
) STRICT;
CREATE INDEX token_holder ON token (holder);

-- private: key is the two address ids; adhoc: all of them; group: the group's address id.
CREATE TABLE conversation (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    kind       TEXT NOT NULL CHECK (kind IN ('private', 'adhoc', 'group')),
    key        TEXT NOT NULL UNIQUE,
    address    INTEGER UNIQUE REFERENCES address (id),
    name       TEXT,
    description TEXT,
    first_seq  INTEGER NOT NULL DEFAULT 1,
    last_seq   INTEGER NOT NULL DEFAULT 0,
    created_at INTEGER NOT NULL,
    archived_at INTEGER
) STRICT;

CREATE TABLE participant (
    conversation  INTEGER NOT NULL REFERENCES conversation (id),
    address       INTEGER NOT NULL REFERENCES address (id),
    role          TEXT NOT NULL DEFAULT 'member' CHECK (role IN ('owner', 'admin', 'member')),
    respond       TEXT,
    joined_seq    INTEGER NOT NULL DEFAULT 1,
    left_seq      INTEGER,
    last_read_seq INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (conversation, address)
) STRICT, WITHOUT ROWID;
CREATE INDEX participant_address ON participant (address);

CREATE TABLE message (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    conversation  INTEGER NOT NULL REFERENCES conversation (id),
    seq           INTEGER,              -- NULL until it arrives
    thread        INTEGER REFERENCES message (id),  -- NULL: it begins its own
    reply_to      INTEGER REFERENCES message (id),
    sender        INTEGER NOT NULL REFERENCES address (id),
    caller        INTEGER REFERENCES address (id),  -- who proved it with a token
    from_boss     INTEGER NOT NULL DEFAULT 0,
    from_name     TEXT,
    session       TEXT,
    subject       TEXT,
    type          INTEGER NOT NULL DEFAULT 0,
    text          TEXT NOT NULL,
    attachments   TEXT,                 -- JSON array
    interruptible INTEGER NOT NULL DEFAULT 1,
    auto          INTEGER NOT NULL DEFAULT 0,
    deliver_at    INTEGER,
    origin        TEXT,
    origin_id     TEXT,
    run           INTEGER REFERENCES run (id),
    trace         TEXT,                 -- NULL: it begins its own
    hops          INTEGER NOT NULL DEFAULT 0,
    channel       TEXT,                 -- JSON: author, chat, platform message id
    metadata      TEXT,                 -- the sender's own JSON; no rule depends on it
    created_at    INTEGER NOT NULL,
    edited_at     INTEGER,
    deleted_at    INTEGER
) STRICT;
CREATE UNIQUE INDEX message_seq ON message (conversation, seq) WHERE seq IS NOT NULL;
CREATE INDEX message_thread ON message (thread) WHERE thread IS NOT NULL;
CREATE INDEX message_sender ON message (sender);

CREATE TABLE envelope (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    message       INTEGER NOT NULL REFERENCES message (id),
    recipient     INTEGER NOT NULL REFERENCES address (id),
    binding       INTEGER REFERENCES binding (id),
    status        INTEGER NOT NULL DEFAULT 0,
    priority      INTEGER NOT NULL DEFAULT 2,
    box           INTEGER NOT NULL DEFAULT 0,
    arrived       INTEGER,              -- NULL until it arrives; from counter 'arrived'
    waits         INTEGER,              -- why it is not due; NULL: it waits for nothing
    wake_at       INTEGER,              -- when the daemon must next look at this row
    held_by       INTEGER,              -- the boot of the daemon that has it in hand
    claimed_by    INTEGER REFERENCES address (id),
    handovers     INTEGER NOT NULL DEFAULT 0,
    attempts      INTEGER NOT NULL DEFAULT 0,
    first_failed_at INTEGER,
    error_kind    TEXT,
    error_text    TEXT,
    error_at      INTEGER,
    read_at       INTEGER,
    acked_at      INTEGER,
    ack_by        INTEGER,
    snoozed_until INTEGER,
    preempted_by  INTEGER REFERENCES message (id),
    done_at       INTEGER
) STRICT;
CREATE UNIQUE INDEX envelope_message ON envelope (message, recipient);
CREATE INDEX envelope_due ON envelope (recipient, priority, arrived)
    WHERE status = 0 AND arrived IS NOT NULL AND waits IS NULL;
CREATE INDEX envelope_wake ON envelope (wake_at) WHERE wake_at IS NOT NULL;
-- Status before arrived: one page of any box, of one status or of all, is a merge of four
-- index walks, so a million settled rows cost nothing.
CREATE INDEX envelope_box ON envelope (recipient, box, status, arrived);
CREATE INDEX envelope_unread ON envelope (recipient, arrived)
    WHERE read_at IS NULL AND box = 0 AND arrived IS NOT NULL AND status <> 3;

-- Idempotency keys, apart from message: a send without a key pays for no index.
CREATE TABLE sent_key (
    caller  INTEGER NOT NULL REFERENCES address (id),
    key     TEXT NOT NULL,
    message INTEGER NOT NULL REFERENCES message (id),
    digest  BLOB NOT NULL,
    PRIMARY KEY (caller, key)
) STRICT, WITHOUT ROWID;

CREATE TABLE tag (
    message INTEGER NOT NULL REFERENCES message (id),
    kind    TEXT NOT NULL CHECK (kind IN ('mention', 'scope', 'ref')),
    name    TEXT NOT NULL,
    value   TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (kind, name, value, message)
) STRICT, WITHOUT ROWID;
CREATE INDEX tag_message ON tag (message);

CREATE TABLE revision (
    message     INTEGER NOT NULL REFERENCES message (id),
    number      INTEGER NOT NULL,
    text        TEXT NOT NULL,
    replaced_at INTEGER NOT NULL,
    PRIMARY KEY (message, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE binding (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    adapter    TEXT NOT NULL,
    account    TEXT NOT NULL,           -- the platform's name for it, never its secret
    settings   TEXT,
    created_at INTEGER NOT NULL,
    removed_at INTEGER
) STRICT;
CREATE UNIQUE INDEX binding_account ON binding (adapter, account) WHERE removed_at IS NULL;

CREATE TABLE binding_agent (
    binding INTEGER NOT NULL REFERENCES binding (id),
    agent   INTEGER NOT NULL REFERENCES agent (address),
    role    TEXT,
    PRIMARY KEY (agent, binding)
) STRICT, WITHOUT ROWID;

CREATE TABLE contact (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    binding     INTEGER NOT NULL REFERENCES binding (id),
    platform_id TEXT NOT NULL,
    address     INTEGER REFERENCES address (id),
    name        TEXT,
    state       TEXT NOT NULL DEFAULT 'asking' CHECK (state IN ('asking', 'allowed', 'blocked', 'boss')),
    pairing     TEXT,
    created_at  INTEGER NOT NULL,
    decided_at  INTEGER,
    UNIQUE (binding, platform_id)
) STRICT;

-- One row for each update of a platform, written in one transaction with its message.
CREATE TABLE platform_update (
    binding     INTEGER NOT NULL REFERENCES binding (id),
    update_id   TEXT NOT NULL,
    chat        TEXT,
    platform_id TEXT,
    message     INTEGER REFERENCES message (id),
    raw         TEXT,
    outcome     TEXT,
    received_at INTEGER NOT NULL,
    PRIMARY KEY (binding, update_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX platform_update_place ON platform_update (binding, chat, platform_id);

-- Rendered chunks, stored before the first is posted; a retry goes on at the unsent one.
CREATE TABLE post (
    envelope    INTEGER NOT NULL REFERENCES envelope (id),
    chunk       INTEGER NOT NULL,
    content     TEXT NOT NULL,
    platform_id TEXT,
    posted_at   INTEGER,
    PRIMARY KEY (envelope, chunk)
) STRICT, WITHOUT ROWID;
CREATE INDEX post_platform ON post (platform_id) WHERE platform_id IS NOT NULL;

CREATE TABLE lane (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    address    INTEGER NOT NULL REFERENCES address (id),
    binding    INTEGER REFERENCES binding (id),
    state      TEXT NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'waiting', 'paused')),
    wake_at    INTEGER,
    failures   INTEGER NOT NULL DEFAULT 0,
    first_failed_at INTEGER,
    error_kind TEXT,
    error_text TEXT,
    error_at   INTEGER,
    boss_told_at INTEGER
) STRICT;
CREATE UNIQUE INDEX lane_place ON lane (address, ifnull(binding, 0));
CREATE INDEX lane_wake ON lane (wake_at) WHERE wake_at IS NOT NULL;

CREATE TABLE schedule (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    owner      INTEGER NOT NULL REFERENCES address (id),
    name       TEXT,
    cron       TEXT,
    every_ms   INTEGER,
    at         INTEGER,
    timezone   TEXT,
    catch_up   TEXT NOT NULL DEFAULT 'once' CHECK (catch_up IN ('skip', 'once', 'all')),
    overlap    TEXT NOT NULL DEFAULT 'skip' CHECK (overlap IN ('skip', 'queue')),
    draft      TEXT NOT NULL,
    next_at    INTEGER,
    last_message INTEGER REFERENCES message (id),
    enabled    INTEGER NOT NULL DEFAULT 1,
    created_at INTEGER NOT NULL,
    deleted_at INTEGER
) STRICT;
CREATE INDEX schedule_next ON schedule (next_at) WHERE next_at IS NOT NULL;

CREATE TABLE schedule_slot (
    schedule INTEGER NOT NULL REFERENCES schedule (id),
    slot     INTEGER NOT NULL,
    outcome  TEXT NOT NULL CHECK (outcome IN ('fired', 'missed', 'skipped')),
    message  INTEGER REFERENCES message (id),
    at       INTEGER NOT NULL,
    PRIMARY KEY (schedule, slot)
) STRICT, WITHOUT ROWID;

CREATE TABLE run (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    agent       INTEGER NOT NULL REFERENCES agent (address),
    conversation INTEGER REFERENCES conversation (id),
    status      TEXT NOT NULL CHECK (status IN ('running', 'completed', 'failed', 'cancelled', 'interrupted')),
    provider    TEXT NOT NULL,
    boot        INTEGER NOT NULL,
    pid         INTEGER,
    pid_started TEXT,
    trace       TEXT,
    hops        INTEGER NOT NULL DEFAULT 0,
    final_text  TEXT,
    tokens_in   INTEGER,
    tokens_out  INTEGER,
    cost        REAL,
    error       TEXT,
    started_at  INTEGER NOT NULL,
    paused_ms   INTEGER NOT NULL DEFAULT 0,
    ended_at    INTEGER
) STRICT;
CREATE INDEX run_agent ON run (agent, id);
CREATE INDEX run_trace ON run (trace) WHERE trace IS NOT NULL;
CREATE INDEX run_running ON run (status) WHERE status = 'running';

CREATE TABLE run_envelope (
    run      INTEGER NOT NULL REFERENCES run (id),
    envelope INTEGER NOT NULL REFERENCES envelope (id),
    PRIMARY KEY (run, envelope)
) STRICT, WITHOUT ROWID;
CREATE INDEX run_envelope_envelope ON run_envelope (envelope);

CREATE TABLE provider_session (
    agent        INTEGER NOT NULL REFERENCES agent (address),
    conversation INTEGER NOT NULL REFERENCES conversation (id),
    provider     TEXT NOT NULL,
    session      TEXT NOT NULL,
    used_at      INTEGER NOT NULL,
    stale_at     INTEGER,
    PRIMARY KEY (agent, conversation, provider)
) STRICT, WITHOUT ROWID;

CREATE TABLE ask (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    message     INTEGER NOT NULL REFERENCES message (id),
    options     TEXT NOT NULL,
    fallback    TEXT,
    expires_at  INTEGER,
    wake_at     INTEGER,
    answer      TEXT,
    answered_by INTEGER REFERENCES address (id),
    answered_at INTEGER
) STRICT;
CREATE INDEX ask_wake ON ask (wake_at) WHERE wake_at IS NOT NULL;

CREATE TABLE cursor (
    holder     INTEGER NOT NULL REFERENCES address (id),
    session    TEXT NOT NULL DEFAULT '',
    position   INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (holder, session)
) STRICT, WITHOUT ROWID;

-- Written by the writer when idle, never in the path of a send; config 'indexed_upto' is its mark.
CREATE VIRTUAL TABLE search USING fts5 (
    subject, text, content = 'message', content_rowid = 'id', tokenize = 'trigram'
);
