"""Every operation keeps its declaration: its answers have the declared shape, its errors are declared ones."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from hiboss.api import dispatch  # noqa: F401 - it declares the operations
from hiboss.api.operation import REGISTRY
from hiboss.testing.running_daemon import RunningDaemon, running_daemon
from tests.api.operation_calls import CALLS
from tests.api.operation_runs import Case
from tests.support import bulk
from tests.support.daemons import code, line
from tests.support.parties import checked_daemon
from tests.support.sweeps import sweep
from tests.support.web_daemons import web_fixture

ADAPTERS: dict[str, TypeAdapter[Any]] = {}


daemon = web_fixture()  # web.link needs HTTP


def assert_declared_shape(name: str, answer: Any) -> None:
    """Strictly of the declared types, with every key declared and none besides."""
    adapter = ADAPTERS.setdefault(name, TypeAdapter(REGISTRY[name].result))
    # Unknown keys are dropped by validation, at every depth: then it is not equal any more.
    assert adapter.validate_python(answer, strict=True) == answer


def assert_declared_error(name: str, found: str) -> None:
    declared = {cls.code for cls in (*REGISTRY[name].errors, *REGISTRY[name].dispatch_errors)}
    assert found in declared, f"{name} does not declare {found}"


def test_the_check_itself_finds_what_does_not_fit() -> None:
    good = {"pong": True, "version": "1", "pid": 1}
    assert_declared_shape("daemon.ping", good)
    with pytest.raises(AssertionError):
        assert_declared_shape("daemon.ping", {**good, "more": 1})
    for bad in ({**good, "pid": "1"}, {**good, "pong": None}, {"pong": True, "version": "1"}):
        with pytest.raises(ValidationError):
            assert_declared_shape("daemon.ping", bad)
    with pytest.raises(AssertionError):
        assert_declared_error("daemon.ping", "not_found")


# --- answers -------------------------------------------------------------------------


def test_every_operation_is_tried_here() -> None:
    assert set(CALLS) | {"daemon.stop"} == set(REGISTRY)


@pytest.mark.parametrize("noun", sorted({name.partition(".")[0] for name in CALLS}))
def test_an_answer_has_the_declared_shape(daemon: RunningDaemon, tmp_path: Path, noun: str) -> None:
    with sweep() as operation:
        for name in sorted(CALLS):
            if name.partition(".")[0] == noun:
                with operation(name):
                    directory = tmp_path / name
                    directory.mkdir()
                    for answer in CALLS[name](Case(daemon, directory)):
                        assert_declared_shape(name, answer)


def test_the_first_setup_and_the_stop_have_the_declared_shape(tmp_path: Path) -> None:
    with running_daemon(tmp_path, set_up=False) as daemon:
        assert_declared_shape("setup.check", daemon.call("setup.check"))
        assert_declared_shape("daemon.status", daemon.call("daemon.status"))
        assert_declared_shape("setup.execute", daemon.call("setup.execute", timezone="UTC"))
        assert_declared_shape("daemon.stop", daemon.call("daemon.stop"))
        daemon.wait_for_death()


# --- anything ------------------------------------------------------------------------

ODD: list[Any] = [
    *(
        "",
        " ",
        "x",
        "e1",
        "m1",
        "t1",
        "agent:nex",
        "user:boss",
        "agent:x",
        "channel:a:b",
        "group:g",
        "nex",
        "inbox",
    ),
    *(
        "outbox",
        "pending",
        "+2h",
        "-1h",
        "2026-01-27",
        "0001-01-01T00:00+14:00",
        "9999-12-31T23:59-14:00",
        "/etc/hostname",
    ),
    *(
        "a\x00b",
        "\u202e",
        "ü" * 600,
        "x" * 2000,
        "00000000-a1",
        "UTC",
        "folder",
        "10m",
        "channel:folder:x",
        "run",
        "high",
        "json",
        "-",
        "None",
        "e" + "9" * 30,
    ),
    *(None, True, False, 0, 1, -1, 2**31, 2**63, 2**64, 1.5, 1e308, [], {}, [[]], [{}], {"a": {"b": [1]}}),
    *(
        ["e1"],
        ["e1", "e1"],
        [1],
        [None],
        ["agent:nex", "user:boss"],
        ["/etc/hostname", "/etc/hostname"],
        ["x"] * 120,
    ),
]


@pytest.fixture(scope="module")
def fuzzed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDaemon]:
    """A daemon of its own: nobody can rely on anything here, agents may be deleted at any time."""
    with checked_daemon(tmp_path_factory.mktemp("d")) as running:
        running.register("tester")
        yield running


def odd_requests(name: str, chance: random.Random, tokens: list[str]) -> list[bytes]:
    operation = REGISTRY[name]
    needed = [
        field.alias or key for key, field in operation.params.model_fields.items() if field.is_required()
    ]
    # What waits waits long when nothing is said, so something always is.
    needed += [param for param in ("timeout", "wait") if operation.waits and param in operation.param_names]
    requests = []
    for number in range(bulk.number(50, 300) if operation.param_names else 5):
        given = chance.sample(operation.param_names, chance.randint(0, min(4, len(operation.param_names))))
        params = {key: chance.choice(ODD) for key in [*given, *needed]}
        for key in ("timeout", "wait"):
            if params.get(key) == "10m" or (key in params and chance.random() < 0.5):
                params[key] = "0.01s"
        requests.append(line(name, number, **{**params, "token": chance.choice(tokens)}))
    return requests


@pytest.mark.slow
@pytest.mark.parametrize("noun", sorted({name.partition(".")[0] for name in REGISTRY}))
def test_whatever_is_asked_the_answer_is_a_declared_one(fuzzed: RunningDaemon, noun: str) -> None:
    tokens = [fuzzed.token(name) for name in ("boss", "tester")]
    with sweep() as answered:
        for name in sorted(set(REGISTRY) - {"daemon.stop"}):
            if name.partition(".")[0] != noun:
                continue
            requests = odd_requests(name, random.Random(name), tokens)
            with fuzzed.connect() as connection, connection.makefile("rb") as stream:
                connection.sendall(b"".join(requests))
                # Who subscribed is told of facts between the answers.
                told = (json.loads(text) for text in stream)
                found = list(itertools.islice((one for one in told if "id" in one), len(requests)))
            found.sort(key=lambda answer: answer["id"])  # what waits is answered when it is ready
            for request, answer in zip(requests, found, strict=True):
                with answered(request[:500]):
                    if "result" in answer:
                        assert_declared_shape(name, answer["result"])
                    else:
                        assert code(answer) != "internal_error"
                        assert_declared_error(name, code(answer))
