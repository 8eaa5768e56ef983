"""Requests that no client of ours makes: every answer is one of those that /openapi.json describes."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from hiboss.api import dispatch  # noqa: F401 - it declares the operations
from hiboss.api.operation import REGISTRY
from hiboss.web.routes import ROUTES
from tests.support.openapi_document import described, document
from tests.support.parties import agent, boss
from tests.support.web_daemons import web_daemon

pytestmark = pytest.mark.slow

JSON = "application/json"
BODIES = [  # its type, what it is, and the code of the answer
    ("text/plain", b"x", "wrong_content_type"),
    ("application/x-www-form-urlencoded", b"a=b", "wrong_content_type"),
    ("multipart/form-data; boundary=x", b"--x--", "wrong_content_type"),
    ("application/json-seq", b"{}", "wrong_content_type"),
    ("", b"{}", "wrong_content_type"),
    (JSON, b"{", "parse_error"),
    (JSON, b"\xff", "parse_error"),
    (JSON, b'{"x": NaN}', "parse_error"),
    (JSON, b'{"x": "\\ud800"}', "parse_error"),
    (JSON, b'{"x": 1' + b"0" * 400 + b"}", "parse_error"),
    (JSON, b'{"x":' + b"[" * 1500 + b"]" * 1500 + b"}", "parse_error"),
    (JSON, b"\x00", "parse_error"),
    (JSON, b"[]", "invalid_request"),
    (JSON, b'"x"', "invalid_request"),
    (JSON, b"null", "invalid_request"),
    (f"{JSON}; charset=latin-1", b'{"\\u0000": 1}', "invalid_params"),
]
VALUES: list[Any] = [
    2**63,
    -1,
    1.5,
    1e308,
    2**64 - 1,
    "\x00",
    "a\x00b",
    "\u202e",
    "x" * 5000,
    "",
    [],
    [[]],
    {},
    None,
]
NEVER = {"daemon.stop", "breaker.pull", "breaker.release", "boss.token.rotate"}  # they might work


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    with web_daemon(tmp_path_factory.mktemp("odd")) as daemon:
        ada, bob = agent(daemon, "ada"), agent(daemon, "bob")
        assert ada.tell(bob) == "e1"
        headers = {"Authorization": f"Bearer {boss(daemon).token}"}
        with httpx.Client(base_url=daemon.url, headers=headers, timeout=60) as made:
            yield made
        daemon.check()


def posts() -> list[tuple[str, str]]:
    return [
        (path, method)
        for path, item in document()["paths"].items()
        for method, one in item.items()
        if JSON in one.get("requestBody", {}).get("content", {})
        and path not in ("/hooks/{name}", "/mcp")  # the latter speaks another protocol
    ]


def refuse(client: httpx.Client, method: str, path: str, kind: str, body: bytes, code: str) -> None:
    address = path.replace("{", "").replace("}", "")
    answer = client.request(method, address, content=body, headers={"Content-Type": kind})
    assert (path, described().faults(method, path, answer)) == (path, [])
    assert (path, answer.json()["error"]["data"]["code"]) == (path, code)


@pytest.mark.parametrize("kind, body, code", BODIES)
def test_a_body_that_is_no_object_of_json_is_refused(
    client: httpx.Client, kind: str, body: bytes, code: str
) -> None:
    for path in (
        "/api/op/envelope.send",
        "/api/messages",
        "/api/conversations/{conversation}/typing",
        "/login",
    ):
        refuse(client, "POST", path, kind, body, code)


def test_every_path_refuses_one_of_these_bodies(client: httpx.Client) -> None:
    for (path, method), (kind, body, code) in zip(posts(), itertools.cycle(BODIES), strict=False):
        refuse(client, method, path, kind, body, code)


def test_a_value_that_hardly_anybody_sends_is_answered_as_described(client: httpx.Client) -> None:
    values = itertools.cycle(VALUES)
    for name in sorted(REGISTRY):
        path = f"/api/op/{name}"
        if path not in document()["paths"] or name in NEVER or not REGISTRY[name].param_names:
            continue
        for value in itertools.islice(values, 3):  # tests/api tries all of them, through the socket
            params = dict.fromkeys(REGISTRY[name].param_names, value)
            for waiting in {"timeout", "wait"} & params.keys():
                params[waiting] = "1ms"
            answer = client.post(path, json=params)
            assert (name, value, described().faults("post", path, answer)) == (name, value, [])
            assert answer.status_code < 500


@pytest.mark.parametrize(
    "given", ["%00", "%FF", "%F0%9F%98%80", "a%2Fb", "9" * 400, "x" * 2000, "%0D%0A", ".%2E"]
)
def test_an_odd_word_in_a_path_or_a_query_is_answered_as_described(client: httpx.Client, given: str) -> None:
    for route in ROUTES:
        path = route.path
        for place in route.places:
            path = path.replace(f"{{{place}}}", given)
        if route.in_query:
            words = [
                one["name"] for one in document()["paths"][route.path][route.method.lower()]["parameters"]
            ]
            path += "?" + "&".join(f"{word}={given}" for word in words if word not in route.places)
        answer = client.request(route.method, path)
        assert (route.path, described().faults(route.method, route.path, answer)) == (route.path, [])
        assert answer.status_code < 500


@pytest.mark.parametrize("method", ["GET", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND"])
def test_another_method_is_refused_with_those_that_the_path_takes(client: httpx.Client, method: str) -> None:
    for path, item in document()["paths"].items():
        if method.lower() in item:
            continue
        answer = client.request(method, path.replace("{", "").replace("}", ""))
        assert (path, answer.status_code) == (path, 405)
        assert answer.json()["error"]["data"]["code"] == "method_not_allowed"
        taken = {one.strip() for one in answer.headers["allow"].split(",")} - {"HEAD"}
        assert {one.upper() for one in item} <= taken


def test_what_has_two_names_is_not_given_twice(client: httpx.Client) -> None:
    both = {"address": "agent:bob", "agent": "agent:ada"}
    assert client.post("/api/messages/e1/read", json=both).json()["error"]["data"]["code"] == "invalid_params"
    assert client.get("/api/messages", params=both).json()["error"]["data"]["code"] == "invalid_params"


def test_an_address_with_a_slash_is_another_path(client: httpx.Client) -> None:
    answer = client.get("/api/agents/a%2Fb")
    assert (answer.status_code, answer.json()["error"]["data"]["code"]) == (404, "no_such_path")
