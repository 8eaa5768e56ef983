"""The real socket under anything: every operation with arbitrary JSON for method, parameters and id.

One request, one answer in the form of the protocol, with a code of the tree that is no defect of
ours; the daemon lives, says so, and its log has no traceback.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hiboss.api import dispatch  # noqa: F401 - it declares the operations
from hiboss.api.operation import REGISTRY
from hiboss.core.errors import HomeUnusable, InternalError, StoreError, tree
from hiboss.testing.running_daemon import RunningDaemon
from tests.support import bulk
from tests.support.daemons import answers, line, notification
from tests.support.parties import checked_daemon
from tests.support.sweeps import sweep

pytestmark = pytest.mark.slow

# No value of a caller is a defect of ours or an error of the database.
OURS = (InternalError, StoreError, HomeUnusable)
CODES = {cls.code: cls.rpc for cls in tree() if not issubclass(cls, OURS)}
DONE_ELSEWHERE = {
    "daemon.stop",  # it would do as told
    "event.subscribe",  # notifications would come between the answers: tests/rpc/test_events.py
}
OPERATIONS = sorted(REGISTRY.keys() - DONE_ELSEWHERE)
NOUNS = sorted({name.partition(".")[0] for name in OPERATIONS})
WAITING = [name for name in OPERATIONS if REGISTRY[name].waits]
CALLER = "fuzzer"  # no word below names it, so nothing that is done by chance takes it away

# Without a token, whoever has logged in meanwhile: that token may have ended since.
PING = line("daemon.ping", "the ping", token=None)


def fuzzed(examples: int) -> settings:
    fixtures = HealthCheck.function_scoped_fixture  # they are the module's; and what is said stays said
    checks = [fixtures, HealthCheck.too_slow]
    return settings(derandomize=True, max_examples=examples, suppress_health_check=checks)


EDGES = [
    "",
    " ",
    "nex",
    "e1",
    "m1",
    "t1",
    "c1",
    "e" + "9" * 30,
    "agent:nex",
    "agent:",
    "user:boss",
    "channel:telegram:1",
    "group:x",
    "+1h",
    "-1Y",
    "2026-02-30",
    "9999-12-31T23:59:59+00:00",
    "UTC",
    "../etc",
    "/",
    "/dev/null",
    "\x00",
    "\ud800",
    "é\u202e\U0001f600",
    "x" * 300,
    "' OR 1=1 --",
    "%" * 4_000,
    'what is "this',
]
LIMITS = [0, 1, -1, 100, 101, 2**31, 2**53, 2**63 - 1, 2**63, -(2**63), 2**64, 10**30, 0.5, 1e308]
WORDS = st.sampled_from(EDGES)
NUMBERS = st.sampled_from(LIMITS)
JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | WORDS | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(WORDS | st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=4,
)
IDS = st.none() | st.booleans() | NUMBERS | WORDS | JSON


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDaemon]:
    with checked_daemon(tmp_path_factory.mktemp("d")) as running:
        running.register(CALLER)
        running.call("envelope.send", token=running.token("nex"), to="agent:fuzzer", text="to be found as e1")
        boss = {"token": running.token("boss")}
        running.call("agent.register", **boss, name="thinker", provider="demo")
        running.call("envelope.send", **boss, from_="user:boss", to="agent:thinker", text="a run, as r1")
        yield running
        assert running.call("daemon.ping")["pid"] == running.pid
        log = Path(running.home.log_file).read_text()
        assert "Traceback" not in log and " error " not in log


@pytest.fixture(scope="module")
def connection(daemon: RunningDaemon) -> Iterator[socket.socket]:
    """One connection of the boss's for all of it: it must survive everything said on it."""
    with daemon.connect() as opened:
        yield opened


def told(connection: socket.socket, document: Any) -> Any:
    """The one answer to a document. A ping goes after it: nothing else may come before its pong.

    But what waits is answered when it is ready, also after the pong.
    """
    text = document if isinstance(document, bytes) else json.dumps(document).encode()
    connection.sendall(text + b"\n" + PING)
    first, pong = answers(connection, 2)
    asked = document if isinstance(document, list) else [document]
    waited = any(isinstance(one, dict) and one.get("method") in WAITING for one in asked)
    if waited and isinstance(first, dict) and first["id"] == "the ping":
        first, pong = pong, first
    assert pong["id"] == "the ping" and pong["result"]["pong"] is True
    return first


