"""What one operation reads is one snapshot: it answers as before a change or as after it, never in between.

The change is made at each place between two reads: a trace of SQLite tells when the next statement
begins. So nothing depends on time.
"""

from __future__ import annotations

import ast
import asyncio
import inspect
import sqlite3
import textwrap
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import pytest

from hiboss.api import dispatch  # noqa: F401 - it declares the operations
from hiboss.api.operation import REGISTRY
from hiboss.core.errors import HibossError
from hiboss.store.connection import Connection
from tests.support.in_process_daemon import InProcessDaemon, frozen

# Who asks, and for what. Together with CHANGING these are all operations.
READING: dict[str, list[tuple[str, dict[str, Any]]]] = {
    "agent.list": [("boss", {})],
    "agent.briefing": [("boss", {}), ("boss", {"name": "kai"}), ("kai", {})],
    "agent.instructions": [("boss", {"name": "kai"}), ("kai", {"name": "kai"})],
    "agent.permission.get": [("boss", {"name": "kai"})],
    "agent.sessions": [("boss", {"name": "kai"}), ("kai", {"name": "kai"})],
    "agent.bindings": [("boss", {})],
    "agent.heartbeat": [("nex", {})],
    "agent.self": [("kai", {})],
    "agent.check": [("boss", {"name": "kai"})],
    "agent.status": [("boss", {"name": "kai"}), ("kai", {"name": "kai"})],
    "agent.team": [("boss", {})],
    "auth.login": [("kai", {})],
    "boss.get": [("nex", {})],
    "breaker.status": [("boss", {}), ("kai", {})],
    "config.show": [("nex", {})],
    "chat.read": [("kai", {}), ("boss", {"agent": "kai", "newest": True})],
    "chat.status": [("kai", {}), ("boss", {"agent": "kai"})],
    "contact.list": [("boss", {}), ("boss", {"state": "allowed"})],
    "conversation.get": [("nex", {"conversation": "c1"}), ("boss", {"conversation": "all"})],
    "conversation.list": [("nex", {"count": True}), ("kai", {"type": "group"}), ("boss", {"scope": "all"})],
    "conversation.messages": [("nex", {"with": "kai"}), ("boss", {"with": "kai", "address": "nex"})],
    "conversation.news": [("nex", {"with": "kai", "after": 1})],
    "cron.explain": [("boss", {"cron": "@daily"})],
    "cron.list": [("boss", {})],
    "cron.show": [("boss", {"id": "s1"})],
    "daemon.ping": [("boss", {})],
    "daemon.metrics": [("boss", {})],
    "daemon.status": [("boss", {})],
    "daemon.time": [("boss", {})],
    "envelope.get": [("kai", {"id": "e1"}), ("boss", {"id": "e1"})],
    "envelope.trace": [("kai", {"id": "e1"}), ("boss", {"id": "m1"})],
    "envelope.list": [
        ("kai", {}),
        ("kai", {"count": True}),
        ("kai", {"status": "pending"}),
        ("kai", {"status": "pending", "from": "nex", "count": True}),
        ("kai", {"unread": True, "thread": "e1"}),
        ("nex", {"box": "outbox", "status": "pending"}),
        ("boss", {"address": "kai", "status": "done", "count": True}),
    ],
    "envelope.poll": [("kai", {"session": "looks"})],
    "envelope.unread": [("kai", {}), ("boss", {"address": "kai"})],
    "envelope.wait": [("kai", {"timeout": "0s"})],
    "envelope.watch": [("kai", {"timeout": "0s"})],
    "lane.list": [("boss", {})],
    "control.list": [("boss", {}), ("boss", {"agent": "kai"}), ("kai", {})],
    "message.list": [
        ("kai", {}),
        ("kai", {"unread": True, "author_id": "nex"}),
        ("nex", {"thread_id": "e2", "sort_by": "updated_at"}),
        ("boss", {"address": "kai", "page_size": 1}),
    ],
    "message.get": [("kai", {"message_id": "m1"}), ("boss", {"message_id": "m1"})],
    "thread.list": [("kai", {}), ("boss", {"address": "kai"})],
    "thread.get": [("kai", {"thread_id": "e2"})],
    "thread.chain": [("kai", {"id": "m4"})],
    "permission.policy.get": [("boss", {})],
    "presence.get": [("boss", {"address": "kai"}), ("kai", {"address": "user:boss"})],
    "presence.list": [("boss", {})],
    "attached.list": [("boss", {}), ("kai", {})],
    "agent.notify.list": [("boss", {})],
    "rpc.discover": [("boss", {})],
    "ask.get": [("boss", {"id": "q1"}), ("kai", {"id": "q1"})],
    "ask.list": [("boss", {}), ("kai", {}), ("nex", {"state": "all"})],
    "ask.wait": [("boss", {"id": "q1", "timeout": "0s"})],
    "ask.rules": [("boss", {}), ("boss", {"agent": "kai"}), ("kai", {})],
    "run.get": [("boss", {"id": "r1"}), ("boss", {"id": "r1", "turn": True})],
    "run.list": [("boss", {}), ("boss", {"agent": "kai"})],
    "run.tail": [("boss", {"id": "r1"})],
    "setup.check": [("boss", {})],
    "turn.preview": [("kai", {}), ("boss", {"address": "kai"}), ("nex", {})],
    "upload.list": [("kai", {})],
    "user.list": [("boss", {})],
    "adapter.list": [("boss", {})],
    "provider.list": [("boss", {})],
    "webhook.get": [("boss", {"name": "ci"}), ("boss", {"name": "nothing"})],
    "webhook.list": [("boss", {})],
}
OF_THE_STORE = {
    "hiboss_messages_accepted_total",
    "hiboss_envelopes_due",
    "hiboss_envelopes_deferred",
    "hiboss_envelopes_failed",
}
CHANGING = {
    *("agent.background", "agent.bind", "agent.delete", "agent.pause", "agent.permission.set"),
    *(
        "agent.register",
        "agent.refresh",
        "agent.resume",
        "agent.set",
        "agent.token.revoke",
        "agent.token.rotate",
    ),
    *("contact.approve", "contact.block", "contact.route", "boss.pair"),
    *("breaker.pull", "breaker.release", "control.send"),
    *("agent.unbind", "boss.set", "boss.token.rotate", "config.reload", "cron.create", "cron.delete"),
    *("cron.disable", "cron.enable", "cron.run", "cron.set", "daemon.stop", "envelope.ack"),
    *("envelope.archive", "envelope.cancel", "envelope.claim", "envelope.read", "envelope.release"),
    *("envelope.restore", "envelope.retry", "envelope.send", "envelope.trash", "lane.pause"),
    *("envelope.snooze", "envelope.unsnooze"),
    *("lane.resume", "lane.retry", "permission.policy.set", "run.cancel", "run.pause", "run.resume"),
    *(
        "message.edit",
        "message.delete",
        "message.markRead",
        "message.restore",
        "reaction.set",
        "reaction.remove",
    ),
    *(f"conversation.{verb}" for verb in ("create", "set", "archive", "delete", "markRead")),
    *(f"participant.{verb}" for verb in ("add", "remove", "role", "transfer", "join", "leave")),
    *("presence.typing", "agent.notify", "agent.notify.remove", "chat.ack", "chat.post"),
    *(f"attached.{verb}" for verb in ("start", "prompt", "step", "stop", "break", "end", "wait", "permit")),
    "agent.detach",
    *("ask.create", "ask.answer", "ask.cancel"),
    *("run.steer", "ask.rule.remove", "event.subscribe", "event.unsubscribe"),
    "upload.delete",
    *(f"webhook.{verb}" for verb in ("create", "set", "rotate", "delete", "subscribe", "unsubscribe")),
    *("web.link", "web.logout"),
    "mcp.start",
    *("setup.execute", "user.delete", "user.register", "user.token.rotate"),
}

