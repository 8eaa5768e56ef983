"""`hiboss mcp`: who may speak, and what passes between a client and the worker."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from hiboss.agents import process_control
from tests.support.mcp_pump_rig import PROFILE_TOKEN, PumpRig, write_until_full

BAD_TOKEN = {"code": -32002, "message": "this token is not valid here", "data": {"code": "bad_token"}}
BOSS_TOKEN = "hbb_of-the-boss"
MIB = 1024 * 1024
LONG_LINE = b'{"method": "notifications/x", "params": {"text": "' + b"x" * 100_000 + b'"}}\n'


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[PumpRig]:
    with PumpRig(tmp_path) as running:
        Path(running.home.profile("boss")).write_text(BOSS_TOKEN)
        yield running


def call(number: int | str, **params: Any) -> dict[str, Any]:
    return {"id": number, "method": "tools/call", "params": params}


# --- who speaks ----------------------------------------------------------------------


def test_the_daemon_and_the_worker_hear_who_speaks(rig: PumpRig) -> None:
    worker = rig.opened("--as", "nex", "--dotted")
    assert rig.starts == [{"token": PROFILE_TOKEN}]
    assert worker.greeting == {"token": PROFILE_TOKEN, "agent": None, "dotted": True}


def test_a_token_of_the_environment_speaks(rig: PumpRig) -> None:
    assert rig.opened("--agent=kai", HIBOSS_TOKEN="hba_other").greeting == {
        "token": "hba_other",
        "agent": "kai",
        "dotted": False,
    }


def test_without_a_token_it_is_refused_and_never_the_boss(rig: PumpRig) -> None:
    rig.start()
    status, out, err = rig.ended()
    assert (status, out) == (1, b"")
    assert "code: mcp_speaker_not_named" in err and "nex" in err and "--as-boss" in err
    assert rig.starts == []


def test_an_error_is_json_where_that_was_asked_for(rig: PumpRig) -> None:
    rig.start("--json")
    status, out, err = rig.ended()
    assert (status, out) == (1, b"")
    assert json.loads(err)["error"]["code"] == "mcp_speaker_not_named"


def test_the_boss_speaks_where_that_is_said(rig: PumpRig) -> None:
    worker = rig.opened("--as-boss", "--agent", "nex")
    assert worker.greeting == {"token": BOSS_TOKEN, "agent": "nex", "dotted": False}


def test_the_boss_does_not_speak_where_an_agent_runs_it(rig: PumpRig) -> None:
    rig.start("--as-boss", CLAUDECODE="1")
    status, out, err = rig.ended()
    assert (status, out) == (1, b"")
    assert "code: agent_not_named" in err


@pytest.mark.parametrize(
    "words", [("--as-boss", "--as", "nex"), ("--token", "-"), ("--or-as", "a", "--as", "b")]
)
def test_words_that_contradict_each_other_are_wrong_usage(rig: PumpRig, words: tuple[str, ...]) -> None:
    rig.start(*words)
    status, out, err = rig.ended()
    assert (status, out) == (2, b"") and "code: invalid_params" in err


def session_file(rig: PumpRig, session: str, **facts: Any) -> None:
    own = psutil.Process()
    started = Path(f"/proc/{own.pid}/stat").read_text().rpartition(")")[2].split()[19]
    rig.home.keep_session("claude", session, {"pid": own.pid, "pid_started": started, **facts})


def test_the_session_of_the_harness_above_names_the_agent(rig: PumpRig) -> None:
    session_file(rig, "one", agent="swift-fox", token="hba_of-the-session")
    assert rig.opened("--dotted").greeting["token"] == "hba_of-the-session"


def test_sessions_of_two_agents_in_one_harness_name_nobody(rig: PumpRig) -> None:
    session_file(rig, "one", agent="swift-fox", token="hba_one")
    session_file(rig, "two", agent="calm-owl", token="hba_two")
    rig.start()
    assert rig.ended()[0] == 1 and rig.starts == []


def test_a_profile_may_stand_in_where_nothing_else_names_who_speaks(rig: PumpRig) -> None:
    assert rig.opened("--or-as", "nex").greeting["token"] == PROFILE_TOKEN


def test_a_token_goes_before_the_profile_that_stands_in(rig: PumpRig) -> None:
    worker = rig.opened("--or-as", "nex", HIBOSS_TOKEN="hbr_of-a-run")
    assert worker.greeting["token"] == "hbr_of-a-run"


def test_the_session_above_goes_before_the_profile_that_stands_in(rig: PumpRig) -> None:
    session_file(rig, "one", agent="swift-fox", token="hba_of-the-session")
    assert rig.opened("--or-as", "nex").greeting["token"] == "hba_of-the-session"


def test_a_run_that_lost_its_token_does_not_speak_as_the_agent_of_the_settings(rig: PumpRig) -> None:
    for lost in ({"HIBOSS_RUN": "r9"}, {"HIBOSS_AGENT": "kai"}):
        rig.start("--or-as", "nex", **lost)
        status, out, err = rig.ended()
        assert (status, out) == (1, b"") and "code: agent_not_named" in err


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has the limit by which runs are known")
def test_a_process_of_a_run_without_any_variable_does_not_speak_as_the_agent_of_the_settings(
    rig: PumpRig,
) -> None:
    with process_control.marking("r9"):
        rig.start("--or-as", "nex")
    status, out, err = rig.ended()
    assert (status, out) == (1, b"") and "a process of a run" in err


def test_below_sessions_of_two_agents_the_profile_does_not_stand_in(rig: PumpRig) -> None:
    session_file(rig, "one", agent="swift-fox", token="hba_one")
    session_file(rig, "two", agent="calm-owl", token="hba_two")
    rig.start("--or-as", "nex")
    status, out, err = rig.ended()
    assert (status, out) == (1, b"") and "several agents" in err


# --- who is refused ------------------------------------------------------------------


def test_a_wrong_token_is_refused_at_once(rig: PumpRig) -> None:
    rig.refusal = BAD_TOKEN
    rig.start("--as", "nex")
    status, out, err = rig.ended()
    assert (status, out) == (1, b"")
    assert "code: bad_token" in err and len(rig.starts) == 1


def test_a_client_that_is_refused_reads_why_in_the_answer_to_its_request(rig: PumpRig) -> None:
    rig.greeting = json.dumps({"error": BAD_TOKEN}).encode() + b"\n"
    rig.start("--as", "nex")
    rig.send({"id": 7, "method": "initialize"})
    answer = rig.receive()
    assert answer["id"] == 7 and answer["error"]["data"]["code"] == "bad_token"
    assert rig.ended()[0] == 1


def test_without_a_daemon_it_says_after_a_while_what_to_do(rig: PumpRig) -> None:
    rig.daemon.stop()
    rig.start("--as", "nex", times={"reconnect_timing.START_SECONDS": 0.2})
    status, out, err = rig.ended()
    assert (status, out) == (3, b"")
    assert "code: daemon_unreachable" in err and "hiboss daemon start" in err


def test_a_daemon_that_comes_a_little_later_is_waited_for(rig: PumpRig) -> None:
    rig.daemon.stop()
    rig.start("--as", "nex")
    assert rig.process.stderr is not None
    assert b"waiting for it" in rig.process.stderr.readline()
    rig.daemon.start()
    assert rig.connection().greeting["token"] == PROFILE_TOKEN


def test_a_worker_that_does_not_start_is_told_at_once(rig: PumpRig) -> None:
    rig.refusal = {"code": -32000, "message": "it does not start", "data": {"code": "mcp_unavailable"}}
    rig.start("--as", "nex")
    status, out, err = rig.ended()
    assert status != 0 and out == b""
    assert "code: mcp_unavailable" in err and len(rig.starts) == 1


# --- what passes ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "line",
    [
        b'{ "method":"x" ,"id" : 1, "params": {"t":"gr\\u00fc\xc3\x9f"} }\r\n',
        b"this is no JSON\n",
        b"\n",
        b'[{"jsonrpc":"2.0","id":1,"method":"a"},{"jsonrpc":"2.0","method":"b"}]\n',
        b"\xff\xfe\x00\n",
        b"3\n",
    ],
)
def test_a_line_passes_unchanged_in_both_directions(rig: PumpRig, line: bytes) -> None:
    worker = rig.opened()
    rig.write(line)
    assert worker.line() == line
    worker.write(line)
    assert rig.line() == line


def test_a_line_passes_when_it_is_whole(rig: PumpRig) -> None:
    worker = rig.opened()
    rig.write(b'{"id": 1, "meth')
    rig.write(b'od": "ping"}\n{"id"')
    assert worker.line() == b'{"id": 1, "method": "ping"}\n'
    worker.write(b'{"id": 1, "res')
    worker.write(b'ult": {}}\n{"me')
    assert rig.line() == b'{"id": 1, "result": {}}\n'


def test_requests_of_the_server_and_their_answers_pass(rig: PumpRig) -> None:
    worker = rig.opened()
    asked = {"jsonrpc": "2.0", "id": 0, "method": "elicitation/create"}
    worker.send(asked)
    assert rig.receive() == asked
    rig.send({"id": 0, "result": {"action": "accept"}})
    assert worker.receive()["result"] == {"action": "accept"}


def test_a_long_answer_arrives_whole(rig: PumpRig) -> None:
    worker = rig.opened()
    request = rig.ask(worker, 1, "resources/read")
    line = json.dumps({"id": request["id"], "result": "x" * 5 * MIB}).encode() + b"\n"
    rig.close_input()
    worker.write(line)
    assert rig.line() == line


@pytest.mark.parametrize(
    ("before", "behind", "id_"),
    [
        (b'{"jsonrpc":"2.0","id":"a-1","method":"tools/call","params":"', b'"}', "a-1"),
        (b'{"method":"tools/call","params":{"id":5,"text":"', b'"},"jsonrpc":"2.0","id":12}', 12),
        (b'{"method":"notifications/x","params":{"id":5,"text":"', b'"},"jsonrpc":"2.0"}', None),
        (b'{"jsonrpc":"2.0","id":5,"result":"', b'"}', None),  # an answer to the server
        (b"no JSON at all", b"", None),
    ],
)
def test_a_huge_line_is_dropped_and_its_sender_hears_of_it(
    rig: PumpRig, before: bytes, behind: bytes, id_: Any
) -> None:
    worker = rig.opened()
    rig.write(before + b"x" * 5 * MIB + behind + b"\n")
    request = rig.ask(worker, 99, "ping")  # what follows passes
    worker.answer(request)
    answers = [rig.receive()]
    if id_ is not None:
        answers.append(rig.receive())
        assert [one["error"]["data"]["code"] for one in answers if one["id"] == id_] == ["frame_too_large"]
    rig.close_input()
    assert worker.line() == b""
    worker.die()
    assert rig.ended() == (0, b"", rig_note(before + behind))


def rig_note(ends: bytes) -> str:
    size = len(ends) + 5 * MIB + 1
    return (
        f"note: a line of {size} bytes was dropped: a request may have at most {4 * MIB} bytes, and this one has"
        " more; send less at a time, or send large content as an attachment\n"
    )


# --- one side does not read ----------------------------------------------------------


def test_while_the_worker_does_not_read_the_client_is_not_read(rig: PumpRig) -> None:
    worker = rig.opened()
    assert rig.process.stdin is not None
    number = write_until_full(rig.process.stdin.fileno(), LONG_LINE, 64 * MIB)
    for _ in range(number):
        assert worker.line() == LONG_LINE


def test_while_the_client_does_not_read_the_worker_is_not_read(rig: PumpRig) -> None:
    worker = rig.opened()
    number = worker.write_until_full(LONG_LINE, 64 * MIB)
    rig.send({"id": 1, "method": "ping"})  # the other direction is open
    assert worker.take("ping")["id"] == 1
    for _ in range(number):
        assert rig.line() == LONG_LINE


# --- the end -------------------------------------------------------------------------


def test_when_the_client_ends_the_answers_in_flight_still_come(rig: PumpRig) -> None:
    worker = rig.opened()
    rig.send(call(1))
    rig.write(b'{"id": 2, "method": "ping"}')  # without a line end
    rig.close_input()
    first, second = worker.receive(), worker.receive()
    worker.answer(second)
    worker.answer(first, content=[])
    assert [rig.receive()["id"], rig.receive()["id"]] == [2, 1]
    assert worker.line() == b""  # now the pump has closed its side
    worker.send({"method": "notifications/last"})
    worker.die()
    assert rig.ended() == (0, b'{"method": "notifications/last"}\n', "")


def test_a_stream_that_is_open_does_not_keep_it_from_ending(rig: PumpRig) -> None:
    worker = rig.opened()
    rig.ask(worker, 1, "subscriptions/listen")
    rig.close_input()
    assert worker.line() == b""
    worker.die()
    assert rig.ended() == (0, b"", "")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_quietly(rig: PumpRig, number: signal.Signals) -> None:
    rig.opened()
    rig.process.send_signal(number)
    status, out, err = rig.ended()
    assert status in (-number, 128 + number) and (out, err) == (b"", "")


def test_it_ends_when_nobody_reads_its_output_any_more(rig: PumpRig) -> None:
    worker = rig.opened()
    assert rig.process.stdout is not None
    rig.process.stdout.close()
    assert worker.line() == b""
    assert rig.process.wait(30) == 0
