"""The routes besides /api/op: each is its operation, whatever is asked and however it is written."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import pytest

from hiboss.web.routes import ROUTES, FriendlyRoute
from tests.api.operation_calls import CALLS
from tests.api.operation_runs import Case
from tests.api.test_operations import assert_declared_shape
from tests.support.doors import Answer, DoorDaemon, RestDoor, SocketDoor, in_header
from tests.support.parties import agent
from tests.support.sweeps import sweep
from tests.support.web_clients import Reply, RestClient
from tests.support.web_daemons import WebDaemon, web_fixture


class FriendlyDoor(RestDoor):
    name = "rest"  # to the daemon it is the same door

    def __init__(self, daemon: Any) -> None:
        super().__init__(daemon)
        self.used: set[tuple[str, str]] = set()  # method and path of the routes that were asked

    def answer(self, method: str, params: dict[str, Any]) -> Answer:
        route = route_of(method, params)
        token = params.get("token")
        if route is None or not (token is None or in_header(token)):
            return super().answer(method, params)
        self.used.add((route.method, route.path))
        client = self.client
        client.token = token
        reply = client.request(route.method, *written(route, params))
        if reply.status < 400:
            assert reply.status == route.status
            return {"result": reply.json}
        found: Answer = reply.json
        assert set(found) == {"error"}, found
        return found


def route_of(operation: str, params: dict[str, Any]) -> FriendlyRoute | None:
    """Return the route for a call, that with most of it in the path; None: no route can say this."""
    found = [one for one in ROUTES if one.operation == operation and _fits(one, params)]
    return max(found, key=lambda one: len(one.places), default=None)


def _fits(route: FriendlyRoute, params: dict[str, Any]) -> bool:
    for name in route.places.values():
        given = params.get(name)
        if route.listed:
            given = given[0] if isinstance(given, list) and len(given) == 1 else None
        if not isinstance(given, str) or not given or "/" in given or given in (".", ".."):
            return False
    others = [value for name, value in params.items() if name not in (*route.given, "token")]
    return not route.in_query or all(value is not None and value != [] for value in others)


def written(route: FriendlyRoute, params: dict[str, Any]) -> tuple[str, Any]:
    """Return the path with the query, and the body."""
    path = route.path
    for place, name in route.places.items():
        given = params[name][0] if route.listed else params[name]
        path = path.replace(f"{{{place}}}", quote(given, safe=""))
    names = {name: word for word, name in route.renamed.items()}
    rest = {names.get(key, key): one for key, one in params.items() if key not in (*route.given, "token")}
    if not route.in_query:
        return path, rest
    words = {name: _words(value) for name, value in rest.items()}
    return (f"{path}?{urlencode(words, doseq=True)}" if words else path), None


def _words(value: Any) -> Any:
    """Return a value as it is written in a query."""
    if isinstance(value, dict):
        return f"{value['type']}:{value['value']}" if set(value) == {"type", "value"} else json.dumps(value)
    if isinstance(value, list):
        return [one if isinstance(one, str) else json.dumps(one) for one in value]
    return value if isinstance(value, str) else json.dumps(value)


# --- the routes ----------------------------------------------------------------------


NAMES = sorted({one.operation for one in ROUTES})


web = web_fixture()


@pytest.fixture(scope="module")
def friendly(web: WebDaemon) -> Iterator[DoorDaemon]:
    door = FriendlyDoor(web)
    yield DoorDaemon(web, door, [SocketDoor(web)])
    door.close()


def more(case: Case, name: str) -> None:
    """Ask by the routes that no story of an operation needs."""
    ada, bob = case.ada, case.bob
    if name == "envelope.send":
        talk = case.boss.call("conversation.create", name="talk", participants=[ada.address])
        case.boss.call("envelope.send", conversation=talk["conversation"]["id"], text="to all")
        bob.call("envelope.send", reply_to=case.numbers[0], text="and back")
    if name.startswith("envelope.") and name != "envelope.send":
        needs = {"until": "+2h"} if name == "envelope.snooze" else {}
        bob.call(name, ids=[case.numbers[1]], **needs)
    if name == "conversation.messages":
        number = ada.call("conversation.messages", **{"with": bob.address})["conversation"]
        ada.call("conversation.messages", conversation=number, after_seq=0, page_size=1)
    if name == "control.send":
        number = ada.call("conversation.messages", **{"with": bob.address})["conversation"]
        ada.call("control.send", conversation=number, event="stream.pause")
    if name == "conversation.get":  # by the route that shows who is in it
        number = ada.call("conversation.messages", **{"with": bob.address})["conversation"]
        client, path = case.daemon.through.client, "/api/conversations/{}/participants"  # type: ignore[attr-defined]
        client.token = ada.token
        found = client.request("GET", path.format(number)).json["participants"]
        assert {one["address"] for one in found} == {ada.address, bob.address}
        case.daemon.through.used.add(("GET", path.format("{conversation}")))  # type: ignore[attr-defined]
    if name == "upload.delete":
        handle = case.daemon.through.client.request  # type: ignore[attr-defined]
        case.daemon.through.client.token = ada.token  # type: ignore[attr-defined]
        ada.call("upload.delete", ids=[handle("POST", "/api/attachments?name=a", b"x").json["id"]])


@pytest.mark.parametrize("noun", sorted({name.partition(".")[0] for name in NAMES}))
def test_a_route_answers_as_its_operation_does(friendly: DoorDaemon, tmp_path: Path, noun: str) -> None:
    door = friendly.through
    assert isinstance(door, FriendlyDoor)
    with sweep() as row:
        for name in NAMES:
            if name.partition(".")[0] == noun:
                with row(name):
                    (tmp_path / name).mkdir()
                    case = Case(friendly, tmp_path / name)
                    for answer in CALLS[name](case):
                        assert_declared_shape(name, answer)
                    more(case, name)
                    assert {(one.method, one.path) for one in ROUTES if one.operation == name} <= door.used


# --- what does not fit -----------------------------------------------------------------------


FOREIGN = {"id": "e1", "conversation": "c1", "name": "nobody", "address": "agent:nobody"}


def path_of(route: FriendlyRoute, **places: str) -> str:
    return route.path.format(**(FOREIGN | places))


@pytest.fixture(scope="module")
def foreign(web: WebDaemon) -> dict[str, str]:
    """Ids of what is the boss's alone."""
    ada = web.rest(web.token("boss"))
    mail = ada.call("envelope.send", to="user:boss", text="a secret of the boss")
    talk = web.call("conversation.create", token=ada.token, name="secret", participants=["user:boss"])
    plan = ada.call("cron.create", to="user:boss", text="a secret of the boss", every="2h")
    return {
        "/api/messages": mail["ids"][0],
        "/api/thread": mail["thread"],
        "/api/conversations": talk["conversation"]["id"],
        "/api/schedules": plan["id"],
        "/api/attachments": ada.request("POST", "/api/attachments?name=a", b"x").json["id"],
        "/api/asks": "q1",
        "/api/runs": "r1",
    }


