"""The examples of the JSON-RPC 2.0 specification (section 7), over the socket of a real daemon.

What is asked is the specification's own text wherever it asks for nothing that exists: those lines
go over the wire unchanged. Where it calls a method that must answer, ours takes its place. For
`subtract` that is agent.list, whose two parameters (role, module) give another answer when they
change places, as 42 - 23 and 23 - 42 do.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import pytest

from hiboss.testing.running_daemon import RunningDaemon
from tests.support.daemons import all_answers, line, started
from tests.support.sweeps import sweep

Daemon = TypeVar("Daemon", bound=RunningDaemon)
METHODS = {
    "[42, 23]": '["reviewer", "auth"]',
    "[23, 42]": '["auth", "reviewer"]',
    "[1,2,4]": '["reviewer"]',
    '"subtrahend": 23': '"module": "auth"',
    '"minuend": 42': '"role": "reviewer"',
    '"subtract"': '"agent.list"',
    '"sum"': '"agent.list"',
    '"get_data"': '"agent.list"',
}
RESULTS = {  # theirs of subtract, sum and get_data, and the names our answer has
    "19": ["first"],
    "-19": ["second"],
    "7": ["first", "third"],
    '["hello", 5]': ["first", "nex", "second", "third"],
}


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDaemon]:
    with started(tmp_path_factory.mktemp("d")) as running:
        yield with_agents(running)


def with_agents(daemon: Daemon) -> Daemon:
    """Register the agents that stand for the numbers of the examples."""
    for name, role, module in (
        ("first", "reviewer", "auth"),
        ("second", "auth", "reviewer"),
        ("third", "reviewer", "billing"),
    ):
        daemon.register(name, role=role, module=module)
    return daemon


def ours(text: str) -> str:
    """An example with our methods in it, on one line, since a line is a frame here."""
    for theirs, own in METHODS.items():
        text = text.replace(theirs, own)
    return " ".join(text.split())


def said(daemon: RunningDaemon, *examples: str) -> list[Any]:
    """Every line the daemon says to these, until it has no more to say and hangs up."""
    with daemon.connect() as connection:
        connection.sendall(line("auth.login", "login", token=daemon.token("nex")))
        for example in examples:
            connection.sendall(example.encode() + b"\n")
        connection.shutdown(socket.SHUT_WR)
        login, *found = all_answers(connection)
    assert login["id"] == "login" and "result" in login
    return found


def reduced(answer: Any) -> Any:
    """An answer with what the specification leaves to us taken out, and its form checked on the way."""
    if isinstance(answer, list):
        return [reduced(one) for one in answer]
    assert answer["jsonrpc"] == "2.0"
    if "error" not in answer:
        assert set(answer) == {"jsonrpc", "result", "id"}
        return {**answer, "result": sorted(agent["name"] for agent in answer["result"]["agents"])}
    assert set(answer) == {"jsonrpc", "error", "id"}
    error = answer["error"]
    assert {"code", "message"} <= set(error) <= {"code", "message", "data"}
    assert isinstance(error["message"], str) and error["message"] and type(error["code"]) is int
    return {**answer, "error": error["code"]}


def expected(text: str) -> Any:
    """The specification's answer, in the same terms."""

    def reduce(answer: dict[str, Any]) -> dict[str, Any]:
        if "error" in answer:
            return {**answer, "error": answer["error"]["code"]}
        return {**answer, "result": RESULTS[json.dumps(answer["result"])]}

    document = json.loads(text)
    return [reduce(one) for one in document] if isinstance(document, list) else reduce(document)


INVALID = '{"jsonrpc": "2.0", "error": {"code": -32600, "message": "Invalid Request"}, "id": null}'
UNREADABLE = '{"jsonrpc": "2.0", "error": {"code": -32700, "message": "Parse error"}, "id": null}'

