"""Where the HTTP door listens: a port that is taken, any port, IPv6, and nowhere at all."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import trustme

from hiboss.testing.running_daemon import Answered
from tests.support.daemons import set_up
from tests.support.waits import wait_until
from tests.support.web_clients import bearer
from tests.support.web_daemons import HANDSHAKE, WebDaemon, kept_port, web_daemon

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
        daemon = WebDaemon(set_up(tmp_path), RETRIES, web_port=port)
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
        daemon = WebDaemon(set_up(tmp_path), web_port=other.getsockname()[1])
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
    daemon = WebDaemon(set_up(tmp_path), web_enabled="off")
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


# --- what an attacker finds there ---------------------------------------------------


def state_of(web: WebDaemon) -> dict[str, Any]:
    """Wait until it is decided whether it listens; return the state."""
    wait_until(lambda: web.call("daemon.status")["web"]["state"] != "starting")
    found: dict[str, Any] = web.call("daemon.status")["web"]
    return found


def listens_anywhere(web: WebDaemon, port: int) -> bool:
    with socket.socket() as opened:
        opened.settimeout(30)
        return opened.connect_ex(("127.0.0.1", port)) == 0


# --- other interfaces -----------------------------------------------------------------------------


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "example.org", ""])
def test_another_interface_without_tls_is_refused_and_the_daemon_works(tmp_path: Path, host: str) -> None:
    with kept_port() as port, web_daemon(tmp_path, listens=False, web_host=host, web_port=port) as web:
        found = state_of(web)
        assert found["state"] == "off" and found["url"] is None
        assert "web.tls_cert_file" in found["error"] and "web.insecure" in found["error"]
        assert f"HTTP is not served: {found['error']}" in web.logged() and not listens_anywhere(web, port)
        assert web.call("daemon.ping")
        with pytest.raises(Exception, match=r"web\.insecure"):
            web.call("web.link", token=web.token("boss"))


def test_another_interface_is_served_without_tls_if_the_boss_says_so(tmp_path: Path) -> None:
    with web_daemon(tmp_path, web_host="0.0.0.0", web_insecure="on") as web:
        assert web.url.startswith("http://127.0.0.1:") and web.still_works()
        boss = bearer(web.token("boss"))
        for host in ("192.168.1.7:9999", "evil.example", "0.0.0.0"):  # its own names still need web.hosts
            assert web.request("GET", "/api/agents", boss, host=host).code == "wrong_host"


@pytest.mark.parametrize("given", ["web_tls_cert_file", "web_tls_key_file"])
def test_half_of_the_tls_files_is_refused(tmp_path: Path, given: str) -> None:
    with web_daemon(tmp_path, listens=False, **{given: "/nowhere.pem"}) as web:
        assert state_of(web)["error"] == "web.tls_cert_file and web.tls_key_file belong together"
        assert web.call("daemon.ping")


def test_tls_files_that_cannot_be_used_are_told_and_nothing_is_served_without_tls(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.pem"
    wrong.write_text("no certificate")
    for number, file in enumerate((wrong, tmp_path / "missing.pem")):
        place = tmp_path / str(number)
        place.mkdir()
        given = {"web_tls_cert_file": str(file), "web_tls_key_file": str(file)}
        with kept_port() as port, web_daemon(place, listens=False, web_port=port, **given) as web:
            assert "cannot be used" in state_of(web)["error"] and not listens_anywhere(web, port)
            assert web.call("daemon.ping")


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    directory = tmp_path_factory.mktemp("tls")
    cert, key = str(directory / "cert.pem"), str(directory / "key.pem")
    trusted = directory / "trusted.pem"
    authority = trustme.CA()
    issued = authority.issue_cert("127.0.0.1", "localhost")
    issued.cert_chain_pems[0].write_to_path(cert)
    issued.private_key_pem.write_to_path(key)
    authority.cert_pem.write_to_path(str(trusted))
    return {"web_tls_cert_file": cert, "web_tls_key_file": key}


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory, certificate: dict[str, str]) -> Iterator[WebDaemon]:
    short = {"web.protocols.HEADER_SECONDS": 1.0}
    with web_daemon(tmp_path_factory.mktemp("d"), short, web_host="0.0.0.0", **certificate) as web:
        web.tls = ssl.create_default_context(
            cafile=Path(certificate["web_tls_cert_file"]).with_name("trusted.pem")
        )
        yield web
        assert "Traceback" not in web.logged()


def test_with_tls_another_interface_is_served_and_the_cookie_is_secure(secure: WebDaemon) -> None:
    assert secure.url.startswith("https://127.0.0.1:") and secure.still_works()
    answer = secure.request("POST", "/login", [("Origin", secure.url)], {"code": secure.link()})
    assert answer.header("set-cookie").endswith("; HttpOnly; SameSite=Strict; Secure")
    browser = secure.log_in()
    assert secure.request("GET", "/api/agents", browser.headers(secure.url)).status == 200
    assert secure.handshake(headers=browser.headers(secure.url)).status == 101


def test_where_there_is_tls_nothing_is_answered_without_it(secure: WebDaemon) -> None:
    tls, secure.tls = secure.tls, None
    try:
        with secure.connected() as connection:
            connection.write(secure.text("GET", "/api/agents", bearer(secure.token("boss"))))
            assert b"HTTP/1.1" not in connection.socket.recv(65536) and connection.is_closed()
    finally:
        secure.tls = tls


def test_a_handshake_of_tls_that_does_not_come_is_not_waited_for(secure: WebDaemon) -> None:
    tls, secure.tls = secure.tls, None
    try:
        with secure.connected() as connection:
            connection.write(b"\x16\x03\x01")
            assert connection.is_closed()
    finally:
        secure.tls = tls
    assert secure.still_works()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of these versions
@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1])
def test_old_tls_is_refused(secure: WebDaemon, version: ssl.TLSVersion) -> None:
    old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    old.check_hostname, old.verify_mode = False, ssl.CERT_NONE
    old.set_ciphers("ALL:@SECLEVEL=0")
    old.minimum_version = old.maximum_version = version
    current, secure.tls = secure.tls, old
    try:
        with pytest.raises((ssl.SSLError, ConnectionError)), secure.connected():
            pass
    finally:
        secure.tls = current


# --- the port for webhooks ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tunnelled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[WebDaemon, int]]:
    given = {"web_hooks_hosts": "hooks.example.org"}
    place = tmp_path_factory.mktemp("d")
    with kept_port() as port, web_daemon(place, web_hooks_port=port, **given) as web:
        wait_until(lambda: web.call("daemon.status")["web"]["hooks_url"])
        yield web, port


def test_the_second_port_serves_webhooks_and_nothing_else(tunnelled: tuple[WebDaemon, int]) -> None:
    web, port = tunnelled
    boss, browser = bearer(web.token("boss")), web.log_in()
    for headers in ([], boss, browser.headers(f"http://127.0.0.1:{port}")):
        given = [("Host", f"127.0.0.1:{port}"), *headers]
        for method, path in (
            ("GET", "/"),
            ("GET", "/login"),
            ("POST", "/login"),
            ("POST", "/logout"),
            ("GET", "/static/status.js"),
            ("GET", "/api/agents"),
            ("POST", "/api/op/daemon.stop"),
            ("GET", "/api/events"),
            ("GET", "/openapi.json"),
            ("GET", "/metrics"),
            ("GET", "/health"),
            ("GET", "/hooks"),
            ("POST", "/hooks/"),
            ("POST", "/hooks/../api/op/daemon.stop"),
            ("POST", "/hooks/%2e%2e/api/op/daemon.stop"),
        ):
            answer = web.request(method, path, given, {} if method == "POST" else None, port=port)
            assert (answer.status, answer.code) == (404, "no_such_path"), path
        assert web.request("GET", "/ws", [*given, *HANDSHAKE], port=port).status == 404
        assert web.request("GET", "/", [*given, *HANDSHAKE], port=port).status == 404
        assert web.request("GET", "/hooks/ci", given, port=port).status == 405
    assert (
        web.request("POST", "/hooks/ci", (), {}, host=f"127.0.0.1:{port}", port=port).code
        == "webhook_refused"
    )
    assert web.still_works()


def test_the_second_port_has_names_of_its_own(tunnelled: tuple[WebDaemon, int]) -> None:
    web, port = tunnelled
    for host, code in {
        "hooks.example.org": "webhook_refused",
        "HOOKS.example.org:443": "webhook_refused",
        "evil.example": "wrong_host",
        "hooks.example.org.evil.example": "wrong_host",
    }.items():
        assert web.request("POST", "/hooks/ci", (), {}, host=host, port=port).code == code
        assert web.request("POST", "/hooks/ci", (), {}, host=host).code == "wrong_host"  # of the first port
    told = web.request("POST", "/hooks/ci", (), {}, host="evil.example", port=port)
    assert "web.hooks_hosts" in told.json["error"]["message"]
