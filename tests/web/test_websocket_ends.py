"""How a WebSocket ends: a client that does not read, too many of them, pings, a stop and a kill."""

from __future__ import annotations

import base64
import json
import os
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus

from tests.support.daemons import code
from tests.support.parties import agents, boss
from tests.support.raising import raised
from tests.support.waits import wait_until
from tests.support.web_clients import bearer
from tests.support.web_daemons import WebDaemon, web_daemon

PING, CLOSE = 0x9, 0x8  # kinds of frames


class RawClient:
    """A WebSocket by hand: it reads only when it is told to, and answers no ping."""

    def __init__(self, url: str, token: str) -> None:
        place = urlsplit(url)
        self.socket = socket.socket()
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65_536)
        self.socket.settimeout(30)
        self.socket.connect((place.hostname, place.port))
        key = base64.b64encode(os.urandom(16)).decode()
        lines = ["GET /ws HTTP/1.1", f"Host: {place.netloc}", "Upgrade: websocket", "Connection: Upgrade"]
        lines += [f"Sec-WebSocket-Key: {key}", "Sec-WebSocket-Version: 13"]
        lines += [f"{name}: {value}" for name, value in bearer(token)]
        self.socket.sendall("\r\n".join([*lines, "", ""]).encode())
        self._stream = self.socket.makefile("rb")
        assert b"101" in self._stream.readline()
        while self._stream.readline() != b"\r\n":
            pass

    def ask(self, number: int, method: str, **params: Any) -> None:
        self.send({"jsonrpc": "2.0", "method": method, "params": params, "id": number})

    def send(self, message: Any) -> None:
        text = json.dumps(message).encode()
        size = bytes([0x80 | len(text)]) if len(text) < 126 else b"\xfe" + struct.pack("!H", len(text))
        self.socket.sendall(b"\x81" + size + bytes(4) + text)  # with a mask of zeros

    def read(self) -> tuple[int, bytes]:
        """Return the kind and the content of the next frame. Raises EOFError at the end."""
        try:
            head = self._stream.read(2)
            if len(head) < 2:
                raise EOFError
            size = head[1]
            if size == 126:
                (size,) = struct.unpack("!H", self._stream.read(2))
            elif size == 127:
                (size,) = struct.unpack("!Q", self._stream.read(8))
            content = self._stream.read(size)
        except ConnectionResetError:
            raise EOFError from None
        if len(content) < size:
            raise EOFError
        return head[0] & 0x0F, content

    def read_json(self) -> Any:
        """Return the next message that is no ping."""
        while (frame := self.read())[0] == PING:
            pass
        assert frame[0] != CLOSE, frame
        return json.loads(frame[1])

    def close(self) -> None:
        self._stream.close()
        self.socket.close()


@contextmanager
def raw_client(daemon: WebDaemon, token: str) -> Iterator[RawClient]:
    client = RawClient(daemon.url, token)
    try:
        yield client
    finally:
        client.close()


def connected(daemon: WebDaemon) -> int:
    """How many clients are connected, but for the one that asks."""
    return int(daemon.call("daemon.status")["connections"]) - 1


# --- those who do not read -----------------------------------------------------------------


def test_a_client_that_reads_late_is_told_of_a_gap_and_goes_on(tmp_path: Path) -> None:
    # The raw client answers no ping.
    with web_daemon(tmp_path, {"web.http_server.PING_SECONDS": 600}, kept_facts=50) as daemon:
        ada, bob = agents(daemon, 2)
        with raw_client(daemon, daemon.token("boss")) as client:
            client.ask(1, "event.subscribe", topics=["envelope.arrived"])
            assert client.read_json()["result"]["gap"] is False
            # In a batch: facts come after its answer, which is more than what is on the way between two sockets.
            request = {"jsonrpc": "2.0", "method": "rpc.discover"}
            client.send([{**request, "id": number} for number in range(20)])
            sent = ada.flood(bob, 1_000)  # more than one turn of writing takes
            found = [client.read_json()]
            while not isinstance(found[-1], dict) or found[-1]["params"]["topic"] != "gap":
                found.append(client.read_json())
            (batch,) = [one for one in found if isinstance(one, list)]
            assert [one["id"] for one in batch] == list(range(20)) and all("result" in one for one in batch)
            heard = [one["params"]["envelopes"][0]["id"] for one in found[:-1] if isinstance(one, dict)]
            assert heard == sent[: len(heard)]
            last, arrived = ada.tell(bob), None
            while arrived != last:  # before it may come the rest of the flood, and the gap of another turn
                fact = client.read_json()["params"]
                arrived = fact["envelopes"][0]["id"] if fact["topic"] == "envelope.arrived" else None
        daemon.check()


