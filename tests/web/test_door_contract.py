"""One contract for all doors: every operation through the WebSocket and REST, with the answers of the socket.

The stories are those of tests/api/test_operations.py, which tells them through the socket. Each is told here through
one of the two doors; what only reads and what is refused is asked through both.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hiboss.api.operation import REGISTRY, Level
from hiboss.web import requests
from tests.api.bad_input import limits, written
from tests.api.bad_input_mechanical import mechanical
from tests.api.bad_input_row import Row
from tests.api.bad_input_scene import CLASSES, Scene, open_scene
from tests.api.operation_calls import CALLS
from tests.api.operation_runs import Case
from tests.api.test_operations import assert_declared_shape
from tests.support import bulk
from tests.support.attached_sessions import Session
from tests.support.daemons import answers, code, variables
from tests.support.doors import DoorDaemon, code_of, doors_of, in_header, refused_by_web
from tests.support.parties import agents, boss
from tests.support.sweeps import sweep
from tests.support.web_clients import RestClient, WebSocketClient, open_websocket
from tests.support.web_daemons import WebDaemon, web_daemon

DOORS = ("websocket", "rest")
# Its story calls it over the socket itself; here it has a test of its own.
NAMES = sorted(set(CALLS) - {"attached.wait"})
TOLD = bulk.some([(name, door) for name in NAMES for door in DOORS], lambda one: one[0])


@pytest.fixture(scope="module")
def doors(daemon: WebDaemon) -> Iterator[dict[str, DoorDaemon]]:
    with doors_of(daemon) as opened:
        yield opened


@pytest.mark.parametrize("noun", sorted({name.partition(".")[0] for name in NAMES}))
def test_an_operation_answers_through_a_door_as_through_the_socket(
    doors: dict[str, DoorDaemon], tmp_path: Path, noun: str
) -> None:
    with sweep() as row:
        for name, door in TOLD:
            if name.partition(".")[0] == noun:
                with row((name, door)):
                    place = tmp_path / f"{name}-{door}"
                    place.mkdir()
                    for answer in CALLS[name](Case(doors[door], place)):
                        assert_declared_shape(name, answer)
                    assert name in doors[door].asked


@pytest.mark.parametrize("door", DOORS)
def test_an_open_session_can_wait_at_any_door(doors: dict[str, DoorDaemon], door: str) -> None:
    ada, bob = agents(doors[door], 2)
    session = Session(doors[door], ada.name)
    try:
        bob.tell(ada)
        told = session.call("attached.wait")
        assert_declared_shape("attached.wait", told)
        assert told["nudge"]
    finally:
        session.close()


@pytest.mark.parametrize("door", DOORS)
def test_the_boss_can_stop_the_daemon_through_any_door(tmp_path: Path, door: str) -> None:
    with web_daemon(tmp_path) as daemon, doors_of(daemon) as doors:
        for params, expected in (({}, "no_token"), ({"token": daemon.token("nex")}, "forbidden")):
            assert code_of(doors[door].through.answer("daemon.stop", params)) == expected
        assert_declared_shape("daemon.stop", boss(doors[door]).call("daemon.stop"))
        daemon.wait_for_death()


# --- errors -------------------------------------------------------------------------


NOUNS = sorted({name.partition(".")[0] for name in REGISTRY})
# HTTP is on here, so what says that it is off does not come.
ROWS = bulk.some(
    (row for row in (*written(), *(limit.over for limit in limits())) if row.code != "web_unavailable"),
    lambda row: (row.operation, row.code, row.config, str(row.policy)),
)


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    served = variables({"web_enabled": "on", "web_port": 0})
    with open_scene(tmp_path_factory.mktemp("d"), **served) as opened:
        yield opened


@pytest.fixture(scope="module")
def url(scene: Scene) -> str:
    return str(WebDaemon(scene.daemon.home).wait_for("listening")["url"])


@pytest.fixture(scope="module")
def rest(url: str) -> Iterator[RestClient]:
    client = RestClient(url)
    yield client
    client.close()


class Asked:
    """A row as it is asked through all doors, and what its answer through others than the socket must be."""

    def __init__(self, scene: Scene, row: Row) -> None:
        self.method, self.waits = row.operation, REGISTRY[row.operation].waits
        self.params = scene.fill(row.params)
        token = scene.tokens["boss" if self._is_open and row.by == "nex" else row.by]
        if isinstance(self.params, dict) and token is not None:
            self.params = {"token": token} | self.params

    @property
    def _is_open(self) -> bool:
        return REGISTRY[self.method].level is Level.OPEN

    @property
    def _shows_nobody(self) -> bool:
        """Whether its body is so large that REST takes it only with a token in the header, and there is none."""
        given = json.dumps(self.params)
        return len(given) > requests.UNPROVED_BYTES and not in_header(self.params.get("token"))

    @property
    def line(self) -> str:
        return json.dumps({"jsonrpc": "2.0", "method": self.method, "params": self.params, "id": 1})

    def elsewhere(self, door: str, error: Any) -> str | None:
        """The code of an answer that is another one than the socket's by nature; None: it is the same."""
        if code({"error": error}) == "parse_error":
            return None
        if isinstance(self.params, list):  # REST has no parameters by position
            return "invalid_request" if door == "rest" else None
        if door == "rest" and self._shows_nobody:
            return "no_token"
        if refused_by_web(self.method, self.params, door):
            return "door_refused"
        return "no_token" if self._is_open and "token" not in self.params else None


