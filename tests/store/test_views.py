"""The public schema: plural views with ISO times and text addresses, equal to what the API says."""

from __future__ import annotations

import json
import os
import re
import shlex
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hiboss.agents import process_control
from hiboss.core import clock
from hiboss.core.envelope import Box, Kind, Priority, Status, Waits
from hiboss.testing.running_daemon import RunningDaemon, running_daemon
from tests.support.daemons import set_up
from tests.support.sweeps import sweep
from tests.support.waits import wait_until

ISO = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z")
ADDRESS = re.compile(r"(agent|user|channel|group):.+")
VIEWS = {
    "addresses",
    "contacts",
    "users",
    "agents",
    "tokens",
    "conversations",
    "participants",
    "messages",
    "envelopes",
} | {
    "bindings",
    "lanes",
    "schedules",
    "schedule_slots",
    "runs",
    "run_turns",
    "reactions",
    "asks",
    "ask_rules",
    "controls",
    "conversation_routes",
    "provider_sessions",
    "attached_sessions",
    "readings",
    "tags",
    "threads",
}
_EXPRESSION = re.compile(r"(strftime\([^)]*\))")


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDaemon]:
    """A daemon with mail of many kinds, and an account that cannot post."""
    directory = tmp_path_factory.mktemp("d")
    set_up(directory)
    with running_daemon(
        directory,
        set_up=False,
        HIBOSS_ADAPTERS_MODULES="hiboss.testing.scripted_adapter",
        HIBOSS_DAEMON_HEARTBEAT_SECONDS="1",
    ) as running:
        nex, boss, ada = running.token("nex"), running.token("boss"), running.register("ada", role="reviewer")
        first = running.call(
            "envelope.send", token=nex, to=["agent:ada", "user:boss"], text="hello", subject="s"
        )
        running.call(
            "envelope.send", token=ada, reply_to=first["ids"][0], text="# hi", type="markdown", priority="low"
        )
        running.call(
            "envelope.send", token=nex, to="agent:ada", text="later", deliver_at="2099-12-31T23:59:59.999Z"
        )
        running.call(
            "envelope.send", token=boss, from_="user:boss", to="agent:nex", text="[1]", type="json",
            from_boss=True, from_name="Ada L.", trace_id="trace-1", metadata={"a": [1, "ü"]}, priority="critical",
        )  # fmt: skip
        cancelled = running.call(
            "envelope.send", token=nex, to="agent:ada", text="oops", priority="high", type="html"
        )
        running.call("envelope.cancel", token=nex, ids=cancelled["ids"])
        read = running.call("envelope.send", token=ada, to="agent:nex", text="read, acknowledged, archived")
        running.call("envelope.ack", token=nex, ids=read["ids"])
        running.call("envelope.archive", token=nex, ids=read["ids"])
        put_off = running.call(
            "envelope.send",
            token=ada,
            to="agent:nex",
            text="@nex, look",
            ack_by="1h",
            scopes=[{"type": "module", "value": "auth"}],
        )
        running.call("envelope.snooze", token=nex, ids=put_off["ids"], until="2099-12-31T23:59:59.999Z")
        _group(running, ada)
        running.register("shortlived")
        running.call("agent.delete", token=boss, name="shortlived")
        _fail_to_post(running, directory)
        _schedule(running)
        _run(running)
        _ask(running)
        _open_session(running)
        for event, more in (("pause", {"reason": "a look"}), ("resume", {}), ("cancel", {})):
            running.call("control.send", token=boss, event=f"stream.{event}", agent="still", **more)
        routed = running.call("envelope.send", token=boss, to="agent:still", text="for whoever is awake")
        where = {"conversation": routed["conversation"], "to": "agent:ada"}
        running.call("control.send", token=boss, event="stream.handoff", **where)
        running.call("agent.pause", token=boss, name="still", reason="for a while")
        yield running


def _group(running: RunningDaemon, ada: str) -> None:
    """One in which something was said, which somebody left, and that takes no more messages."""
    nex = running.token("nex")
    running.call("conversation.create", token=ada, type="group", name="ops", participants=["agent:nex"])
    running.call("envelope.send", token=ada, to="group:ops", text="hello")
    running.call("participant.leave", token=nex, conversation="ops")
    running.call("conversation.archive", token=ada, conversation="ops")


