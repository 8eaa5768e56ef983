"""Homes full of mail: a hundred agents, a thousand threads, groups, tags; as many messages as wanted.

Who there is and who talks to whom is set up by operations; the messages are written by bulk SQL, such as the
daemon itself would have stored them. A home has the same shape whatever its size: only threads, boxes and
conversations are longer.
"""

from __future__ import annotations

from pathlib import Path
from time import perf_counter
from typing import NamedTuple

from hiboss.core import clock
from hiboss.core.settings import DEFAULTS
from hiboss.store.connection import Connection, connect
from hiboss.testing.running_daemon import RunningDaemon

from .homes import AGENT, CHECKED_ROWS, CHUNK, HOUR, TELL, TEXT, new_home
from .rounds import say

AGENTS, CREWS, CREW, FIFTY = 100, 4, 5, 50  # CREW: agents in each; the boss is there too
OTHERS = [f"a{number}" for number in range(1, AGENTS)]  # besides AGENT
GROUP, TEAM = "fifty", "team"  # TEAM: as large, and each of them is to answer everything
ROLE = "reviewer"
RUN = 1


class Stream(NamedTuple):
    """A part of all messages: in which conversations and threads they are.

    Of a hundred messages those from `low` up to `high`. They go round its threads, which go round its talks.
    """

    low: int
    high: int
    threads: int
    talks: int


# A long thread in one crew; the other crews; AGENT with each other agent; each other agent with the next one.
STREAMS = (
    Stream(0, 10, 1, 1),
    Stream(10, 20, 99, CREWS - 1),
    Stream(20, 60, 450, len(OTHERS)),
    Stream(60, 100, 450, len(OTHERS)),
)
LONG_THREAD, SHORT_THREAD = "t1", f"t{STREAMS[2].low + 1}"


def mailbox_home(directory: Path, rows: int) -> RunningDaemon:
    """A home with so many messages. Its daemon does not run."""
    daemon = new_home(directory)
    daemon.start()
    try:
        talks = _set_up(daemon)
    finally:
        daemon.stop()
    begin = perf_counter()
    connection = connect(daemon.home, wait_seconds=DEFAULTS.lock_wait_seconds)
    try:
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("PRAGMA foreign_keys = OFF")  # checked below, all at once
        connection.execute("PRAGMA cache_size = -400000")
        _write(connection, talks, rows)
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    finally:
        connection.close()
    if rows <= CHECKED_ROWS:
        daemon.check()
    say(f"wrote {rows:,} messages in {perf_counter() - begin:.1f} s")
    return daemon


# --- who, and with whom ----------------------------------------------------------------


def _set_up(daemon: RunningDaemon) -> list[int]:
    """Register everybody and begin the conversations; return these in the order of the streams."""
    for number, name in enumerate(OTHERS):
        daemon.register(name, **({"role": ROLE} if number % 10 == 0 else {}))
    nex = daemon.token(AGENT)
    _group(daemon, nex, GROUP, OTHERS[:FIFTY])
    _group(daemon, nex, TEAM, OTHERS[:FIFTY], respond="all")
    crews = [[AGENT, *OTHERS[crew * CREW :][: CREW - 1]] for crew in range(CREWS)]
    boss = daemon.token("boss")
    talks = [_group(daemon, boss, f"crew-{place}", crew, respond="all") for place, crew in enumerate(crews)]
    talks += [_private(daemon, AGENT, name) for name in OTHERS]
    return talks + [_private(daemon, name, OTHERS[place - 1]) for place, name in enumerate(OTHERS)]


def _group(daemon: RunningDaemon, token: str, name: str, members: list[str], **fields: str) -> int:
    answer = daemon.call("conversation.create", token=token, name=name, participants=members, **fields)
    return int(answer["conversation"]["id"][1:])


def _private(daemon: RunningDaemon, one: str, other: str) -> int:
    fields = {"type": "private", "participants": [other]}
    answer = daemon.call("conversation.create", token=daemon.token(one), **fields)
    return int(answer["conversation"]["id"][1:])


# --- what was said ---------------------------------------------------------------------

