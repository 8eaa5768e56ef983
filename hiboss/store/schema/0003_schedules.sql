-- Slots of a schedule, and what became of them. Missed ones in a row are one entry, however
-- many there were: a year of minutes need not be half a million rows.
DROP TABLE schedule_slot;
CREATE TABLE schedule_slot (
    schedule  INTEGER NOT NULL REFERENCES schedule (id),
    slot      INTEGER NOT NULL,
    last_slot INTEGER NOT NULL,         -- of a row of missed ones; else the same
    number    INTEGER NOT NULL DEFAULT 1,
    outcome   TEXT NOT NULL CHECK (outcome IN ('fired', 'missed', 'skipped', 'failed')),
    reason    TEXT,
    message   INTEGER REFERENCES message (id),
    at        INTEGER NOT NULL,
    PRIMARY KEY (schedule, slot)
) STRICT, WITHOUT ROWID;
CREATE INDEX schedule_owner ON schedule (owner) WHERE deleted_at IS NULL;
