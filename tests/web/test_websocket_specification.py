"""JSON-RPC over the WebSocket: the examples of its specification, answered as over the unix socket.

A message is a frame here, so the examples need not be on one line.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.rpc.test_jsonrpc_specification import (
    EXAMPLES,
    METHODS,
    NOTHING,
    expected,
    in_any_order,
    reduced,
)
from tests.support.daemons import code
from tests.support.web_clients import WebDaemon, web_daemon

END = {"jsonrpc": "2.0", "method": "daemon.ping", "id": "end"}


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebDaemon]:
    with web_daemon(tmp_path_factory.mktemp("d")) as running:
        running.register("first", role="reviewer", module="auth")
        running.register("second", role="auth", module="reviewer")
        running.register("third", role="reviewer", module="billing")
        yield running


def ours(text: str) -> str:
    for theirs, own in METHODS.items():
        text = text.replace(theirs, own)
    return text


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
@pytest.mark.parametrize(("asked", "answered"), EXAMPLES.values(), ids=EXAMPLES.keys())
def test_an_example_of_the_specification_is_answered_as_it_says(
    daemon: WebDaemon, asked: str, answered: str, login: bool
) -> None:
    (answer,) = said(daemon, ours(asked), login=login)
    assert in_any_order(reduced(answer)) == in_any_order(expected(answered))


@pytest.mark.parametrize("asked", NOTHING.values(), ids=NOTHING.keys())
def test_an_example_that_wants_no_answer_gets_none(daemon: WebDaemon, asked: str) -> None:
    assert said(daemon, ours(asked)) == []


def test_the_examples_follow_one_another_on_one_connection_in_order(daemon: WebDaemon) -> None:
    quiet = ours(NOTHING["a notification"])
    found = said(daemon, *(text for asked, _ in EXAMPLES.values() for text in (ours(asked), quiet)))
    wanted = [in_any_order(expected(answered)) for _, answered in EXAMPLES.values()]
    assert [in_any_order(reduced(answer)) for answer in found] == wanted


def test_a_message_of_bytes_is_a_request_like_one_of_text(daemon: WebDaemon) -> None:
    asked, answered = EXAMPLES["positional parameters"]
    (answer,) = said(daemon, ours(asked).encode())
    assert reduced(answer) == expected(answered)


@pytest.mark.parametrize("odd", ["", " ", "\n", b"", b"\xff\xfe", b"\x00", "null", '"x"', "7", "\x00"])
def test_a_message_that_is_no_request_is_answered_with_an_error(daemon: WebDaemon, odd: str | bytes) -> None:
    (answer,) = said(daemon, odd)
    assert code(answer) in ("parse_error", "invalid_request") and answer["id"] is None


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