# Where each talk is, who sits there at which place, and how the streams go on. The group itself is at -1.
_PLAN = """
CREATE TEMP TABLE talk (id INTEGER PRIMARY KEY, conversation INTEGER, size INTEGER);
CREATE TEMP TABLE seat (talk, place, address, kind, PRIMARY KEY (talk, place)) WITHOUT ROWID;
CREATE TEMP TABLE stream (low, high, threads, talks, talk);
CREATE TEMP TABLE said (
    i INTEGER PRIMARY KEY, talk, seq, thread, answers, sender, place, at, size);
CREATE TEMP TABLE sent (n INTEGER PRIMARY KEY, i, recipient, kind, fate, at);
"""
_SEATS = """
INSERT INTO seat
SELECT t.id, row_number() OVER (PARTITION BY t.id ORDER BY p.address) - 1, p.address, a.kind
FROM talk t JOIN participant p ON p.conversation = t.conversation JOIN address a ON a.id = p.address
UNION ALL
SELECT t.id, -1, c.address, 'group' FROM talk t JOIN conversation c ON c.id = t.conversation
WHERE c.kind = 'group'
"""


def _write(connection: Connection, talks: list[int], rows: int) -> None:
    execute = connection.execute
    for statement in filter(str.strip, _PLAN.split(";")):
        execute(statement)
    connection.executemany("INSERT INTO talk VALUES (?, ?, 0)", enumerate(talks))
    execute(_SEATS)
    execute("UPDATE talk SET size = (SELECT count(*) FROM seat WHERE talk = talk.id AND place >= 0)")
    first = 0
    for one in STREAMS:
        execute("INSERT INTO stream VALUES (?, ?, ?, ?, ?)", (*one, first))
        first += one.talks
    now = clock.now()
    for start in range(0, rows, CHUNK):
        end = min(start + CHUNK, rows)
        execute("BEGIN IMMEDIATE")
        _say_chunk(connection, start, end, now - rows)
        execute("COMMIT")
        if end % TELL == 0:
            say(f"{end:,} of {rows:,} messages")
    execute("BEGIN IMMEDIATE")
    _finish(connection, rows)
    execute("COMMIT")


# For message number i: `j` is its number in its stream, `lap` how often that went round its threads. Every
# fifth lap answers nothing. The first one begins the threads.
_SAID = """
INSERT INTO said
WITH RECURSIVE n (i) AS (SELECT ?1 UNION ALL SELECT i + 1 FROM n WHERE i < ?2 - 1),
counted AS (
    SELECT i, low, high - low AS width, threads, talks, talk,
           (i / 100) * (high - low) + i % 100 - low AS j
    FROM n JOIN stream ON i % 100 >= low AND i % 100 < high),
placed AS (
    SELECT *, j / threads AS lap, j % threads AS slot, talk + j % threads % talks AS here,
           j - threads * (1 + ((j / threads) % 5 = 0)) AS before FROM counted)
SELECT i, here, NULL, iif(lap = 0 OR lap % 5 = 4, NULL, (slot / width) * 100 + low + slot % width),
       iif(lap = 0 OR lap % 5 = 4, NULL, (before / width) * 100 + low + before % width),
       s.address, s.place, ?3 + i, t.size
FROM placed CROSS JOIN talk t ON t.id = here
CROSS JOIN seat s ON s.talk = here AND s.place = (lap + slot) % t.size
"""
_MESSAGES = f"""
INSERT INTO message (id, conversation, seq, thread, reply_to, sender, caller, from_boss, text, created_at,
                     arrived_at)
SELECT i + 1, t.conversation,
       c.last_seq + row_number() OVER (PARTITION BY said.talk ORDER BY i), thread + 1, answers + 1,
       sender, sender, EXISTS (SELECT 1 FROM user WHERE address = sender),
       'Message number ' || i || CASE i % 10 WHEN 2 THEN ' for @{AGENT}. ' WHEN 3 THEN ' for @{ROLE}. '
                                              ELSE '. ' END || ?1, at, at
FROM said JOIN talk t ON t.id = said.talk JOIN conversation c ON c.id = t.conversation ORDER BY i
"""
_ENVELOPES = """
INSERT INTO sent (i, recipient, kind, fate, at)
SELECT i, s.address, s.kind, (i * 7 + s.place * 3 + i / 100) % 20, at
FROM said CROSS JOIN seat s ON s.talk = said.talk AND s.place <> said.place ORDER BY i, s.place
"""
# By its fate, of twenty: 0 to 7 unread, 16 archived, 17 in the trash, 18 snoozed, the others read.
_STORED = """
INSERT INTO envelope (message, recipient, status, box, arrived, context, waits, wait_until, snoozed_until,
                      done_at, read_at)
SELECT i + 1, recipient, done, CASE WHEN kind = 'group' THEN 0 ELSE max(fate - 15, 0) * (fate < 19) END,
       ?1 + n, kind = 'group', iif(asleep, 3, NULL), iif(asleep, ?2 + i, NULL), iif(asleep, ?2 + i, NULL),
       iif(done, at, NULL), iif(is_read, at, NULL)
FROM (SELECT *, fate = 18 AND kind <> 'group' AS asleep,
             fate >= 8 AND fate <> 18 AND kind <> 'group' AS is_read,
             kind <> 'agent' OR (fate >= 8 AND fate <> 18) AS done FROM sent) ORDER BY n
"""
_TAGS = f"""
INSERT INTO tag (message, kind, name, value)
SELECT i + 1, 'scope', 'module', 'auth' FROM said WHERE i % 10 = 0 UNION ALL
SELECT i + 1, 'ref', 'issue', '42' FROM said WHERE i % 10 = 1 UNION ALL
SELECT i + 1, 'mention', '{AGENT}', 'agent' FROM said WHERE i % 10 = 2 UNION ALL
SELECT i + 1, 'mention', '{ROLE}', 'role' FROM said WHERE i % 10 = 3 UNION ALL
SELECT i + 1, 'scope', 'module', 'm' || i / 10 % 50 FROM said WHERE i % 10 = 4
"""
_READINGS = """
INSERT INTO reading (envelope, reader, at) SELECT id, recipient, read_at FROM envelope
WHERE read_at IS NOT NULL AND id > ?
"""
_LAST = """
UPDATE conversation SET last_seq = last_seq + x.number
FROM (SELECT t.conversation, count(*) AS number FROM said JOIN talk t ON t.id = said.talk GROUP BY 1) x
WHERE conversation.id = x.conversation
"""


