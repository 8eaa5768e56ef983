"""`hiboss mcp` outlives the worker and the daemon: what a client notices, and what a new worker is told."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.mcp_pump_rig import PROFILE_TOKEN, Message, PumpRig, WorkerConnection

pytestmark = pytest.mark.slow

URI = "ui://chat/inbox"
STOPPING: Message = {"code": -32046, "message": "the daemon stops", "data": {"code": "stopping"}}
MIB = 1024 * 1024


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[PumpRig]:
    with PumpRig(tmp_path) as running:
        yield running


def restored(rig: PumpRig) -> tuple[WorkerConnection, list[Message]]:
    """The next worker, and what it is told before the requests of the client, which begin with a ping."""
    worker = rig.connection()
    told = [worker.take("initialize")]
    worker.answer(told[0])
    rig.send({"id": "mark", "method": "ping"})
    while (message := worker.receive()).get("id") != "mark":
        told.append(message)
        if "id" in message:
            worker.answer(message)
    worker.answer(message)
    assert rig.receive()["id"] == "mark"  # and the answers to what the pump asked did not come
    return worker, told


# --- the session of the old era ------------------------------------------------------


def test_the_session_is_opened_again_with_its_subscriptions(rig: PumpRig) -> None:
    worker = rig.opened()
    rig.open_session(worker)
    for number, uri in enumerate([URI, "ui://agent/status", "ui://gone"], 1):
        worker.answer(rig.ask(worker, number, "resources/subscribe", uri=uri))
        assert rig.receive()["id"] == number
    worker.answer(rig.ask(worker, 4, "resources/unsubscribe", uri="ui://agent/status"))
    refused = rig.ask(worker, 5, "resources/subscribe", uri="ui://wrong")
    worker.send({"id": refused["id"], "error": {"code": -32002, "message": "no such resource"}})
    worker.answer(rig.ask(worker, 6, "logging/setLevel", level="error"))
    assert [rig.receive()["id"] for _ in range(3)] == [4, 5, 6]
    worker.die()
    _, told = restored(rig)
    assert told[0]["params"] == {"protocolVersion": "2025-06-18"}
    assert [one["method"] for one in told[1:]] == [
        "notifications/initialized",
        "logging/setLevel",
        "resources/subscribe",
        "resources/subscribe",
    ]
    assert [one["params"]["uri"] for one in told[3:]] == [URI, "ui://gone"]
    assert len(rig.starts) == 2


def test_the_session_survives_one_worker_after_another(rig: PumpRig) -> None:
    worker = rig.opened()
    rig.open_session(worker)
    for _ in range(4):
        worker.die()
        worker, told = restored(rig)
        assert len(told) == 2


def test_nothing_is_sent_to_a_new_worker_before_it_has_opened_the_session(rig: PumpRig) -> None:
    worker = rig.opened()
    rig.open_session(worker)
    worker.die()
    worker = rig.connection()
    opening = worker.take("initialize")
    rig.send({"id": 1, "method": "tools/call"})
    worker.send({"method": "notifications/message"})
    assert rig.receive() == {
        "method": "notifications/message"
    }  # the pump has read the request by now, or will
    worker.answer(opening)
    worker.take("notifications/initialized")
    assert worker.take("tools/call")["id"] == 1


def test_a_worker_that_refuses_the_session_is_left_and_the_next_is_asked(rig: PumpRig) -> None:
    worker = rig.opened()
    rig.open_session(worker)
    worker.die()
    worker = rig.connection()
    worker.send({"id": worker.take("initialize")["id"], "error": {"code": -32600, "message": "no"}})
    assert worker.line() == b""
    restored(rig)


def test_an_initialize_in_flight_is_sent_again_and_answered(rig: PumpRig) -> None:
    worker = rig.opened()
    asked = rig.ask(worker, 0, "initialize", protocolVersion="2025-06-18")
    worker.die()
    worker = rig.connection()
    assert worker.receive() == asked
    worker.answer(asked, serverInfo={})
    assert rig.receive()["result"] == {"serverInfo": {}}


# --- requests in flight --------------------------------------------------------------


@pytest.mark.parametrize("method", ["tools/call", "subscriptions/listen", "tasks/cancel"])
def test_the_client_hears_that_a_call_in_flight_may_have_taken_effect(rig: PumpRig, method: str) -> None:
    worker = rig.opened()
    rig.ask(worker, 1, method)
    worker.die()
    answer = rig.receive()
    assert (answer["id"], answer["error"]["code"], answer["error"]["data"]["code"]) == (1, -32603, "hung_up")
    assert "not known whether" in answer["error"]["message"]
    worker = rig.connection()  # in the new era nothing is restored
    assert rig.ask(worker, 2, "ping")["id"] == 2


def test_each_call_of_a_batch_is_answered(rig: PumpRig) -> None:
    worker = rig.opened()
    rig.write(b'[{"id": 1, "method": "tools/call"}, {"id": "1", "method": "ping"}, {"method": "x"}]\n')
    worker.line()
    worker.die()
    assert [rig.receive()["id"], rig.receive()["id"]] == [1, "1"]


def test_a_call_that_was_answered_or_cancelled_is_not_answered_again(rig: PumpRig) -> None:
    worker = rig.opened()
    worker.answer(rig.ask(worker, 1, "tools/call"))
    rig.ask(worker, 2, "tools/call")
    rig.send({"method": "notifications/cancelled", "params": {"requestId": 2}})
    worker.take("notifications/cancelled")
    worker.die()
    worker = rig.connection()
    worker.answer(rig.ask(worker, 3, "ping"))
    assert [rig.receive()["id"], rig.receive()["id"]] == [1, 3]


def test_a_request_that_only_reads_is_sent_again_once(rig: PumpRig) -> None:
    worker = rig.opened()
    asked = rig.ask(worker, 1, "tools/list")
    worker.die()
    worker = rig.connection()
    assert worker.receive() == asked
    worker.die()
    assert rig.receive()["error"]["data"] == {"code": "hung_up", "method": "tools/list"}


def test_a_call_that_no_worker_has_got_is_sent_to_the_next(rig: PumpRig) -> None:
    worker = rig.opened()
    rig.daemon.stop()
    worker.die()
    rig.send({"id": 1, "method": "tools/call", "params": {"n": 1}})
    rig.daemon.start()
    worker = rig.connection()
    worker.answer(worker.take("tools/call"), done=True)
    assert rig.receive()["result"] == {"done": True}


def test_half_a_call_is_sent_whole_to_the_next_worker(rig: PumpRig) -> None:
    worker = rig.opened()
    line = b'{"id": 1, "method": "tools/call", "params": "' + b"x" * 3 * MIB + b'"}\n'
    rig.write(line)  # more than a socket takes
    worker.read_some()
    worker.die()
    worker = rig.connection()
    assert worker.line() == line


def test_half_an_answer_does_not_reach_the_client(rig: PumpRig) -> None:
    worker = rig.opened()
    rig.ask(worker, 1, "tools/call")
    worker.write(b'{"id": 1, "result": {"con')
    worker.die()
    assert rig.receive()["error"]["data"]["code"] == "hung_up"


def test_the_last_answers_of_a_worker_arrive(rig: PumpRig) -> None:
    worker = rig.opened()
    for number in range(3):
        rig.ask(worker, number, "tools/call")
    for number in range(3):
        worker.answer({"id": number}, n=number)
    worker.die()
    assert [rig.receive()["result"]["n"] for _ in range(3)] == [0, 1, 2]


# --- the daemon is away --------------------------------------------------------------


def test_a_daemon_that_stops_and_one_that_is_gone_are_waited_for(rig: PumpRig) -> None:
    worker = rig.opened()
    rig.refusal = STOPPING
    worker.die()
    rig.wait_for_starts(3)
    rig.daemon.stop()
    rig.send({"id": 1, "method": "ping"})
    rig.refusal = None
    rig.daemon.start()
    assert rig.connection().take("ping")["id"] == 1


def test_a_worker_that_fails_to_start_is_waited_for_while_a_client_is_open(rig: PumpRig) -> None:
    worker = rig.opened()
    rig.refusal = {"code": -32000, "message": "not yet", "data": {"code": "mcp_unavailable"}}
    worker.die()
    rig.wait_for_starts(3)
    rig.refusal = None
    rig.connection()


def test_a_request_that_waits_long_is_answered_and_not_sent_later(rig: PumpRig) -> None:
    worker = rig.opened(times={"pump.WAIT_SECONDS": 0.0})
    rig.daemon.stop()
    worker.die()
    rig.send({"id": 1, "method": "tools/call"})
    answer = rig.receive()
    assert answer["error"]["data"]["code"] == "daemon_unreachable"
    assert "was not sent" in answer["error"]["message"]
    rig.daemon.start()
    assert rig.ask(rig.connection(), 2, "ping")["id"] == 2


def test_it_ends_with_an_error_when_the_daemon_does_not_come_back(rig: PumpRig) -> None:
    worker = rig.opened(times={"reconnect_timing.AWAY_SECONDS": 0.2})
    rig.daemon.stop()
    worker.die()
    status, out, err = rig.ended()
    assert (status, out) == (3, b"") and "code: daemon_unreachable" in err


def test_a_token_that_was_rotated_meanwhile_is_read_again(rig: PumpRig) -> None:
    worker = rig.opened()
    assert worker.greeting["token"] == PROFILE_TOKEN
    Path(rig.home.profile("nex")).write_text("hba_rotated")
    worker.die()
    assert rig.connection().greeting["token"] == "hba_rotated"


def test_a_token_that_was_revoked_ends_it(rig: PumpRig) -> None:
    worker = rig.opened()
    rig.refusal = {"code": -32002, "message": "not valid here", "data": {"code": "bad_token"}}
    worker.die()
    status, out, err = rig.ended()
    assert (status, out) == (1, b"") and "code: bad_token" in err


def test_a_client_that_ends_while_the_daemon_is_away_is_not_kept(rig: PumpRig) -> None:
    worker = rig.opened()
    rig.daemon.stop()
    worker.die()
    rig.close_input()
    status, out, _ = rig.ended()
    assert (status, out) == (0, b"")


@pytest.mark.parametrize("is_new", [True, False])
def test_a_daemon_that_ends_while_the_worker_asks_who_speaks_is_waited_for(
    rig: PumpRig, is_new: bool
) -> None:
    worker = None if is_new else rig.opened()
    rig.greeting = b'{"error": {"code": -32047, "message": "it ended", "data": {"code": "hung_up"}}}\n'
    if worker is None:
        rig.start("--as", "nex")
    else:
        worker.die()
    rig.wait_for_starts(len(rig.starts) + 2)
    rig.greeting = b'{"ok": true}\n'
    assert rig.ask(rig.connection(), 1, "ping")["id"] == 1
