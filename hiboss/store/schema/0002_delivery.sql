-- When a message arrived: deferred mail can come late, and what has waited long goes first.
ALTER TABLE message ADD COLUMN arrived_at INTEGER;
UPDATE message SET arrived_at = max(created_at, ifnull(deliver_at, 0)) WHERE seq IS NOT NULL;

-- When a lane was last tried: new activity tries a waiting one again, but not all the time.
ALTER TABLE lane ADD COLUMN tried_at INTEGER;

-- With the binding: two accounts in one chat are two lanes, and neither walks over the other's.
DROP INDEX envelope_due;
CREATE INDEX envelope_due ON envelope (recipient, binding, priority, arrived)
    WHERE status = 0 AND arrived IS NOT NULL AND waits IS NULL;

-- By which account a message came in, and which accounts may post to a place.
CREATE INDEX platform_update_message ON platform_update (message) WHERE message IS NOT NULL;
CREATE INDEX contact_address ON contact (address);
