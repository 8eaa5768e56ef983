"""Where the HTTP door listens: a port that is taken, any port, IPv6, and nowhere at all."""

from __future__ import annotations

import socket
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from hiboss.testing.running_daemon import Answered
from tests.support.daemons import set_up
from tests.support.waits import wait_until
from tests.support.web_clients import WebDaemon, kept_port, web_daemon

RETRIES = {"web.server.RETRY_SECONDS": 0.1}


def has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as found:
            found.bind(("::1", 0))
    except OSError:
        return False
    return True


def test_a_taken_port_does_not_stop_the_daemon_and_is_tried_again(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        daemon = WebDaemon(set_up(tmp_path), {"web_port": port}, RETRIES)
        daemon.start(listens=False)
        try:
            state = daemon.wait_for("retrying")
            assert state["url"] is None and f"127.0.0.1:{port}" in state["error"]
            assert daemon.call("daemon.ping")["pong"]
            with pytest.raises(Answered, match="cannot be listened on"):  # who has it may be somebody else
                daemon.call("web.link", token=daemon.token("boss"))
            log = Path(daemon.home.log_file).read_text()
            other.close()
            state = daemon.wait_for("listening")
            assert (state["url"], state["error"]) == (f"http://127.0.0.1:{port}", None)
            assert daemon.rest(daemon.token("nex")).call("daemon.ping")["pong"]
        finally:
            daemon.close()
            daemon.stop()
    assert log.count(f"127.0.0.1:{port} cannot be listened on") == 1  # told once, however often it is tried


def test_a_daemon_stops_while_it_tries_again(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        daemon = WebDaemon(set_up(tmp_path), {"web_port": other.getsockname()[1]}, {})
        daemon.start(listens=False)
        try:
            daemon.wait_for("retrying")
        finally:
            assert daemon.stop() == 0


def test_the_port_is_free_again_after_a_stop_and_after_a_kill(tmp_path: Path) -> None:
    with kept_port() as port, web_daemon(tmp_path, web_port=port) as daemon:
        url, token = daemon.url, daemon.token("nex")
        for end in (daemon.stop, daemon.kill):
            with daemon.websocket(token) as client, daemon.events(token) as events:
                assert client.call("daemon.ping")["pong"] and events.next().name == "open"
                end()
            daemon.start()
            assert daemon.url == url


def test_without_http_nothing_listens_and_the_daemon_says_so(tmp_path: Path) -> None:
    daemon = WebDaemon(set_up(tmp_path), {"web_enabled": "off"}, {})
    daemon.start(listens=False)
    try:
        state = daemon.web_state()
        assert (state["state"], state["url"]) == ("off", None)
    finally:
        daemon.stop()


def test_port_0_takes_any_port_and_two_daemons_take_two(tmp_path: Path) -> None:
    with web_daemon(tmp_path / "a") as one, web_daemon(tmp_path / "b") as other:
        ports = [urlsplit(daemon.url).port for daemon in (one, other)]
        assert len(set(ports)) == 2 and None not in ports
        for daemon in (one, other):
            assert daemon.rest(daemon.token("nex")).call("daemon.ping")["pid"] == daemon.pid


@pytest.mark.skipif(not has_ipv6(), reason="this machine has no IPv6")
def test_the_loopback_of_ipv6_is_loopback_too(tmp_path: Path) -> None:
    with web_daemon(tmp_path, web_host="::1") as daemon:
        assert daemon.url.startswith("http://[::1]:")
        token = daemon.token("nex")
        assert daemon.rest(token).call("daemon.ping")["pong"]
        with daemon.websocket(token) as client, daemon.events(token) as events:
            assert client.call("daemon.ping")["pong"] and events.next().name == "open"
        port = urlsplit(daemon.url).port
        with closing(socket.socket()) as client, pytest.raises(ConnectionRefusedError):
            client.connect(("127.0.0.1", port))


def test_clients_over_http_are_counted_while_they_are_connected(tmp_path: Path) -> None:
    with web_daemon(tmp_path) as daemon:

        def connected() -> float:
            families = daemon.call("daemon.metrics", token=daemon.token("boss"))["families"]
            (found,) = [one["samples"] for one in families if one["name"] == "hiboss_web_connections"]
            return float(found[0]["value"])

        wait_until(lambda: connected() == 0)
        place = urlsplit(daemon.url)
        with closing(socket.create_connection((place.hostname, place.port))):
            wait_until(lambda: connected() == 1)
        wait_until(lambda: connected() == 0)