# What somebody else writes meanwhile, in one transaction, and how it is undone.
CHANGE = (
    "UPDATE envelope SET status = 1, done_at = 5, read_at = 5, acked_at = 5 WHERE recipient = {kai}",
    "UPDATE user SET timezone = 'Asia/Tokyo', name = 'Bea' WHERE boss = 1",
    "UPDATE agent SET mode = 'pull', display = 'K', paused_why = 'another reason' WHERE address = {kai}",
    "UPDATE run SET note = 'another note', status = 'failed', error = 'x' WHERE id = 1",
    "UPDATE schedule SET name = 'another name' WHERE id = 1",
)
UNDO = (
    "UPDATE envelope SET status = 0, done_at = NULL, read_at = NULL, acked_at = NULL WHERE recipient = {kai}",
    "UPDATE user SET timezone = 'UTC', name = 'Ada' WHERE boss = 1",
    "UPDATE agent SET mode = 'run', display = NULL, paused_why = 'for now' WHERE address = {kai}",
    "UPDATE run SET note = NULL, status = 'completed', error = NULL WHERE id = 1",
    "UPDATE schedule SET name = 'a name' WHERE id = 1",
)


class Meddler:
    """Makes the change when a reader begins its n-th statement."""

    def __init__(self, daemon: InProcessDaemon) -> None:
        self._daemon = daemon
        self._lock = threading.Lock()
        (row,) = daemon.rows("SELECT id FROM address WHERE fold = 'agent:kai'")
        self._kai = row[0]
        self._left = -1
        self.seen = 0

    async def watch(self) -> None:
        """Trace all connections that read."""
        store = self._daemon.daemon.wiring._store
        meet = threading.Barrier(2)

        def trace(connection: Connection) -> None:
            meet.wait(30)  # so that both threads have one
            connection.set_trace_callback(self._began)

        store.read(lambda connection: connection.set_trace_callback(self._began))
        await asyncio.gather(store.read_in_thread(trace), store.read_in_thread(trace))

    def _began(self, statement: str) -> None:
        if not statement.lstrip().upper().startswith("SELECT"):
            return
        with self._lock:
            self.seen += 1
            self._left -= 1
            now = self._left == 0
        if now:
            self.write(CHANGE)

    def write(self, statements: tuple[str, ...]) -> None:
        with closing(sqlite3.connect(self._daemon.home.database, isolation_level=None, timeout=30)) as other:
            other.execute("BEGIN IMMEDIATE")
            for one in statements:
                other.execute(one.format(kai=self._kai))
            other.execute("COMMIT")

    @contextmanager
    def at(self, statement: int) -> Iterator[None]:
        self.seen, self._left = 0, statement
        try:
            yield
        finally:
            self._left = -1
            self.write(UNDO)


