-- What follows from a change of a row, whoever makes it. So it cannot be forgotten, and cannot contradict the row.
-- A start of the daemon makes them anew when they differ from this file; a migration runs without them.

-- Unread mail is counted for each conversation and thread. Nobody reads what is posted to a channel.
CREATE TRIGGER envelope_counted AFTER INSERT ON envelope WHEN NEW.unread AND NEW.binding IS NULL BEGIN
    INSERT INTO unread (address, conversation, thread, number)
    SELECT NEW.recipient, m.conversation, ifnull(m.thread, 0), 1 FROM message m WHERE m.id = NEW.message
    ON CONFLICT DO UPDATE SET number = number + 1;
END;
CREATE TRIGGER envelope_recounted AFTER UPDATE OF read_at, box, context, arrived, status, recipient, binding
ON envelope WHEN (NEW.unread AND NEW.binding IS NULL) <> (OLD.unread AND OLD.binding IS NULL)
              OR NEW.recipient <> OLD.recipient BEGIN
    UPDATE unread SET number = number - 1
    WHERE OLD.unread AND OLD.binding IS NULL AND address = OLD.recipient
      AND (conversation, thread) = (SELECT m.conversation, ifnull(m.thread, 0) FROM message m
                                    WHERE m.id = OLD.message);
    DELETE FROM unread WHERE number = 0 AND address = OLD.recipient
      AND (conversation, thread) = (SELECT m.conversation, ifnull(m.thread, 0) FROM message m
                                    WHERE m.id = OLD.message);
    INSERT INTO unread (address, conversation, thread, number)
    SELECT NEW.recipient, m.conversation, ifnull(m.thread, 0), 1 FROM message m
    WHERE m.id = NEW.message AND NEW.unread AND NEW.binding IS NULL
    ON CONFLICT DO UPDATE SET number = number + 1;
END;

-- What ends a snooze, whatever it is, takes the envelope out of the box of what is snoozed.
CREATE TRIGGER envelope_woken AFTER UPDATE OF waits ON envelope WHEN OLD.waits IS 3 AND NEW.waits IS NOT 3 BEGIN
    UPDATE envelope SET snoozed_until = NULL, box = iif(box = 3, 0, box) WHERE id = NEW.id;
END;
-- What was acknowledged, done or cancelled needs no deadline any more. A person's mail is done on arrival: only ack
-- ends it. What failed was acknowledged by nobody: that is told at its time.
CREATE TRIGGER ack_deadline_met AFTER UPDATE OF acked_at, status ON envelope
WHEN NEW.ack_by IS NOT NULL AND (NEW.acked_at IS NOT NULL OR (NEW.status <> OLD.status AND NEW.status IN (1, 3))) BEGIN
    DELETE FROM ack_deadline WHERE envelope = NEW.id AND told_at IS NULL;
END;
