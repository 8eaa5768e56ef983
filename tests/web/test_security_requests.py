"""The form of requests: paths that climb, headers that break lines, bodies with two lengths, odd methods.

Every answer has the same headers, also that to what is no HTTP at all.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path
from urllib.parse import quote

import pytest

from hiboss.web.headers import HEADERS
from tests.support.sweeps import sweep
from tests.support.web_clients import bearer
from tests.support.web_daemons import HANDSHAKE, Answer, WebDaemon, web_daemon

SECRET = "a line of config.toml"


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebDaemon]:
    with web_daemon(tmp_path_factory.mktemp("d")) as daemon:
        Path(daemon.home.path, "secret.txt").write_text(SECRET)
        yield daemon
        daemon.check_log()


def has_our_headers(answer: Answer) -> bool:
    wanted = {name: value for name, value in HEADERS.items() if name != "cache-control"}
    found = {name: value for name, value in answer.headers if name in wanted}
    return found == wanted and answer.header("cache-control").startswith("no-store")


# --- paths -----------------------------------------------------------------------------------

CLIMBS = [
    "../../../../../../etc/passwd",
    "..%2f..%2f..%2f..%2fetc%2fpasswd",
    "%2e%2e/%2e%2e/%2e%2e/etc/passwd",
    "%252e%252e%252f%252e%252e%252fetc%252fpasswd",
    "..\\..\\..\\etc\\passwd",
    "..%5c..%5cetc%5cpasswd",
    "....//....//etc/passwd",
    "..%c0%af..%c0%afetc/passwd",
    "%c0%ae%c0%ae/etc/passwd",
    "..;/..;/etc/passwd",
    "/etc/passwd",
    "%2fetc%2fpasswd",
    "hiboss.css%00.html",
    "hiboss.css%00",
    "hiboss.css/../login.js",
    "hiboss.css%2f..%2flogin.js",
    "hiboss.css/",
    "HIBOSS.CSS",
    "file:///etc/passwd",
    ".",
    "..",
    "%00",
    "%ff%fe",
    "\xe9",
]


def test_no_path_leads_out(web: WebDaemon) -> None:
    places = [
        *(
            ("GET", one)
            for one in ("/static/", "/", "/api/", "/api/messages/", "/api/conversations/", "/api/op/")
        ),
        *(("POST", one) for one in ("/hooks/", "/api/op/")),
    ]
    with sweep() as row:
        for method, below in places:
            for climb in (*CLIMBS, quote(web.home.path + "/secret.txt", safe="")):
                with row((method, below + climb)):
                    body = {} if method == "POST" else None
                    answer = web.request(method, below + climb, bearer(web.token("boss")), body)
                    assert answer.status in ((400, 404, 405) if method == "GET" else (400, 401, 404, 405))
                    assert b"root:" not in answer.body and SECRET.encode() not in answer.body
                    assert has_our_headers(answer)


# --- methods -----------------------------------------------------------------------------------


def test_an_odd_method_is_refused_and_echoes_nothing(web: WebDaemon) -> None:
    secret = [("X-Canary", "canary-in-a-header"), *bearer(web.token("boss"))]
    methods = ("TRACE", "CONNECT", "OPTIONS", "PUT", "PROPFIND", "get", "X" * 1_000)
    paths = ("/", "/api/messages", "/api/op/daemon.ping", "/login", "/hooks/ci")
    with sweep() as row:
        for method, path in product(methods, paths):
            with row((method[:20], path)):
                answer = web.request(method, path, secret)
                assert (answer.status, answer.code) == (405, "method_not_allowed")
                assert answer.header("allow") and has_our_headers(answer)
                assert b"canary" not in answer.body and web.token("boss").encode() not in answer.body


def test_connect_opens_no_tunnel(web: WebDaemon) -> None:
    assert web.request("CONNECT", "127.0.0.1:22", bearer(web.token("boss"))).status == 404


def test_head_answers_as_get_does_without_a_body_and_does_nothing_else(web: WebDaemon) -> None:
    token = bearer(web.token("boss"))
    for path in ("/", "/login", "/api/messages", "/nothing"):
        with web.connected() as connection:
            connection.write(web.text("HEAD", path, token) + web.text("GET", path, token))
            head, get = connection.answer(without_body=True), connection.answer()
            assert (head.status, head.headers) == (get.status, get.headers)
    assert web.request("HEAD", "/api/op/daemon.ping", token).status == 405


def test_head_follows_no_events(web: WebDaemon) -> None:
    token = bearer(web.token("boss"))
    with web.connected() as connection:
        connection.write(web.text("HEAD", "/api/events", token) + web.text("GET", "/login", token))
        head = connection.answer(without_body=True)
        assert head.status == 200 and head.header("content-type").startswith("text/event-stream")
        assert connection.answer().status == 200
    assert web.request("HEAD", "/api/events").status == 401


# --- headers of every answer ---------------------------------------------------------------------

WRONG = {
    "no HTTP": b"hello\r\n\r\n",
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\0" * 64 + b"\r\n\r\n",
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "an old version": b"GET / HTTP/0.9\r\n\r\n",
    "no version": b"GET /\r\n\r\n",
    "a space before the colon": b"GET / HTTP/1.1\r\nHost : 127.0.0.1\r\n\r\n",
    "a header without a name": b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n: x\r\n\r\n",
    "a NUL in a header": b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: a\0b\r\n\r\n",
    "a space in the target": b"GET /a b HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    "two lengths": b"POST /login HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
    "a list of lengths": b"POST /login HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 2, 3\r\n\r\n{}",
    "a negative length": b"POST /login HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: -1\r\n\r\n",
    "a length with a sign": b"POST /login HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: +2\r\n\r\n{}",
    "a length that is no number": b"POST /login HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 0x2\r\n\r\n{}",
    "a length of 30 digits": b"POST /login HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: "
    + b"9" * 30
    + b"\r\n\r\n",
    "both framings": b"POST /login HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 4\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "an unknown coding": b"POST /login HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "two codings": b"POST /login HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n"
    b"Transfer-Encoding: identity\r\n\r\n0\r\n\r\n",
    "a coding in disguise": b"POST /login HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    "a coding after a bare line feed": b"POST /login HTTP/1.1\r\nHost: 127.0.0.1\r\nX: y\nTransfer-Encoding: x\r\n\r\n",
    "a chunk size that is no number": b"POST /login HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    "a negative chunk size": b"POST /login HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n",
    "a chunk size with 0x": b"POST /login HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n0x1\r\nx\r\n",
    "a chunk size of 30 digits": b"POST /login HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n"
    + b"f" * 30
    + b"\r\n",
    "a chunk that is longer than it says": b"POST /login HTTP/1.1\r\nHost: 127.0.0.1\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}xx\r\n0\r\n\r\n",
    "a handshake with a wrong key": b"GET /ws HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\n"
    b"Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: <script>\r\n\r\n",
    "a handshake of another version": b"GET /ws HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\n"
    b"Upgrade: websocket\r\nSec-WebSocket-Version: 8\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
    "a handshake with a body": b"GET /ws HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\n"
    b"Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
    b"Content-Length: 2\r\n\r\n{}",
    "a handshake in chunks": b"GET /ws HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\n"
    b"Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "a handshake with a long header": b"GET /ws HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\n"
    b"Upgrade: websocket\r\nX: " + b"x" * 20_000 + b"\r\n\r\n",
    "a handshake with many headers": b"GET /ws HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\n"
    b"Upgrade: websocket\r\n" + b"X: y\r\n" * 1_000 + b"\r\n",
    "a handshake by POST": b"POST /ws HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nContent-Length: 0\r\n"
    b"Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
}

TOO_MUCH = {
    "headers of 1 MB": b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: " + b"x" * 1_000_000 + b"\r\n\r\n",
    "100,000 headers": b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n" + b"X: yyyyyyyyyy\r\n" * 100_000 + b"\r\n",
    "a target of 1 MB": b"GET /" + b"x" * 1_000_000 + b" HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
}


def test_what_http_does_not_allow_is_refused_and_the_connection_ends(web: WebDaemon) -> None:
    behind = web.text("GET", "/api/messages", bearer(web.token("boss")))
    with sweep() as row:
        for what, data in WRONG.items():
            with row(what), web.connected() as connection:
                connection.write(data + behind)
                answer = connection.answer()
                assert 400 <= answer.status < 500 and b"script" not in answer.body
                assert answer.code in ("not_http", "frame_too_large", "invalid_request", "wrong_host"), answer
                assert has_our_headers(answer)
                assert connection.is_closed()
                assert b"HTTP/1.1 200" not in connection.rest()  # what came behind it is not answered
    assert web.still_works()


@pytest.mark.parametrize("what", TOO_MUCH)
def test_headers_without_end_end_the_connection(web: WebDaemon, what: str) -> None:
    with web.connected() as connection:
        try:
            connection.write(TOO_MUCH[what])
            answer = connection.answer()
        except ConnectionError:  # it closes before it has read everything
            return
        assert answer.code == "not_http" and connection.is_closed()


def test_a_wrong_chunk_after_the_answer_ends_the_connection_quietly(web: WebDaemon) -> None:
    with web.connected() as connection:
        connection.write("POST /login HTTP/1.1\r\nHost: evil.example\r\nTransfer-Encoding: chunked\r\n\r\n")
        assert connection.answer().code == "wrong_host"
        connection.write("zz\r\n")
        assert connection.is_closed()
    assert "Fatal error" not in web.logged()


def test_every_answer_has_the_headers_for_browsers(web: WebDaemon) -> None:
    boss, foreign = bearer(web.token("boss")), [("Origin", "http://evil.example")]
    found = [
        web.request("GET", "/"),
        web.request("GET", "/static/status.js"),
        web.request("GET", "/nothing"),
        web.request("PUT", "/"),
        web.request("GET", "/api/messages"),
        web.request("GET", "/api/messages", boss),
        web.request("GET", "/api/messages", foreign),
        web.request("GET", "/", host="evil.example"),
        web.request("GET", "/api/messages?token=x", boss),
        web.request("GET", "/api/messages/m999999", boss),
        web.request("POST", "/api/op/daemon.ping", [*boss, ("Content-Type", "text/plain")], b"{}"),
        web.request("POST", "/api/op/daemon.ping", [*boss, ("Content-Type", "application/json")], b"{"),
        web.request("POST", "/login", (), {"code": "x"}),
        web.request("POST", "/hooks/nobody", (), {}),
        web.handshake(headers=foreign),
        web.handshake("/nothing"),
        web.handshake(headers=bearer("hbb_wrong")),
    ]
    assert [one.status for one in found if not has_our_headers(one)] == []
    assert {one.status for one in found} >= {200, 400, 401, 403, 404, 405, 415, 421}
    with web.connected() as connection:
        connection.write(web.text("GET", "/api/events", boss))
        assert has_our_headers(connection.answer(without_body=True))
    policy = HEADERS["content-security-policy"]
    assert "unsafe" not in policy and "*" not in policy and "default-src 'none'" in policy


def test_our_pages_need_nothing_that_the_policy_forbids(web: WebDaemon) -> None:
    for path in ("/", "/login"):
        page = web.request("GET", path).body.decode()
        assert "<script>" not in page and "style=" not in page and "onload" not in page and "http" not in page


# --- values that break lines ------------------------------------------------------------------------

BREAKS = [
    "a%0d%0aX-Injected: 1",
    "a%0aX-Injected:1",
    "%0d%0a%0d%0a<script>",
    "a\rX-Injected: 1",
    "%E5%98%8A%E5%98%8DX:1",
]


def test_no_value_of_a_request_becomes_a_header_of_the_answer(web: WebDaemon) -> None:
    boss, message = bearer(web.token("boss")), {"to": "agent:nex", "text": "x"}
    with sweep() as row:
        for text in BREAKS:
            quoted = quote(text, safe="%")
            for asked in (
                ("GET", f"/{quoted}", boss),
                ("GET", f"/api/messages/{quoted}", boss),
                ("GET", f"/api/messages?agent={quoted}", boss),
                ("POST", f"/api/op/{quoted}", boss, {}),
                ("POST", "/api/messages", [*boss, ("Idempotency-Key", text)], message),
                ("GET", "/", [("Origin", f"http://{text}")]),
                ("GET", "/", [("Host", text)]),
            ):
                with row(asked):
                    answer = web.request(*asked)
                    assert not [name for name, _ in answer.headers if name.startswith(("x-injected", "<"))]
                    assert len(answer.all("content-type")) == 1


# --- several requests on one connection -----------------------------------------------------------------


def test_requests_in_a_row_are_each_answered_for_their_own_caller(web: WebDaemon) -> None:
    """One connection may carry requests of many, where a proxy is before us: nothing stays of the last one."""
    boss, nex = web.token("boss"), web.token("nex")
    order = [boss, None, nex, "hbb_wrong", boss, None] * 5
    with web.connected() as connection:
        connection.write(
            b"".join(web.text("POST", "/api/op/webhook.list", bearer(token), {}) for token in order)
        )
        found = [connection.answer().status for _ in order]
    assert found == [{boss: 200, None: 401, nex: 403, "hbb_wrong": 401}[token] for token in order]


def test_a_body_is_not_taken_for_a_request(web: WebDaemon) -> None:
    hidden = web.text("POST", "/api/op/daemon.stop", bearer(web.token("boss")), {})
    with web.connected() as connection:
        connection.write(web.text("POST", "/login", [("Content-Type", "application/json")], hidden))
        assert connection.answer().code == "parse_error"
        connection.write(web.text("GET", "/login"))
        assert connection.answer().status == 200
    assert web.still_works()


def test_a_host_that_goes_on_in_the_next_line_is_one_host(web: WebDaemon) -> None:
    with web.connected() as connection:
        connection.write("GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n evil.example\r\n\r\n")
        assert connection.answer().code == "wrong_host"


def test_an_upgrade_to_something_else_is_not_made(web: WebDaemon) -> None:
    upgrade = [("Connection", "Upgrade, HTTP2-Settings"), ("Upgrade", "h2c"), ("HTTP2-Settings", "AAMAAABk")]
    assert web.request("GET", "/login", upgrade).status == 200
    assert web.request("GET", "/ws", upgrade).status == 404


def test_old_http_is_answered_and_the_connection_ends(web: WebDaemon) -> None:
    with web.connected() as connection:
        connection.write(f"GET /login HTTP/1.0\r\nHost: {web.place}\r\n\r\n")
        assert connection.answer().status == 200 and connection.is_closed()


def test_a_websocket_of_old_http_or_on_another_path_is_refused(web: WebDaemon) -> None:
    assert web.handshake("/api/messages").status in (404, 405)
    assert web.handshake("/hooks/ci").status in (404, 405) and web.request("GET", "/ws").status == 404
    lines = [f"{name}: {value}" for name, value in (*HANDSHAKE, ("Host", web.place))]
    with web.connected() as connection:
        connection.write("\r\n".join(["GET /ws HTTP/1.0", *lines, "", ""]))
        assert connection.answer(without_body=True).status in (101, 400, 404, 505)