async def scene(daemon: InProcessDaemon) -> Meddler:
    """Mail for kai, which has turns and is paused; a reply, a run and a schedule."""
    await daemon.register("kai")
    await daemon.ask("agent.set", name="kai", provider="demo")
    await daemon.ask("agent.pause", name="kai", reason="for now")
    first, second = [(await daemon.send("kai", text=text))[0] for text in ("one", "two")]
    await daemon.send("nex", who="kai", text="three", reply_to=first)
    await daemon.send("kai", who="nex", text="four", reply_to=second)
    await daemon.ask("cron.create", every="2h", to="nex", text="x", name="a name")
    await daemon.ask("ask.create", "nex", question="five", to="kai")
    await daemon.ask("webhook.create", name="ci", to="kai")
    slots = daemon.daemon.wiring.supervisor.slots
    await daemon.until(lambda: all(one.state == "running" for one in slots.values()))
    daemon.change(
        """
        INSERT INTO run (agent, status, provider, boot, started_at, ended_at)
        SELECT id, 'completed', 'demo', 1, 1, 2 FROM address WHERE fold = 'agent:kai'
        """
    )
    daemon.change("INSERT INTO run_envelope (run, envelope) VALUES (1, 1)")
    meddler = Meddler(daemon)
    await meddler.watch()
    return meddler


async def answer(daemon: InProcessDaemon, name: str, who: str, params: dict[str, Any]) -> Any:
    if name == "envelope.poll":
        daemon.change("DELETE FROM poll_position")
        daemon.change("DELETE FROM reading")
    try:
        found = await daemon.ask(name, who, **params)
    except HibossError as error:
        return error.code, error.message
    if name == "daemon.metrics":  # the others count calls, or what the process uses
        found = [one for one in found["families"] if one["name"] in OF_THE_STORE]
    if name == "daemon.status":
        found = {key: value for key, value in found.items() if key != "database_bytes"}
    return found


async def in_between(daemon: InProcessDaemon, meddler: Meddler, name: str) -> list[str]:
    """Return where an operation answers what was never so."""
    found = []
    for who, params in READING[name]:
        daemon.daemon.dispatcher._context.auth.forget()
        meddler.seen = 0
        before = await answer(daemon, name, who, params)
        with meddler.at(0):
            meddler.write(CHANGE)
            after = await answer(daemon, name, who, params)
        statement, last = 0, 1
        while statement < last:
            statement += 1
            with meddler.at(statement):
                between = await answer(daemon, name, who, params)
                last = meddler.seen
            if between not in (before, after):
                found.append(f"{name} {params} at its statement {statement} of {last}: {between}")
    return found


def test_every_operation_is_known_to_read_or_to_change() -> None:
    assert set(READING) | CHANGING == set(REGISTRY) and not set(READING) & CHANGING


@pytest.mark.slow
@frozen(quiet=False)
async def test_every_operation_that_reads_answers_from_one_snapshot(daemon: InProcessDaemon) -> None:
    meddler = await scene(daemon)
    wrong = [one for name in sorted(READING) for one in await in_between(daemon, meddler, name)]
    assert not wrong, "\n".join(wrong)


def test_an_operation_that_never_waits_is_a_plain_function() -> None:
    """Then the dispatcher makes its reads one snapshot."""
    for one in REGISTRY.values():
        if one.follows:
            continue  # it changes what its connection gets, so it runs on the loop
        if not (one.reads or inspect.iscoroutinefunction(one.run)):
            continue  # it returns what is left to wait for, if there is something
        body = ast.walk(ast.parse(textwrap.dedent(inspect.getsource(one.run))))
        waits = any(isinstance(node, (ast.Await, ast.AsyncWith, ast.AsyncFor)) for node in body)
        assert one.reads is not waits, one.name
