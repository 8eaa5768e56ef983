"""A hundred clients at once, each with its own notices; and the limit."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest

from hiboss.testing.running_daemon import Answered
from tests.support.mcp_clients import INBOX, connections
from tests.support.mcp_lines import HttpLine, NewWorkerLine, WorkerLine
from tests.support.parties import Party, agents, boss
from tests.support.waits import wait_until
from tests.support.web_clients import WebDaemon, web_daemon

CLIENTS = 100
AGENTS = 10


def follow(stack: ExitStack, daemon: WebDaemon, who: Party, *, old: bool) -> WorkerLine:
    kind = WorkerLine if old else NewWorkerLine
    line = stack.enter_context(kind.of(daemon, who.token))
    if old:
        line.initialize()
        line.ask("resources/subscribe", uri=INBOX)
    else:
        line.send("subscriptions/listen", notifications={"resourceSubscriptions": [INBOX]})
        assert line.next()["method"] == "notifications/subscriptions/acknowledged"
    return line


def test_a_hundred_clients_get_each_its_own_notices(daemon: WebDaemon) -> None:
    chief, staff = boss(daemon), agents(daemon, AGENTS)
    before = connections(daemon)
    with ExitStack() as stack:
        lines = [
            (who := staff[number % AGENTS], follow(stack, daemon, who, old=number // AGENTS % 2 == 0))
            for number in range(CLIENTS)
        ]
        for text in ("one", "two"):
            for who in staff:
                chief.call("chat.post", agent=who.name, content=f"{text} for {who.name}")
            for who, line in lines:
                told = line.notice(INBOX)
                if not isinstance(line, NewWorkerLine):
                    assert [one["content"] for one in told["messages"]] == [f"{text} for {who.name}"]
        for _, line in lines:  # nothing else has come: the next line is an answer
            number = line.send("prompts/list")
            assert line.next()["id"] == number
    wait_until(lambda: connections(daemon) <= before + AGENTS + 1)


def test_one_more_than_the_limit_is_refused_and_room_is_made_by_those_who_leave(tmp_path: Path) -> None:
    with web_daemon(tmp_path, mcp_clients=3) as daemon:
        token = daemon.token("nex")
        with ExitStack() as stack:
            for _ in range(3):
                stack.enter_context(WorkerLine.of(daemon, token)).initialize()
            with pytest.raises(Answered) as caught, WorkerLine.of(daemon, token):
                pass
            assert caught.value.stable_code == "busy" and "mcp.clients" in str(caught.value)
        wait_until(lambda: _is_let_in(daemon, token))
        sessions = [HttpLine(daemon, token) for _ in range(3)]
        with pytest.raises(AssertionError, match="503"):
            HttpLine(daemon, token)
        assert sessions[0].delete().status == 200
        assert HttpLine(daemon, token).post("tools/list").status == 200


def test_a_session_that_nobody_uses_keeps_no_place_but_one_with_a_stream_does(tmp_path: Path) -> None:
    with web_daemon(tmp_path, mcp_clients=2, mcp_idle_seconds=1) as daemon:
        token = daemon.token("nex")
        with ExitStack() as stack:
            stack.enter_context(WorkerLine.of(daemon, token))  # so that the worker itself is not idle
            used = wait_until(lambda: _streaming(daemon, token, stack))
            wait_until(lambda: _begins_a_session(daemon, token))  # the one that is unused
            wait_until(lambda: _begins_a_session(daemon, token))  # in its place
            assert used.post("ping").status == 200


def _streaming(daemon: WebDaemon, token: str, stack: ExitStack) -> HttpLine | None:
    """Return a session with a stream; None: the session ended before its stream began."""
    try:
        line = HttpLine(daemon, token)
        stack.enter_context(line.stream())
    except AssertionError as error:
        assert "503" in str(error) or "404" in str(error) or "not_found" in str(error), error
        return None
    return line


def _begins_a_session(daemon: WebDaemon, token: str) -> bool:
    try:
        HttpLine(daemon, token)
    except AssertionError as error:
        assert "503" in str(error)
        return False
    return True


def _is_let_in(daemon: WebDaemon, token: str) -> bool:
    try:
        with WorkerLine.of(daemon, token):
            return True
    except Answered as error:
        assert error.stable_code == "busy"
        return False