def test_a_client_that_reads_nothing_is_disconnected(tmp_path: Path) -> None:
    with web_daemon(tmp_path, {"rpc.websocket.SLOW_SECONDS": 0.3}) as daemon:
        with raw_client(daemon, daemon.token("boss")) as client:
            client.ask(1, "event.subscribe")
            client.read_json()
            for number in range(2, 42):
                client.ask(number, "rpc.discover")
            wait_until(lambda: connected(daemon) == 0)
            with pytest.raises(EOFError):
                while True:
                    client.read()
        with daemon.websocket(daemon.token("boss")) as client:  # others notice nothing
            assert client.call("daemon.ping")["pong"]


def test_pings_come_and_who_answers_none_is_disconnected(tmp_path: Path) -> None:
    with web_daemon(tmp_path, {"web.http_server.PING_SECONDS": 0.3}) as daemon:
        token = daemon.token("nex")
        with raw_client(daemon, token) as deaf, daemon.websocket(token) as client:
            kinds = []
            with pytest.raises(EOFError):
                while True:
                    kinds.append(deaf.read()[0])
            assert kinds == [PING, CLOSE]
            assert client.connection.ping().wait(30)
            assert client.call("daemon.ping")["pong"]  # it has answered each ping


# --- too many -----------------------------------------------------------------------------


def test_no_more_connections_than_allowed_and_the_others_go_on(tmp_path: Path) -> None:
    with web_daemon(tmp_path, web_connections=3) as daemon, ExitStack() as open_ones:
        token = daemon.token("nex")
        clients = [open_ones.enter_context(daemon.websocket(token)) for _ in range(3)]
        with pytest.raises(InvalidStatus) as caught, daemon.websocket(token):
            pass
        answer = caught.value.response
        assert answer.status_code == 503
        assert json.loads(answer.body or b"")["error"]["data"]["code"] == "busy"
        reply = daemon.rest(token).operation("daemon.ping")
        assert (reply.status, reply.code, reply.headers["connection"]) == (503, "busy", "close")
        assert all(client.call("daemon.ping")["pong"] for client in clients)
        assert daemon.call("daemon.ping")["pong"]
        clients[0].close()

        def has_room() -> bool:
            return daemon.rest(token).operation("daemon.ping").status == 200

        wait_until(has_room)
        assert clients[1].call("daemon.ping")["pong"]


def test_clients_of_all_doors_have_one_limit(tmp_path: Path) -> None:
    with web_daemon(tmp_path, connections=3) as daemon, ExitStack() as open_ones:
        token = daemon.token("nex")
        open_ones.enter_context(daemon.connect())
        clients = [open_ones.enter_context(daemon.websocket(token)) for _ in range(2)]
        assert [client.call("daemon.ping")["pong"] for client in clients] == [True, True]
        with daemon.websocket(token) as refused:
            assert code(refused.receive()) == "busy"
            error = raised(ConnectionClosed, refused.receive)
            assert error.rcvd is not None and error.rcvd.code == 1013
        assert clients[0].call("daemon.ping")["pong"]


# --- the end of the daemon -------------------------------------------------------------------


def test_a_stop_answers_what_was_asked_and_waits_for_no_stream(tmp_path: Path) -> None:
    with web_daemon(tmp_path, stop_seconds=600) as daemon:
        token, found = daemon.token("nex"), []
        rest = daemon.rest(token)
        with (
            daemon.websocket(token) as waits,
            daemon.websocket(token) as follows,
            daemon.events(token) as events,
        ):
            follows.call("event.subscribe")
            waits.send({"jsonrpc": "2.0", "method": "envelope.wait", "params": {"timeout": "1h"}, "id": 1})
            assert waits.ask("daemon.ping")["result"]["pong"]
            call = threading.Thread(
                target=lambda: found.append(rest.operation("envelope.wait", {"timeout": "1h"}))
            )
            call.start()
            waiting = "hiboss_waiting_calls"
            wait_until(lambda: metric(daemon, waiting) == 2)
            assert daemon.stop() == 0
            assert code(waits.receive()) == "stopping"
            for client in (waits, follows):
                with pytest.raises(ConnectionClosed) as caught:
                    while True:
                        client.receive()
                assert caught.value.rcvd is not None and caught.value.rcvd.code == 1001
            assert [one.name for one in events.rest()][-1:] != ["closed"]
            call.join(30)
        assert [one.code for one in found] == ["stopping"]
        log = Path(daemon.home.log_file).read_text()
        assert " error [" not in log and "Traceback" not in log, log[-2000:]


def metric(daemon: WebDaemon, name: str) -> float:
    families = boss(daemon).call("daemon.metrics")["families"]
    return sum(one["value"] for family in families for one in family["samples"] if one["name"] == name)


def test_after_a_kill_the_client_knows_and_connects_again(tmp_path: Path) -> None:
    with web_daemon(tmp_path) as daemon:
        daemon.settings["web_port"] = urlsplit(daemon.url).port
        with daemon.websocket(daemon.token("nex")) as client:
            client.call("event.subscribe")
            daemon.kill()
            with pytest.raises(ConnectionClosed):
                client.receive()
        daemon.start()
        with daemon.websocket(daemon.token("nex")) as client:
            assert client.call("daemon.ping")["pong"]
