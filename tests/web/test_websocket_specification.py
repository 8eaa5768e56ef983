"""JSON-RPC over the WebSocket: the examples of its specification, answered as over the unix socket.

A message is a frame here, and what ends the examples is a ping.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.rpc.test_jsonrpc_specification import (
    EXAMPLES,
    check_examples,
    expected,
    ours,
    reduced,
    with_agents,
)
from tests.support.daemons import code
from tests.support.web_daemons import WebDaemon, web_daemon

END = {"jsonrpc": "2.0", "method": "daemon.ping", "id": "end"}


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebDaemon]:
    with web_daemon(tmp_path_factory.mktemp("d")) as running:
        yield with_agents(running)


def said(daemon: WebDaemon, *examples: str | bytes, login: bool = True) -> list[Any]:
    """Every message of the daemon to these, up to the answer to the last request."""
    token = daemon.token("nex")
    with daemon.websocket(None if login else token) as client:
        if login:
            assert client.call("auth.login", token=token)["address"] == "agent:nex"
        for example in (*examples, json.dumps(END)):
            client.send(example)
        found = []
        while True:
            answer = client.receive()
            if isinstance(answer, dict) and answer["id"] == "end":
                return found
            found.append(answer)


@pytest.mark.parametrize("login", [True, False], ids=["auth.login", "bearer"])
def test_the_examples_of_the_specification_are_answered_as_it_says_in_order(
    daemon: WebDaemon, login: bool
) -> None:
    check_examples(lambda *examples: said(daemon, *examples, login=login))


def test_a_message_of_bytes_is_a_request_like_one_of_text(daemon: WebDaemon) -> None:
    asked, answered = EXAMPLES["positional parameters"]
    (answer,) = said(daemon, ours(asked).encode())
    assert reduced(answer) == expected(answered)


def test_a_message_that_is_no_request_is_answered_with_an_error(daemon: WebDaemon) -> None:
    odd = ["", " ", "\n", b"", b"\xff\xfe", b"\x00", "null", '"x"', "7", "\x00"]
    for message, answer in zip(odd, said(daemon, *odd), strict=True):
        assert code(answer) in ("parse_error", "invalid_request") and answer["id"] is None, message


def test_a_login_is_for_the_connection_it_is_made_on(daemon: WebDaemon) -> None:
    with daemon.websocket() as first, daemon.websocket() as second:
        assert code(first.ask("agent.self")) == "no_token"
        assert code(first.ask("auth.login", token="hba_wrong")) == "bad_token"
        first.call("auth.login", token=daemon.token("first"))
        assert first.call("agent.self")["address"] == "agent:first"
        assert first.call("agent.self", token=daemon.token("second"))["address"] == "agent:second"
        assert code(second.ask("agent.self")) == "no_token"
        second.call("auth.login", token=daemon.token("boss"))
        assert second.call("agent.self")["address"] == "user:boss"
        first.call("auth.login", token=daemon.token("nex"))
        assert first.call("agent.self")["address"] == "agent:nex"
