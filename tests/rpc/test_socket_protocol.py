"""JSON-RPC 2.0 over the socket, to the letter of its specification."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from hiboss.testing.running_daemon import RunningDaemon
from tests.support.daemons import answers, ask, code, notification, started

PING = {"jsonrpc": "2.0", "method": "daemon.ping", "id": 1}


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDaemon]:
    with started(tmp_path_factory.mktemp("d")) as running:
        yield running


def texts(daemon: RunningDaemon, thread: str) -> list[str]:
    page = daemon.call("envelope.list", token=daemon.token("nex"), thread=thread, oldest_first=True)
    return [one["text"] for one in page["envelopes"]]


# --- ids -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "id_",
    [
        "a",
        "",
        "5",
        "ÄÖ \U0001f600 \u2028",
        "x" * 10_000,
        0,
        -7,
        2**53 + 1,
        2**63 - 1,
        -(2**63),
        1.5,
        -0.25,
        None,
    ],
    ids=lambda id_: repr(id_)[:20],
)
def test_an_id_of_a_legal_kind_comes_back_as_it_was(daemon: RunningDaemon, id_: Any) -> None:
    (answer,) = daemon.exchange({**PING, "id": id_}, answers=1)
    assert answer["result"]["pong"] is True
    assert answer["id"] == id_ and type(answer["id"]) is type(id_)


def test_an_answer_has_version_and_id_and_either_result_or_error(daemon: RunningDaemon) -> None:
    good, bad = daemon.exchange(PING, {**PING, "method": "no.such"}, answers=2)
    assert set(good) == {"jsonrpc", "result", "id"} and good["jsonrpc"] == "2.0"
    assert set(bad) == {"jsonrpc", "error", "id"} and bad["jsonrpc"] == "2.0"
    assert set(bad["error"]) == {"code", "message", "data"} and bad["error"]["code"] == -32601


@pytest.mark.parametrize("id_", [True, False, [], [1], {}, {"a": 1}], ids=json.dumps)
def test_an_id_of_an_illegal_kind_is_an_invalid_request(daemon: RunningDaemon, id_: Any) -> None:
    (answer,) = daemon.exchange({**PING, "id": id_}, answers=1)
    assert answer["error"]["code"] == -32600
    assert answer["id"] is None


@pytest.mark.parametrize("digits", ["123456789012345678901234567890", "-9223372036854775809"])
def test_a_number_too_long_for_an_id_is_refused_rather_than_answered_changed(
    daemon: RunningDaemon, digits: str
) -> None:
    (answer,) = daemon.exchange(f'{{"jsonrpc":"2.0","method":"daemon.ping","id":{digits}}}', answers=1)
    assert answer["id"] == int(digits) or (answer["id"] is None and answer["error"]["code"] == -32600)


# --- requests that are none ------------------------------------------------------------


@pytest.mark.parametrize(
    "document",
    [
        1,
        "text",
        None,
        True,
        {},
        {"foo": "boo"},
        {"method": "daemon.ping", "id": 1},
        {**PING, "jsonrpc": "1.0"},
        {**PING, "jsonrpc": 2.0},
        {**PING, "method": 1},
        {**PING, "method": None},
        {**PING, "params": "bar"},
        {**PING, "params": 5},
        {**PING, "params": None},
        {"jsonrpc": "2.0", "method": 1, "params": "bar"},
    ],
    ids=lambda document: json.dumps(document)[:40],
)
def test_what_is_json_and_no_request_is_an_invalid_request(daemon: RunningDaemon, document: Any) -> None:
    (answer,) = daemon.exchange(json.dumps(document), answers=1)
    assert answer["error"]["code"] == -32600
    has_id = isinstance(document, dict) and "id" in document
    assert answer["id"] == (1 if has_id else None)


@pytest.mark.parametrize(
    "text",
    [
        '{"jsonrpc": "2.0", "method": "foobar, "params": "bar", "baz]',
        "{",
        "nonsense",
        "[1,",
        "NaN",
        '"\\ud800"',
    ],
)
def test_what_is_not_json_is_a_parse_error_with_a_null_id(daemon: RunningDaemon, text: str) -> None:
    (answer,) = daemon.exchange(text, answers=1)
    assert answer["error"]["code"] == -32700
    assert answer["id"] is None


def test_json_nested_beyond_reason_is_a_parse_error(daemon: RunningDaemon) -> None:
    (answer,) = daemon.exchange("[" * 100_000, answers=1)
    assert answer["error"]["code"] == -32700


def test_an_unknown_member_of_a_request_is_passed_over(daemon: RunningDaemon) -> None:
    (answer,) = daemon.exchange({**PING, "trace": "abc"}, answers=1)
    assert answer["result"]["pong"] is True


# --- params ----------------------------------------------------------------------------


def test_params_may_be_left_out_or_empty(daemon: RunningDaemon) -> None:
    found = daemon.exchange(PING, {**PING, "params": {}}, {**PING, "params": []}, answers=3)
    assert [code(answer) for answer in found] == ["ok", "ok", "ok"]


def test_positional_params_are_taken_in_the_order_declared(daemon: RunningDaemon) -> None:
    with daemon.connect() as connection:
        ask(connection, "auth.login", token=daemon.token("nex"))
        request = {**PING, "method": "envelope.send", "params": ["agent:nex", "by position", "a subject"]}
        connection.sendall(json.dumps(request).encode() + b"\n")
        sent = answers(connection, 1)[0]["result"]
        got = ask(connection, "envelope.get", id=sent["ids"][0])["result"]["envelope"]
    assert (got["text"], got["subject"]) == ("by position", "a subject")


def test_too_many_positional_params_are_invalid_params(daemon: RunningDaemon) -> None:
    (answer,) = daemon.exchange({**PING, "params": [1]}, answers=1)
    assert answer["error"]["code"] == -32602


@pytest.mark.parametrize(
    "params",
    [{"to": "agent:nex", "txt": "x"}, {"to": 5, "text": "x"}, {"to": "agent:nex", "text": ["x"]}],
    ids=["unknown name", "wrong type", "list for text"],
)
def test_wrong_params_are_invalid_params_and_store_nothing(
    daemon: RunningDaemon, params: dict[str, Any]
) -> None:
    before = daemon.call("envelope.list", token=daemon.token("nex"), page_size=1)["envelopes"]
    request = {**PING, "method": "envelope.send", "params": {**params, "token": daemon.token("nex")}}
    (answer,) = daemon.exchange(request, answers=1)
    assert answer["error"]["code"] == -32602
    assert daemon.call("envelope.list", token=daemon.token("nex"), page_size=1)["envelopes"] == before


# --- notifications ---------------------------------------------------------------------


def test_a_notification_is_carried_out_and_not_answered(daemon: RunningDaemon) -> None:
    token = daemon.token("nex")
    first = daemon.call("envelope.send", token=token, to="agent:nex", text="first")
    quiet = notification("envelope.send", token=token, reply_to=first["ids"][0], text="quietly")
    (answer,) = daemon.exchange(quiet, {**PING, "id": "after"}, answers=1)
    assert answer["id"] == "after"
    # Answers keep to the order asked, notifications have none: wait for it by asking again.
    daemon.call("envelope.send", token=token, reply_to=first["ids"][0], text="last")
    assert texts(daemon, first["thread"]) == ["first", "quietly", "last"]


def test_a_notification_that_fails_is_not_answered_either(daemon: RunningDaemon) -> None:
    wrong = [
        notification("no.such"),
        notification("envelope.send", nonsense=1),
        notification("daemon.ping", a=1),
    ]
    (answer,) = daemon.exchange(*wrong, {**PING, "id": "after"}, answers=1)
    assert answer["id"] == "after"


def test_a_request_with_a_null_id_is_no_notification(daemon: RunningDaemon) -> None:
    (answer,) = daemon.exchange({**PING, "id": None}, answers=1)
    assert answer == {"jsonrpc": "2.0", "result": answer["result"], "id": None}


# --- batches ---------------------------------------------------------------------------


def test_a_batch_is_answered_by_an_array_with_an_answer_for_each_request(daemon: RunningDaemon) -> None:
    (answer,) = daemon.exchange([{**PING, "id": n} for n in range(50)], answers=1)
    assert sorted(one["id"] for one in answer) == list(range(50))


def test_a_mixed_batch_answers_requests_and_errors_and_leaves_out_notifications(
    daemon: RunningDaemon,
) -> None:
    batch = [
        {**PING, "id": "1"},
        notification("daemon.ping"),
        {"foo": "boo"},
        {**PING, "id": "5", "method": "foo.get"},
        {**PING, "id": "9", "params": {"unknown": 1}},
        7,
    ]
    (answer,) = daemon.exchange(batch, answers=1)
    found = [(one["id"], one.get("error", {}).get("code")) for one in answer]
    expected = [("1", None), (None, -32600), ("5", -32601), ("9", -32602), (None, -32600)]
    assert sorted(found, key=repr) == sorted(expected, key=repr)


def test_an_empty_batch_is_one_error_and_not_an_array(daemon: RunningDaemon) -> None:
    (answer,) = daemon.exchange([], answers=1)
    assert answer["error"]["code"] == -32600 and answer["id"] is None


@pytest.mark.parametrize("members", [[1], [1, 2, 3], [[]], [[PING]], [None]], ids=json.dumps)
def test_a_batch_of_no_requests_is_an_array_of_errors(daemon: RunningDaemon, members: list[Any]) -> None:
    (answer,) = daemon.exchange(members, answers=1)
    assert [(one["error"]["code"], one["id"]) for one in answer] == [(-32600, None)] * len(members)


def test_a_batch_of_notifications_alone_is_not_answered(daemon: RunningDaemon) -> None:
    batch = [notification("daemon.ping"), notification("no.such")]
    (answer,) = daemon.exchange(batch, {**PING, "id": "after"}, answers=1)
    assert answer["id"] == "after"


def test_a_batch_of_a_thousand_is_taken_and_one_more_is_refused_whole(daemon: RunningDaemon) -> None:
    token = daemon.token("nex")
    most = [{**PING, "id": n} for n in range(1_000)]
    send = {
        **PING,
        "method": "envelope.send",
        "params": {"token": token, "to": "agent:nex", "text": "too many"},
    }
    taken, refused = daemon.exchange(most, [*most, send], answers=2)
    assert len(taken) == 1_000 and all("result" in one for one in taken)
    assert refused["error"]["code"] == -32600 and refused["id"] is None
    page = daemon.call("envelope.list", token=token, page_size=100)
    assert "too many" not in [one["text"] for one in page["envelopes"]]


def test_sends_in_one_batch_are_each_stored(daemon: RunningDaemon) -> None:
    token = daemon.register("batcher")
    batch = [
        {
            **PING,
            "id": n,
            "method": "envelope.send",
            "params": {"token": token, "to": "agent:batcher", "text": f"{n}"},
        }
        for n in range(60)
    ]
    (answer,) = daemon.exchange(batch, answers=1)
    stored = daemon.call("envelope.list", token=token, page_size=100)["envelopes"]
    assert {(one["id"], one["text"]) for one in stored} == {
        (one["result"]["ids"][0], str(one["id"])) for one in answer
    }


def test_rpc_discover_describes_every_operation(daemon: RunningDaemon) -> None:
    document = daemon.call("rpc.discover")
    methods = {one["name"]: one for one in document["methods"]}
    assert {"envelope.send", "daemon.ping", "auth.login", "rpc.discover"} <= set(methods)
    assert [one["name"] for one in methods["envelope.send"]["params"]][:2] == ["to", "text"]
    assert methods["envelope.send"]["result"]["schema"]["properties"]["ids"]["type"] == "array"
