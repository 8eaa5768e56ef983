-- Runs: what kind one is, where its answer goes and went, and what stopped it.
ALTER TABLE run ADD COLUMN kind TEXT NOT NULL DEFAULT 'turn' CHECK (kind IN ('turn', 'background'));
ALTER TABLE run ADD COLUMN reply_conversation INTEGER REFERENCES conversation (id);
ALTER TABLE run ADD COLUMN reply_message INTEGER REFERENCES message (id);
ALTER TABLE run ADD COLUMN after_message INTEGER NOT NULL DEFAULT 0;  -- the last one when it began
ALTER TABLE run ADD COLUMN last_message INTEGER;  -- the last one when it ended
ALTER TABLE run ADD COLUMN answer INTEGER REFERENCES message (id);
ALTER TABLE run ADD COLUMN note TEXT;
ALTER TABLE run ADD COLUMN error_kind TEXT;
-- 'turn': this turn did not go well. 'lane': no turn would have.
ALTER TABLE run ADD COLUMN error_scope TEXT CHECK (error_scope IN ('turn', 'lane'));
ALTER TABLE run ADD COLUMN paused_at INTEGER;
CREATE INDEX run_day ON run (agent, started_at);

-- Why an agent gets no turns, until when, and what it may use up in a day.
ALTER TABLE agent ADD COLUMN paused_kind TEXT CHECK (paused_kind IN ('boss', 'guard', 'budget', 'tokens'));
ALTER TABLE agent ADD COLUMN paused_until INTEGER;
ALTER TABLE agent ADD COLUMN paused_trace TEXT;
ALTER TABLE agent ADD COLUMN daily_tokens INTEGER;
ALTER TABLE agent ADD COLUMN daily_cost REAL;
ALTER TABLE agent ADD COLUMN budget_from INTEGER;  -- what was used before does not count today
ALTER TABLE agent DROP COLUMN budget;
CREATE INDEX agent_paused ON agent (paused_until) WHERE paused_until IS NOT NULL;

-- How far an errand may go that the boss has let go on.
CREATE TABLE errand (
    trace TEXT PRIMARY KEY,
    hops  INTEGER NOT NULL,
    runs  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX token_run ON token (run) WHERE run IS NOT NULL;
-- Only those in force: an agent has one more, long over, for each of its runs.
DROP INDEX token_holder;
CREATE INDEX token_holder ON token (holder) WHERE revoked_at IS NULL;