def check(answer: Any) -> str:
    """The code of a well-formed answer."""
    assert answer["jsonrpc"] == "2.0" and ("result" in answer) != ("error" in answer)
    assert set(answer) - {"result", "error"} == {"jsonrpc", "id"}
    if "result" in answer:
        return "ok"
    error = answer["error"]
    assert set(error) == {"code", "message", "data"} and error["message"]
    code = str(error["data"]["code"])
    assert CODES.get(code) == error["code"], answer
    return code


# With these it would succeed; most often one or two are replaced.
GOOD: dict[str, dict[str, Any]] = {
    "envelope.send": {"from": "agent:fuzzer", "to": "agent:fuzzer", "text": "hello"},
    "envelope.list": {"address": "agent:fuzzer"},
    "envelope.get": {"id": "e1"},
    "envelope.read": {"ids": ["e1"], "address": "agent:fuzzer"},
    "envelope.ack": {"all": True, "address": "agent:fuzzer"},
    "envelope.archive": {"ids": ["e1"], "address": "agent:fuzzer"},
    "envelope.trash": {"ids": ["e1"], "address": "agent:fuzzer"},
    "envelope.restore": {"ids": ["e1"], "address": "agent:fuzzer"},
    "envelope.cancel": {"ids": ["e1"]},
    "turn.preview": {"address": "agent:fuzzer"},
    **{f"envelope.{verb}": {"address": "agent:fuzzer", "timeout": "0.01s"} for verb in ("wait", "watch")},
    "envelope.poll": {"wait": "0.01s"},
    "cron.create": {"from": "agent:fuzzer", "to": "agent:fuzzer", "text": "hello", "every": "8784h"},
    "cron.set": {"id": "s1", "every": "8784h"},
    **{f"cron.{verb}": {"id": "s1"} for verb in ("show", "enable", "disable", "run")},
    "cron.explain": {"cron": "@daily", "count": 2},
    "agent.set": {"name": CALLER, "role": "post"},
    "agent.permission.get": {"name": CALLER},
    "agent.permission.set": {"name": CALLER, "level": "standard"},
    "permission.policy.set": {"policy": {}},
    **{f"agent.{verb}": {"name": CALLER} for verb in ("status", "pause", "resume")},
    "agent.background": {"agent": CALLER, "task": "nothing"},
    **{f"run.{verb}": {"id": "r1"} for verb in ("get", "cancel", "pause", "resume")},
    "run.tail": {"id": "r1"},
    "run.list": {"agent": CALLER},
    "ask.create": {"question": "hello?", "to": "agent:fuzzer"},
    "ask.answer": {"id": "q1", "choice": "yes"},
    **{f"ask.{verb}": {"id": "q1"} for verb in ("get", "cancel")},
    "ask.wait": {"id": "q1", "timeout": "0.01s"},
    "agent.check": {"name": "nex"},
    "agent.detach": {"name": CALLER},
    "attached.wait": {},  # nobody here is an open session, so none of these waits
    "attached.permit": {"tool": "Bash"},
    "attached.prompt": {"event": "1", "prompt": "hello"},
    **{f"attached.{verb}": {"event": "1"} for verb in ("stop", "break", "end")},
    "control.send": {"event": "stream.pause", "agent": CALLER},
    "control.list": {"agent": CALLER},
    "presence.get": {"address": "agent:fuzzer"},
    "presence.typing": {"conversation": "c1", "on": True},
    "agent.notify": {"name": CALLER, "when": "finished"},
    "conversation.messages": {"with": "agent:nex", "address": "agent:fuzzer"},
    "conversation.news": {"with": "agent:nex", "address": "agent:fuzzer", "after": 0},
    "user.register": {"name": "ann"},
    **{f"user.{verb}": {"name": "ann"} for verb in ("delete", "token.rotate")},
}


def of_noun(noun: str) -> list[str]:
    return [name for name in OPERATIONS if name.partition(".")[0] == noun]


