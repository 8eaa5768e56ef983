"""`hiboss mcp`: who may speak, and what passes between a client and the worker."""

from __future__ import annotations

import json
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from hiboss.agents import process_control
from tests.support.mcp_pump_rig import PROFILE_TOKEN, PumpRig, write_until_full
from tests.support.sweeps import sweep

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


def session_file(rig: PumpRig, session: str, **facts: Any) -> None:
    own = psutil.Process()
    started = Path(f"/proc/{own.pid}/stat").read_text().rpartition(")")[2].split()[19]
    rig.home.keep_session("claude", session, {"pid": own.pid, "pid_started": started, **facts})


@contextmanager
def rig_below(directory: Path, *agents: str) -> Iterator[PumpRig]:
    """A rig below a harness in which sessions of these agents are open."""
    directory.mkdir()
    with PumpRig(directory) as running:
        Path(running.home.profile("boss")).write_text(BOSS_TOKEN)
        for name in agents:
            session_file(running, name, agent=name, token=f"hba_{name}")
        yield running


# Words, variables, agents of open sessions; who the daemon and the worker hear: token, agent, dotted.
SPEAKERS: list[tuple[str, dict[str, str], tuple[str, ...], tuple[str, str | None, bool]]] = [
    ("--as nex --dotted", {}, (), (PROFILE_TOKEN, None, True)),
    ("--agent=kai", {"HIBOSS_TOKEN": "hba_other"}, (), ("hba_other", "kai", False)),
    ("--as-boss --agent nex", {}, (), (BOSS_TOKEN, "nex", False)),
    ("--dotted", {}, ("swift-fox",), ("hba_swift-fox", None, True)),
    ("--or-as nex", {}, (), (PROFILE_TOKEN, None, False)),
    ("--or-as nex", {"HIBOSS_TOKEN": "hbr_of-a-run"}, (), ("hbr_of-a-run", None, False)),
    ("--or-as nex", {}, ("swift-fox",), ("hba_swift-fox", None, False)),
]
TWO = ("swift-fox", "calm-owl")
# Words, variables, agents of open sessions; the exit status, and what it says.
NOBODY: list[tuple[str, dict[str, str], tuple[str, ...], int, tuple[str, ...]]] = [
    ("", {}, (), 1, ("code: mcp_speaker_not_named", "nex", "--as-boss")),
    ("--json", {}, (), 1, ('"code": "mcp_speaker_not_named"',)),
    ("--as-boss", {"CLAUDECODE": "1"}, (), 1, ("code: agent_not_named",)),
    ("--as-boss --as nex", {}, (), 2, ("code: invalid_params",)),
    ("--token -", {}, (), 2, ("code: invalid_params",)),
    ("--or-as a --as b", {}, (), 2, ("code: invalid_params",)),
    ("", {}, TWO, 1, ("code: mcp_speaker_not_named",)),
    ("--or-as nex", {}, TWO, 1, ("several agents",)),
    ("--or-as nex", {"HIBOSS_RUN": "r9"}, (), 1, ("code: agent_not_named",)),  # it lost its token
    ("--or-as nex", {"HIBOSS_AGENT": "kai"}, (), 1, ("code: agent_not_named",)),
]


def test_the_daemon_and_the_worker_hear_who_speaks(tmp_path: Path) -> None:
    with sweep() as row:
        for number, (words, env, agents, (token, agent, dotted)) in enumerate(SPEAKERS):
            with row((words, env, agents)), rig_below(tmp_path / str(number), *agents) as rig:
                worker = rig.opened(*words.split(), **env)
                assert worker.greeting == {"token": token, "agent": agent, "dotted": dotted}
                assert rig.starts == [{"token": token}]


def test_who_is_not_named_or_named_twice_does_not_speak_and_is_never_the_boss(tmp_path: Path) -> None:
    with sweep() as row:
        for number, (words, env, agents, status, says) in enumerate(NOBODY):
            with row((words, env, agents)), rig_below(tmp_path / str(number), *agents) as rig:
                rig.start(*words.split(), **env)
                found, out, err = rig.ended()
                assert (found, out, rig.starts) == (status, b"", [])
                assert [one for one in says if one not in err] == []


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has the limit by which runs are known")
def test_a_process_of_a_run_without_any_variable_does_not_speak_as_the_agent_of_the_settings(
    rig: PumpRig,
) -> None:
    with process_control.marking("r9"):
        rig.start("--or-as", "nex")
    status, out, err = rig.ended()
    assert (status, out) == (1, b"") and "a process of a run" in err


# --- who is refused ------------------------------------------------------------------


def refusal(code: str, message: str = "not here") -> dict[str, Any]:
    return {"code": -32000, "message": message, "data": {"code": code}}