def _run(running: RunningDaemon) -> None:
    """Two that end well, one of them beside the turns, and one that does not; and an agent that is paused."""
    boss = running.token("boss")
    used = '{"hiboss":"session","id":"s-1"}\n{"hiboss":"usage","tokens_in":5,"tokens_out":7,"cost":0.25}'
    running.register(
        "kai",
        provider="command",
        settings={"command": f"printf '{used}\nfine'"},
        daily_tokens=900,
        daily_cost=1.5,
    )
    running.register("odd", provider="command", settings={"command": "sh -c 'exit 3'"})
    running.register("still")
    running.call("agent.pause", token=boss, name="still", reason="for a while")
    for name in ("kai", "odd"):
        running.call("envelope.send", token=boss, from_="user:boss", to=f"agent:{name}", text="think")
    wait_until(lambda: running.call("run.list", token=boss, status="failed")["runs"])
    running.call("agent.pause", token=boss, name="odd")  # or it tries again while a test compares
    running.call("agent.background", token=boss, agent="kai", task="and beside that")
    wait_until(lambda: len(running.call("run.list", token=boss, status="completed")["runs"]) == 2)
    assert running.call("agent.refresh", token=boss, name="kai")["ended"] == 1


def _ask(running: RunningDaemon) -> None:
    """One that waits, and one that has its answer; and a permission whose answer was a rule for a while."""
    boss = running.token("boss")
    asks = '{"hiboss":"ask","text":"May I?","tool":"Bash","subject":"ls"}'
    command = shlex.join(["sh", "-c", f"read turn; echo '{asks}'; read answer"])
    permits = running.register("permits", provider="command", settings={"command": command, "input": "open"})
    running.call("envelope.send", token=boss, from_="user:boss", to="agent:permits", text="work")
    wait_until(lambda: running.call("ask.list", token=permits)["asks"])
    [permission] = running.call("ask.list", token=permits)["asks"]
    running.call("ask.answer", token=boss, id=permission["id"], choice="allow", scope="rule")
    running.call("ask.rule.remove", token=boss, number=1)
    wait_until(lambda: running.call("run.list", token=permits, status="completed")["runs"])
    nex = running.token("nex")
    running.call("ask.create", token=nex, question="And then?", timeout="1h", default="no")
    ask = running.call("ask.create", token=nex, question="Deploy?")["ask"]["id"]
    running.call("ask.answer", token=running.token("boss"), id=ask, choice="yes", comment="now")


def _open_session(running: RunningDaemon) -> None:
    """A harness is open as an agent, answers mail, and is closed."""
    pid = os.getpid()
    started = process_control.started_at(pid)
    running.call(
        "attached.start", client="claude", session="s1", pid=pid, pid_started=started, directory="/shop"
    )
    token = str(running.home.known_session("claude", "s1")["token"])
    running.call("envelope.send", token=running.token("boss"), to="agent:shop", text="how is it?")
    nudge = running.call("attached.wait", token=token)["nudge"]
    running.call("attached.prompt", token=token, event="1", prompt=nudge)
    running.call("attached.stop", token=token, event="2", text="fine")
    running.call("attached.end", token=token, event="3")


def _schedule(running: RunningDaemon) -> None:
    """One of each kind; one has sent, one is taken away."""
    nex = running.token("nex")
    content = {"to": "agent:ada", "text": "again"}
    for when in ({"cron": "0 9 * * MON-FRI"}, {"every": "90s"}, {"at": "2099-12-31T23:59:59Z"}):
        made = running.call("cron.create", token=nex, name="n", **content, **when)
    running.call("cron.run", token=nex, id="s1")
    running.call(
        "cron.delete", token=nex, id=running.call("cron.create", token=nex, **content, every="1h")["id"]
    )
    assert made["id"] == "s3"


def _fail_to_post(running: RunningDaemon, directory: Path) -> None:
    """One account that is refused, for an hour; one that is bound no longer."""
    nex, boss = running.token("nex"), running.token("boss")
    for name in ("refused", "ended"):
        (directory / name).mkdir()
        bind = {"name": "nex", "adapter_type": "scripted", "settings": {"path": str(directory / name)}}
        place = running.call("agent.bind", token=boss, **bind)["address"]
        if name == "ended":
            running.call("agent.unbind", token=boss, name="nex", adapter_type="scripted", account=name)
            continue
        refusal = {"do": "lane_error", "text": "refused", "retry_after": 3600}
        (directory / name / "script.jsonl").write_text(json.dumps(refusal) + "\n")
        running.call("envelope.send", token=nex, to=place, text="x")
    wait_until(lambda: rows(running, "SELECT 1 FROM lanes WHERE state = 'waiting'"))
    reaction = {
        "kind": "reaction",
        "emoji": "👍",
        "message": "m1",
        "author": {"name": "Bob", "username": "bob"},
    }
    for update, facts in (("u1", {"text": "hello", "message": "m1"}), ("u2", reaction)):
        (directory / "refused" / "inbox" / f"{update}.part").write_text(json.dumps(facts))
        (directory / "refused" / "inbox" / f"{update}.part").rename(
            directory / "refused" / "inbox" / f"{update}.json"
        )
    wait_until(lambda: rows(running, "SELECT 1 FROM reactions"))