def params_for(name: str) -> st.SearchStrategy[Any]:
    """Anything; but most often an object with names the operation knows, for a look behind the door."""
    names = REGISTRY[name].param_names
    known = st.dictionaries(st.sampled_from([*names, "unknown"]), JSON, max_size=len(names) + 1)
    some = st.dictionaries(st.sampled_from(names or ["unknown"]), JSON, min_size=1, max_size=2)
    nearly = some.map(lambda given: {**GOOD.get(name, {}), **given})
    if name in WAITING:  # never without a short time: else it waits for a minute
        return nearly | known.map(lambda given: {**GOOD.get(name, {}), **given})
    return nearly | nearly | nearly | known | st.lists(JSON, max_size=len(names) + 1) | JSON


@pytest.mark.parametrize("noun", NOUNS)
def test_an_operation_with_anything_for_parameters_and_id_is_answered_once_and_with_a_stable_code(
    daemon: RunningDaemon, connection: socket.socket, noun: str
) -> None:
    with sweep() as row:
        for name in of_noun(noun):
            with row(name):
                fuzz_operation(daemon, connection, name)


def fuzz_operation(daemon: RunningDaemon, connection: socket.socket, name: str) -> None:
    @fuzzed(bulk.number(6, 60))
    @given(params=params_for(name), id_=IDS, who=st.sampled_from(["boss", "boss", CALLER, None]), token=JSON)
    def fuzz(params: Any, id_: Any, who: str | None, token: Any) -> None:
        if isinstance(params, dict):
            params = {**params, "token": daemon.token(who) if who else token}
        answer = told(connection, {"jsonrpc": "2.0", "method": name, "params": params, "id": id_})
        check(answer)
        if answer["id"] is not None:
            assert answer["id"] == id_ and type(answer["id"]) is type(id_)

    fuzz()


@pytest.mark.parametrize("noun", [one for one in NOUNS if any(REGISTRY[n].param_names for n in of_noun(one))])
def test_every_edge_in_the_place_of_every_parameter_is_answered_with_a_stable_code(
    daemon: RunningDaemon, connection: socket.socket, noun: str
) -> None:
    plain = [one for one in [*EDGES, *LIMITS] if one != "\ud800"]  # which makes the whole line no JSON
    values = [*plain, *([one] for one in plain), *({str(one): one} for one in plain)]
    with sweep() as row:
        for name in of_noun(noun):
            good = {**GOOD.get(name, {}), "token": daemon.token("boss")}
            for place, param in enumerate(REGISTRY[name].param_names):
                # Each value in the place of many parameters.
                batch = [
                    {"jsonrpc": "2.0", "method": name, "params": {**good, param: value}, "id": number}
                    for number, value in enumerate(values if bulk.is_whole() else values[place % 4 :: 4])
                ]
                with row((name, param)):
                    answer = told(connection, batch)
                    assert [one["id"] for one in answer] == [one["id"] for one in batch]
                    assert all(check(one) for one in answer)


@fuzzed(60)
@given(
    document=st.fixed_dictionaries(
        {"id": IDS},
        optional={
            "jsonrpc": st.sampled_from(["2.0", "2.0", "2.0"]) | JSON,
            "method": st.sampled_from(OPERATIONS) | JSON,
            "params": JSON,
        },
    )
    | JSON.filter(lambda one: one != [])
)
def test_any_json_for_a_request_is_answered_once_and_with_stable_codes(
    daemon: RunningDaemon, document: Any
) -> None:
    with daemon.connect() as stranger:
        if isinstance(document, dict) and "id" not in document and document.get("jsonrpc") == "2.0":
            document["id"] = 1  # else it could be a notification, which is not answered
        answer = told(stranger, document)
    for one in answer if isinstance(answer, list) else [answer]:
        check(one)


@fuzzed(60)
@given(data=st.binary(min_size=1, max_size=60).map(lambda data: b"!" + data.replace(b"\n", b" ")))
def test_bytes_that_are_no_json_are_a_parse_error(connection: socket.socket, data: bytes) -> None:
    answer = told(connection, data)
    assert check(answer) == "parse_error" and answer["id"] is None


def test_a_notification_of_every_operation_is_never_answered(
    daemon: RunningDaemon, connection: socket.socket
) -> None:
    with sweep() as row:
        for name in OPERATIONS:
            quiet = json.dumps(notification(name, nonsense=1, token=daemon.token(CALLER))).encode()
            with row(name):
                answer = told(
                    connection, quiet + b'\n{"jsonrpc": "2.0", "method": "daemon.time", "id": "next"}'
                )
                assert answer["id"] == "next"
