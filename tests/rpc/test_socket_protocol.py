"""JSON-RPC 2.0 over the socket, to the letter of its specification."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hiboss.testing.running_daemon import RunningDaemon
from tests.support.daemons import answers, ask, notification
from tests.support.sweeps import sweep

PING = {"jsonrpc": "2.0", "method": "daemon.ping", "id": 1}


def texts(daemon: RunningDaemon, thread: str) -> list[str]:
    page = daemon.call("envelope.list", token=daemon.token("nex"), thread=thread, oldest_first=True)
    return [one["text"] for one in page["envelopes"]]


# --- one document, one answer ----------------------------------------------------------

LEGAL_IDS = [
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
    None,
]
ILLEGAL_IDS: list[Any] = [True, False, [], [1], {}, {"a": 1}]
TOO_LONG_IDS = ["123456789012345678901234567890", "-9223372036854775809"]
NO_REQUESTS: list[Any] = [
    *(1, "text", None, True, [], {}, {"foo": "boo"}),
    {"jsonrpc": "2.0", "method": 1, "params": "bar"},
]
NO_REQUESTS_WITH_AN_ID: list[dict[str, Any]] = [
    {"method": "daemon.ping", "id": 1},
    *({**PING, "jsonrpc": version} for version in ("1.0", 2.0)),
    *({**PING, "method": method} for method in (1, None, ["a"])),
    *({**PING, "params": params} for params in ("bar", 0, 5, False, None)),
]
NO_JSON = [
    b'{"jsonrpc": "2.0", "method": "foobar, "params": "bar", "baz]',
    b'{"jsonrpc": "2.0", "method": "a", "params": [1',
    *(b"{", b"nonsense", b"[1,", b"NaN", b'{"a": Infinity}', b"{'a': 1}", b"{}{}", b"\x00"),
    *(b"[" * 100_000, b'{"a":' * 100_000),
    b'"\\ud800"',
    b'{"jsonrpc":"2.0","method":"daemon.ping","id":"\xff"}',
    *(b"\xff\xfe", b"\xc3\x28"),
    b"\xed\xa0\x80",  # half a surrogate pair, encoded
    b"\xf4\x90\x80\x80",  # beyond the last character
    b"\xef\xbb\xbf{}",  # a byte order mark
]
# A text, the id of its answer, and the code of its error.
DOCUMENTS: list[tuple[str | bytes, Any, int | None]] = [
    *((json.dumps({**PING, "id": id_}), id_, None) for id_ in LEGAL_IDS),
    *((json.dumps({**PING, "id": id_}), None, -32600) for id_ in ILLEGAL_IDS),
    *((json.dumps(PING).replace('"id": 1', f'"id": {id_}'), None, -32600) for id_ in TOO_LONG_IDS),
    *((json.dumps(one), None, -32600) for one in NO_REQUESTS),
    *((json.dumps(one), 1, -32600) for one in NO_REQUESTS_WITH_AN_ID),
    *((text, None, -32700) for text in NO_JSON),
    (json.dumps({**PING, "method": "no.such"}), 1, -32601),
    (json.dumps({**PING, "params": [1]}), 1, -32602),  # one too many
    (json.dumps({**PING, "trace": "abc"}), 1, None),  # an unknown member is passed over
    *((json.dumps({**PING, "params": params}), 1, None) for params in ({}, [])),
]


def test_a_document_is_answered_under_its_id_with_a_result_or_an_error(daemon: RunningDaemon) -> None:
    with sweep() as row:
        for text, id_, number in DOCUMENTS:
            with row(text[:100]):
                (answer,) = daemon.exchange(text, answers=1)
                assert set(answer) == {"jsonrpc", "id", "result" if number is None else "error"}
                assert answer["jsonrpc"] == "2.0" and (answer["id"], type(answer["id"])) == (id_, type(id_))
                if number is not None:
                    assert set(answer["error"]) == {"code", "message", "data"}
                    assert answer["error"]["code"] == number


# --- params ----------------------------------------------------------------------------


def test_positional_params_are_taken_in_the_order_declared(daemon: RunningDaemon) -> None:
    with daemon.connect() as connection:
        ask(connection, "auth.login", token=daemon.token("nex"))
        request = {**PING, "method": "envelope.send", "params": ["agent:nex", "by position", "a subject"]}
        connection.sendall(json.dumps(request).encode() + b"\n")
        sent = answers(connection, 1)[0]["result"]
        got = ask(connection, "envelope.get", id=sent["ids"][0])["result"]["envelope"]
    assert (got["text"], got["subject"]) == ("by position", "a subject")


def test_wrong_params_are_invalid_params_and_store_nothing(daemon: RunningDaemon) -> None:
    before = daemon.call("envelope.list", token=daemon.token("nex"), page_size=1)["envelopes"]
    for params in (
        {"to": "agent:nex", "txt": "x"},
        {"to": 5, "text": "x"},
        {"to": "agent:nex", "text": ["x"]},
    ):
        request = {**PING, "method": "envelope.send", "params": {**params, "token": daemon.token("nex")}}
        (answer,) = daemon.exchange(request, answers=1)
        assert answer["error"]["code"] == -32602, params
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


@pytest.mark.parametrize("is_batch", [False, True])
def test_notifications_are_not_answered_also_where_they_fail(daemon: RunningDaemon, is_batch: bool) -> None:
    quiet = [
        notification("no.such"),
        notification("envelope.send", nonsense=1),
        notification("daemon.ping", a=1),
        notification("daemon.ping"),
    ]
    (answer,) = daemon.exchange(*([quiet] if is_batch else quiet), {**PING, "id": "after"}, answers=1)
    assert answer["id"] == "after"


# --- batches ---------------------------------------------------------------------------

MIXED: list[tuple[Any, list[tuple[Any, int | None]]]] = [  # a member of a batch, and its answer
    ({**PING, "id": "1"}, [("1", None)]),
    (notification("daemon.ping"), []),
    ({"foo": "boo"}, [(None, -32600)]),
    ({**PING, "id": "5", "method": "foo.get"}, [("5", -32601)]),
    ({**PING, "id": "9", "params": {"unknown": 1}}, [("9", -32602)]),
    *((member, [(None, -32600)]) for member in (7, [], [PING], None)),
    *(({**PING, "id": number}, [(number, None)]) for number in range(50)),
]


def test_a_batch_is_answered_by_an_array_with_an_answer_for_each_but_the_notifications(
    daemon: RunningDaemon,
) -> None:
    for members in (MIXED, MIXED[2:3], MIXED[5:9], MIXED[7:8]):
        (answer,) = daemon.exchange([member for member, _ in members], answers=1)
        found = [(one["id"], one.get("error", {}).get("code")) for one in answer]
        assert sorted(found, key=repr) == sorted([one for _, answers in members for one in answers], key=repr)


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
    methods = {one["name"]: one for one in daemon.call("rpc.discover")["methods"]}
    assert {"envelope.send", "daemon.ping", "auth.login", "rpc.discover"} <= set(methods)
    assert [one["name"] for one in methods["envelope.send"]["params"]][:2] == ["to", "text"]
    assert methods["envelope.send"]["result"]["schema"]["properties"]["ids"]["type"] == "array"