@pytest.mark.parametrize("code", ["bad_token", "mcp_unavailable"])
def test_what_the_daemon_refuses_is_told_at_once(rig: PumpRig, code: str) -> None:
    rig.refusal = refusal(code)
    rig.start("--as", "nex")
    status, out, err = rig.ended()
    assert status != 0 and (out, len(rig.starts)) == (b"", 1) and f"code: {code}" in err


@pytest.mark.parametrize("code", ["bad_token", "busy"])
def test_a_client_that_the_worker_refuses_reads_why_at_once_in_the_answer_to_its_request(
    rig: PumpRig, code: str
) -> None:
    rig.greeting = json.dumps({"error": refusal(code, "said by the worker")}).encode() + b"\n"
    rig.start("--as", "nex")
    rig.send({"id": 7, "method": "initialize"})
    answer = rig.receive()
    assert answer["id"] == 7 and answer["error"]["data"]["code"] == code
    assert rig.ended() == (1, b"", f"error: said by the worker\ncode: {code}\n") and len(rig.starts) == 1


def test_a_refusal_is_read_also_where_the_worker_has_read_nothing(
    rig: PumpRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(connection: socket.socket) -> None:
        connection.sendall(json.dumps({"error": refusal("bad_token")}).encode() + b"\n")
        connection.close()

    monkeypatch.setattr(rig.worker, "_serve", refuse)
    rig.start("--as", "nex")
    status, out, err = rig.ended()
    assert (status, out) == (1, b"") and "code: bad_token" in err


def test_without_a_daemon_it_says_after_a_while_what_to_do(rig: PumpRig) -> None:
    rig.daemon.stop()
    rig.start("--as", "nex", times={"reconnect_timing.START_SECONDS": 0.2})
    status, out, err = rig.ended()
    assert (status, out) == (3, b"")
    assert "code: daemon_unreachable" in err and "hiboss daemon start" in err


def test_a_daemon_that_comes_a_little_later_is_waited_for(rig: PumpRig) -> None:
    rig.daemon.stop()
    rig.start("--as", "nex", times={"reconnect_timing.START_SECONDS": 60})
    assert rig.process.stderr is not None and b"waiting for it" in rig.process.stderr.readline()
    rig.daemon.start()
    assert rig.connection().greeting["token"] == PROFILE_TOKEN


# --- what passes ---------------------------------------------------------------------


LINES = [
    b'{ "method":"x" ,"id" : 1, "params": {"t":"gr\\u00fc\xc3\x9f"} }\r\n',
    b"this is no JSON\n",
    b"\n",
    b'[{"jsonrpc":"2.0","id":1,"method":"a"},{"jsonrpc":"2.0","method":"b"}]\n',
    b"\xff\xfe\x00\n",
    b"3\n",
]


def test_a_line_passes_unchanged_in_both_directions(rig: PumpRig) -> None:
    worker = rig.opened()
    with sweep() as row:
        for line in LINES:
            with row(line):
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


# What a huge line begins and ends with, and the id that is answered.
HUGE: list[tuple[bytes, bytes, Any]] = [
    (b'{"jsonrpc":"2.0","id":"a-1","method":"tools/call","params":"', b'"}', "a-1"),
    (b'{"method":"tools/call","params":{"id":5,"text":"', b'"},"jsonrpc":"2.0","id":12}', 12),
    (b'{"method":"notifications/x","params":{"id":5,"text":"', b'"},"jsonrpc":"2.0"}', None),
    (b'{"jsonrpc":"2.0","id":5,"result":"', b'"}', None),  # an answer to the server
    (b"no JSON at all", b"", None),
]
DROPPED = (
    "note: a line of {} bytes was dropped: a request may have at most 4194304 bytes, and this one has more;"
    " send less at a time, or send large content as an attachment\n"
)


def test_a_huge_line_is_dropped_and_its_sender_hears_of_it(rig: PumpRig) -> None:
    worker = rig.opened()
    with sweep() as row:
        for before, behind, id_ in HUGE:
            with row(before):
                rig.write(before + b"x" * 5 * MIB + behind + b"\n")
                worker.answer(rig.ask(worker, 99, "ping"))  # what follows passes
                answers = {one["id"]: one for one in (rig.receive() for _ in range(1 + (id_ is not None)))}
                assert set(answers) == {99} | {id_} - {None}
                assert id_ is None or answers[id_]["error"]["data"]["code"] == "frame_too_large"
    rig.close_input()
    assert worker.line() == b""
    worker.die()
    sizes = [len(before + behind) + 5 * MIB + 1 for before, behind, _ in HUGE]
    assert rig.ended() == (0, b"", "".join(map(DROPPED.format, sizes)))


# --- one side does not read ----------------------------------------------------------


def test_while_the_worker_does_not_read_the_client_is_not_read(rig: PumpRig) -> None:
    worker = rig.opened()
    assert rig.process.stdin is not None
    for _ in range(write_until_full(rig.process.stdin.fileno(), LONG_LINE, 64 * MIB)):
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
