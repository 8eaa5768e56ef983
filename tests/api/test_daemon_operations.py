"""Operations about the daemon itself: ping, time, status, stop, and the description of all operations."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NotRequired, get_args, get_origin, get_type_hints

import pytest
from pydantic import BaseModel
from typing_extensions import is_typeddict

import hiboss
from hiboss.api import dispatch  # noqa: F401 - it declares the operations
from hiboss.api.operation import REGISTRY
from hiboss.cli.daemon_process import call_once
from hiboss.core.errors import tree
from hiboss.core.paths import Home
from hiboss.testing.running_daemon import RunningDaemon, running_daemon
from tests.support.daemons import answers, ask, line
from tests.support.parties import Party, agents, boss, checked_daemon
from tests.support.sweeps import sweep
from tests.support.waits import wait_until

# --- ping, time, status --------------------------------------------------------------


def test_ping_says_version_and_pid(daemon: RunningDaemon) -> None:
    assert daemon.call("daemon.ping") == {"pong": True, "version": hiboss.__version__, "pid": daemon.pid}


def test_time_is_told_in_utc_and_in_the_bosss_zone(tmp_path: Path) -> None:
    call_once(Home(str(tmp_path / "home")), "setup.execute", {"timezone": "Asia/Kathmandu"})
    with running_daemon(tmp_path, set_up=False) as daemon:
        before = datetime.now(UTC) - timedelta(milliseconds=1)
        told = daemon.call("daemon.time")
        now, local = datetime.fromisoformat(told["now"]), datetime.fromisoformat(told["local"])
        # Its clock is a sum of two that count milliseconds, so it may be one ahead.
        assert before <= now <= datetime.now(UTC) + timedelta(milliseconds=1)
        assert told["now"].endswith("Z") and len(told["now"]) == len("2026-01-28T12:08:45.120Z")
        assert told["timezone"] == "Asia/Kathmandu" and local.utcoffset() == timedelta(hours=5, minutes=45)
        assert local == now.replace(microsecond=0)


def test_status_tells_what_and_where_the_daemon_is(daemon: RunningDaemon) -> None:
    told = daemon.call("daemon.status")
    assert (told["version"], told["pid"], told["set_up"]) == (hiboss.__version__, daemon.pid, True)
    assert (told["home"], told["socket"], told["timezone"]) == (str(daemon.home), daemon.home.socket, "UTC")
    assert told["database_bytes"] > 0 and told["writes_waiting"] >= 0
    assert datetime.fromisoformat(told["started_at"]) <= datetime.now(UTC)


def test_status_counts_agents_and_mail(daemon: RunningDaemon) -> None:
    def counts() -> list[int]:
        told = daemon.call("daemon.status")
        return [told[name] for name in ("agents", "due", "deferred", "failed")]

    before = counts()
    ada, bob, eve = agents(daemon, 3)
    numbers = [ada.tell(bob) for _ in range(4)]
    ada.tell(bob, deliver_at="+2h")
    ada.tell(boss(daemon))
    bob.call("envelope.ack", ids=numbers[:1])
    ada.call("envelope.cancel", ids=numbers[1:2])
    bob.call("envelope.archive", ids=numbers[2:3])
    assert [now - then for now, then in zip(counts(), before, strict=True)] == [3, 1, 1, 0]
    ada.send(eve, eve, bob, deliver_at="+1h")
    boss(daemon).call("agent.delete", name=bob.name)
    assert [now - then for now, then in zip(counts(), before, strict=True)] == [2, 0, 1, 3]


def test_status_counts_exactly_to_1000_and_then_says_1000_plus(
    daemon: RunningDaemon, ada: Party, bob: Party
) -> None:
    ada.flood(bob, 1000 - daemon.call("daemon.status")["due"])
    assert daemon.call("daemon.status")["due"] == 1000
    ada.tell(bob)
    assert daemon.call("daemon.status")["due"] == "1000+"
    bob.call("envelope.ack", all=True)
    assert daemon.call("daemon.status")["due"] < 1000


def test_status_counts_the_connections(daemon: RunningDaemon) -> None:
    with daemon.connect() as one, daemon.connect() as two:
        ask(one, "daemon.ping")
        ask(two, "daemon.ping")
        wait_until(lambda: daemon.call("daemon.status")["connections"] == 3)
    wait_until(lambda: daemon.call("daemon.status")["connections"] == 1)


# --- the end of a life and what comes after ------------------------------------------


def test_what_was_asked_before_stop_is_answered_and_there_in_the_next_life(tmp_path: Path) -> None:
    with checked_daemon(tmp_path) as daemon:
        ada, bob = agents(daemon, 2)
        boot, pid = daemon.call("daemon.status")["boot"], daemon.pid
        requests = [line("envelope.send", token=ada.token, to=bob.address, text="x")] * 50
        with daemon.connect() as connection:
            connection.sendall(b"".join([*requests, line("daemon.stop")]))
            *sent, stopped = [one["result"] for one in answers(connection, 51)]
        # Answers may take 5 s to be read, posts 5 s, runs 5 s to finish, and their programs 10 s to end.
        assert stopped == {"stopping": True, "pid": pid, "seconds": 25.0}
        assert daemon.wait_for_death() == 0
        assert not os.path.exists(daemon.home.socket)
        daemon.start()
        assert bob.ids(page_size=100, oldest_first=True) == [one["ids"][0] for one in sent]
        assert daemon.call("daemon.status")["boot"] == boot + 1
        daemon.kill()
        daemon.start()
        assert daemon.call("daemon.status")["boot"] == boot + 2


@pytest.mark.slow
def test_a_look_into_the_database_from_outside_costs_nothing(tmp_path: Path) -> None:
    with checked_daemon(tmp_path) as daemon:
        ada, bob = agents(daemon, 2)
        numbers = []
        for _ in range(4):
            numbers.append(ada.tell(bob))
            with daemon.database() as database:
                rows = database.execute('SELECT id FROM envelopes WHERE "to" = ?', (bob.address,)).fetchall()
            assert [row["id"] for row in rows] == numbers
            bob.call("envelope.list", count=True)  # makes the daemon open another connection
        daemon.kill()
        daemon.start()
        assert bob.ids(oldest_first=True) == numbers


@pytest.mark.slow
def test_mail_marks_and_keys_survive_kill_9(tmp_path: Path) -> None:
    with checked_daemon(tmp_path) as daemon:
        ada, bob = agents(daemon, 2)
        acked, trashed, seen, cancelled = numbers = [ada.tell(bob) for _ in range(4)]
        numbers.append(ada.tell(bob, key="k", deliver_at="+2h"))
        bob.call("envelope.ack", ids=[acked])
        bob.call("envelope.trash", ids=[trashed])
        bob.call("envelope.read", ids=[seen])
        ada.call("envelope.cancel", ids=[cancelled])
        before = [ada.get(number) for number in numbers]
        daemon.kill()
        daemon.start()
        assert [ada.get(number) for number in numbers] == before
        again = ada.send(bob, key="k", deliver_at="+2h")
        assert again["duplicate"] is True and again["ids"] == numbers[-1:]
        assert ada.get(ada.tell(bob))["seq"] == 5


# --- rpc.discover --------------------------------------------------------------------


@pytest.fixture(scope="module")
def document(daemon: RunningDaemon) -> dict[str, Any]:
    found: dict[str, Any] = daemon.call("rpc.discover")
    return found


def test_every_operation_is_described(document: dict[str, Any]) -> None:
    assert document["openrpc"].startswith("1.") and document["info"] == {
        "title": "hiboss",
        "version": hiboss.__version__,
    }
    assert [one["name"] for one in document["methods"]] == sorted(REGISTRY)
    issue = """setup.check setup.execute daemon.ping daemon.status daemon.time daemon.stop agent.register agent.list
        agent.set agent.delete agent.self envelope.send envelope.list envelope.get envelope.cancel envelope.read
        envelope.ack envelope.archive envelope.trash envelope.restore rpc.discover auth.login"""
    assert set(issue.split()) <= set(REGISTRY)


def test_an_operation_is_described_as_it_is_declared(document: dict[str, Any]) -> None:
    known = {cls.code: cls.rpc for cls in tree()}
    with sweep() as described:
        for method in document["methods"]:
            with described(method["name"]):
                operation = REGISTRY[method["name"]]
                assert method["summary"] and method["x-level"] == operation.level.name.lower()
                assert (method["x-effect"], method["x-door"]) == (operation.effect, list(operation.doors))
                assert [one["name"] for one in method["params"]] == operation.param_names
                required = [field.is_required() for field in operation.params.model_fields.values()]
                assert [one["required"] for one in method["params"]] == required
                assert required == sorted(required, reverse=True), "as OpenRPC wants"
                assert all(isinstance(one["schema"], dict) for one in method["params"])
                hints = get_type_hints(operation.result, include_extras=True)
                assert set(method["result"]["schema"]["properties"]) == set(hints)
                assert set(method["result"]["schema"]["required"]) == {
                    key for key, hint in hints.items() if get_origin(hint) is not NotRequired
                }
                declared = (*operation.errors, *operation.dispatch_errors)
                assert [one["message"] for one in method["errors"]] == [cls.code for cls in declared]
                assert len(set(declared)) == len(declared)
                assert all(one["code"] == known[one["message"]] for one in method["errors"])


def references(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        if isinstance(node.get("$ref"), str):
            yield node["$ref"]
        for child in node.values():
            yield from references(child)
    elif isinstance(node, list):
        for child in node:
            yield from references(child)


def result_types(kind: Any) -> Iterator[type]:
    """A declared result type, and every TypedDict it is made of."""
    if is_typeddict(kind):
        yield kind
        for hint in get_type_hints(kind).values():
            yield from result_types(hint)
    for inner in get_args(kind):
        yield from result_types(inner)


def parameter_types(kind: Any) -> Iterator[type]:
    """The models that a declared parameter is made of, like a tag."""
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        yield kind
        for field in kind.model_fields.values():
            yield from parameter_types(field.annotation)
    for inner in get_args(kind):
        yield from parameter_types(inner)


def test_two_published_types_never_have_one_name(document: dict[str, Any]) -> None:
    """Types are published by their class name: a second one would replace the first."""
    found: dict[str, type] = {}
    for name in sorted(REGISTRY):
        fields = REGISTRY[name].params.model_fields.values()
        parts = [kind for field in fields for kind in parameter_types(field.annotation)]
        for kind in (*result_types(REGISTRY[name].result), *parts):
            assert found.setdefault(kind.__name__, kind) is kind, kind.__name__
    assert set(document["components"]["schemas"]) <= {*found, "JsonValue"}  # that is any value of JSON


def test_every_reference_leads_somewhere_in_the_document(document: dict[str, Any]) -> None:
    for reference in set(references(document)):
        place: Any = document
        for step in reference.removeprefix("#/").split("/"):
            assert step in place, reference
            place = place[step]


def test_an_array_gives_the_parameters_in_the_order_described(
    daemon: RunningDaemon, document: dict[str, Any]
) -> None:
    (method,) = [one for one in document["methods"] if one["name"] == "setup.execute"]
    order = [one["name"] for one in method["params"]]
    assert order[0] == "boss_name"
    (answer,) = daemon.exchange(
        {"jsonrpc": "2.0", "id": 1, "method": "setup.execute", "params": ["x"]}, answers=1
    )
    assert answer["result"]["changed"] is False
