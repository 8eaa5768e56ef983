"""Every bad input through every operation, over the socket: its stable code, a clear word, nothing stored."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest

from hiboss.api.operation import REGISTRY
from hiboss.testing.running_daemon import RunningDaemon, running_daemon
from tests.api.bad_input import WRITTEN, limits
from tests.api.bad_input_mechanical import TEXTS, before_set_up, mechanical, text_parameters
from tests.api.bad_input_row import ENDLESS, RIGHT, Row
from tests.api.bad_input_scene import CLASSES, Scene, check_log, check_message, check_words, open_scene
from tests.support.daemons import answers, code, line
from tests.support.sweeps import sweep

# What any operation may answer without declaring it.
GENERAL = {"no_token", "bad_token", "forbidden", "invalid_params", "not_set_up", "parse_error"}
NAMES = sorted(REGISTRY)
NOUNS = sorted({name.partition(".")[0] for name in NAMES})
LIMITS = limits()

# Declared errors that no request can bring about here, and why.
ELSEWHERE = {
    ("envelope.send", "busy"): "only under a load like that of tests/rpc/test_socket_busy.py",
    ("envelope.send", "store_full"): "only with a full disk: tests/store/test_full_disk.py",
    **{
        (f"envelope.{verb}", "stopping"): "only while the daemon ends, which no row outlives"
        for verb in ("wait", "watch", "poll")
    },
    ("ask.wait", "stopping"): "as of envelope.wait",
    **{(f"attached.{verb}", "stopping"): "as of envelope.wait" for verb in ("wait", "permit")},
    **{("mcp.start", one): "tests/daemon/test_mcp_worker.py" for one in ("stopping", "mcp_unavailable")},
    ("chat.ack", "busy"): "only with a thousand subscribers: tests/api/test_chat.py",
    **{("chat.post", one): "as of envelope.send" for one in ("busy", "store_full", "archived", "not_bound")},
    ("ask.cancel", "ask_fixed"): "only of an agent at its limit: tests/store/test_ask_edits.py",
    ("event.subscribe", "busy"): "only with many subscriptions: tests/rpc/test_events.py",
    ("thread.get", "too_large"): "only with large messages: tests/api/test_threads.py",
    ("reaction.set", "emoji_refused"): "only in a chat of some platforms: tests/api/test_reactions.py",
    ("agent.background", "busy"): "as of envelope.send",
    ("agent.background", "store_full"): "as of envelope.send",
    ("breaker.pull", "breaker_not_stored"): "only with a full disk: tests/acceptance/test_breaker.py",
    ("breaker.release", "pulled_again"): "only while it is pulled: tests/api/test_breaker.py",
    (
        "participant.join",
        "cannot_be_member",
    ): "only for who stands in for a member: tests/store/test_groups.py",
    ("setup.execute", "name_taken"): "before set-up nobody can register an agent, after it nothing is done",
}


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    with open_scene(tmp_path_factory.mktemp("d")) as opened:
        yield opened


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDaemon]:
    """A daemon of a home that is not set up."""
    with running_daemon(tmp_path_factory.mktemp("d"), set_up=False) as daemon:
        yield daemon
        assert daemon.call("setup.check")["set_up"] is False
        check_log(daemon)


def check_refusal(scene: Scene, row: Row, answer: dict[str, Any]) -> None:
    assert code(answer) == row.code, (str(row), answer)
    error = answer["error"]
    facts = dict(error["data"])
    assert facts.pop("code") == row.code and error["code"] == CLASSES[row.code].rpc
    check_message(row.code, error["message"], facts, tuple(scene.fill(row.says)))
    declared = {cls.code for cls in REGISTRY[row.operation].errors}
    assert row.code in declared | GENERAL, f"{row.operation} does not declare {row.code}"


def of(noun: str) -> list[str]:
    """Return the operations of a noun."""
    return [name for name in NAMES if name.partition(".")[0] == noun]


def refuse(scene: Scene, rows: list[Row]) -> None:
    """Ask for all of them at once: each is refused with its code, and nothing has changed.

    What may wait is answered when it is ready, out of order: that is asked one by one.
    """
    with scene.unchanged():
        requests = [scene.request(row.operation, row.params, row.by) for row in rows]
        if any(REGISTRY[row.operation].waits for row in rows):
            found = [answer for request in requests for answer in scene.ask(request)]
        else:
            found = scene.ask(*requests)
    with sweep() as checked:
        for row, answer in zip(rows, found, strict=True):
            with checked(row):
                check_refusal(scene, row, answer)


# --- the table is whole --------------------------------------------------------------


def test_every_declared_error_is_brought_about_by_a_row() -> None:
    made = (row for name in NAMES for row in (*mechanical(name), *before_set_up(name)))
    rows = (*WRITTEN, *(limit.over for limit in LIMITS), *made)
    declared = {(name, cls.code) for name in NAMES for cls in REGISTRY[name].errors}
    assert declared - {(row.operation, row.code) for row in rows} == set(ELSEWHERE)


def test_every_operation_has_its_own_rows() -> None:
    needs = {name for name in NAMES if REGISTRY[name].param_names or REGISTRY[name].errors}
    # With these nothing can be wrong but the caller; what agent.list looks for may be any text.
    assert needs - {row.operation for row in WRITTEN} == {
        *("auth.login", "boss.token.rotate", "agent.list", "mcp.start")
    }


def test_every_text_is_tried_with_nul_with_nothing_and_without_end() -> None:
    assert set(TEXTS) == {(name, param) for name in NAMES for param, _ in text_parameters(name)}


def test_every_required_parameter_is_given_in_what_is_right() -> None:
    for name in NAMES:
        REGISTRY[name].params.model_validate(RIGHT.get(name, {}))


def test_the_checks_find_what_does_not_fit(scene: Scene) -> None:
    check_words("to must be text", ("to",))
    for message in (
        "",
        "text must be text",
        "to.str: must be text",
        "to: [Errno 2] No such file",
        "to: <class 'int'>",
        "to must be\ntext",
        f"to: {scene.facts['token']}",
        "to" * 1000,
    ):
        with pytest.raises(AssertionError):
            check_words(message, ("to",))
    with pytest.raises(AssertionError):
        check_message("bad_id", "to is no id", {"value": "x", "kind": "envelope", "example": "e81"})
    with pytest.raises(AssertionError), scene.unchanged():
        scene.party["ada"].tell(scene.party["bob"])
    with pytest.raises(AssertionError), scene.unchanged():
        scene.party["nex"].call("envelope.read", ids=[scene.party["ada"].tell(scene.party["nex"])])
    with pytest.raises(AssertionError):
        refuse(scene, [Row(operation="daemon.ping", params={}, code="not_found")])


# --- the table is true ---------------------------------------------------------------


@pytest.mark.parametrize("noun", NOUNS)
def test_wrong_types_names_texts_and_callers_are_refused(scene: Scene, noun: str) -> None:
    with sweep() as operation:
        for name in of(noun):
            with operation(name):
                refuse(scene, mechanical(name))


@pytest.mark.parametrize("noun", sorted({row.operation.partition(".")[0] for row in WRITTEN}))
def test_what_cannot_be_meant_is_refused(scene: Scene, noun: str) -> None:
    with sweep() as operation:
        for name in of(noun):
            rows = [row for row in WRITTEN if row.operation == name]
            plain = [row for row in rows if row.config is row.policy is None]
            if plain:
                with operation(name):
                    refuse(scene, plain)
            for row in rows:
                if row not in plain:
                    with operation(row), scene.given(row.config, row.policy):
                        refuse(scene, [row])


def test_of_a_refused_message_no_file_stays_in_media(scene: Scene) -> None:
    """A file is copied before the message is accepted."""
    before = scene.shot()
    for params, expected in (
        ({"to": "agent:ada", "attachments": ["%file", "%missing"]}, "attachment_missing"),
        ({"to": "agent:ada", "attachments": ["%file", "%over"]}, "too_large"),
        ({"to": "agent:nobody-here", "attachments": ["%file"]}, "unknown_recipient"),
    ):
        (answer,) = scene.ask(scene.request("envelope.send", params, "nex"))
        assert code(answer) == expected
    assert scene.shot() == before


def test_before_set_up_no_token_is_right(bare: RunningDaemon) -> None:
    with sweep() as refused, bare.connect() as connection:
        for row in (row for name in NAMES for row in before_set_up(name)):
            with refused(row):
                token = {"token": "hba_wrong"} if row.by == "wrong" else {}
                connection.sendall(line(row.operation, **{**row.params, **token}))
                (answer,) = answers(connection, 1)
                assert code(answer) == "not_set_up"
                assert bare.home.path in answer["error"]["message"]
                assert "run: hiboss up" in answer["error"]["message"]


def test_a_bad_set_up_sets_nothing_up(bare: RunningDaemon) -> None:
    for row in WRITTEN:
        if row.operation == "setup.execute":
            with bare.connect() as connection:
                connection.sendall(line(row.operation, **row.params))
                assert code(answers(connection, 1)[0]) == row.code
    assert bare.call("setup.check")["set_up"] is False and bare.home.profiles() == []
    with bare.database() as database:
        rows = [
            database.execute(f"SELECT count(*) FROM {t}").fetchone()[0] for t in ("user", "agent", "token")
        ]
        known = [row["address"] for row in database.execute("SELECT address FROM addresses")]
    assert rows == [0, 0, 0]
    assert known == ["agent:background"]  # which is the daemon's own, from its start
    assert os.listdir(bare.home.secrets) == []


def test_what_is_no_request_at_all_is_refused(scene: Scene) -> None:
    lines = {
        b"{": "parse_error",
        b'{"jsonrpc": "2.0", "method": "daemon.ping", "params": {"\xff": 1}, "id": 1}': "parse_error",
        b"[]": "invalid_request",
        b"7": "invalid_request",
        b'{"jsonrpc": "2.0", "method": "daemon.ping", "params": 7, "id": 1}': "invalid_request",
        b'{"jsonrpc": "2.0", "method": "daemon.ping", "params": "x", "id": 1}': "invalid_request",
        b'{"jsonrpc": "2.0", "method": 7, "id": 1}': "invalid_request",
        b'{"jsonrpc": "1.0", "method": "daemon.ping", "id": 1}': "invalid_request",
        b'{"jsonrpc": "2.0", "method": "daemon.pign", "id": 1}': "method_not_found",
        line(ENDLESS).strip(): "method_not_found",
        line("daemon.ping", x="x" * (4 * 1024 * 1024)).strip(): "frame_too_large",
    }
    with scene.unchanged():
        found = scene.ask(*(text + b"\n" for text in lines))
    for expected, answer in zip(lines.values(), found, strict=True):
        facts = dict(answer["error"]["data"])
        assert facts.pop("code") == expected
        check_message(expected, answer["error"]["message"], facts)
    assert "did you mean daemon.ping?" in found[8]["error"]["message"]


# --- at the end: what is taken is large, and would be read after every row behind it -----


def test_a_limit_is_kept_to_the_byte(scene: Scene) -> None:
    refuse(scene, [limit.over for limit in LIMITS])
    with sweep() as taken:
        for limit in LIMITS:
            with taken(limit):
                (answer,) = scene.ask(scene.request(limit.operation, limit.most, limit.over.by))
                assert code(answer) == "ok", answer