def test_what_is_another_s_is_not_there(web: WebDaemon, foreign: dict[str, str]) -> None:
    other = web.rest(agent(web).token)
    with sweep() as row:
        for route in (one for one in ROUTES if one.places):
            numbers = [number for start, number in foreign.items() if route.path.startswith(start + "/")]
            path = path_of(route, **dict.fromkeys(("id", "conversation"), *numbers) if numbers else {})
            body = None if route.in_query else {"text": "x"}
            with row((route.method, path)):
                reply = other.request(route.method, path, body)
                assert reply.status in (400, 403, 404) and b"secret" not in reply.body, reply
                if route.path.endswith(("/reply", "/messages")):
                    assert reply.code in ("not_found", "not_participant")
                odd = path_of(route, id="x" * 3_000, conversation="%00", name="%ff%fe", address="a" * 3_000)
                assert 400 <= other.request(route.method, odd, body).status < 500


def test_every_route_refuses_what_it_does_not_know(ada: RestClient) -> None:
    with sweep() as row:
        for route in ROUTES:
            with row((route.method, route.path)):
                check_refusals(ada, route)


def check_refusals(ada: RestClient, route: FriendlyRoute) -> None:
    path = path_of(route)
    body = None if route.in_query else {}
    assert ada.request(route.method, f"{path}?no_such_word=1", body).status == 400
    assert ada.request(route.method, f"{path}?token=hb_x", body).code == "token_in_url"
    assert ada.request(route.method, f"{path}?Token=hb_x", body).status == 400
    if not route.in_query:
        assert ada.request(route.method, path, {"no_such_word": 1}).status == 400
        assert ada.request(route.method, path, b"[1]", {"Content-Type": "application/json"}).status == 400
        assert ada.request(route.method, path, b"a=1").status == 415
    else:  # who sends the parameters of a DELETE in its body must not get more deleted than was said
        assert ada.request(route.method, path, {"page_size": 1}).code == "invalid_request"
    if not route.takes_key:
        assert ada.request(route.method, path, body, {"Idempotency-Key": "k"}).code == "key_not_taken"


WRONG_QUERIES = [
    "page_size=x",
    "page_size=1.5",
    "page_size=1&page_size=2",
    "page_size=",
    "page_size=99999999999999999999999999",
    "page_size=" + "9" * 5_000,
    "page_size=-1",
    "page_size=nan",
    "page_size=1e1",
    "page_size=%00",
    "unread=maybe",
    "unread=true&unread=false",
    "box=nothing",
    "after=x",
    "after=e1&after=e2",
    "from=%ff",
    "agent=agent:nex&address=agent:nex",
    "agent=agent:nobody",
    "agent=",
    "a" * 5_000 + "=1",
    "&".join(f"w{one}=1" for one in range(2_000)),
]


def test_a_wrong_query_is_refused(ada: RestClient) -> None:
    with sweep() as row:
        for query in WRONG_QUERIES:
            with row(query[:30]):
                reply = ada.request("GET", f"/api/messages?{query}")
                assert 400 <= reply.status < 500 and len(reply.body) < 3_000, reply


