"""Turns, runs and conversations cost the same after 20,000 runs as after 1,000.

Counted as in test_flat.py. Agent nex has taken a turn for every old envelope, with a token for
each, and has written as much itself; and there are as many places in the address book.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hiboss.agents import instructions
from hiboss.api import agent_states
from hiboss.core.address import BACKGROUND, SYSTEM
from hiboss.core.contracts.failures import Failure
from hiboss.core.contracts.provider import Answer
from hiboss.core.envelope import Lane, Priority
from hiboss.store import (
    agent_pauses,
    agents,
    conversations,
    due_envelopes,
    lanes,
    run_history,
    run_limits,
    run_settlement,
    run_start,
    run_turns,
    state_watches,
    tokens,
    turn_selection,
    typing_places,
    users,
)
from hiboss.store.connection import Connection, Row
from hiboss.store.group_commit import Tx
from hiboss.store.run_limits import Bounds
from hiboss.store.run_start import Start, Turn
from tests.store.test_flat import ADA_ID, BOSS_ID, FRESH, NEX_ID, NOW, POPULATIONS, Hot, not_flat, write

pytestmark = pytest.mark.slow

BOOT = 1
TODAY = NOW - 3_600_000
START = Start("hbr_for-the-flat-test", NOW, BOOT, Bounds(16, 50, TODAY, NOW + 3_600_000))
FAILURE = Failure("exit_status", "it ended with exit status 1")
DELAYS = (5_000, 30_000, 120_000, 600_000, 3_600_000)
THOUGHT = Answer(text="done", tokens_in=10, tokens_out=10, cost=0.01)


# --- filling -----------------------------------------------------------------------------------


def numbers(size: int) -> str:
    return f"WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < {size})"


def with_agents(connection: Connection) -> Tx:
    tx = Tx(connection)
    tx.cache.add_address(SYSTEM)
    tx.cache.add_address(BACKGROUND)
    for agent in (NEX_ID, ADA_ID):
        connection.execute(
            "UPDATE agent SET mode = 'run', provider = 'demo', daily_tokens = ? WHERE address = ?",
            (10**12, agent),
        )
    connection.execute("UPDATE counter SET value = ? WHERE name = 'boot'", (BOOT,))
    return tx


def with_runs(connection: Connection, size: int) -> None:
    """Add a run today for each old envelope, and a message from nex for each run."""
    tx = with_agents(connection)
    connection.execute(
        f"""
        {numbers(size)} INSERT INTO run (id, agent, conversation, status, provider, boot, trace, started_at,
            ended_at, reply_conversation, reply_message, after_message, last_message, tokens_in, cost, error)
        SELECT n, {NEX_ID}, 1, 'interrupted', 'demo', 0, 'm' || n, s, s, 1, n, {size + FRESH} + n - 1,
               {size + FRESH} + n, 1, 0.1, 'the daemon ended'
        FROM (SELECT n, {TODAY} + n * 3000000 / {size} AS s FROM t)
        """
    )
    connection.execute(
        """
        INSERT INTO usage (agent, quarter, tokens, cost)
        SELECT agent, started_at / 900000, sum(tokens_in), sum(cost) FROM run GROUP BY 1, 2
        """
    )
    connection.execute(f"UPDATE run SET status = 'completed', error = NULL WHERE id > {size // 2}")
    connection.execute("INSERT INTO run_envelope (run, envelope) SELECT id, id FROM run")
    connection.execute(
        f"INSERT INTO run_turn (run, text) SELECT id, 'now: …' FROM run WHERE id > {size} - 500"
    )
    connection.execute(
        f"""
        {numbers(size)} INSERT INTO token (hash, kind, holder, run, created_at, revoked_at)
        SELECT cast(n AS BLOB), 'run', {NEX_ID}, n, n, n FROM t
        """
    )
    connection.execute(
        f"""
        {numbers(size)} INSERT INTO address (kind, name, fold, retired_at)
        SELECT 'channel', 'place:' || n, 'channel:place:' || n, CASE WHEN n % 2 THEN 1 END FROM t
        """
    )
    _say(tx, size, NEX_ID, BOSS_ID)


def _say(tx: Tx, size: int, sender: int, recipient: int) -> None:
    """Add this many settled messages, one from each run."""
    conversation = tx.cache.conversation((sender, recipient), NOW)
    first = tx.execute("SELECT max(id) FROM message").fetchone()[0]
    arrived = tx.execute("SELECT value FROM counter WHERE name = 'arrived'").fetchone()[0]
    tx.execute(
        f"""
        {numbers(size)} INSERT INTO message (id, conversation, sender, caller, text, created_at, seq,
                                             arrived_at, run)
        SELECT {first} + n, {conversation}, {sender}, {sender}, 'x', n, n, n, n FROM t
        """
    )
    tx.execute(
        f"""
        {numbers(size)} INSERT INTO envelope (message, recipient, arrived, status, done_at)
        SELECT {first} + n, {recipient}, {arrived} + n, 1, n FROM t
        """
    )
    tx.execute("UPDATE conversation SET last_seq = ? WHERE id = ?", (size, conversation))
    tx.execute("UPDATE counter SET value = ? WHERE name = 'arrived'", (arrived + size,))


def _readdress(tx: Tx, which: str, sender: int, recipient: int) -> None:
    """Let some messages be from and to somebody else."""
    conversation = tx.cache.conversation((sender, recipient), NOW)
    tx.cache.flush()
    first, number = tx.execute(f"SELECT min(id), count(*) FROM message WHERE {which}").fetchone()
    theirs = f"message IN (SELECT id FROM message WHERE {which})"
    tx.execute(f"UPDATE envelope SET box = 1 WHERE {theirs}")  # not counted in the old conversation any more
    tx.execute(
        f"""
        UPDATE message SET conversation = {conversation}, sender = {sender}, caller = {sender},
               auto = {sender not in (NEX_ID, ADA_ID):d}, seq = id - {first} + 1
        WHERE {which}
        """
    )
    tx.execute(f"UPDATE envelope SET recipient = {recipient}, box = 0 WHERE {theirs}")
    tx.execute("UPDATE conversation SET last_seq = ? WHERE id = ?", (number, conversation))


def with_notices(connection: Connection, size: int) -> None:
    """Make all old messages notices, which come before the mail."""
    tx = with_agents(connection)
    system = tx.cache.live_address(SYSTEM)
    assert system is not None
    _readdress(tx, f"id <= {size}", system.id, NEX_ID)
    connection.execute("UPDATE envelope SET priority = ? WHERE message <= ?", (int(Priority.NOTICE), size))
    connection.execute("UPDATE message SET seq = seq - ? WHERE id > ?", (size, size))
    connection.execute("UPDATE conversation SET last_seq = ? WHERE id = 1", (FRESH,))


def with_tasks_of_one_who_is_paused(connection: Connection, size: int) -> None:
    """Add tasks that come before those of nex."""
    tx = with_agents(connection)
    background = tx.cache.live_address(BACKGROUND)
    assert background is not None
    _readdress(tx, f"id <= {size}", ADA_ID, background.id)
    _readdress(tx, f"id > {size}", NEX_ID, background.id)
    connection.execute("UPDATE conversation SET last_seq = 0 WHERE id = 1")
    agent_pauses.pause(tx, ADA_ID, "boss", "for now", NOW)


# --- the hot statements ------------------------------------------------------------------------


def nex(connection: Connection | Tx) -> Row:
    row = agents.with_provider(connection, NEX_ID)
    assert row is not None
    return row


def background(connection: Connection) -> int:
    return int(connection.execute("SELECT id FROM address WHERE fold = 'agent:background'").fetchone()[0])


def taken(tx: Tx) -> Turn:
    turn = run_start.begin(tx, NEX_ID, START)
    assert turn is not None
    return turn


def completing(tx: Tx, size: int) -> None:
    [sent] = run_settlement.complete(tx, taken(tx), THOUGHT, NOW)
    assert sent.message


def failing(tx: Tx, size: int) -> None:
    assert run_settlement.fail(tx, taken(tx), FAILURE, DELAYS, NOW) == NOW + DELAYS[0]


def failing_for_good(connection: Connection, size: int) -> None:
    """An envelope that failed long ago and was retried by hand fails for the fifth time; others fail too."""
    tx = Tx(connection)
    number, last = turn_selection.preview(connection, nex(tx), NOW)[0], size + FRESH
    tx.execute(
        "UPDATE envelope SET priority = 0, attempts = 9, handovers = 9, first_failed_at = ? WHERE id = ?",
        (NOW - 10, number),
    )
    tx.execute("INSERT OR IGNORE INTO run_envelope (run, envelope) VALUES (1, ?)", (number,))
    for tried in (number, number, number, number, last):
        run = tx.execute(
            """
            INSERT INTO run (agent, conversation, status, provider, boot, started_at, ended_at, error,
                             error_scope)
            VALUES (?, 1, 'failed', 'demo', 1, ?2, ?2, 'x', 'turn')
            """,
            (NEX_ID, NOW - 5),
        ).lastrowid
        tx.execute("INSERT INTO run_envelope (run, envelope) VALUES (?, ?)", (run, tried))
    turn = taken(tx)
    assert turn.envelopes == (number,)
    assert run_settlement.fail(tx, turn, FAILURE, DELAYS, NOW) == NOW + DELAYS[0]  # the lane waits


def waking(tx: Tx, size: int) -> None:
    agent_pauses.pause(tx, NEX_ID, "budget", "enough", NOW - 10, until=NOW)
    assert agent_pauses.resume_due(tx, NOW) == [NEX_ID]


def page(**words: Any) -> Hot:
    """Return a statement for a page of runs; a function gives a value that depends on the size."""

    def run(connection: Connection, size: int) -> None:
        given = {"agent": None, "status": None, "trace": None, "before": None, **words}
        values = {name: value(size) if callable(value) else value for name, value in given.items()}
        found = run_history.page(connection, **values, limit=20, most_bytes=1_000_000).rows
        assert len(found) == (1 if values["trace"] else 0 if values["agent"] == ADA_ID else 20)

    return run


def middle(size: int) -> int:
    return size // 2


def said(walk: Callable[[Connection, int], list[tuple[int, int]]]) -> Hot:
    def run(connection: Connection, size: int) -> None:
        assert len(walk(connection, size)) == 20

    return run


def status(connection: Connection, size: int) -> None:
    """Read all that agent.status and agent.team show of an agent."""
    assert lanes.get(connection, Lane(NEX_ID, None)) is None
    assert run_history.running(connection, NEX_ID) == [] and run_history.last(connection, NEX_ID) is not None
    assert run_limits.spent(connection, nex(connection), TODAY).tokens == size
    assert run_history.oldest_unanswered(connection, NEX_ID) is not None
    assert run_history.next_retry(connection, NEX_ID) is None
    assert due_envelopes.count(connection, NEX_ID, 10) == "10+"
    assert agent_states.state_of(connection, NEX_ID, agent_states.Live()) == ("idle", None)


HOT: dict[str, Hot] = {
    "the status of an agent": status,
    "a turn begins": write(lambda tx, n: taken(tx)),
    "a turn goes well": write(completing),
    "a turn fails": write(failing),
    "the next turn": lambda c, n: turn_selection.preview(c, nex(c), NOW),
    "tasks due": lambda c, n: run_start.tasks_due(c, background(c), 100, 200),
    "since when nobody answers": lambda c, n: run_history.oldest_unanswered(c, NEX_ID),
    "a turn fails for good": failing_for_good,
    "what was sent before": lambda c, n: run_history.already_sent(c, range(1, 11)),
    "what was spent today": lambda c, n: run_limits.spent(c, nex(c), TODAY),
    "whether the budget is used up": write(lambda tx, n: run_limits.over_budget(tx, nex(tx), START.bounds)),
    "a pause ends": write(waking),
    "whether an agent has nothing to do": lambda c, n: state_watches.is_idle(c, NEX_ID),
    "whether an agent waits for an answer": lambda c, n: state_watches.waits_for_answer(c, NEX_ID),
    "where it is shown that somebody types": lambda c, n: typing_places.targets(c, NEX_ID, 1),
    "the text of a turn is kept": write(lambda tx, n: run_turns.put(tx, n, "now: …")),
    "the text of a turn": lambda c, n: run_turns.get(c, n),
    "what an agent is told about itself": lambda c, n: instructions.facts(c, NEX_ID),
    "an agent that thinks": lambda c, n: agents.with_provider(c, NEX_ID),
    "the last run": lambda c, n: run_history.last(c, NEX_ID),
    "what runs": lambda c, n: run_history.running(c, NEX_ID),
    "runs of all": page(),
    "runs of all, deep": page(before=middle),
    "runs of an agent": page(agent=NEX_ID),
    "runs of an agent, deep": page(agent=NEX_ID, before=middle),
    "runs of an agent that has none": page(agent=ADA_ID),
    "runs of a trace": page(trace=lambda n: f"m{n // 2}"),
    "runs of an agent in a trace": page(trace=lambda n: f"m{n // 2}", agent=NEX_ID),
    "runs left over": lambda c, n: run_settlement.left_over(c, BOOT),
    "a conversation": lambda c, n: conversations.between(c, (NEX_ID, ADA_ID)),
    "a conversation that is none": lambda c, n: conversations.between(c, (BOSS_ID, ADA_ID)),
    "the last words": said(lambda c, n: conversations.before(c, 1, None, 20)),
    "words before": said(lambda c, n: conversations.before(c, 1, 500, 20)),
    "words after": said(lambda c, n: conversations.after(c, 1, n // 2, 20)),
    "people": lambda c, n: users.list_all(c),
    "agents": lambda c, n: agents.list_all(c),
    "tokens end": write(lambda tx, n: tokens.revoke(tx, NEX_ID, NOW)),
}


@pytest.mark.parametrize("population", ["settled", "pending"])
def test_turns_cost_the_same_after_20_000_runs_as_after_1_000(tmp_path: Path, population: str) -> None:
    assert not_flat(tmp_path, POPULATIONS[population], HOT, prepare=with_runs) == {}


def test_a_turn_is_found_behind_20_000_notices_at_the_cost_of_1_000(tmp_path: Path) -> None:
    def begun(connection: Connection, size: int) -> None:
        shown = turn_selection.preview(connection, nex(connection), NOW)
        turn = taken(Tx(connection))
        assert (len(turn.envelopes), len(turn.notices)) == (10, 10)
        assert shown == [*turn.envelopes, *turn.notices]

    def since(connection: Connection, size: int) -> None:
        assert run_history.oldest_unanswered(connection, NEX_ID) == NOW  # of the first mail, not of a notice

    kept: dict[str, Hot] = {"begun": begun, "since when nobody answers": since}
    assert not_flat(tmp_path, POPULATIONS["pending"], kept, prepare=with_notices) == {}


def test_looking_for_tasks_costs_the_same_behind_20_000_of_an_agent_that_is_paused(tmp_path: Path) -> None:
    """The event loop looks through the first ones, and learns that there is more behind them."""

    def found(connection: Connection, size: int) -> None:
        assert run_start.tasks_due(connection, background(connection), 100, 200) == ([], True)

    kept: dict[str, Hot] = {"found": found}
    assert not_flat(tmp_path, POPULATIONS["pending"], kept, prepare=with_tasks_of_one_who_is_paused) == {}


def test_tasks_are_found_behind_those_of_an_agent_that_is_paused(tmp_path: Path) -> None:
    def found(connection: Connection, size: int) -> None:
        tasks = run_start.tasks_due(connection, background(connection), 100)
        assert (len(tasks.found), tasks.more) == (FRESH, False)
        assert run_start.tasks_due(connection, background(connection), 5).found == tasks.found[:5]

    kept: dict[str, Hot] = {"found": found}
    prepare = with_tasks_of_one_who_is_paused
    assert not_flat(tmp_path, POPULATIONS["pending"], kept, prepare=prepare, large=1_001) == {}


def test_what_is_counted_is_really_done(tmp_path: Path) -> None:
    """In the small database: a statement that finds nothing would be flat anywhere."""

    def done(connection: Connection, size: int) -> None:
        assert len(turn_selection.preview(connection, nex(connection), NOW)) == 10
        assert run_limits.spent(connection, nex(connection), TODAY).tokens == size
        assert len(run_history.already_sent(connection, range(1, 11))) == 10
        assert len(users.list_all(connection)) == 1
        assert run_turns.get(connection, size) == "now: …"
        assert instructions.facts(connection, NEX_ID) is not None
        last = run_history.last(connection, NEX_ID)
        assert last is not None and last["id"] == size
        assert run_history.oldest_unanswered(connection, NEX_ID) is not None
        assert conversations.between(connection, (NEX_ID, ADA_ID)) is not None

    kept: dict[str, Hot] = {"done": done}
    assert not_flat(tmp_path, POPULATIONS["settled"], kept, large=2_000, prepare=with_runs) == {}
