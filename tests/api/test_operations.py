"""Every operation keeps its declaration: its answers have the declared shape, its errors are declared ones."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from hiboss.api import dispatch  # noqa: F401 - it declares the operations
from hiboss.api.operation import REGISTRY, Level
from hiboss.testing.running_daemon import Answered, RunningDaemon, running_daemon
from tests.api.operation_calls import CALLS
from tests.api.operation_runs import Case
from tests.support import bulk
from tests.support.daemons import answers, code, line
from tests.support.parties import Party, agents, boss, checked_daemon
from tests.support.web_clients import web_daemon

ADAPTERS: dict[str, TypeAdapter[Any]] = {}


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDaemon]:
    with web_daemon(tmp_path_factory.mktemp("d")) as running:  # web.link needs HTTP
        yield running
        running.check()


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


@pytest.mark.parametrize("name", sorted(CALLS))
def test_an_answer_has_the_declared_shape(daemon: RunningDaemon, tmp_path: Path, name: str) -> None:
    for answer in CALLS[name](Case(daemon, tmp_path)):
        assert_declared_shape(name, answer)


def test_the_first_setup_and_the_stop_have_the_declared_shape(tmp_path: Path) -> None:
    with running_daemon(tmp_path, set_up=False) as daemon:
        assert_declared_shape("setup.check", daemon.call("setup.check"))
        assert_declared_shape("daemon.status", daemon.call("daemon.status"))
        assert_declared_shape("setup.execute", daemon.call("setup.execute", timezone="UTC"))
        assert_declared_shape("daemon.stop", daemon.call("daemon.stop"))
        daemon.wait_for_death()


# --- errors --------------------------------------------------------------------------

OTHERS_MAIL = "the other's mail"  # replaced by the id of an envelope between two others
OWN_MAIL = "own mail"

NOTE = {"to": "agent:nex", "text": "x"}
ERRORS: list[tuple[str, dict[str, Any], str]] = [
    ("setup.execute", {"agent_name": "a b"}, "bad_name"),
    ("setup.execute", {"timezone": "x"}, "bad_timezone"),
    ("setup.execute", {"boss_name": "n" * 257}, "too_large"),
    ("setup.execute", {"boss_name": "\x00"}, "bad_text"),
    ("agent.register", {"name": "a b"}, "bad_name"),
    ("agent.register", {"name": "nex"}, "name_taken"),
    ("agent.register", {"name": "new", "role": "r" * 1025}, "too_large"),
    ("agent.register", {"name": "new", "role": "\x00"}, "bad_text"),
    ("agent.register", {"name": "new", "mode": "run"}, "no_provider"),
    ("agent.register", {"name": "new", "provider": "x"}, "bad_provider"),
    ("setup.execute", {"provider": "x"}, "bad_provider"),
    ("agent.set", {"name": "nobody-here", "role": "r"}, "unknown_agent"),
    ("agent.set", {"name": "nex", "mode": "run"}, "no_provider"),
    ("agent.set", {"name": "nex", "provider": "command"}, "bad_provider"),
    *[(f"agent.{verb}", {"name": "nobody-here"}, "unknown_agent") for verb in ("status", "pause", "resume")],
    ("agent.pause", {"name": "nex", "reason": "\x00"}, "bad_text"),
    ("agent.pause", {"name": "nex", "reason": "r" * 257}, "too_large"),
    ("agent.background", {"task": "x"}, "no_provider"),
    ("agent.background", {"task": " "}, "empty_message"),
    ("agent.background", {"task": "x", "agent": "nobody-here"}, "unknown_agent"),
    *[
        (f"run.{verb}", {"id": value}, expected)
        for verb in ("get", "tail", "cancel", "pause", "resume")
        for value, expected in (("x", "bad_id"), ("r999999", "not_found"))
    ],
    ("run.list", {"after": "x"}, "bad_id"),
    ("cron.list", {"after": "x"}, "bad_id"),
    ("run.list", {"agent": "nobody-here"}, "unknown_agent"),
    ("run.list", {"page_size": 0}, "invalid_params"),
    ("run.list", {"trace": "\x00"}, "bad_text"),
    ("user.register", {"name": "a b"}, "bad_name"),
    ("user.register", {"name": "nex"}, "name_taken"),
    ("user.register", {"name": "new", "display": "d" * 257}, "too_large"),
    ("user.delete", {"name": "nobody-here"}, "unknown_user"),
    ("user.token.rotate", {"name": "boss"}, "unknown_user"),
    *[
        (f"conversation.{verb}", {"after": 0, **params} if verb == "news" else params, expected)
        for verb in ("messages", "news")
        for params, expected in (
            ({"with": "x:y"}, "bad_address"),
            ({"with": "nobody-here"}, "unknown_address"),
            ({"with": "agent:nobody-here"}, "unknown_address"),
            ({"with": "agent:nex", "address": "user:boss"}, "boss_only"),
        )
    ],
    ("conversation.news", {"with": "agent:nex", "after": 0, "run": "x"}, "bad_id"),
    ("agent.set", {"name": "nex", "role": "r" * 1025}, "too_large"),
    ("agent.set", {"name": "nex", "role": "\x00"}, "bad_text"),
    ("agent.delete", {"name": "nobody-here"}, "unknown_agent"),
    ("permission.policy.set", {"policy": {"nothing": "boss"}}, "unknown_operation"),
    ("permission.policy.set", {"policy": {"boss.set": "standard"}}, "fixed_level"),
    ("permission.policy.set", {"policy": {"agent.list": "open"}}, "invalid_params"),
    ("agent.permission.get", {"name": "nobody-here"}, "unknown_agent"),
    ("agent.permission.set", {"name": "nobody-here", "level": "standard"}, "unknown_agent"),
    ("agent.permission.set", {"name": "nex", "level": "boss"}, "invalid_params"),
    ("agent.token.rotate", {"name": "nobody-here"}, "unknown_agent"),
    ("agent.token.revoke", {"name": "nobody-here"}, "unknown_agent"),
    ("boss.set", {"name": "\x00"}, "bad_text"),
    ("boss.set", {"name": "n" * 257}, "too_large"),
    ("boss.set", {"timezone": "Nowhere/Land"}, "bad_timezone"),
    ("boss.set", {}, "invalid_params"),
    ("boss.set", {"reach": "channel:x"}, "bad_address"),
    ("boss.set", {"reach": "channel:folder:nowhere"}, "not_bound"),
    ("boss.set", {"reach": "", "reach_binding": "x"}, "bad_id"),
    ("boss.set", {"ids": {"pigeon": "7"}}, "unknown_adapter"),
    ("boss.set", {"ids": {"telegram": "@ada"}}, "invalid_params"),
    *[
        (f"contact.{verb}", {"contact": "channel:folder:nowhere", **words, **account}, expected)
        for verb, words in (("approve", {}), ("block", {}), ("route", {"agent": "nex"}))
        for account, expected in (({}, "not_found"), ({"binding": "x"}, "bad_id"))
    ],
    ("envelope.claim", {"address": "x:y"}, "bad_address"),
    ("envelope.claim", {"address": "nobody-here"}, "unknown_address"),
    ("envelope.claim", {"address": "user:boss"}, "boss_only"),
    ("envelope.claim", {"lease": "soon"}, "bad_duration"),
    ("envelope.claim", {"limit": 0}, "invalid_params"),
    ("envelope.release", {"ids": ["x"]}, "bad_id"),
    ("envelope.release", {"ids": [OTHERS_MAIL]}, "not_found"),
    ("envelope.release", {"ids": [OWN_MAIL]}, "too_late"),
    ("envelope.release", {"ids": [1], "address": "user:boss"}, "boss_only"),
    ("envelope.release", {"ids": [1], "address": "x:y"}, "bad_address"),
    ("envelope.release", {"ids": [1], "address": "nobody-here"}, "unknown_address"),
    ("envelope.retry", {"ids": ["x"]}, "bad_id"),
    ("envelope.retry", {"ids": [OTHERS_MAIL]}, "not_found"),
    ("envelope.retry", {"ids": [OWN_MAIL]}, "too_late"),
    (
        "agent.bind",
        {"name": "nobody-here", "adapter_type": "folder", "settings": {"path": "/x"}},
        "unknown_agent",
    ),
    ("agent.bind", {"name": "nex", "adapter_type": "x", "settings": {"path": "/x"}}, "unknown_adapter"),
    ("agent.bind", {"name": "nex", "adapter_type": "folder"}, "invalid_params"),
    ("agent.unbind", {"name": "nobody-here", "adapter_type": "folder"}, "unknown_agent"),
    ("agent.unbind", {"name": "nex", "adapter_type": "x"}, "unknown_adapter"),
    ("agent.unbind", {"name": "nex", "adapter_type": "folder"}, "unknown_binding"),
    *[
        (f"lane.{verb}", {"address": address}, expected)
        for verb in ("retry", "pause", "resume")
        for address, expected in (
            ("x:y", "bad_address"),
            ("nobody-here", "unknown_address"),
            ("channel:folder:nobody-here", "unknown_address"),
            ("user:boss", "not_found"),
        )
    ],
    ("turn.preview", {"address": "x:y"}, "bad_address"),
    ("turn.preview", {"address": "nobody-here"}, "unknown_address"),
    ("turn.preview", {"address": "user:boss"}, "boss_only"),
    ("cron.create", {**NOTE, "cron": "x"}, "bad_cron"),
    ("cron.create", {**NOTE, "every": "0s"}, "bad_duration"),
    ("cron.create", {**NOTE, "at": "x"}, "bad_time"),
    ("cron.create", {**NOTE, "at": "+101Y"}, "too_far"),
    ("cron.create", {**NOTE, "cron": "@daily", "timezone": "Nowhere/Land"}, "bad_timezone"),
    ("cron.create", {**NOTE, "every": "1h", "to": "agent:nobody-here"}, "unknown_recipient"),
    ("cron.create", {**NOTE, "every": "1h", "to": "nobody-here"}, "unknown_recipient"),
    ("cron.create", {**NOTE, "every": "1h", "from": "nobody-here"}, "unknown_sender"),
    ("cron.create", {**NOTE, "every": "1h", "to": "x:y"}, "bad_address"),
    ("cron.create", {**NOTE, "every": "1h", "to": "channel:telegram:1"}, "not_bound"),
    ("cron.create", {**NOTE, "every": "1h", "text": " "}, "empty_message"),
    ("cron.create", {**NOTE, "every": "1h", "attachments": ["/missing"]}, "attachment_missing"),
    ("cron.create", {**NOTE, "every": "1h", "from_boss": True}, "boss_only"),
    ("cron.create", NOTE, "invalid_params"),
    ("cron.explain", {"cron": "x"}, "bad_cron"),
    ("cron.explain", {"cron": "@daily", "timezone": "x"}, "bad_timezone"),
    ("cron.explain", {"cron": "@daily", "count": 0}, "invalid_params"),
    *[
        (f"cron.{verb}", {"id": value} | ({"name": "n"} if verb == "set" else {}), expected)
        for verb in ("show", "set", "enable", "disable", "delete", "run")
        for value, expected in (("x", "bad_id"), ("s999999", "not_found"))
    ],
    *[
        (f"envelope.{verb}", params, expected)
        for verb in ("wait", "watch")
        for params, expected in (
            ({"timeout": "soon"}, "bad_duration"),
            ({"after": "x"}, "bad_cursor"),
            ({"after": "00000000-a1"}, "gap"),
            ({"address": "x:y"}, "bad_address"),
            ({"address": "nobody-here"}, "unknown_address"),
            ({"address": "user:boss"}, "boss_only"),
        )
    ],
    ("envelope.poll", {"wait": "soon"}, "bad_duration"),
    ("envelope.poll", {"session": "s" * 257}, "too_large"),
    ("envelope.poll", {"session": "\x00"}, "bad_text"),
    ("envelope.send", {"to": "x:y", "text": "x"}, "bad_address"),
    ("envelope.send", {"to": "nobody-here", "text": "x"}, "unknown_recipient"),
    ("envelope.send", {"to": "agent:nobody-here", "text": "x"}, "unknown_recipient"),
    ("envelope.send", {"to": "channel:telegram:1", "text": "x"}, "not_bound"),
    ("envelope.send", {"to": "agent:nex", "text": "x", "deliver_at": "x"}, "bad_time"),
    ("envelope.send", {"to": "agent:nex", "text": "x", "deliver_at": "+101Y"}, "too_far"),
    ("envelope.send", {"to": "agent:nex", "text": "x", "reply_to": "x"}, "bad_id"),
    ("envelope.send", {"to": "agent:nex", "text": "x", "reply_to": "e999999"}, "not_found"),
    ("envelope.send", {"to": "agent:nex", "text": "\x00"}, "bad_text"),
    ("envelope.send", {"to": "agent:nex", "text": " "}, "empty_message"),
    ("envelope.send", {"text": "x"}, "no_recipient"),
    ("envelope.send", {"to": "agent:nex", "text": "x", "ack_by": "soon"}, "bad_duration"),
    ("envelope.send", {"to": "group:all", "text": "x"}, "forbidden"),
    ("envelope.send", {"to": "agent:nex", "text": "x" * (1024 * 1024 + 1)}, "too_large"),
    ("envelope.send", {"to": "agent:nex", "text": "x", "from_boss": True}, "boss_only"),
    ("envelope.send", {"to": "agent:nex", "attachments": ["/missing"]}, "attachment_missing"),
    ("envelope.send", {"to": "agent:nex", "attachments": ["/"]}, "attachment_unreadable"),
    ("envelope.list", {"from": "x:y"}, "bad_address"),
    ("envelope.list", {"from": "nobody-here"}, "unknown_address"),
    ("envelope.list", {"from": "agent:nobody-here"}, "unknown_address"),
    ("envelope.list", {"created_after": "x"}, "bad_time"),
    ("envelope.list", {"thread": "x1"}, "bad_id"),
    ("envelope.list", {"thread": OTHERS_MAIL}, "not_found"),
    ("envelope.list", {"after": "x"}, "bad_cursor"),
    ("envelope.list", {"after": "00000000-a1"}, "gap"),
    ("envelope.list", {"address": "user:boss"}, "boss_only"),
    ("envelope.list", {"page_size": 0}, "invalid_params"),
    ("envelope.get", {"id": "x"}, "bad_id"),
    ("envelope.trace", {"id": "x"}, "bad_id"),
    ("envelope.trace", {"id": OTHERS_MAIL}, "not_found"),
    ("envelope.get", {"id": OTHERS_MAIL}, "not_found"),
    ("envelope.cancel", {"ids": ["x"]}, "bad_id"),
    ("envelope.cancel", {"ids": [OTHERS_MAIL]}, "not_found"),
    ("envelope.cancel", {"ids": [OWN_MAIL]}, "too_late"),
    ("envelope.ack", {"all": True, "up_to": "x"}, "bad_id"),
    ("envelope.ack", {"all": True, "up_to": OTHERS_MAIL}, "not_found"),
    ("envelope.ack", {"all": True, "address": "x:y"}, "bad_address"),
    ("envelope.ack", {}, "invalid_params"),
    ("envelope.read", {"all": True, "up_to": OTHERS_MAIL}, "not_found"),
    ("envelope.read", {"all": True, "session": "\x00"}, "bad_text"),
    ("envelope.snooze", {"ids": [OWN_MAIL], "until": "x"}, "bad_time"),
    ("envelope.snooze", {"ids": [OWN_MAIL], "until": "+101Y"}, "too_far"),
    ("envelope.snooze", {"ids": [OWN_MAIL], "until": "-1h"}, "invalid_params"),
    *[
        (f"envelope.{verb}", {**params, "until": "+1h"} if verb == "snooze" else params, expected)
        for verb in ("read", "ack", "snooze", "unsnooze", "archive", "trash", "restore")
        for params, expected in (
            ({"ids": ["x"]}, "bad_id"),
            ({"ids": [OTHERS_MAIL]}, "not_found"),
            ({"ids": [1], "address": "user:boss"}, "boss_only"),
            ({"ids": [1], "address": "x:y"}, "bad_address"),
            ({"ids": [1], "address": "nobody-here"}, "unknown_address"),
        )
    ],
]


@pytest.fixture(scope="module")
def mail(daemon: RunningDaemon) -> dict[str, Any]:
    nex = Party(daemon, "agent:nex", daemon.token("nex"))
    ada, bob = agents(daemon, 2)
    own = nex.tell(nex)
    nex.call("envelope.ack", ids=[own])
    return {OTHERS_MAIL: ada.tell(bob), OWN_MAIL: own}


@pytest.mark.parametrize(("name", "params", "expected"), ERRORS, ids=lambda value: repr(value)[:60])
def test_an_error_is_a_declared_one(
    daemon: RunningDaemon, mail: dict[str, Any], name: str, params: dict[str, Any], expected: str
) -> None:
    who = "boss" if REGISTRY[name].level is Level.BOSS else "nex"
    filled = json.loads(json.dumps(params))
    for key, value in filled.items():
        if isinstance(value, list):
            filled[key] = [mail.get(one, one) if isinstance(one, str) else one for one in value]
        elif isinstance(value, str):
            filled[key] = mail.get(value, value)
    with pytest.raises(Answered) as caught:
        daemon.call(name, token=daemon.token(who), **filled)
    assert caught.value.stable_code == expected
    assert_declared_error(name, expected)


def test_what_the_boss_alone_meets_is_declared_too(daemon: RunningDaemon, mail: dict[str, Any]) -> None:
    chief = boss(daemon)
    for name, params, expected in (
        ("envelope.send", {"from_": "nobody-here", "to": "agent:nex", "text": "x"}, "unknown_sender"),
        ("envelope.send", {"from_": "agent:nobody-here", "to": "agent:nex", "text": "x"}, "unknown_sender"),
        ("envelope.send", {"from_": "x:y", "to": "agent:nex", "text": "x"}, "bad_address"),
        ("envelope.list", {"address": "agent:nobody-here"}, "unknown_address"),
        ("turn.preview", {"address": "agent:nobody-here"}, "unknown_address"),
        ("turn.preview", {"address": "user:boss"}, "invalid_params"),
        ("turn.preview", {}, "invalid_params"),
        ("envelope.archive", {"ids": [1], "address": "agent:nobody-here"}, "unknown_address"),
        ("envelope.archive", {"ids": [mail[OWN_MAIL]]}, "other_box"),
        ("envelope.claim", {"address": "agent:nobody-here"}, "unknown_address"),
    ):
        assert chief.refusal(name, **params) == expected
        assert_declared_error(name, expected)
    nex = Party(daemon, "agent:nex", daemon.token("nex"))
    nex.send(nex, key="once")
    assert nex.refusal("envelope.send", to=nex.address, text="other", key="once") == "key_reused"
    assert (
        nex.refusal("envelope.send", to=nex.address, attachments=[daemon.home.database])
        == "attachment_forbidden"
    )
    for expected in ("key_reused", "attachment_forbidden"):
        assert_declared_error("envelope.send", expected)


@pytest.mark.parametrize("name", sorted(name for name in REGISTRY if REGISTRY[name].level > 0))
def test_an_operation_that_needs_a_token_says_so(daemon: RunningDaemon, name: str) -> None:
    for token, expected in (
        (None, "no_token"),
        ("hba_wrong", "bad_token"),
        ("", "bad_token"),
        (5, "invalid_params"),
    ):
        with pytest.raises(Answered) as caught:
            daemon.call(name, **({} if token is None else {"token": token}))
        assert caught.value.stable_code == expected


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


@pytest.mark.parametrize("name", sorted(set(REGISTRY) - {"daemon.stop"}))
def test_whatever_is_asked_the_answer_is_a_declared_one(fuzzed: RunningDaemon, name: str) -> None:
    chance, operation = random.Random(name), REGISTRY[name]
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
        token = fuzzed.token(chance.choice(["boss", "tester"]))
        requests.append(line(name, number, **{**params, "token": token}))
    with fuzzed.connect() as connection:
        connection.sendall(b"".join(requests))
        found = answers(connection, len(requests))
    assert len(found) == len(requests)
    if operation.waits:  # answered when it is ready, not in order
        found.sort(key=lambda answer: answer["id"])
    for request, answer in zip(requests, found, strict=True):
        if "result" in answer:
            assert_declared_shape(name, answer["result"])
        else:
            assert code(answer) != "internal_error", request[:500]
            assert_declared_error(name, code(answer))
