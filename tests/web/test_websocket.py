"""The WebSocket as a connection: who may connect, sizes, order, presence, and the loss of a right."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus

from hiboss.testing.running_daemon import RunningDaemon
from tests.support.daemons import code
from tests.support.parties import agent, agents, boss, person
from tests.support.waits import wait_until
from tests.support.web_clients import WebSocketClient
from tests.support.web_daemons import WebDaemon

FRAME = 4 * 1024 * 1024  # limits.frame_bytes
HEARD = (1009, None)  # close code: too large; a client that is still sending may not hear it


def ping(number: int) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": "daemon.ping", "id": number}


def closed_after(client: WebSocketClient, send: Callable[[], None]) -> int | None:
    """Send something after which the daemon closes; return the close code, if it was heard."""
    try:
        send()
        while True:
            client.receive()
    except ConnectionClosed as closed:
        return None if closed.rcvd is None else closed.rcvd.code


# --- who connects ----------------------------------------------------------------------


def test_an_upgrade_of_the_front_page_is_the_same(daemon: WebDaemon) -> None:
    for path in ("/ws", "/"):
        with daemon.websocket(daemon.token("nex"), path) as client:
            assert client.call("agent.self")["address"] == "agent:nex"


@pytest.mark.parametrize("path", ["/nothing", "/api/events", "/ws/", "/api/op/daemon.ping"])
def test_no_other_path_is_upgraded(daemon: WebDaemon, path: str) -> None:
    with pytest.raises(InvalidStatus) as caught, daemon.websocket(daemon.token("nex"), path):
        pass
    assert caught.value.response.status_code == 404
    assert json.loads(caught.value.response.body or b"")["error"]["data"]["code"] == "no_such_path"


@pytest.mark.parametrize("given", ["Bearer hba_wrong", "Bearer ", "Basic eDp5", "hba_x"])
def test_a_bad_token_is_refused_with_the_handshake(daemon: WebDaemon, given: str) -> None:
    with pytest.raises(InvalidStatus) as caught, daemon.websocket(headers={"Authorization": given}):
        pass
    answer = caught.value.response
    assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
    assert json.loads(answer.body or b"")["error"]["data"]["code"] == "bad_token"


def test_a_token_in_a_call_goes_before_that_of_the_handshake(daemon: WebDaemon) -> None:
    with daemon.websocket(daemon.token("nex")) as client:
        assert client.call("agent.self", token=daemon.token("boss"))["address"] == "user:boss"
        assert client.call("agent.self")["address"] == "agent:nex"
        assert code(client.ask("agent.self", token="hba_wrong")) == "bad_token"


# --- sizes and order ---------------------------------------------------------------------


def test_a_message_may_be_as_large_as_the_limit_and_no_larger(daemon: WebDaemon) -> None:
    with daemon.websocket(daemon.token("nex")) as client:
        text = json.dumps(ping(1))
        client.send(text + " " * (FRAME - len(text)))
        assert client.receive()["result"]["pong"]
    for one in (text + " " * (FRAME + 1 - len(text)), b" " * (FRAME + 1)):
        with daemon.websocket(daemon.token("nex")) as client:
            assert closed_after(client, lambda: client.send(one)) in HEARD  # noqa: B023 - called here


def test_a_message_in_many_frames_has_the_same_limit(daemon: WebDaemon) -> None:
    with daemon.websocket(daemon.token("nex")) as client:
        text = json.dumps(ping(1))
        client.connection.send([text[:10], text[10:20], text[20:]])
        assert client.receive()["result"]["pong"]
        pieces = ["x" * 65_536] * 100
        assert closed_after(client, lambda: client.connection.send(pieces)) in HEARD


def test_a_large_answer_comes_whole_and_those_after_it_too(daemon: WebDaemon) -> None:
    with daemon.websocket(daemon.token("boss")) as client:
        found = [client.call("rpc.discover") for _ in range(2)]
        assert found[0] == found[1] == daemon.call("rpc.discover")
        assert len(json.dumps(found[0])) > 256 * 1024
        assert client.call("daemon.ping")["pong"]


def test_an_operation_that_waits_keeps_nobody_waiting(daemon: WebDaemon) -> None:
    ada, bob = agents(daemon, 2)
    with daemon.websocket(bob.token) as client:
        client.send({"jsonrpc": "2.0", "method": "envelope.wait", "params": {"timeout": "1h"}, "id": "wait"})
        client.send(ping(1))
        assert client.receive()["id"] == 1
        number = ada.tell(bob)
        answer = client.receive()
        assert answer["id"] == "wait" and [one["id"] for one in answer["result"]["envelopes"]] == [number]


# --- facts -----------------------------------------------------------------------------


def test_facts_come_as_over_the_socket(daemon: WebDaemon) -> None:
    ada, bob = agents(daemon, 2)
    with daemon.websocket(bob.token) as client:
        begun = client.call("event.subscribe", topics=["envelope.arrived", "envelope.read"])
        number = ada.tell(bob)
        bob.call("envelope.read", ids=[number])
        arrived, read = client.next(), client.next()
        assert (arrived["topic"], read["topic"]) == ("envelope.arrived", "envelope.read")
        assert arrived["envelopes"][0]["id"] == read["envelope"] == number
        assert client.call("event.unsubscribe", subscription=begun["subscription"])["changed"]
        later = ada.tell(bob)
        again = client.call("event.subscribe", boot=arrived["boot"], after=read["number"])
        assert not again["gap"] and client.next("envelope.arrived")["envelopes"][0]["id"] == later


def test_a_subscription_ends_with_its_connection(daemon: WebDaemon) -> None:
    chief = boss(daemon)
    before = followers(daemon)
    with daemon.websocket(chief.token) as client:
        for _ in range(16):
            client.call("event.subscribe")
        assert code(client.ask("event.subscribe")) == "busy"
        assert followers(daemon) == before + 16
    wait_until(lambda: followers(daemon) == before)


def followers(daemon: RunningDaemon) -> int:
    found = [
        sample["value"]
        for family in boss(daemon).call("daemon.metrics")["families"]
        if family["name"] == "hiboss_subscriptions"
        for sample in family["samples"]
    ]
    return int(found[0])


def test_presence_and_typing_go_both_ways(daemon: WebDaemon) -> None:
    ada = agent(daemon)
    zoe = person(daemon, "zoe")
    with daemon.websocket(ada.token) as agents_own:
        agents_own.call("event.subscribe", topics=["presence", "presence.typing"])
        with daemon.websocket(zoe.token) as persons_own:
            persons_own.call("event.subscribe", topics=["presence", "presence.typing"])
            assert heard(agents_own, "presence", user="user:zoe")["presence"] == "online"
            number = persons_own.call("envelope.send", to=ada.address, text="x")["conversation"]
            persons_own.call("presence.typing", conversation=number)
            assert heard(agents_own, "presence.typing", who="user:zoe")["on"] is True
            agents_own.call("presence.typing", conversation=number)
            assert heard(persons_own, "presence.typing", who=ada.address)["on"] is True
            agents_own.call("presence.typing", conversation=number, on=False)
            assert heard(persons_own, "presence.typing", who=ada.address)["on"] is False
        assert heard(agents_own, "presence", user="user:zoe")["presence"] == "offline"


def heard(client: WebSocketClient, topic: str, **fields: Any) -> dict[str, Any]:
    while True:
        fact = client.next(topic)
        if all(fact.get(name) == value for name, value in fields.items()):
            return fact


@pytest.mark.parametrize("how", ["agent.token.revoke", "agent.token.rotate", "agent.delete"])
def test_a_right_that_ends_while_connected_ends_what_may_be_seen(daemon: WebDaemon, how: str) -> None:
    ada, bob = agents(daemon, 2)
    with daemon.websocket(bob.token) as client:
        client.call("event.subscribe")
        ada.tell(bob)
        client.next("envelope.arrived")
        wait = {"jsonrpc": "2.0", "method": "envelope.wait", "params": {"timeout": "1h"}, "id": "wait"}
        boss(daemon).call(how, name=bob.name)
        assert client.next("closed")["error"]["data"]["code"] == "bad_token"
        client.send(wait)
        assert code(client.receive()) == code(client.ask("envelope.list")) == "bad_token"
        assert client.ask("daemon.ping", token=ada.token)["result"]["pong"]  # the connection itself stays
        assert not client.kept
