"""Foreign pages and foreign names: every path and method refuses them, and the handshake of a WebSocket too."""

from __future__ import annotations

from typing import Any

import pytest

from hiboss.web.pages import PATHS
from hiboss.web.routes import ROUTES
from tests.support.sweeps import sweep
from tests.support.web_clients import bearer
from tests.support.web_daemons import HANDSHAKE, Browser, WebDaemon, web_fixture

Way = tuple[str, str]
WAYS: list[Way] = sorted(
    {
        *((one.method, one.path.replace("{", "").replace("}", "")) for one in ROUTES),
        *(("GET", path) for path in (*PATHS, "/api/events", "/openapi.json", "/nothing", "//", "*")),
        *(("POST", path) for path in ("/api/op/daemon.ping", "/login", "/logout", "/hooks/ci", "/nothing")),
        *((method, "/") for method in ("HEAD", "OPTIONS", "TRACE", "CONNECT", "PROPFIND", "get")),
    }
)
UNSAFE = [(method, path) for method, path in WAYS if method not in ("GET", "HEAD", "OPTIONS")]

FOREIGN_HOSTS = [
    "evil.example",
    "evil.example:{port}",
    "localhost.evil.example:{port}",
    "127.0.0.1.evil.example:{port}",
    "127.0.0.1.nip.io:{port}",
    "evil.localhost:{port}",
    "localhost:{port}.evil.example",
    "localhost@evil.example:{port}",
    "evil.example@127.0.0.1:{port}",
    ":@127.0.0.1:{port}",
    "@127.0.0.1:{port}",
    "127.0.0.1:{port}/evil",
    "127.0.0.1:{port}#evil",
    "127.0.0.1:{port}?evil",
    "127.0.0.1:{port}:{port}",
    "127.0.0.1:http",
    "127.0.0.1 evil.example",
    "127.0.0.1,evil.example",
    "127.1:{port}",
    "0x7f000001:{port}",
    "2130706433:{port}",
    "0177.0.0.1:{port}",
    "0.0.0.0:{port}",
    "[::]:{port}",
    "[::1",
    "::1]:{port}",
    "[::1]evil.example",
    "192.168.1.7:{port}",
    "169.254.169.254",
    "null",
    "*",
    ".",
    "",
    "\xe9vil.example",
    "xn--localhost",
    "127.0.0.1%00.evil.example",
]
OWN_HOSTS = [
    "127.0.0.1",
    "127.0.0.1:{port}",
    "127.0.0.1:1",
    "127.0.0.1.:{port}",
    "127.0.0.2:{port}",
    "localhost",
    "localhost:8080",
    "LOCALHOST:{port}",
    "LocalHost.",
    "[::1]:{port}",
    "[0:0:0:0:0:0:0:1]",
]
CONFIGURED_HOSTS = {  # by web.hosts
    **dict.fromkeys(
        ("desk.example.org", "DESK.example.org:443", "desk.example.org."), (200, "ok", 101, "ok")
    ),
    **dict.fromkeys(
        ("example.org", "x.desk.example.org", "desk.example.orgx"), (421, "wrong_host", 421, "wrong_host")
    ),
}
FOREIGN_ORIGINS = [
    "http://evil.example",
    "https://evil.example:{port}",
    "http://127.0.0.1",
    "http://127.0.0.1:1",
    "http://localhost:{port}",
    "http://[::1]:{port}",
    "http://{place}.evil.example",
    "http://{place}/",
    "http://{place}#",
    "http://{place}.",
    "http://user@{place}",
    "http://{place}@evil.example",
    "http://{place}, http://evil.example",
    "http://{place} http://evil.example",
    "{place}",
    "//{place}",
    "ws://{place}",
    "file://{place}",
    "file://",
    "chrome-extension://{place}",
    "HTTP://{place}",
    "null",
    "",
    "*",
    "about:blank",
]


web = web_fixture(web_hosts="Desk.example.org")


def filled(web: WebDaemon, text: str) -> str:
    return text.format(place=web.place, port=web.place.rpartition(":")[2])


# --- the name that a request is made to ------------------------------------------------


