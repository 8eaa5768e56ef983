"""Those who are slow, idle or too large: they are cut off, and everybody else is served."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from urllib.parse import urlsplit

import psutil
import pytest

from hiboss.web.protocols import REFUSED_PLACES
from hiboss.web.requests import UNPROVED_BYTES
from tests.support.waits import wait_until
from tests.support.web_clients import bearer
from tests.support.web_daemons import HANDSHAKE, Connection, WebDaemon, web_fixture

PLACES = 20  # web.connections
LIMIT = 1024 * 1024  # limits.frame_bytes
WAITING = 5 * LIMIT  # limits.waiting_bytes
LIMITS = {"frame_bytes": LIMIT, "waiting_bytes": WAITING}
SHORT = {
    "web.protocols.HEADER_SECONDS": 0.5,
    "web.protocols.REST_SECONDS": 0.5,
    "web.protocols.SLOW_SECONDS": 0.5,
    "web.requests.BODY_SECONDS": 0.5,
    "web.http_server.KEEP_ALIVE_SECONDS": 0.5,
    "web.websockets.FIRST_SECONDS": 0.5,
}


web = web_fixture(SHORT, clean=True, web_connections=PLACES, **LIMITS)
# One that ends no connection because of the time: places and memory alone decide.
patient = web_fixture(dict.fromkeys(SHORT, 600.0), web_connections=PLACES, **LIMITS)


@pytest.fixture(autouse=True)
def nobody_else_is_connected(web: WebDaemon) -> None:
    wait_until(lambda: connections(web) == 0)


def connections(web: WebDaemon) -> int:
    """Return how many HTTP connections the daemon has open."""
    port = urlsplit(web.url).port
    found = psutil.Process(web.pid).net_connections("tcp")
    return sum(one.laddr.port == port and one.status != psutil.CONN_LISTEN for one in found)


@contextmanager
def deaf(web: WebDaemon) -> Iterator[Connection]:
    """Connect with hardly any room for what comes back, and read nothing."""
    place = urlsplit(web.url)
    with socket.socket() as opened:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        opened.settimeout(30)
        opened.connect((place.hostname, place.port))
        yield Connection(opened)


# --- slow --------------------------------------------------------------------------------------


def test_headers_that_do_not_end_are_not_waited_for(web: WebDaemon) -> None:
    for begun in (b"", b"\r\n", b"G", b"GET / HTTP/1.1\r\n", b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: "):
        with web.connected() as connection:
            connection.write(begun)
            assert connection.is_closed()


def test_headers_that_come_letter_by_letter_are_not_waited_for(web: WebDaemon) -> None:
    with web.connected() as connection:
        connection.write("GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n")
        assert trickles_until_closed(connection, b"X: y\r\n")


def test_the_second_request_of_a_connection_is_not_waited_for_either(web: WebDaemon) -> None:
    with web.connected() as connection:
        connection.write(web.text("GET", "/login"))
        assert connection.answer().status == 200
        connection.write("GET / HTTP/1.1\r\n")
        assert trickles_until_closed(connection, b"X: y\r\n")
    with web.connected() as connection:
        connection.write(web.text("GET", "/login"))
        assert connection.answer().status == 200 and connection.is_closed()


def trickles_until_closed(connection: Connection, data: bytes) -> bool:
    """Write a little again and again; return when the daemon has closed."""
    connection.socket.settimeout(0.05)
    while True:
        try:
            connection.socket.sendall(data)
            if not connection.socket.recv(65536):
                return True
        except TimeoutError:
            continue
        except ConnectionError:
            return True


def test_a_body_that_does_not_come_is_not_waited_for(web: WebDaemon) -> None:
    with ExitStack() as stack:  # all at once: each takes its time
        waiting = []
        for path in ("/api/op/envelope.send", "/api/messages", "/login", "/hooks/ci"):
            for framing in (("Content-Length", "1000"), ("Transfer-Encoding", "chunked")):
                headers = [*bearer(web.token("boss")), ("Content-Type", "application/json"), framing]
                waiting.append(stack.enter_context(web.connected()))
                waiting[-1].write(web.text("POST", path, headers))
        for connection in waiting:
            answer = connection.answer()
            assert (answer.status, answer.code) == (408, "body_too_slow")
            assert connection.is_closed()


def test_a_body_that_comes_letter_by_letter_is_not_waited_for(web: WebDaemon) -> None:
    head = f"POST /login HTTP/1.1\r\nHost: {web.place}\r\nTransfer-Encoding: chunked\r\n\r\n"
    with web.connected() as connection:
        connection.write(head)
        assert trickles_until_closed(connection, b"1\r\n \r\n")


def test_a_body_that_nobody_asked_for_does_not_hold_the_connection(web: WebDaemon) -> None:
    for method, host in (("GET", web.place), ("POST", "evil.example")):
        with web.connected() as connection:
            connection.write(
                f"{method} /login HTTP/1.1\r\nHost: {host}\r\nTransfer-Encoding: chunked\r\n\r\n"
            )
            assert connection.answer().status in (200, 421)
            assert trickles_until_closed(connection, b"1\r\n \r\n")


def test_a_client_that_does_not_read_its_answers_is_disconnected(web: WebDaemon) -> None:
    with deaf(web) as connection:
        asked = web.text("POST", "/api/op/rpc.discover", bearer(web.token("boss")), {})
        with pytest.raises(ConnectionError):
            for _ in range(1_000):
                connection.write(asked * 50)


def test_a_client_that_pings_and_does_not_read_is_disconnected(web: WebDaemon) -> None:
    """Else every ping would leave an answer in memory."""
    ping = b"\x89\xfd" + b"\0\0\0\0" + b"p" * 125
    with deaf(web) as connection, pytest.raises(ConnectionError):
        connection.write(web.text("GET", "/ws", HANDSHAKE))
        for _ in range(1_000):
            connection.write(ping * 1_000)


# --- too large ---------------------------------------------------------------------------------


def test_a_body_that_says_it_is_too_large_is_refused_before_it_comes(web: WebDaemon) -> None:
    for told in (str(LIMIT + 1), "9" * 15):
        headers = [*bearer(web.token("boss")), ("Content-Type", "application/json"), ("Content-Length", told)]
        assert web.request("POST", "/api/op/daemon.ping", headers).code == "frame_too_large"


def test_a_body_that_does_not_say_how_large_it_is_is_refused_at_the_limit(web: WebDaemon) -> None:
    headers = [*bearer(web.token("boss")), ("Transfer-Encoding", "chunked")]
    with web.connected() as connection:
        connection.write(web.text("POST", "/api/op/daemon.ping", headers))
        chunk = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
        try:
            for _ in range(10 * LIMIT // 0x10000):
                connection.write(chunk)
        except ConnectionError:
            pass
        assert connection.answer().code == "frame_too_large"


def test_a_large_body_is_only_taken_of_somebody_with_a_token(web: WebDaemon) -> None:
    """Else everybody who can connect could fill the memory: each connection with limits.frame_bytes."""
    large = {"text": "x" * UNPROVED_BYTES, "to": "agent:nex"}
    for token, code in ((None, "no_token"), ("hbb_wrong", "bad_token"), (web.token("boss"), "ok")):
        assert {
            web.request("POST", path, bearer(token), large).code
            for path in ("/api/op/envelope.send", "/api/messages")
        } == {code}
    small = {"text": "x", "to": "agent:nex", "token": web.token("boss")}
    assert web.request("POST", "/api/op/envelope.send", (), small).status == 200


def test_a_body_that_ends_too_early_stores_nothing(web: WebDaemon) -> None:
    headers = [*bearer(web.token("boss")), ("Content-Length", "100"), ("Content-Type", "application/json")]
    text = web.text("POST", "/api/messages", headers, b'{"to": "agent:nex", "text": "half"}')
    for _ in range(5):
        with web.connected() as connection:
            connection.write(text)
            connection.socket.shutdown(socket.SHUT_WR)
            assert connection.is_closed()
    with web.database() as database:
        assert not database.execute("SELECT 1 FROM message WHERE text = 'half'").fetchall()


def test_many_large_messages_that_do_not_end_do_not_fill_the_memory(patient: WebDaemon) -> None:
    """All WebSockets together may have limits.waiting_bytes."""
    handshake = [*HANDSHAKE, *bearer(patient.token("nex"))]
    begun = b"\x81\xff" + (LIMIT - 1).to_bytes(8, "big") + b"\0\0\0\0" + b"x" * (LIMIT - 100)
    with ExitStack() as stack:
        for _ in range(PLACES):
            connection = stack.enter_context(patient.connected())
            # While one is being cut off, the next can be cut off too, also before its handshake is answered.
            with suppress(ConnectionError, EOFError):
                connection.write(patient.text("GET", "/ws", handshake))
                assert connection.answer().status == 101
                connection.write(begun)
        wait_until(lambda: connections(patient) <= WAITING // (LIMIT - 100))
        assert connections(patient) == WAITING // (LIMIT - 100)


# --- many ----------------------------------------------------------------------------------------


def test_when_all_places_are_taken_others_are_told_so_and_those_inside_are_served(patient: WebDaemon) -> None:
    boss = bearer(patient.token("boss"))
    with ExitStack() as stack:
        inside = stack.enter_context(patient.connected())
        for _ in range(PLACES - 1):
            idle = stack.enter_context(patient.connected())
            idle.write(patient.text("GET", "/ws", [*HANDSHAKE, *boss]))
            assert idle.answer().status == 101
        answer = patient.request("GET", "/api/agents", boss)
        assert (answer.status, answer.code) == (503, "busy")
        assert answer.header("connection") == "close" and answer.all("content-security-policy")
        assert patient.handshake(headers=boss).code == "busy"
        inside.write(patient.text("GET", "/api/agents", boss))
        assert inside.answer().status == 200
        assert patient.call("daemon.ping")  # the socket of the owner has places of its own
    wait_until(lambda: connections(patient) == 0)
    assert patient.still_works()


def test_connections_without_end_do_not_use_up_the_files_of_the_daemon(patient: WebDaemon) -> None:
    place = urlsplit(patient.url)
    with ExitStack() as stack:
        for _ in range(PLACES + REFUSED_PLACES + 100):
            stack.enter_context(socket.create_connection((place.hostname, place.port), timeout=30))
        wait_until(lambda: 0 < connections(patient) <= PLACES + REFUSED_PLACES)
        assert patient.call("daemon.ping")
        assert len(os.listdir(f"/proc/{patient.pid}/fd")) < PLACES + REFUSED_PLACES + 100
    wait_until(patient.still_works)


def test_those_who_connect_leave_no_line_in_the_log(web: WebDaemon) -> None:
    before = web.logged()
    for data in (
        b"nonsense\r\n\r\n",
        web.text("GET", "/ws", [*HANDSHAKE, ("Origin", "http://evil.example")]),
    ):
        for _ in range(10):
            with web.connected() as connection:
                connection.write(data)
                assert connection.answer().status >= 400
    assert web.logged() == before
