"""One contract for all doors: every operation through the WebSocket and REST, with the answers of the socket.

The stories are those of tests/api/test_operations.py, which tells them through the socket. Each is told here through
one of the two doors; what only reads and what is refused is asked through both.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.api.operation_calls import CALLS
from tests.api.operation_runs import Case
from tests.api.test_operations import assert_declared_shape
from tests.support import bulk
from tests.support.attached_sessions import Session
from tests.support.doors import DoorDaemon, code_of, doors_of
from tests.support.parties import agents, boss
from tests.support.sweeps import sweep
from tests.support.web_clients import WebDaemon, web_daemon

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