def test_nothing_is_decided_where_two_are_given(ada: RestClient) -> None:
    for method, path, body in (
        ("POST", "/api/messages/e1/reply", {"reply_to": "e2", "text": "x"}),
        ("POST", "/api/messages/e1/reply?text=y", {"text": "x"}),
        ("POST", "/api/messages/e1/read", {"ids": ["e2"]}),
        ("POST", "/api/messages/e1/read?ids=e2", {}),
        ("POST", "/api/messages/e1/read", {"agent": "agent:nex", "address": "user:boss"}),
        ("POST", "/api/messages/e1/read?agent=agent:nex", {"address": "user:boss"}),
        ("GET", "/api/messages/m1?message_id=m2", None),
        ("DELETE", "/api/conversations/c1?conversation=c2", None),
        ("PATCH", "/api/agents/nex", {"name": "other", "description": "x"}),
        ("DELETE", "/api/conversations/c1/participants/agent:nex?address=agent:other", None),
        ("POST", "/api/conversations/c1/messages", {"conversation": "c2", "text": "x"}),
    ):
        reply = ada.request(method, path, body)
        assert (reply.status, reply.code) == (400, "invalid_params"), (path, body, reply)


# --- whose box -------------------------------------------------------------------------------


def test_the_boss_chooses_a_box_and_nobody_else_does_and_looking_marks_nothing(web: WebDaemon) -> None:
    one, other = agent(web), agent(web)
    ada = web.rest(web.token("boss"))
    number = ada.call("envelope.send", to=one.address, text="for you")["ids"][0]

    def unread() -> list[str]:
        found = web.rest(one.token).call("envelope.list", unread=True, page_size=50)["envelopes"]
        return [each["id"] for each in found]

    def box(client: RestClient) -> Reply:
        return client.request("GET", "/api/messages", agent=one.address, box="inbox")

    assert number in unread()
    assert box(ada).status == 200 and box(ada).json["messages"]
    assert box(web.rest(one.token)).json == box(ada).json and box(web.rest(other.token)).code == "boss_only"
    assert number in unread()
    for verb in ("read", "ack", "archive", "trash", "restore"):
        path = f"/api/messages/{number}/{verb}"
        refused = web.rest(other.token).request("POST", path, {"agent": one.address})
        assert refused.status in (403, 404), refused
        assert web.rest(other.token).request("POST", path, {}).code == "not_found"
    assert number in unread()
    assert ada.request("POST", f"/api/messages/{number}/read?agent={one.address}", {}).status == 200
    assert number not in unread()


# --- sent twice ------------------------------------------------------------------------------


def sending(web: WebDaemon, ada: RestClient) -> dict[str, dict[str, Any]]:
    """Return the routes that send, with a right body for each."""
    first = ada.call("envelope.send", to="agent:nex", text="first")
    talk = web.call("conversation.create", token=ada.token, name="keys", participants=["agent:nex"])[
        "conversation"
    ]["id"]
    return {
        "/api/messages": {"to": "agent:nex", "text": "one"},
        f"/api/messages/{first['ids'][0]}/reply": {"text": "two"},
        f"/api/conversations/{talk}/messages": {"text": "three"},
        "/api/op/envelope.send": {"to": "agent:nex", "text": "four"},
    }


def test_what_is_sent_twice_with_one_key_is_sent_once(
    web: WebDaemon, ada: RestClient, nex: RestClient
) -> None:
    for place, (path, body) in enumerate(sending(web, ada).items()):
        key = {"Idempotency-Key": f"key-{place}"}
        first, second = (ada.request("POST", path, body, key) for _ in range(2))
        assert first.status == second.status in (200, 201)
        assert (first.json["duplicate"], second.json["duplicate"]) == (False, True)
        assert first.json["ids"] == second.json["ids"]
        other = ada.request("POST", path, {**body, "text": "another"}, key)
        assert (other.status, other.code) == (409, "key_reused")
        given = ada.request("POST", path, {**body, "key": "x"}, key)
        assert (given.status, given.code) == (400, "invalid_params")
        assert ada.request("POST", path, {**body, "key": f"key-{place}"}, key).json["duplicate"] is True


def test_a_key_is_its_caller_s_own(ada: RestClient, nex: RestClient) -> None:
    key = {"Idempotency-Key": "shared-word"}
    first = ada.request("POST", "/api/messages", {"to": "agent:nex", "text": "mine"}, key)
    second = nex.request("POST", "/api/messages", {"to": "agent:nex", "text": "mine"}, key)
    assert (first.status, second.status, second.json["duplicate"]) == (201, 201, False)
    assert first.json["ids"] != second.json["ids"]


@pytest.mark.parametrize("key", ["", " ", "x" * 5_000, "\xff\xfe"], ids=lambda one: repr(one)[:20])
def test_an_odd_key_is_no_way_around(ada: RestClient, key: str) -> None:
    body = {"to": "agent:nex", "text": "odd"}
    found = [ada.request("POST", "/api/messages", body, {"Idempotency-Key": key}) for _ in range(2)]
    assert all(one.status in (201, 400, 413) for one in found), found
    assert found[0].status != 201 or found[1].json["duplicate"] is True