def rows(daemon: RunningDaemon, sql: str) -> list[dict[str, Any]]:
    with daemon.database() as connection:
        return [dict(row) for row in connection.execute(sql)]


def test_there_is_a_view_for_everything_people_look_at(daemon: RunningDaemon) -> None:
    found = {row["name"] for row in rows(daemon, "SELECT name FROM sqlite_master WHERE type = 'view'")}
    assert found == VIEWS


WORDS = {"status", "priority", "box", "waits", "type", "kind", "mode", "level", "state", "outcome"}
UNUSED = {"edited_at", "deleted_at", "revoked_at", "held_at"}  # times that nothing in this store has


def is_right(column: str, value: Any) -> bool:
    """Whether a column has a value of the form that its name promises."""
    if column.endswith(("_at", "_until")) or column in ("at", "slot", "last_slot"):
        return ISO.fullmatch(value) is not None
    if column in ("from", "to", "address", "holder", "owner", "agent"):
        return ADDRESS.fullmatch(value) is not None
    return column not in WORDS or (isinstance(value, str) and value.replace("-", "").isalpha())


def test_a_view_shows_iso_times_text_addresses_and_no_code_and_every_time_was_seen(
    daemon: RunningDaemon,
) -> None:
    for view in ("users", "agents"):
        wait_until(lambda view=view: rows(daemon, f"SELECT 1 FROM {view} WHERE last_seen_at IS NOT NULL"))  # type: ignore[misc]
    with sweep() as row:
        for view in sorted(VIEWS):
            with row(view):
                found = [pair for one in rows(daemon, f"SELECT * FROM {view}") for pair in one.items()]
                seen = [(column, value) for column, value in found if value is not None]
                assert seen and [pair for pair in seen if not is_right(*pair)] == []
                times = {column for column, _ in found if column.endswith("_at")}
                assert times - {column for column, _ in seen} <= UNUSED


def test_no_view_shows_a_secret(daemon: RunningDaemon) -> None:
    columns = {column for view in VIEWS for column in rows(daemon, f"SELECT * FROM {view} LIMIT 1")[0]}
    assert not columns & {"hash", "token", "digest"}


def test_the_envelopes_view_says_the_same_as_the_api(daemon: RunningDaemon) -> None:
    found = rows(daemon, "SELECT * FROM envelopes")
    assert len(found) > 10
    for row in found:
        api = daemon.call("envelope.get", token=daemon.token("boss"), id=row["id"])["envelope"]
        row["from_boss"] = bool(row["from_boss"])
        row["metadata"] = json.loads(row["metadata"] or "{}")
        row["attachments"] = json.loads(row["attachments"] or "[]")
        if reason := row["metadata"].get("control", {}).get("reason"):
            row["text"] += f'. Reason: "{reason}"'  # added where it is read by those whom it concerns
        shared = set(row) & set(api)
        assert {column: row[column] for column in shared} == {column: api[column] for column in shared}
        assert {
            "id",
            "message",
            "from",
            "to",
            "text",
            "status",
            "deliver_at",
            "created_at",
            "metadata",
        } <= shared


def test_the_agents_view_says_the_same_as_the_api(daemon: RunningDaemon) -> None:
    api = daemon.call("agent.list", token=daemon.token("boss"))["agents"]
    found = {row["name"]: row for row in rows(daemon, "SELECT * FROM agents WHERE deleted_at IS NULL")}
    assert (
        set(found) == {one["name"] for one in api} == {"nex", "ada", "kai", "odd", "permits", "shop", "still"}
    )
    for one in api:
        # Who was seen just now is noted, and written later.
        shared = set(one) & set(found[one["name"]]) - {"last_seen_at"}
        assert {word: one[word] for word in shared} == {word: found[one["name"]][word] for word in shared}


