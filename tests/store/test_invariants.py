"""Every invariant of the store is reported when it is broken by hand, and only then."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from hiboss.store.invariants import INVARIANTS, violations
from hiboss.testing.running_daemon import RunningDaemon
from tests.support.daemons import started
from tests.support.sweeps import sweep
from tests.support.waits import wait_until

# What breaks each of them. Rows: message 1 (nex to ada and the boss: e1 pending, e2 done), 2 (ada's reply,
# e3), 3 (nex to ada, deferred: e4), 4 (nex to nex, acknowledged: e5), 5 (to one deleted since, failed: e6);
# and 6 (nex to a folder whose lane is paused: e7). Schedule 1 has sent message 7 (nex to nex: e8), 2 is disabled.
# Agent ivo thinks by itself: runs 1 and 2 went well (e9 and e11; e10 and e12 are its answers), 3 found no program (e13).
HELD = "held_by = (SELECT value FROM counter WHERE name = 'boot')"
MISSED = "INSERT INTO schedule_slot (schedule, slot, last_slot, number, outcome, at)"
UPDATE = "INSERT INTO platform_update (binding, update_id, chat, received_at, raw, outcome, message)"
_ROUTE = """
INSERT INTO conversation_route (conversation, agent, destination, kind, control)
SELECT m.conversation, a.id, d.id, '{}', 1 FROM message m JOIN address a ON a.fold = '{}'
JOIN address d ON d.fold = '{}' WHERE m.id = 1
"""
_SESSION = """
INSERT INTO provider_session (agent, provider, scope, session, used_at, begun_at, stale_at, stale_why)
SELECT address, 'demo', '{}', 's', 1, {}, {}, {} FROM agent WHERE deleted_at {} LIMIT 1
"""
BREAKS: dict[str, list[str]] = {
    "the sequence numbers of a conversation have no gap and no duplicate": [
        "UPDATE message SET seq = 7 WHERE id = 1",
        "UPDATE conversation SET last_seq = last_seq + 1 WHERE id = 1",
        "UPDATE conversation SET first_seq = 0 WHERE id = 1",
        "DELETE FROM message WHERE id = 1",
    ],
    "every message has an envelope": ["DELETE FROM envelope WHERE message = 4"],
    "a change in a chat is of a message there, and after one that has arrived": [
        "INSERT INTO chat_change (conversation, after_seq, number, message, changed_at) VALUES (1, 99, 1, 1, 1)",
        "INSERT INTO chat_change (conversation, after_seq, number, message, changed_at)"
        " SELECT c.id, 1, 1, m.id, 1 FROM conversation c JOIN message m ON m.conversation <> c.id LIMIT 1",
    ],
    "an envelope has arrived only if its message has arrived": [
        "UPDATE envelope SET arrived = 0 WHERE id = 4"
    ],
    "all pending or done envelopes of an arrived message have arrived": [
        "UPDATE envelope SET arrived = NULL, waits = 0, wait_until = 5 WHERE id = 1",
        "UPDATE envelope SET arrived = NULL WHERE id = 2",
    ],
    "a pending envelope that has not arrived is deferred": [
        "UPDATE envelope SET waits = NULL, wait_until = NULL WHERE id = 4",
        "UPDATE envelope SET waits = 3 WHERE id = 4",
    ],
    "only pending envelopes wait, and what somebody has snoozed": [
        "UPDATE envelope SET waits = 1, wait_until = 5 WHERE id = 2",
        "UPDATE envelope SET waits = 3, wait_until = 5, status = 3 WHERE id = 5",
    ],
    "what is snoozed is in a box of its own, and nothing else is": [
        "UPDATE envelope SET waits = 3, wait_until = 5, snoozed_until = 5 WHERE id = 1",
        "UPDATE envelope SET box = 3 WHERE id = 1",
        "UPDATE envelope SET snoozed_until = 5 WHERE id = 1",
        "UPDATE envelope SET waits = 3, wait_until = 5, snoozed_until = 6, box = 3 WHERE id = 1",
    ],
    "nobody is to do anything with what is only read along": ["UPDATE envelope SET context = 1 WHERE id = 1"],
    "one at most has what was offered to several": [
        f"UPDATE envelope SET offered = 1, status = 0, {HELD} WHERE message = 1"
    ],
    "who has read an envelope is known": [
        "UPDATE envelope SET read_at = 5 WHERE id = 1",
        "DELETE FROM reading",
    ],
    "unread mail is counted for each conversation and thread": [
        "UPDATE unread SET number = number + 1",
        "DELETE FROM unread",
        "UPDATE unread SET thread = thread + 1000",
    ],
    "a thread counts its messages in each conversation where a reply has arrived": [
        "UPDATE thread SET messages = messages + 1",
        "DELETE FROM thread",
        "UPDATE thread SET conversation = 1 + conversation",
    ],
    "the last message of a thread belongs to it": ["UPDATE thread SET last = 7"],
    "only mail that has arrived and was not acknowledged has a deadline for that": [
        "INSERT INTO ack_deadline (envelope, at) VALUES (1, 5)",
        "INSERT INTO ack_deadline (envelope, at) VALUES (4, 5)",
        "INSERT INTO ack_deadline (envelope, at) VALUES (5, 5)",
    ],
    "a group has an address in use exactly until it is deleted": [
        "UPDATE conversation SET kind = 'group' WHERE id = 1",
        "UPDATE conversation SET deleted_at = 5 WHERE kind = 'group'",
        "UPDATE address SET retired_at = 5 WHERE kind = 'group'",
    ],
    "a group has at most one owner, and nobody is in it twice": [
        "UPDATE participant SET role = 'owner' WHERE conversation IN (SELECT id FROM conversation WHERE kind = 'group')",
        """
        INSERT INTO participant (conversation, address, joined_seq)
        SELECT conversation, address, 99 FROM participant
        WHERE conversation IN (SELECT id FROM conversation WHERE kind = 'group')
        """,
    ],
    "nobody gets what is said in a group before it came or after it left": [
        """
        UPDATE participant SET joined_seq = 2
        WHERE conversation IN (SELECT id FROM conversation WHERE kind = 'group')
        """,
        """
        UPDATE participant SET left_seq = 0
        WHERE conversation IN (SELECT id FROM conversation WHERE kind = 'group')
        """,
    ],
    "what is being delivered waits for nothing": [
        f"UPDATE envelope SET {HELD}, waits = 1, wait_until = 5 WHERE id = 1"
    ],
    "what was said to nobody of us is done": [
        "UPDATE message SET context = 1 WHERE id = (SELECT message FROM envelope WHERE status = 0 LIMIT 1)"
    ],
    "a pending envelope is in the inbox, or snoozed": ["UPDATE envelope SET box = 2 WHERE id = 1"],
    "every arrival number is given once": ["UPDATE envelope SET arrived = 1 WHERE id IN (1, 2)"],
    "no arrival number is larger than the counter": ["UPDATE envelope SET arrived = 1000 WHERE id = 1"],
    "what came back has a later number than its arrival, and none larger than the counter": [
        "UPDATE envelope SET due_again = arrived WHERE id = 1",
        "UPDATE envelope SET due_again = 1000 WHERE id = 1",
        "UPDATE envelope SET due_again = 2 WHERE id = 4",
    ],
    "an envelope has a claim exactly if it is leased": [
        "UPDATE envelope SET waits = 2, wait_until = 5 WHERE id = 1",
        "UPDATE envelope SET claim = 1 WHERE id = 1",
    ],
    "an envelope has a done time exactly if it is settled": [
        "UPDATE envelope SET done_at = NULL WHERE id = 2",
        "UPDATE envelope SET done_at = 5 WHERE id = 1",
    ],
    "a held envelope is pending and held by this boot": [
        "UPDATE envelope SET held_by = 0 WHERE id = 1",
        "UPDATE envelope SET held_by = (SELECT value FROM counter WHERE name = 'boot') WHERE id = 2",
    ],
    "a message has an arrival time exactly if it has arrived": [
        "UPDATE message SET arrived_at = NULL WHERE id = 1",
        "UPDATE message SET arrived_at = 5 WHERE id = 3",
    ],
    "a lane has a wake time exactly if it waits": [
        "UPDATE lane SET state = 'waiting'",
        "UPDATE lane SET wake_at = 5",
    ],
    "a lane waits at least until the time that the platform named": [
        "UPDATE lane SET state = 'waiting', wake_at = 5, not_before = 6 WHERE binding IS NOT NULL"
    ],
    "an account is tried only while one of its envelopes is being delivered": [
        "INSERT INTO lane (binding, state) VALUES (1, 'trying')",
        "UPDATE lane SET state = 'trying' WHERE binding = 1",
    ],
    "an account is paused only when it is no longer bound": [
        "INSERT INTO lane (binding, state) VALUES (1, 'paused')"
    ],
    "what is partly posted belongs to its lane": ["UPDATE lane SET partly_posted = 1 WHERE binding = 1"],
    "no account that is no longer bound has a lane, unless its mail is being failed": [
        "UPDATE binding SET removed_at = 5"
    ],
    "no envelope is pending for an account that is no longer bound, unless its mail is being failed": [
        "UPDATE binding SET removed_at = 5"
    ],
    "an update is kept as it came until it is digested": [
        f"{UPDATE} VALUES (1, 'u', 'c', 1, NULL, NULL, NULL)",
        f"{UPDATE} VALUES (1, 'u', 'c', 1, '{{}}', 'ignored', NULL)",
    ],
    "an update is held only while the boss has not decided about its chat": [
        f"{UPDATE} SELECT b.id, 'u', 'c', 1, '{{}}', 'held', NULL FROM binding b WHERE removed_at IS NOT NULL",
        f"{UPDATE} SELECT c.binding, 'u', c.platform_id, 1, '{{}}', 'held', NULL FROM contact c LIMIT 1",
    ],
    "at most one agent leads a binding": [
        """
        INSERT OR REPLACE INTO binding_agent (binding, agent, leads)
        SELECT b.id, a.address, 1 FROM binding b CROSS JOIN agent a WHERE b.removed_at IS NULL
        """
    ],
    "a chat or topic belongs to an agent that its binding serves": [
        "UPDATE place SET agent = (SELECT max(address) FROM agent WHERE address NOT IN"
        " (SELECT agent FROM binding_agent))"
    ],
    "an update that became a message names it": [
        f"{UPDATE} VALUES (1, 'u', 'c', 1, NULL, 'accepted', NULL)",
        f"{UPDATE} VALUES (1, 'u', 'c', 1, NULL, 'failed', 1)",
    ],
    "no update of an account that is no longer bound waits to be digested": [
        f"{UPDATE} SELECT b.id, 'u', 'c', 1, '{{}}', NULL, NULL FROM binding b WHERE removed_at IS NOT NULL"
    ],
    "a place belongs to a chat of its account": [
        """
        INSERT INTO place (address, binding, contact)
        SELECT 1, b.id, c.id FROM binding b JOIN contact c ON c.binding <> b.id LIMIT 1
        """
    ],
    "only a topic is gone, and not the chat that is used in its place": ["UPDATE place SET gone_at = 5"],
    "a run that people are to be told of was interrupted": ["INSERT INTO interrupted_run (run) VALUES (1)"],
    "only an enabled schedule has a next slot": [
        "UPDATE schedule SET enabled = 0 WHERE id = 1",
        "UPDATE schedule SET deleted_at = 5 WHERE id = 1",
        "UPDATE schedule SET next_at = 5 WHERE id = 2",
    ],
    "a slot has a message exactly if it fired": [
        "UPDATE schedule_slot SET message = NULL",
        "UPDATE schedule_slot SET outcome = 'skipped'",
    ],
    "the slots of a schedule are recorded once": [
        f"{MISSED} SELECT schedule, slot - 1, slot + 1, 3, 'missed', at FROM schedule_slot",
        f"{MISSED} SELECT schedule, slot - 1, slot, 2, 'missed', at FROM schedule_slot",
        f"{MISSED} SELECT schedule, slot - 2, slot - 1, 1, 'missed', at FROM schedule_slot",
        f"{MISSED} SELECT schedule, slot - 1, slot - 2, 2, 'missed', at FROM schedule_slot",
    ],
    "every message of a schedule belongs to one slot": [
        "INSERT INTO schedule_slot SELECT schedule, era, slot + 1, last_slot + 1, number, outcome, reason, message,"
        " at FROM schedule_slot",
    ],
    "all status, priority, box and wait codes are known": [
        "UPDATE envelope SET status = 4, done_at = 5 WHERE id = 1",
        "UPDATE envelope SET priority = -1 WHERE id = 1",
        "UPDATE envelope SET box = 4 WHERE id = 1",
        "UPDATE envelope SET waits = 4, wait_until = 5 WHERE id = 1",
    ],
    "the first message of a thread is in no other thread": ["UPDATE message SET thread = 2 WHERE id = 4"],
    "a reply is in the thread of the message it replies to": [
        "UPDATE message SET thread = 4 WHERE id = 2",
        "UPDATE message SET reply_to = 4 WHERE id = 2",
    ],
    "a private conversation has at most two participants": [
        "UPDATE conversation SET kind = 'private' WHERE kind = 'adhoc'",
    ],
    "sender and recipients are participants of the conversation": [
        "DELETE FROM participant WHERE conversation = 1 AND address = (SELECT sender FROM message WHERE id = 1)",
        "DELETE FROM participant WHERE conversation = 1 AND address = (SELECT recipient FROM envelope WHERE id = 1)",
    ],
    "the record of a control is a message of the type event that nobody has to do anything with": [
        "INSERT INTO control (message, event, actor, outcome, at) VALUES (1, 'pause', 1, 'applied', 1)"
    ],
    "a lane that is paused because of a run is the lane of its agent": [
        "UPDATE lane SET paused_run = 1 WHERE state = 'paused'",
        "UPDATE lane SET state = 'open', wake_at = NULL, paused_run = 3 WHERE address IN (SELECT agent FROM run)",
    ],
    "a run that was told to end has ended so": ["UPDATE run SET ends_as = 'cancelled' WHERE id = 1"],
    "mail is routed only from an agent of the conversation, and a copy is done on arrival": [
        "UPDATE envelope SET routed_from = (SELECT address FROM user WHERE boss = 1) WHERE id = 1",
        "UPDATE envelope SET routed_from = recipient WHERE id = 1",
        "UPDATE envelope SET routed_from = recipient, handovers = 1 WHERE id = 2",
    ],
    "what somebody reads along, somebody else has got: moved mail is never lost": [
        "UPDATE envelope SET routed_from = recipient WHERE message = (SELECT message FROM envelope WHERE id = 1)",
    ],
    "a route goes from a live agent that takes part in the conversation to somebody else who lives": [
        _ROUTE.format("handoff", "user:boss", "agent:ivo"),
        _ROUTE.format("handoff", "agent:ivo", "agent:nex"),
        _ROUTE.format("route", "agent:nex", "user:boss"),
        (_ROUTE + " LIMIT 1").replace("d.fold =", "d.kind =").format("handoff", "agent:nex", "channel"),
    ],
    "the destination of a route is a guest of the conversation": [
        _ROUTE.format("handoff", "agent:nex", "agent:ivo"),
        "INSERT INTO participant (conversation, address, role, joined_seq) SELECT 1, id, 'guest', 9 FROM address "
        "WHERE fold = 'agent:ivo'",
    ],
    "nobody who is a party of a conversation is or was a guest of it": [
        "INSERT INTO participant (conversation, address, role, joined_seq, left_seq) "
        "SELECT conversation, address, 'guest', 9, 8 FROM participant LIMIT 1",
        "INSERT INTO participant (conversation, address, role, joined_seq) "
        "SELECT conversation, address, 'guest', 9 FROM participant LIMIT 1",
    ],
    "the stays of a participant do not overlap, and only the last one is not over": [
        "INSERT INTO participant (conversation, address, joined_seq) SELECT conversation, address, 2"
        " FROM participant WHERE conversation = 1",
        "UPDATE participant SET left_seq = -1 WHERE conversation = 1",
    ],
    "a forward posts to a chat the same message that is in the box of the boss": [
        "UPDATE envelope SET forwards = 2 WHERE id = 7",  # of another message
        "UPDATE envelope SET forwards = 2 WHERE id = 1",  # to an agent
        "UPDATE envelope SET forwards = 7 WHERE id = 7",  # of mail that is not in his box
    ],
    "what was written in a chat by the boss has him as its sender": [
        "UPDATE message SET place = sender WHERE id = 1",
        "UPDATE message SET place = (SELECT address FROM place) WHERE id = 1",
    ],
    "the boss is reached in a chat of his, by an account that is bound": [
        "UPDATE user SET reach = (SELECT address FROM place) WHERE boss = 1",
        "UPDATE user SET reach = (SELECT address FROM place), reach_by = 1 WHERE boss = 1",
    ],
    "no deleted agent or person has a valid token": ["UPDATE token SET revoked_at = NULL"],
    "no envelope is pending for a deleted agent or person": [
        "UPDATE envelope SET status = 0, done_at = NULL WHERE id = 6",
    ],
    "nobody watches a deleted agent, and no deleted agent or person watches": [
        "INSERT INTO state_watch (watcher, agent, state, created_at)"
        " SELECT g.address, a.id, 'idle', 1 FROM agent g, address a WHERE a.retired_at IS NOT NULL LIMIT 1",
    ],
    "an active run belongs to this boot": [
        "UPDATE run SET status = 'running', ended_at = NULL, error = NULL, boot = boot - 1 WHERE id = 1",
    ],
    "a run has an end time exactly if it has ended": [
        "UPDATE run SET ended_at = NULL WHERE id = 1",
        "UPDATE run SET status = 'running' WHERE id = 1",
    ],
    "a run has an error exactly if it was not successful": [
        "UPDATE run SET error = NULL WHERE id = 3",
        "UPDATE run SET status = 'failed' WHERE id = 1",
        "UPDATE run SET error = 'why' WHERE id = 1",
    ],
    "an ask has a time at which it was settled exactly if it is settled": [
        "UPDATE ask SET answered_at = NULL WHERE id = 1",
        "UPDATE ask SET answered_at = 5 WHERE id = 3",
    ],
    "the daemon looks again at every open ask that has an end, and at no settled one": [
        "UPDATE ask SET wake_at = 5 WHERE id = 2",
        "UPDATE ask SET wake_at = NULL WHERE id = 3",
    ],
    "an answered ask has one of its options, an expired one its default, a cancelled one no answer": [
        "UPDATE ask SET answer = 'maybe' WHERE id = 1",
        "UPDATE ask SET answer = NULL WHERE id = 1",
        "UPDATE ask SET state = 'expired', answer = 'yes', answered_at = 5, wake_at = NULL WHERE id = 3",
        "UPDATE ask SET answer = 'yes' WHERE id = 2",
    ],
    "nobody answers what it asked itself": [
        "UPDATE ask SET answered_by = asker WHERE id = 1",
        "UPDATE ask SET asked = asker WHERE id = 3",
    ],
    "the asker of an answered question was told": ["UPDATE ask SET reply = NULL WHERE id = 1"],
    "no open ask is from or for somebody who was deleted": [
        "UPDATE address SET retired_at = 5 WHERE fold = 'agent:ada'",
        "UPDATE address SET retired_at = 5 WHERE fold = 'agent:nex'",
    ],
    "no button of a settled ask does anything": [
        "UPDATE button SET pressed_at = NULL WHERE argument = '1:0'",
    ],
    "only an active run is paused": ["UPDATE run SET paused_at = 5 WHERE id = 1"],
    "who paused a run is known until it is resumed, or ends in another way": [
        "UPDATE run SET paused_by = agent WHERE id = 1",
    ],
    "an agent has one turn at a time": ["UPDATE run SET status = 'running'"],
    "a session that is not resumed says why, and belongs to an agent and a person who exist": [
        _SESSION.format("c1", "1", "1", "NULL", "IS NULL"),
        _SESSION.format("c1", "1", "NULL", "'idle'", "IS NULL"),
        _SESSION.format("c1", "1", "NULL", "NULL", "IS NOT NULL"),
        _SESSION.format("u999", "1", "NULL", "NULL", "IS NULL"),
    ],
    "an active run that keeps a session has the one that the next turn would resume": [
        "UPDATE run SET status = 'running', session = 's', session_scope = 'c1' WHERE id = 1",
        "UPDATE run SET status = 'running', kind = 'background', session_scope = 'c1' WHERE id = 1",
    ],
    "what an agent used is the sum over its runs that have ended": [
        "INSERT INTO usage (agent, quarter, tokens, cost) SELECT agent, 0, 1, 0 FROM run LIMIT 1",
        "UPDATE run SET cost = ifnull(cost, 0) + 0.5 WHERE id = 1",
        "UPDATE run SET tokens_out = ifnull(tokens_out, 0) + 1 WHERE id = 1",
    ],
    "an envelope that an agent holds belongs to one active run": [
        f"UPDATE envelope SET {HELD} WHERE id = 3",
        f"UPDATE envelope SET {HELD}, status = 0, done_at = NULL WHERE id = 9",
    ],
    "the envelopes of an active run are held or settled": [
        "UPDATE run SET status = 'running', ended_at = NULL, error = NULL WHERE id = 3",
    ],
    "what an open session was told of, it has": [
        "UPDATE run SET status = 'running', ended_at = NULL, error = NULL, attached = 1, submitted_at = 1 WHERE id = 3",
    ],
    "an open session has at most one turn": [
        "UPDATE run SET status = 'running', ended_at = NULL, error = NULL, attached = 1 WHERE id IN (1, 3)",
    ],
    "every run has an envelope": ["DELETE FROM run_envelope WHERE run = 1"],
    "no envelope belongs to two successful runs": [
        "INSERT INTO run_envelope (run, envelope) VALUES (2, 9)",
    ],
    "the token of a run is valid only while the run is active": [
        "UPDATE token SET revoked_at = NULL WHERE kind = 'run' AND run = 1",
        "UPDATE token SET run = NULL WHERE kind = 'run'",
        "UPDATE token SET run = 1 WHERE kind = 'agent'",
    ],
    "the answer of a run was sent by that run": [
        "UPDATE message SET run = NULL WHERE id = (SELECT answer FROM run WHERE id = 1)",
        "UPDATE message SET auto = 0 WHERE id = (SELECT answer FROM run WHERE id = 1)",
        "UPDATE run SET status = 'failed', error = 'why' WHERE id = 1",
    ],
    "an agent is deleted exactly if its address is retired": [
        "UPDATE agent SET deleted_at = 5 WHERE deleted_at IS NULL",
        "UPDATE address SET retired_at = NULL, fold = 'agent:other' WHERE retired_at IS NOT NULL",
    ],
}


@pytest.fixture(scope="module")
def intact(tmp_path_factory: pytest.TempPathFactory) -> Path:
    with started(tmp_path_factory.mktemp("d")) as daemon:
        nex, ada = daemon.token("nex"), daemon.register("ada")
        first = daemon.call("envelope.send", token=nex, to=["agent:ada", "user:boss"], text="1")
        daemon.call("envelope.send", token=ada, reply_to=first["ids"][0], to_sender=True, text="2")
        daemon.call("envelope.send", token=nex, to="agent:ada", text="3", deliver_at="+1D")
        own = daemon.call("envelope.send", token=nex, to="agent:nex", text="4")
        daemon.call("envelope.ack", token=nex, ids=own["ids"])
        daemon.register("shortlived")
        daemon.call("envelope.send", token=nex, to="agent:shortlived", text="5")
        boss = daemon.token("boss")
        daemon.call("agent.delete", token=boss, name="shortlived")
        path = tmp_path_factory.mktemp("folder") / "box"
        place = daemon.call(
            "agent.bind", token=boss, name="nex", adapter_type="folder", settings={"path": str(path)}
        )
        daemon.call("lane.pause", token=boss, address=place["address"])
        assert daemon.call("envelope.send", token=nex, to=place["address"], text="6")["ids"] == ["e7"]
        ended = {"name": "nex", "adapter_type": "folder"}
        daemon.call("agent.bind", token=boss, **ended, settings={"path": str(path.with_name("ended"))})
        daemon.call("agent.unbind", token=boss, **ended, account="ended")
        weekly = {"to": "agent:nex", "text": "7", "cron": "@weekly"}
        schedules = [daemon.call("cron.create", token=nex, **weekly)["id"] for _ in range(2)]
        assert daemon.call("cron.run", token=nex, id=schedules[0])["ids"] == ["e8"]
        daemon.call("cron.disable", token=nex, id=schedules[1])
        _take_turns(daemon)
        _ask(daemon)
        team = {"type": "group", "name": "team", "participants": ["agent:ada"]}
        daemon.call("conversation.create", token=boss, **team)
        daemon.call("envelope.send", token=boss, to="group:team", text="11")
    return Path(daemon.home.database)


def _take_turns(daemon: RunningDaemon) -> None:
    """Make two successful runs, and between them one that fails."""
    boss, nex = daemon.token("boss"), daemon.token("nex")

    def runs() -> list[str]:
        return [one["status"] for one in daemon.call("run.list", token=boss)["runs"]]

    daemon.register("ivo", provider="demo")
    for done in range(2):
        daemon.call("envelope.send", token=nex, to="agent:ivo", text="8")
        wait_until(lambda: runs() == ["completed"] * (done + 1))  # noqa: B023 - it is over before the next
    daemon.call(
        "agent.set", token=boss, name="ivo", provider="command", settings={"command": "/no/such/program"}
    )
    failing = daemon.call("envelope.send", token=nex, to="agent:ivo", text="9")
    wait_until(lambda: runs() == ["failed", "completed", "completed"])
    daemon.call("lane.pause", token=boss, address="agent:ivo")
    assert failing["ids"] == ["e13"]


def _ask(daemon: RunningDaemon) -> None:
    """Make four asks: answered, cancelled, open with an end, open for ever."""
    nex, boss = daemon.token("nex"), daemon.token("boss")
    for how in ({}, {}, {"timeout": "1h", "default": "no"}, {"to": "agent:ada"}):
        daemon.call("ask.create", token=nex, question="10", **how)
    daemon.call("ask.answer", token=boss, id="q1", choice="yes")
    daemon.call("ask.cancel", token=nex, id="q2")


@pytest.fixture
def database(intact: Path, tmp_path: Path) -> Iterator[sqlite3.Connection]:
    shutil.copy(intact, tmp_path / "hiboss.db")
    with closing(sqlite3.connect(tmp_path / "hiboss.db", isolation_level=None)) as connection:
        connection.execute("PRAGMA foreign_keys = OFF")
        yield connection


def test_an_intact_database_breaks_none(database: sqlite3.Connection) -> None:
    assert violations(database) == []


def test_every_invariant_is_tried_here() -> None:
    assert set(BREAKS) == set(INVARIANTS)


def test_an_invariant_fires_when_it_is_broken(database: sqlite3.Connection) -> None:
    with sweep() as row:
        for sentence, statement in ((one, statement) for one in BREAKS for statement in BREAKS[one]):
            database.execute("BEGIN")
            with row(f"{sentence}: {statement}"):
                assert database.execute(statement).rowcount > 0
                broken = violations(database)
                assert [one for one in broken if one.startswith(f"broken: {sentence} ")], broken
            database.execute("ROLLBACK")


def test_a_dangling_reference_fires(database: sqlite3.Connection) -> None:
    database.execute("UPDATE token SET run = 999")
    assert [one for one in violations(database) if "token" in one and "run" in one]


def test_a_damaged_index_fires(database: sqlite3.Connection, tmp_path: Path) -> None:
    database.execute("PRAGMA writable_schema = ON")
    other = "SELECT rootpage FROM sqlite_master WHERE name = 'token_holder'"
    database.execute(f"UPDATE sqlite_master SET rootpage = ({other}) WHERE name = 'envelope_unread'")
    with closing(sqlite3.connect(tmp_path / "hiboss.db")) as another:  # which has read the schema anew
        assert [one for one in violations(another) if one.startswith("SQLite says: ")]
