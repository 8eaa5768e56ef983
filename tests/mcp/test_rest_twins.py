"""Tools as plain REST, OAuth that is not there, and lines that no good client sends."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from tests.support.mcp_clients import Chat
from tests.support.mcp_lines import HttpLine, NewWorkerLine, WorkerLine
from tests.support.web_clients import Reply
from tests.support.web_daemons import WebDaemon

MEBIBYTE = 1 << 20


def call(chat: Chat, tool: str, arguments: Any, token: str | None, **more: Any) -> Reply:
    body = {"server": "ui", "tool": tool, "arguments": arguments, **more}
    return chat.daemon.rest(token).request("POST", "/api/mcp/call", body)


@pytest.mark.parametrize("server", ["ui", "chat", "hiboss"])
def test_a_tool_is_called_by_rest(chat: Chat, server: str) -> None:
    posted = call(chat, "chat_assistant_post", {"content": "one"}, chat.agent.token, server=server)
    assert posted.status == 200 and posted.json["id"] == "1"
    named = {"agent": chat.agent.name, "server": server}
    assert call(chat, "chat.human.post", {"content": "two"}, chat.boss.token, **named).status == 200
    assert chat.said() == [("assistant", "one"), ("user", "two")]
    page = call(chat, "chat_read_since", {}, chat.agent.token, server=server).json
    assert page == chat.agent.call("chat.read")


def test_a_tool_of_the_path_is_called_by_rest(chat: Chat) -> None:
    rest = chat.daemon.rest(chat.boss.token)
    body = {"mime": "text/plain", "content": "one"}
    named = {"agent": chat.agent.name}
    for path in ("/api/tools/ui_chat_human_post", "/api/tools/chat_human_post", "/api/tools/chat.human.post"):
        assert rest.request("POST", path, body, **named).status == 200
    assert chat.said() == [("user", "one")] * 3
    assert rest.request("POST", "/api/tools/team", None, **named).status == 200
    assert rest.request("POST", "/api/mcp/call", {"server": "ui", "tool": "team"}).status == 200


def test_rest_refuses_as_the_tools_do(chat: Chat) -> None:
    token = chat.agent.token
    wrong: list[tuple[str, Any, str | None, int, str]] = [
        ("chat_assistant_post", {"content": "x"}, None, 401, "no_token"),
        ("chat_assistant_post", {"content": "x"}, "hba_wrong", 401, "bad_token"),
        ("chat_human_post", {"content": "x"}, token, 400, "invalid_params"),
        ("chat_assistant_post", {"content": "a\x00b"}, token, 400, "bad_text"),
        ("chat_assistant_post", {"content": "x" * (MEBIBYTE + 1)}, token, 413, "too_large"),
        ("chat_assistant_post", {}, token, 400, "invalid_params"),
        ("chat_assistant_post", [], token, 400, "invalid_params"),
        ("chat_read_since", {"after_id": "77"}, token, 404, "not_found"),
        ("chat_read_since", {}, chat.boss.token, 400, "invalid_params"),
        ("nothing", {}, token, 404, "unknown_tool"),
    ]
    for tool, arguments, who, status, code in wrong:
        reply = call(chat, tool, arguments, who)
        assert (reply.status, reply.code) == (status, code), (tool, arguments)
        if isinstance(arguments, dict):
            named = chat.daemon.rest(who).request("POST", f"/api/tools/{tool}", arguments)
            assert (named.status, named.code) == (status, code), tool
    assert call(chat, "team", {}, token, server="other").code == "not_found"
    assert call(chat, "team", {}, token, colour="red").code == "invalid_params"
    assert call(chat, "chat_read_since", {}, token, agent="nex").code == "boss_only" and chat.entries() == []


@pytest.mark.parametrize(
    "path",
    [
        "/.well-known/oauth-authorization-server",
        "/.well-known/oauth-authorization-server/mcp",
        "/.well-known/oauth-protected-resource",
        "/.well-known/oauth-protected-resource/mcp",
    ],
)
def test_there_is_no_oauth_and_clients_are_told_so_in_json(daemon: WebDaemon, path: str) -> None:
    reply = daemon.rest().request("GET", path)
    assert reply.status == 404 and reply.headers["content-type"].startswith("application/json") and reply.code


# --- lines that no good client sends -------------------------------------------------------

HALF = b'"\\ud800 half a pair"'


def test_half_a_surrogate_pair_is_refused_over_rest(chat: Chat) -> None:
    rest = chat.daemon.rest(chat.agent.token)
    headers = {"Content-Type": "application/json"}
    for path, body in (
        ("/api/tools/chat_assistant_post", b'{"content": ' + HALF + b"}"),
        ("/api/mcp/call", b'{"server": "ui", "tool": "send", "arguments": {"text": ' + HALF + b"}}"),
    ):
        reply = rest.request("POST", path, body, headers)
        assert 400 <= reply.status < 500 and reply.code, reply
    assert chat.entries() == []


@pytest.mark.parametrize("old", [True, False])
def test_half_a_surrogate_pair_is_answered_and_the_session_goes_on(chat: Chat, old: bool) -> None:
    kind = WorkerLine if old else NewWorkerLine
    with kind.of(chat.daemon, chat.agent.token) as line:
        if old:
            line.initialize()
        params = {"name": "chat_assistant_post", "arguments": {"content": "HALF"}}
        line.write(json.dumps(line.request("tools/call", 77, params)).encode().replace(b'"HALF"', HALF))
        found = line.next()
        assert found["id"] == 77, found
        assert "error" in found or found["result"]["isError"]
        assert line.ask("tools/call", name="chat_assistant_post", arguments={"content": "whole"})
    assert chat.said() == [("assistant", "whole")]


@pytest.mark.parametrize(
    "line", [b"", b"x", b"{}", b"[]", b"null", b"7", b'"x"', b'{"jsonrpc": "2.0"}', b"[" * 5_000, b"\xff\xfe"]
)
def test_a_line_that_is_no_message_harms_nobody(chat: Chat, line: bytes) -> None:
    with WorkerLine.of(chat.daemon, chat.agent.token) as client:
        client.initialize()
        client.write(line)
        assert client.answer(client.send("tools/list"))["result"]["tools"]


def test_a_body_that_is_no_message_is_refused_over_http(chat: Chat) -> None:
    session = HttpLine(chat.daemon, chat.agent.token)
    for body in (b"", b"x", b"[]", b"null", b"{" * 5_000, b"\xff\xfe", b'{"x": ' + HALF + b"}"):
        headers = {**session.headers, "Content-Type": "application/json"}
        reply = session.rest.request("POST", "/mcp", body, headers)
        assert 400 <= reply.status < 500, (body[:20], reply)
    assert session.post("tools/list").status == 200


# --- the daemon --------------------------------------------------------------------------


def test_the_daemon_does_not_import_the_sdk() -> None:
    """It would stop the daemon for a second, and take 60 MB."""
    script = (
        "import sys, hiboss.daemon.__main__, hiboss.daemon.wiring, hiboss.web.app, hiboss.cli.mcp_stdio.program;"
        "print(sorted(one for one in sys.modules if one.partition('.')[0] in ('mcp', 'mcp_types', 'httpx2')))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("sent", "number", "code"),
    [
        (b"nonsense", None, "parse_error"),
        (b"[" * 100_000, None, "parse_error"),
        (b'[{"jsonrpc": "2.0", "id": 5, "method": "ping"}]', None, "invalid_request"),
        (b'{"jsonrpc": "2.0", "id": 2.5, "method": "ping"}', 2.5, "invalid_request"),
    ],
)
def test_what_is_no_request_is_answered_and_the_session_goes_on(
    chat: Chat, sent: bytes, number: float | None, code: str
) -> None:
    with WorkerLine.of(chat.daemon, chat.agent.token) as line:
        line.initialize()
        line.write(sent)
        found = line.next()
        assert (found["id"], found["error"]["data"]["code"]) == (number, code)
        assert line.ask("tools/call", name="chat_assistant_post", arguments={"content": "whole"})