EXAMPLES = {
    "positional parameters": (
        '{"jsonrpc": "2.0", "method": "subtract", "params": [42, 23], "id": 1}',
        '{"jsonrpc": "2.0", "result": 19, "id": 1}',
    ),
    "positional parameters the other way round": (
        '{"jsonrpc": "2.0", "method": "subtract", "params": [23, 42], "id": 2}',
        '{"jsonrpc": "2.0", "result": -19, "id": 2}',
    ),
    "named parameters": (
        '{"jsonrpc": "2.0", "method": "subtract", "params": {"subtrahend": 23, "minuend": 42}, "id": 3}',
        '{"jsonrpc": "2.0", "result": 19, "id": 3}',
    ),
    "named parameters the other way round": (
        '{"jsonrpc": "2.0", "method": "subtract", "params": {"minuend": 42, "subtrahend": 23}, "id": 4}',
        '{"jsonrpc": "2.0", "result": 19, "id": 4}',
    ),
    "non-existent method": (
        '{"jsonrpc": "2.0", "method": "foobar", "id": "1"}',
        '{"jsonrpc": "2.0", "error": {"code": -32601, "message": "Method not found"}, "id": "1"}',
    ),
    "invalid JSON": ('{"jsonrpc": "2.0", "method": "foobar, "params": "bar", "baz]', UNREADABLE),
    "invalid request object": ('{"jsonrpc": "2.0", "method": 1, "params": "bar"}', INVALID),
    "batch, invalid JSON": (
        """
        [
          {"jsonrpc": "2.0", "method": "sum", "params": [1,2,4], "id": "1"},
          {"jsonrpc": "2.0", "method"
        ]
        """,
        UNREADABLE,
    ),
    "empty array": ("[]", INVALID),
    "invalid batch, but not empty": ("[1]", f"[{INVALID}]"),
    "invalid batch": ("[1,2,3]", f"[{INVALID}, {INVALID}, {INVALID}]"),
    "batch": (
        """
        [
            {"jsonrpc": "2.0", "method": "sum", "params": [1,2,4], "id": "1"},
            {"jsonrpc": "2.0", "method": "notify_hello", "params": [7]},
            {"jsonrpc": "2.0", "method": "subtract", "params": [42, 23], "id": "2"},
            {"foo": "boo"},
            {"jsonrpc": "2.0", "method": "foo.get", "params": {"name": "myself"}, "id": "5"},
            {"jsonrpc": "2.0", "method": "get_data", "id": "9"}
        ]
        """,
        f"""
        [
            {{"jsonrpc": "2.0", "result": 7, "id": "1"}},
            {{"jsonrpc": "2.0", "result": 19, "id": "2"}},
            {INVALID},
            {{"jsonrpc": "2.0", "error": {{"code": -32601, "message": "Method not found"}}, "id": "5"}},
            {{"jsonrpc": "2.0", "result": ["hello", 5], "id": "9"}}
        ]
        """,
    ),
}
NOTHING = {
    "a notification": '{"jsonrpc": "2.0", "method": "update", "params": [1,2,3,4,5]}',
    "a notification without parameters": '{"jsonrpc": "2.0", "method": "foobar"}',
    "batch (all notifications)": """
        [
            {"jsonrpc": "2.0", "method": "notify_sum", "params": [1,2,4]},
            {"jsonrpc": "2.0", "method": "notify_hello", "params": [7]}
        ]
    """,
}


def in_any_order(answer: Any) -> Any:
    """The answers of a batch may come in any order (section 6)."""
    return sorted(answer, key=repr) if isinstance(answer, list) else answer


def check_examples(said: Callable[..., list[Any]]) -> None:
    """Say all examples on one connection, with those that want no answer between them; check each answer."""
    quiet = [ours(text) for text in NOTHING.values()]
    found = said(*(text for asked, _ in EXAMPLES.values() for text in (ours(asked), *quiet)))
    with sweep() as row:
        for (name, (_, answered)), answer in zip(EXAMPLES.items(), found, strict=True):
            with row(name):
                assert in_any_order(reduced(answer)) == in_any_order(expected(answered))


def test_the_examples_of_the_specification_are_answered_as_it_says_in_order(daemon: RunningDaemon) -> None:
    check_examples(lambda *examples: said(daemon, *examples))


def test_a_notification_with_positional_parameters_is_carried_out(daemon: RunningDaemon) -> None:
    text = "said by a notification"
    example = {"jsonrpc": "2.0", "method": "envelope.send", "params": ["agent:first", text]}
    assert said(daemon, json.dumps(example)) == []
    page = daemon.call("envelope.list", token=daemon.token("first"))
    assert [one["text"] for one in page["envelopes"]] == [text]