def test_the_runs_view_says_the_same_as_the_api(daemon: RunningDaemon) -> None:
    def settled() -> bool:  # what has failed is tried again, and is not looked at while it is
        return not rows(daemon, "SELECT 1 FROM runs WHERE status = 'running'")

    wait_until(settled)
    found = {row["id"]: row for row in rows(daemon, "SELECT * FROM runs")}
    api = daemon.call("run.list", token=daemon.token("boss"), page_size=100)["runs"]
    assert set(found) == {one["id"] for one in api}
    assert {(one["agent"], one["kind"], one["status"]) for one in api} == {
        ("shop", "turn", "completed"),
        ("kai", "turn", "completed"),
        ("kai", "background", "completed"),
        ("odd", "turn", "failed"),
        ("permits", "turn", "completed"),
    }
    for one in api:
        row = found[one["id"]]
        row |= {"agent": row["agent"].removeprefix("agent:"), "envelopes": row["envelopes"].split(", ")}
        row |= {"text": row["final_text"], "pid": None}  # of one that is over the API names none
        shared = set(one) & set(row)
        assert {word: one[word] for word in shared} == {word: row[word] for word in shared}
        assert set(one) - shared == {"paused"}
    assert {(one["tokens_in"], one["tokens_out"], one["cost"]) for one in api} >= {(5, 7, 0.25)}


def test_the_controls_view_says_the_same_as_the_api(daemon: RunningDaemon) -> None:
    api = daemon.call("control.list", token=daemon.token("boss"))["controls"]
    found = rows(daemon, "SELECT * FROM controls ORDER BY message DESC")
    assert [{word: row[word] for word in api[0]} for row in found] == api
    assert [(one["event"], one["outcome"]) for one in reversed(api)] == [
        ("stream.pause", "refused"),  # it is paused already
        ("stream.resume", "applied"),
        ("stream.cancel", "too-late"),
        ("stream.handoff", "applied"),
    ]


def test_the_schedules_view_says_the_same_as_the_api(daemon: RunningDaemon) -> None:
    api = daemon.call("cron.list", token=daemon.token("boss"))["schedules"]
    found = {row["id"]: row for row in rows(daemon, "SELECT * FROM schedules WHERE deleted_at IS NULL")}
    assert set(found) == {one["id"] for one in api} == {"s1", "s2", "s3"}
    for one in api:
        row = found[one["id"]]
        row["enabled"] = bool(row["enabled"])
        row["timezone"] = row["timezone"] or "UTC"  # the boss's, which a schedule follows
        shared = set(one) & set(row)
        assert {word: one[word] for word in shared} == {word: row[word] for word in shared}
        assert {"cron", "every_seconds", "at", "next_at", "catch_up", "overlap", "owner"} <= shared


def test_the_schedule_slots_view_says_the_same_as_the_api(daemon: RunningDaemon) -> None:
    api = daemon.call("cron.show", token=daemon.token("boss"), id="s1")["slots"]
    found = rows(daemon, "SELECT * FROM schedule_slots WHERE schedule = 's1'")
    assert len(found) == 1 and [{word: row[word] for word in api[0]} for row in found] == api


def test_every_code_has_its_word_in_the_views() -> None:
    script = (files("hiboss.store") / "schema" / "views.sql").read_text()
    for column, words in (
        ("e.status", Status),
        ("e.priority", Priority),
        ("e.box", Box),
        ("e.waits", Waits),
        ("m.type", Kind),
    ):
        cases = re.search(rf"CASE {re.escape(column)} (.*?) END", script, re.DOTALL)
        assert cases is not None
        found = {int(number): word for number, word in re.findall(r"WHEN (\d+) THEN '(\w+)'", cases[1])}
        # A notice has a priority of its own in the store only; everywhere else it is normal.
        assert found == {int(one): "normal" if one is Priority.NOTICE else one.word for one in words}


# --- times -----------------------------------------------------------------------------------


def time_expressions() -> set[str]:
    """How the views write times, with `?` in the place of the column."""
    script = (files("hiboss.store") / "schema" / "views.sql").read_text()
    return {re.sub(r"\w+\.\w+ /", "? /", found) for found in _EXPRESSION.findall(script)}


def test_all_times_are_written_by_one_expression() -> None:
    assert len(time_expressions()) == 1


FIRST, LAST = clock.to_ms(clock.from_ms(0).replace(year=1, month=1, day=1)), 253_402_300_799_999


@given(st.integers(min_value=0, max_value=LAST) | st.integers(min_value=FIRST, max_value=LAST))
@example(0)
@example(999)
@example(1_000)
@example(59_999)
@example(LAST)
@example(FIRST)
@example(-1)
@example(1_769_602_125_120)
def test_the_views_write_a_time_exactly_as_the_api_does(ms: int) -> None:
    (expression,) = time_expressions()
    with closing(sqlite3.connect(":memory:")) as connection:
        assert connection.execute(f"SELECT {expression}", (ms,)).fetchone()[0] == clock.iso(ms)