def _say_chunk(connection: Connection, start: int, end: int, since: int) -> None:
    execute = connection.execute
    last = execute("SELECT ifnull(max(id), 0) FROM envelope").fetchone()[0]
    arrived = execute("SELECT value FROM counter WHERE name = 'arrived'").fetchone()[0]
    execute("DELETE FROM said")
    execute("DELETE FROM sent")
    execute(_SAID, (start, end, since))
    execute(_MESSAGES, (TEXT[:100],))
    execute(_ENVELOPES)
    execute(_STORED, (arrived, clock.now() + 1_000 * HOUR))
    execute(_TAGS)
    execute(_READINGS, (last,))
    execute(_LAST)
    execute("UPDATE counter SET value = value + (SELECT count(*) FROM sent) WHERE name = 'arrived'")


# The run in which AGENT sent a tenth of all.
_RUN = """
INSERT INTO run (id, agent, status, provider, boot, started_at, ended_at, after_message, last_message)
SELECT ?1, id, 'completed', 'demo', 1, 1, 2, ?2, ?3 FROM address WHERE fold = ?4
"""
_SENT_IN_RUN = """
UPDATE message SET run = r.id, hops = 1 FROM run r
WHERE message.sender = r.agent AND message.id > r.after_message AND message.id <= r.last_message
"""
_STARTED_RUN = """
INSERT INTO run_envelope SELECT r.id, e.id FROM run r CROSS JOIN envelope e ON e.recipient = r.agent
AND e.box = 0 AND e.status = 1 LIMIT 1
"""

_THREADS = """
INSERT INTO thread (conversation, id, messages, last, arrived)
SELECT t.conversation, t.thread, t.number + 1, l.id,
       (SELECT max(e.arrived) FROM envelope e WHERE e.message = l.id)
FROM (SELECT conversation, thread, count(*) AS number, max(id) AS last FROM message
      WHERE thread IS NOT NULL GROUP BY conversation, thread) t JOIN message l ON l.id = t.last
"""


def _finish(connection: Connection, rows: int) -> None:
    """Write what follows from all messages: the run that sent some of them, and the threads."""
    connection.execute(_RUN, (RUN, rows // 2, rows // 2 + rows // 10, f"agent:{AGENT}"))
    connection.execute(_SENT_IN_RUN)
    connection.execute(_STARTED_RUN)
    connection.execute(_THREADS)
