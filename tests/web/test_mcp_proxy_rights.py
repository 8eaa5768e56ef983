"""/mcp and the tools as REST: who may ask, what of a request is passed on, and what starts no worker."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from tests.support.mcp_upstreams import Asked, Place, proxied
from tests.support.web_clients import bearer

PING = {"jsonrpc": "2.0", "method": "ping", "id": 1}
CALL = {"server": "ui", "tool": "team", "arguments": {}}
REQUESTS: list[tuple[str, str, Any]] = [
    ("GET", "/mcp", None),
    ("POST", "/mcp", PING),
    ("DELETE", "/mcp", None),
    ("POST", "/api/mcp/call", CALL),
    ("POST", "/api/tools/team", {}),
]


# --- tokens -------------------------------------------------------------------------------


@proxied()
async def test_without_a_good_token_no_worker_is_started(place: Place) -> None:
    await place.daemon.register("gone")
    revoked = place.daemon.token("gone")
    await place.daemon.ask("agent.token.revoke", name="gone")
    no_token: list[tuple[str, str]] = []
    for method, path, body in REQUESTS:
        for headers, code in (
            (no_token, "no_token"),
            (bearer("hba_wrong"), "bad_token"),
            (bearer(revoked), "bad_token"),
            ([("Authorization", "Basic eDp5")], "bad_token"),
            ([("X-Hiboss-Tab", "x")], "no_token"),  # a half alone is worth nothing
        ):
            answer = await place.request(method, path, headers, body)
            assert (answer.status, answer.code) == (401, code), (method, path, headers)
            assert answer.header("www-authenticate") == "Bearer"
            assert answer.header("content-type") == "application/json"
    assert place.worker.starts == 0


@proxied()
async def test_a_token_that_was_revoked_is_refused_while_a_worker_runs(place: Place) -> None:
    await place.daemon.register("kai")
    token = place.daemon.token("kai")
    assert (await place.request("POST", "/mcp", bearer(token), PING)).status == 200
    await place.daemon.ask("agent.token.revoke", name="kai")
    assert (await place.request("POST", "/mcp", bearer(token), PING)).code == "bad_token"
    assert len(place.worker.asked) == 1


@proxied()
async def test_a_token_in_the_url_is_refused(place: Place) -> None:
    for path in ("/mcp", "/api/mcp/call", "/api/tools/team"):
        assert (await place.request("POST", f"{path}?token={place.token}", body={})).code == "token_in_url"
    assert place.worker.starts == 0


@proxied()
async def test_a_browser_shows_two_halves_and_the_worker_gets_one_token(place: Place) -> None:
    link = await place.daemon.ask("web.link")
    login = await place.request("POST", "/login", [], {"code": link["url"].partition("#")[2]})
    pair = login.header("set-cookie").partition(";")[0]
    cookie = pair.partition("=")[2]
    halves = [("Cookie", f"a=b; {pair}"), ("X-Hiboss-Tab", login.json["tab"])]
    assert (await place.request("POST", "/mcp", halves, PING)).code == "no_origin"
    assert (await place.request("POST", "/mcp", [*halves, ("Origin", place.url)], PING)).status == 200
    asked = await place.asked()
    assert asked.all("authorization") == [f"Bearer hbw_{cookie}.{login.json['tab']}"]
    assert not {"cookie", "x-hiboss-tab", "origin"} & {name for name, _ in asked.headers}


# --- where a request comes from, and its size ---------------------------------------------


@proxied()
async def test_a_foreign_host_or_page_starts_no_worker(place: Place) -> None:
    for method, path, body in REQUESTS:
        for name, value, code in (
            ("Host", "evil.example", "wrong_host"),
            ("Origin", "http://evil.example", "wrong_origin"),
        ):
            answer = await place.request(method, path, [*bearer(place.token), (name, value)], body)
            assert answer.code == code
    assert place.worker.starts == 0


@proxied(frame_bytes=100_000)
async def test_a_huge_body_is_refused_before_a_worker_is_started(place: Place) -> None:
    own = bearer(place.token)
    for path in ("/mcp", "/api/mcp/call", "/api/tools/team"):
        told = await place.request("POST", path, [*own, ("Content-Length", "100001")], b"")
        assert (told.status, told.code) == (413, "frame_too_large")
        pieces = b"".join(b"2710\r\n" + b"x" * 10_000 + b"\r\n" for _ in range(11)) + b"0\r\n\r\n"
        sent = await place.request("POST", path, [*own, ("Transfer-Encoding", "chunked")], pieces)
        assert (sent.status, sent.code) == (413, "frame_too_large")
    assert place.worker.starts == 0


@proxied()
async def test_a_body_that_comes_in_pieces_is_passed_on_as_one(place: Place) -> None:
    client = await place.begin(
        "POST", "/mcp", [*bearer(place.token), ("Transfer-Encoding", "chunked")], b"3\r\nabc\r\n"
    )
    await asyncio.sleep(0)
    client.writer.write(b"3\r\ndef\r\n0\r\n\r\n")
    assert (await client.answer()).json["body"] == "abcdef"
    assert (await place.asked()).all("content-length") == ["6"]


# --- headers ------------------------------------------------------------------------------


@proxied()
async def test_headers_of_the_protocol_are_passed_on_and_private_ones_are_not(place: Place) -> None:
    kept = [
        ("accept", "application/json, text/event-stream"),
        ("mcp-session-id", "s1"),
        ("mcp-protocol-version", "2025-11-25"),
        ("last-event-id", "7"),
        ("user-agent", "a client"),
    ]
    dropped = [
        ("cookie", "hiboss_session=x"),
        ("x-hiboss-tab", "y"),
        ("origin", place.url),
        ("referer", place.url),
        ("forwarded", "for=1.2.3.4"),
        ("x-forwarded-for", "1.2.3.4"),
        ("te", "trailers"),
        ("keep-alive", "5"),
        ("x-hop", "1"),
        ("connection", "keep-alive, X-Hop"),
        ("accept-encoding", "gzip"),
    ]
    await place.request("POST", "/mcp?agent=nex", [*bearer(place.token), *kept, *dropped], PING)
    asked = await place.asked()
    assert asked.target == "/mcp?agent=nex" and json.loads(asked.body) == PING
    assert [one for one in asked.headers if one in kept] == kept
    assert asked.all("host") == ["localhost"] and asked.all("connection") == ["close"]
    assert asked.all("authorization") == [f"Bearer {place.token}"]
    assert not ({name for name, _ in dropped} - {"connection"}) & {name for name, _ in asked.headers}


@proxied()
async def test_an_answer_keeps_its_headers_except_those_that_this_door_says_itself(place: Place) -> None:
    async def much(asked: Asked) -> None:
        asked.write(
            b"HTTP/1.1 201 Created\r\nMcp-Session-Id: s1\r\nContent-Type: text/plain\r\nDate: never\r\n"
            b"Set-Cookie: hiboss_session=x\r\nAccess-Control-Allow-Origin: *\r\nServer: s\r\nX-Hop: 1\r\n"
            b"Connection: X-Hop\r\nContent-Security-Policy: default-src *\r\nContent-Length: 2\r\n\r\nok"
        )

    place.worker.answer = much
    answer = await place.request("POST", "/mcp", body=PING)
    assert (answer.status, answer.body) == (201, b"ok")
    assert answer.header("mcp-session-id") == "s1" and answer.header("content-type") == "text/plain"
    for name in ("set-cookie", "access-control-allow-origin", "x-hop"):
        assert answer.all(name) == []
    assert "never" not in answer.all("date") and "s" not in answer.all("server")
    assert answer.header("content-security-policy").startswith("default-src 'none'")


@proxied()
async def test_a_session_is_ended_by_delete(place: Place) -> None:
    async def ended(asked: Asked) -> None:
        asked.write(b"HTTP/1.1 204 No Content\r\n\r\n")

    place.worker.answer = ended
    answer = await place.request("DELETE", "/mcp", [*bearer(place.token), ("Mcp-Session-Id", "s1")])
    assert answer.status == 204
    asked = await place.asked()
    assert asked.method == "DELETE" and asked.all("mcp-session-id") == ["s1"]


@proxied()
async def test_an_error_of_the_worker_is_passed_back_as_it_is(place: Place) -> None:
    async def refused(asked: Asked) -> None:
        asked.write(b"HTTP/1.1 406 Not Acceptable\r\nContent-Length: 4\r\n\r\nnope")

    place.worker.answer = refused
    answer = await place.request("GET", "/mcp")
    assert (answer.status, answer.body) == (406, b"nope")


@proxied()
async def test_what_is_not_served_is_answered_with_json(place: Place) -> None:
    for path in (
        "/.well-known/oauth-protected-resource",
        "/.well-known/oauth-protected-resource/mcp",
        "/.well-known/oauth-authorization-server",
        "/mcp/",
        "/register",
    ):
        answer = await place.request("GET", path, [])
        assert (answer.status, answer.code) == (404, "no_such_path")
    for method in ("PUT", "PATCH", "OPTIONS"):
        answer = await place.request(method, "/mcp")
        assert (answer.status, answer.code) == (405, "method_not_allowed")
    assert (await (await place.begin("HEAD", "/mcp")).head()).status == 405 and place.worker.starts == 0


# --- tools as REST ------------------------------------------------------------------------


WRONG: list[tuple[str, Any, str]] = [
    ("/api/mcp/call", {"server": "mail", "tool": "team"}, "not_found"),
    ("/api/mcp/call", {"tool": "team"}, "invalid_params"),
    ("/api/mcp/call", {"server": "ui"}, "invalid_params"),
    ("/api/mcp/call", {"server": "ui", "tool": ""}, "invalid_params"),
    ("/api/mcp/call", {"server": "ui", "tool": "x" * 201}, "invalid_params"),
    ("/api/mcp/call", {"server": "ui", "tool": 7}, "invalid_params"),
    ("/api/mcp/call", {**CALL, "arguments": []}, "invalid_params"),
    ("/api/mcp/call", {**CALL, "arguments": None}, "invalid_params"),
    ("/api/mcp/call", {**CALL, "agent": 7}, "invalid_params"),
    ("/api/mcp/call", {**CALL, "more": 7}, "invalid_params"),
    ("/api/mcp/call?agent=nex", CALL, "invalid_params"),
    ("/api/mcp/call", [], "invalid_request"),
    ("/api/tools/team", [], "invalid_request"),
    ("/api/tools/ui_", {}, "invalid_params"),
    ("/api/tools/team?agent=", {}, "invalid_params"),
    ("/api/tools/team?agent=a&agent=b", {}, "invalid_params"),
    ("/api/tools/team?other=a", {}, "invalid_params"),
]


@pytest.mark.parametrize("path", ["/api/mcp/call", "/api/tools"])
def test_a_wrong_call_of_a_tool_starts_no_worker(path: str, tmp_path: Any) -> None:
    @proxied()
    async def story(place: Place) -> None:
        for where, body, code in WRONG:
            if where.startswith(path):
                assert (await place.request("POST", where, body=body)).code == code, (where, body)
        own = [*bearer(place.token), ("Idempotency-Key", "k")]
        full = path if path.endswith("call") else f"{path}/team"
        assert (await place.request("POST", full, own, CALL)).code == "invalid_params"
        plain = [*bearer(place.token), ("Content-Type", "text/plain")]
        assert (await place.request("POST", full, plain, b"{}")).code == "wrong_content_type"
        assert (await place.request("POST", full, body=b"{")).code in ("parse_error", "wrong_content_type")
        assert place.worker.starts == 0

    story(tmp_path)
