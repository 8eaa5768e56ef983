"""Where it listens: other interfaces only with TLS or by an explicit word; a second port only for webhooks."""

from __future__ import annotations

import shutil
import socket
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.waits import wait_until
from tests.support.web_clients import kept_port
from tests.support.web_daemons import HANDSHAKE, WebDaemon, bearer, web_daemon

needs_openssl = pytest.mark.skipif(
    shutil.which("openssl") is None, reason="there is no openssl to make a certificate"
)


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
    with kept_port() as port, web_daemon(tmp_path, waits=False, web_host=host, web_port=port) as web:
        found = state_of(web)
        assert found["state"] == "off" and found["url"] is None
        assert "web.tls_cert_file" in found["error"] and "web.insecure" in found["error"]
        assert f"HTTP is not served: {found['error']}" in web.logged()
        assert not listens_anywhere(web, port)
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
    with web_daemon(tmp_path, waits=False, **{given: "/nowhere.pem"}) as web:
        assert state_of(web)["error"] == "web.tls_cert_file and web.tls_key_file belong together"
        assert web.call("daemon.ping")


def test_tls_files_that_cannot_be_used_are_told_and_nothing_is_served_without_tls(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.pem"
    wrong.write_text("no certificate")
    for number, file in enumerate((wrong, tmp_path / "missing.pem")):
        place = tmp_path / str(number)
        place.mkdir()
        given = {"web_tls_cert_file": str(file), "web_tls_key_file": str(file)}
        with kept_port() as port, web_daemon(place, waits=False, web_port=port, **given) as web:
            assert "cannot be used" in state_of(web)["error"]
            assert not listens_anywhere(web, port)
            assert web.call("daemon.ping")


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    directory = tmp_path_factory.mktemp("tls")
    cert, key = str(directory / "cert.pem"), str(directory / "key.pem")
    names = "subjectAltName=IP:127.0.0.1,DNS:localhost"
    words = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    words += ["-keyout", key, "-out", cert, "-days", "2", "-subj", "/CN=hiboss-test", "-addext", names]
    subprocess.run(words, check=True, capture_output=True)
    return {"web_tls_cert_file": cert, "web_tls_key_file": key}


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory, certificate: dict[str, str]) -> Iterator[WebDaemon]:
    short = {"web.protocols.HEADER_SECONDS": 1.0}
    with web_daemon(tmp_path_factory.mktemp("d"), short, web_host="0.0.0.0", **certificate) as web:
        web.tls = ssl.create_default_context(cafile=certificate["web_tls_cert_file"])
        yield web
        assert "Traceback" not in web.logged()


@needs_openssl
def test_with_tls_another_interface_is_served_and_the_cookie_is_secure(secure: WebDaemon) -> None:
    assert secure.url.startswith("https://127.0.0.1:") and secure.still_works()
    answer = secure.request("POST", "/login", [("Origin", secure.url)], {"code": secure.link()})
    assert answer.header("set-cookie").endswith("; HttpOnly; SameSite=Strict; Secure")
    browser = secure.log_in()
    assert secure.request("GET", "/api/agents", browser.headers(secure.url)).status == 200
    assert secure.handshake(headers=browser.headers(secure.url)).status == 101


@needs_openssl
def test_where_there_is_tls_nothing_is_answered_without_it(secure: WebDaemon) -> None:
    tls, secure.tls = secure.tls, None
    try:
        with secure.connected() as connection:
            connection.write(secure.text("GET", "/api/agents", bearer(secure.token("boss"))))
            assert b"HTTP/1.1" not in connection.socket.recv(65536)
            assert connection.is_closed()
    finally:
        secure.tls = tls


@needs_openssl
def test_a_handshake_of_tls_that_does_not_come_is_not_waited_for(secure: WebDaemon) -> None:
    tls, secure.tls = secure.tls, None
    try:
        with secure.connected() as connection:
            connection.write(b"\x16\x03\x01")
            assert connection.is_closed()
    finally:
        secure.tls = tls
    assert secure.still_works()


@needs_openssl
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
        answer = web.request("POST", "/hooks/ci", (), {}, host=host, port=port)
        assert answer.code == code
        assert web.request("POST", "/hooks/ci", (), {}, host=host).code == "wrong_host"  # of the first port
    told = web.request("POST", "/hooks/ci", (), {}, host="evil.example", port=port)
    assert "web.hooks_hosts" in told.json["error"]["message"]
