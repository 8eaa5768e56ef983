"""Who is let in: no token, a wrong or ended one, the boss, an agent; whose sessions are whose; a hundred clients at once."""

from __future__ import annotations

import json
import socket
import subprocess
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from hiboss.testing.running_daemon import Answered
from tests.support.mcp_clients import INBOX, STATUS, Chat, Way, connections, mcp_client, parameters
from tests.support.mcp_lines import HttpLine, NewWorkerLine, WorkerLine
from tests.support.parties import Party, agents, boss
from tests.support.waits import wait_until
from tests.support.web_daemons import WebDaemon, web_daemon

LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}


def pumped(daemon: WebDaemon, token: str | None, *words: str) -> tuple[int, Any, str]:
    """Run `hiboss mcp` with one request; return its status, its answer and its complaint."""
    given = parameters(daemon, token, words)
    done = subprocess.run(
        [given.command, *given.args],
        input=json.dumps(LIST).encode() + b"\n",
        env={"PATH": "/usr/bin:/bin", **(given.env or {})},
        capture_output=True,
        check=False,
        timeout=60,
    )
    return done.returncode, json.loads(done.stdout or b"null"), done.stderr.decode()


@pytest.mark.parametrize(
    ("token", "code"), [(None, "mcp_speaker_not_named"), ("hba_wrong", "bad_token")], ids=["none", "wrong"]
)
def test_hiboss_mcp_serves_nobody_without_a_good_token(
    daemon: WebDaemon, token: str | None, code: str
) -> None:
    status, answer, complaint = pumped(daemon, token)
    assert status != 0 and answer["error"]["data"]["code"] == code and complaint


def test_a_revoked_token_is_refused_by_both_doors(chat: Chat) -> None:
    token = chat.agent.token
    chat.boss.call("agent.token.rotate", name=chat.agent.name)
    status, answer, _ = pumped(chat.daemon, token)
    assert status != 0 and answer["error"]["data"]["code"] == "bad_token"
    assert chat.daemon.rest(token).request("POST", "/mcp", LIST).code == "bad_token"
    with pytest.raises(Answered) as caught, WorkerLine.of(chat.daemon, token):
        pass
    assert caught.value.stable_code == "bad_token"


@pytest.mark.parametrize("greeting", [b"", b"{}", b"[]", b"null", b"{", b'{"token": 7}', b'{"token": ""}'])
def test_a_first_line_that_says_nothing_is_refused(daemon: WebDaemon, greeting: bytes) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as raw:
        raw.settimeout(30)
        raw.connect(daemon.call("mcp.start")["socket"])
        raw.sendall(greeting + b"\n")
        stream = raw.makefile("rb")
        assert json.loads(stream.readline())["error"]["data"]["code"] in ("invalid_request", "no_token")
        assert stream.readline() == b""


def test_the_boss_speaks_where_that_is_said(chat: Chat) -> None:
    words = ("--as-boss",)
    with mcp_client(chat.daemon, Way("stdio", "auto"), None, agent=chat.agent.name, words=words) as client:
        assert client.call("chat_human_post", content="as the boss")["id"]
        assert chat.said() == [("user", "as the boss")]
        assert client.read(STATUS)["agent"] == chat.agent.name


def test_a_boss_without_an_agent_has_mail_and_no_chat(daemon: WebDaemon, chat: Chat, way: Way) -> None:
    with mcp_client(daemon, way, chat.boss.token) as client:
        assert client.call("team")["team"] and client.refusal("chat_read_since") == "invalid_params"
        for uri in (INBOX, STATUS):
            error = client.error(client.client.read_resource, uri)
            assert error.error.data["code"] == "invalid_params" and "agent" in str(error)


@pytest.mark.parametrize(
    ("named", "code"), [("nobody-here", "unknown_address"), ("user:boss", "unknown_agent")]
)
def test_a_boss_who_names_no_agent_is_told_so(
    daemon: WebDaemon, chat: Chat, way: Way, named: str, code: str
) -> None:
    with mcp_client(daemon, way, chat.boss.token, agent=named) as client:
        assert client.refusal("chat_read_since") == code


def test_an_agent_has_its_own_chat_and_no_other(daemon: WebDaemon, chat: Chat, way: Way) -> None:
    chat.human("private")
    with mcp_client(daemon, way, Chat(daemon).agent.token, agent=chat.agent.name) as client:
        assert client.refusal("chat_read_since") == "boss_only"
        assert client.refusal("chat_assistant_post", content="x") == "boss_only"
        assert client.error(client.client.read_resource, INBOX).error.data["code"] == "boss_only"
    with mcp_client(daemon, way, chat.agent.token, agent=chat.agent.name) as client:
        assert len(client.read(INBOX)["messages"]) == 1


# --- sessions over HTTP ------------------------------------------------------------------


def test_a_session_is_of_no_use_with_another_token(daemon: WebDaemon, chat: Chat) -> None:
    line, other = HttpLine(daemon, chat.agent.token), Chat(daemon)
    for token in (other.agent.token, chat.boss.token):
        thief = daemon.rest(token)
        for method, body in (("POST", LIST), ("GET", None), ("DELETE", None)):
            assert thief.request(method, "/mcp", body, line.headers).status == 404
    assert line.post("tools/list").status == 200


def test_the_end_of_a_session_ends_its_watch_and_its_stream(chat: Chat) -> None:
    line = HttpLine(chat.daemon, chat.agent.token)
    assert line.post("tools/call", name="team", arguments={}).status == 200
    before = connections(chat.daemon)
    assert line.post("resources/subscribe", uri=INBOX).status == 200
    assert connections(chat.daemon) != before
    with line.stream() as stream:
        assert line.delete().status == 200
        assert [one for one in stream if one.startswith(b"data:") and one[5:].strip()] == []
    wait_until(lambda: connections(chat.daemon) <= before)
    assert line.post("tools/list").status == 404


def test_a_stream_that_is_cut_leaves_the_session_and_nothing_else(chat: Chat) -> None:
    line = HttpLine(chat.daemon, chat.agent.token)
    for _ in range(4):  # each is opened and cut, as soon as the one before is gone
        wait_until(lambda: _opens_and_cuts(line))
    assert line.post("tools/list").status == 200
    assert line.delete().status == 200


def _opens_and_cuts(line: HttpLine) -> bool:
    try:
        with line.stream():
            return True
    except AssertionError:
        return False


def test_no_agent_is_made_the_boss_by_the_command(chat: Chat) -> None:
    """`--as-boss` beside a token is a contradiction, and is refused."""
    status, answer, complaint = pumped(chat.daemon, None, "--as-boss", "--token", chat.agent.token)
    assert status != 0 and "--as-boss" in complaint and (answer is None or "error" in answer)


# --- many clients -------------------------------------------------------------------


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