def test_a_foreign_host_is_refused_even_with_the_boss_s_token_and_one_that_is_this_machine_taken(
    web: WebDaemon,
) -> None:
    """This machine with any port: the one here may be another at the other end of ssh -L."""
    foreign, own = (421, "wrong_host", 421, "wrong_host"), (200, "ok", 101, "ok")
    hosts = dict.fromkeys(FOREIGN_HOSTS, foreign) | dict.fromkeys(OWN_HOSTS, own) | CONFIGURED_HOSTS
    with sweep() as row:
        for host, expected in hosts.items():
            headers = [("Host", filled(web, host)), *bearer(web.token("boss"))]
            with row(repr(host)):
                asked = web.request("POST", "/api/op/daemon.ping", headers, {})
                opened = web.handshake(headers=headers)
                assert (asked.status, asked.code, opened.status, opened.code) == expected


def test_every_path_refuses_a_foreign_host_and_a_foreign_page(web: WebDaemon, browser: Browser) -> None:
    token = [*bearer(web.token("boss")), ("Connection", "close")]
    with sweep() as row:
        for way in WAYS:
            with row(" ".join(way)):
                assert web.request(*way, token, host="evil.example").status == 421
                assert web.request(*way, browser.headers("http://evil.example")).status == 403


def test_a_request_without_a_host_is_refused(web: WebDaemon) -> None:
    assert web.request("GET", "/", host=None).status == 400  # HTTP/1.1 does not allow it
    with web.connected() as connection:
        connection.write("GET / HTTP/1.0\r\n\r\n")
        assert connection.answer().code == "wrong_host"


@pytest.mark.parametrize("second", ["evil.example", "127.0.0.1", ""])
def test_two_hosts_are_refused(web: WebDaemon, second: str) -> None:
    for hosts in ((web.place, second), (second, web.place)):
        headers = [("Host", host) for host in hosts]
        assert web.request("GET", "/", headers).code == "not_http"
        assert web.request("GET", "/ws", [*headers, *HANDSHAKE]).code == "not_http"


def test_two_hosts_are_refused_in_old_http_too(web: WebDaemon) -> None:
    with web.connected() as connection:
        connection.write(f"GET / HTTP/1.0\r\nHost: {web.place}\r\nHost: evil.example\r\n\r\n")
        assert connection.answer().status in (400, 421)


@pytest.mark.parametrize(
    "target", ["http://evil.example/", "http://{place}/", "//evil.example/", "evil.example:80"]
)
def test_a_target_with_a_name_in_it_leads_nowhere(web: WebDaemon, target: str) -> None:
    answer = web.request("GET", filled(web, target), bearer(web.token("boss")))
    assert (answer.status, answer.code) == (404, "no_such_path")


def test_a_page_whose_name_was_made_to_point_here_gets_nothing(web: WebDaemon, browser: Browser) -> None:
    """DNS rebinding: to the browser it is the page's own origin, so nothing of CORS stops it."""
    headers = [*browser.headers("http://evil.example:9999"), ("Host", "evil.example:9999")]
    for way in (("GET", "/api/messages"), ("POST", "/api/op/daemon.stop"), ("GET", "/api/events")):
        assert web.request(*way, headers).code == "wrong_host"
    assert web.handshake(headers=headers).code == "wrong_host" and web.still_works()


# --- the page that a request comes from --------------------------------------------------


def test_a_foreign_page_is_refused_with_and_without_a_login(web: WebDaemon, browser: Browser) -> None:
    with sweep() as row:
        for origin in FOREIGN_ORIGINS:
            name = filled(web, origin)
            own = ("Origin", name)
            for headers in ([own], [own, *bearer(web.token("boss"))], browser.headers(name)):
                with row(headers):
                    assert web.request("GET", "/api/messages", headers).code == "wrong_origin"
                    assert web.request("POST", "/api/op/daemon.ping", headers, {}).code == "wrong_origin"
                    assert web.handshake(headers=headers).code == "wrong_origin"