def by_socket(scene: Scene, asked: list[Asked]) -> list[Any]:
    lines = [one.line.encode() + b"\n" for one in asked]
    with scene.daemon.connect() as connection:
        if any(one.waits for one in asked):
            found = []
            for line in lines:
                connection.sendall(line)
                found += answers(connection, 1)
            return found
        connection.sendall(b"".join(lines))
        return answers(connection, len(lines))


def by_websocket(url: str, asked: list[Asked]) -> list[Any]:
    client: WebSocketClient = open_websocket(url)
    try:
        if any(one.waits for one in asked):
            return [answer for one in asked for answer in client.exchange(one.line, answers=1)]
        return client.exchange(*(one.line for one in asked), answers=len(asked))
    finally:
        client.close()


def by_rest(client: RestClient, asked: Asked) -> Any:
    given, client.token = asked.params, None
    if isinstance(given, dict) and in_header(given.get("token")):
        client.token = given["token"]
        given = {name: value for name, value in given.items() if name != "token"}
    reply = client.operation(asked.method, given)
    assert reply.status == CLASSES[reply.code].http, (asked.line[:300], reply)
    return reply.json


def shown(answer: Any) -> Any:
    """An error as it is compared: where in a text that is no JSON the fault is differs."""
    error = answer["error"]
    return re.sub(r"\d+", "0", json.dumps(error)) if code(answer) == "parse_error" else error


def compare(scene: Scene, url: str, rest: RestClient, rows: list[Row]) -> None:
    asked = [Asked(scene, row) for row in rows]
    with scene.unchanged():
        found = {
            "socket": by_socket(scene, asked),
            "websocket": by_websocket(url, asked),
            "rest": [by_rest(rest, one) for one in asked],
        }
    for door in ("websocket", "rest"):
        for one, first, other in zip(asked, found["socket"], found[door], strict=True):
            expected = one.elsewhere(door, first["error"])
            if expected is None:
                assert shown(other) == shown(first), (door, one.line[:300])
            else:
                assert code(other) == expected, (door, one.line[:300], other)


def groups(name: str) -> Iterator[list[Row]]:
    """The rows of an operation that can be asked together: with the same settings."""
    yield bulk.some(mechanical(name), lambda row: (row.code, row.by), each=2)
    rows = [row for row in ROWS if row.operation == name]
    plain = [row for row in rows if row.config is row.policy is None]
    yield from [plain, *([row] for row in rows if row not in plain)]


@pytest.mark.parametrize("noun", NOUNS)
def test_what_is_wrong_or_cannot_be_meant_is_the_same_error_through_all_doors(
    scene: Scene, url: str, rest: RestClient, noun: str
) -> None:
    with sweep() as row:
        for name in REGISTRY:
            for group in groups(name) if name.partition(".")[0] == noun else ():
                if group:
                    with (
                        row((name, [one.code for one in group])),
                        scene.given(group[0].config, group[0].policy),
                    ):
                        compare(scene, url, rest, group)