def test_two_origins_are_refused(web: WebDaemon, browser: Browser) -> None:
    headers = [*browser.headers(web.url), ("Origin", "http://evil.example")]
    assert web.request("POST", "/api/op/daemon.ping", headers, {}).code == "wrong_origin"
    assert web.request("POST", "/api/op/daemon.ping", headers[::-1], {}).code == "wrong_origin"
    assert web.handshake(headers=headers).code == "not_http"  # two are no handshake


def test_our_own_page_is_answered(web: WebDaemon, browser: Browser) -> None:
    headers = browser.headers(web.url)
    assert web.request("POST", "/api/op/daemon.ping", headers, {}).status == 200
    assert web.handshake(headers=headers).status == 101
    tunnelled = [*browser.headers("http://localhost:8080"), ("Host", "localhost:8080")]
    assert web.request("POST", "/api/op/daemon.ping", tunnelled, {}).status == 200


def test_no_page_is_allowed_to_ask_from_elsewhere(web: WebDaemon) -> None:
    asks = [("Origin", "http://evil.example"), ("Access-Control-Request-Method", "POST")]
    for headers in (asks, asks[1:], [("Origin", web.url), *asks[1:]]):
        for path in ("/", "/api/op/daemon.ping", "/api/messages", "/login"):
            answer = web.request("OPTIONS", path, headers)
            assert answer.status in (403, 405)
            assert not [name for name, _ in answer.headers if name.startswith("access-control")]


# --- a cookie that the browser sends unasked ---------------------------------------------


def test_what_changes_something_needs_an_origin_where_there_is_a_cookie(
    web: WebDaemon, browser: Browser
) -> None:
    cookie = ("Cookie", browser.pair)
    with sweep() as row:
        for way in UNSAFE:
            for headers in ([cookie], [cookie, ("X-Hiboss-Tab", browser.tab)]):
                with row(" ".join(way)):
                    answer = web.request(*way, headers)
                    assert (answer.status, answer.code) == (403, "no_origin")


@pytest.mark.parametrize("path", ["/ws", "/"])
def test_a_handshake_with_a_cookie_needs_an_origin(web: WebDaemon, browser: Browser, path: str) -> None:
    cookie = ("Cookie", f"theme=dark; {browser.pair}")
    assert web.handshake(path, [cookie]).code == "no_origin"
    assert web.handshake(path, [cookie, *bearer(web.token("boss"))]).code == "no_origin"


FORMS = {
    "text/plain": b'{"text": "paid", "to": "agent:nex", "x=": "y"}',
    "application/x-www-form-urlencoded": b"to=agent%3Anex&text=paid",
    "multipart/form-data; boundary=x": b'--x\r\nContent-Disposition: form-data; name="text"\r\n\r\npaid\r\n--x--\r\n',
    "text/plain; application/json": b'{"to": "agent:nex", "text": "paid"}',
    "text/json": b'{"to": "agent:nex", "text": "paid"}',
    "": b'{"to": "agent:nex", "text": "paid"}',
}


@pytest.mark.parametrize("kind", FORMS)
def test_a_form_of_another_page_sends_nothing(web: WebDaemon, browser: Browser, kind: str) -> None:
    """What a page can post without asking first. The browser adds the Origin, and the cookie at the same site."""
    before = stored(web)
    form = [("Content-Type", kind)] if kind else []
    cookie = ("Cookie", browser.pair)
    for origin in ([("Origin", "http://127.0.0.1:3000")], [("Origin", "null")], []):
        for path in ("/api/messages", "/api/op/envelope.send", "/logout", "/login"):
            answer = web.request("POST", path, [*form, cookie, *origin], FORMS[kind])
            assert answer.code in ("wrong_origin", "no_origin")
    # And if its Origin were ours, the form would still be no JSON, and the value of the tab would be missing.
    ours = [*form, cookie, ("Origin", web.url)]
    answer = web.request("POST", "/api/op/envelope.send", ours, FORMS[kind])
    assert answer.code == "wrong_content_type"
    assert (
        web.request("POST", "/api/messages", ours[-2:], {"to": "agent:nex", "text": "x"}).code == "no_token"
    )
    assert stored(web) == before


def stored(web: WebDaemon) -> Any:
    with web.database() as database:
        return database.execute("SELECT count(*) FROM message").fetchone()[0]
