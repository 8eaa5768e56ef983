"""Lines on the socket: too long, broken, without an end, and nothing but noise."""

from __future__ import annotations

import json
import socket
import threading

import psutil
import pytest

from hiboss.core.settings import DEFAULTS
from hiboss.testing.running_daemon import RunningDaemon
from tests.support.daemons import all_answers, answers, ask, code, line, notification
from tests.support.failures import seeded
from tests.support.sweeps import sweep

MIB = 1024 * 1024


def ping_of(size: int, id_: int = 1) -> bytes:
    """A request of exactly so many bytes, its newline not counted."""
    request = line("daemon.ping", id_).rstrip(b"\n")
    return request + b" " * (size - len(request)) + b"\n"


# --- errors keep their place -------------------------------------------------------------


def test_framing_errors_are_answered_in_order_between_valid_requests(daemon: RunningDaemon) -> None:
    over = b"x" * (DEFAULTS.frame_bytes + 1) + b"\n"
    lines = [
        line("daemon.ping", 1),
        b"{broken\n",
        line("daemon.ping", 2),
        over,
        line("daemon.ping", 3),
        b"\xff\xfe\n",
    ]
    with daemon.connect() as connection:
        connection.sendall(b"".join(lines) + line("daemon.ping", 4))
        found = answers(connection, 7)
    assert [(one["id"], code(one)) for one in found] == [
        (1, "ok"),
        (None, "parse_error"),
        (2, "ok"),
        (None, "frame_too_large"),
        (3, "ok"),
        (None, "parse_error"),
        (4, "ok"),
    ]


def test_a_framing_error_waits_for_the_slower_answer_before_it(daemon: RunningDaemon) -> None:
    token = daemon.token("nex")
    with daemon.connect() as connection:
        send = line("envelope.send", "slow", token=token, to="agent:nex", text="on disk first")
        connection.sendall((send + b"{\n") * 20)
        found = answers(connection, 40)
    assert [one["id"] for one in found] == ["slow", None] * 20


def test_empty_lines_and_blanks_are_passed_over(daemon: RunningDaemon) -> None:
    with daemon.connect() as connection:
        connection.sendall(b"\n\n  \t\r\n\r\n" + line("daemon.ping", 1).replace(b"\n", b"\r\n") + b"\n")
        assert [one["id"] for one in answers(connection, 1)] == [1]


def test_a_request_that_comes_byte_by_byte_is_answered(daemon: RunningDaemon) -> None:
    with daemon.connect() as connection:
        for byte in line("daemon.ping", "ÄÖ slowly"):
            connection.sendall(bytes([byte]))
        assert answers(connection, 1)[0]["id"] == "ÄÖ slowly"


# --- length ------------------------------------------------------------------------------


def test_a_frame_at_the_limit_is_taken_and_one_byte_over_is_refused(daemon: RunningDaemon) -> None:
    limit = DEFAULTS.frame_bytes
    with daemon.connect() as connection:
        connection.sendall(ping_of(limit, 1) + ping_of(limit + 1, 2) + ping_of(limit, 3))
        found = answers(connection, 3)
    assert [(one["id"], code(one)) for one in found] == [(1, "ok"), (None, "frame_too_large"), (3, "ok")]
    assert found[1]["error"]["code"] == -32600


def test_a_frame_too_large_is_answered_before_its_end_has_come(daemon: RunningDaemon) -> None:
    with daemon.connect() as connection:
        connection.sendall(b"y" * (DEFAULTS.frame_bytes + 1))
        assert code(answers(connection, 1)[0]) == "frame_too_large"
        connection.sendall(b"still the same line\n" + line("daemon.ping", "next"))
        assert answers(connection, 1)[0]["id"] == "next"


def test_100_mb_without_newline_are_passed_over_and_the_connection_goes_on(daemon: RunningDaemon) -> None:
    process = psutil.Process(daemon.pid)
    with daemon.connect() as connection:
        assert code(ask(connection, "daemon.ping")) == "ok"
        before, most = process.memory_info().rss, 0
        for _ in range(100):
            connection.sendall(b"z" * MIB)
            most = max(most, process.memory_info().rss)
        assert code(answers(connection, 1)[0]) == "frame_too_large"
        connection.sendall(b"\n")
        assert code(ask(connection, "daemon.ping", "still here")) == "ok"
        most = max(most, process.memory_info().rss)
    assert most - before < 60 * MIB


# --- the end of a stream -------------------------------------------------------------------


def test_a_final_line_without_newline_is_answered_after_half_close(daemon: RunningDaemon) -> None:
    with daemon.connect() as connection:
        connection.sendall(line("daemon.ping", 1) + line("daemon.ping", 2).rstrip(b"\n"))
        connection.shutdown(socket.SHUT_WR)
        assert [one["id"] for one in all_answers(connection)] == [1, 2]


def test_half_a_line_before_half_close_is_a_parse_error(daemon: RunningDaemon) -> None:
    with daemon.connect() as connection:
        connection.sendall(line("daemon.ping", 1) + b'{"jsonrpc": "2.0", "meth')
        connection.shutdown(socket.SHUT_WR)
        assert [code(one) for one in all_answers(connection)] == ["ok", "parse_error"]


def test_a_half_closed_peer_gets_all_its_answers_before_the_daemon_hangs_up(daemon: RunningDaemon) -> None:
    token = daemon.register("halfclosed")
    count = 1_500  # more than are taken in flight at once
    lines = [line("envelope.send", n, token=token, to="agent:halfclosed", text=f"{n}") for n in range(count)]

    def write_and_half_close() -> None:
        connection.sendall(b"".join(lines))
        connection.shutdown(socket.SHUT_WR)

    with daemon.connect() as connection:
        writer = threading.Thread(target=write_and_half_close)
        writer.start()
        found = all_answers(connection)
        writer.join()
    assert [one["id"] for one in found] == list(range(count))
    assert len({one["result"]["ids"][0] for one in found}) == count


def test_a_peer_that_half_closes_without_a_word_is_hung_up_on(daemon: RunningDaemon) -> None:
    with daemon.connect() as connection:
        connection.shutdown(socket.SHUT_WR)
        assert connection.recv(1) == b""


def test_a_half_closed_peer_of_notifications_is_served_and_hung_up_on(daemon: RunningDaemon) -> None:
    token = daemon.register("notifier")
    with daemon.connect() as connection:
        for number in range(40):
            quiet = notification("envelope.send", token=token, to="agent:notifier", text=f"{number}")
            connection.sendall(json.dumps(quiet).encode() + b"\n")
        connection.shutdown(socket.SHUT_WR)
        assert connection.recv(1) == b""
    page = daemon.call("envelope.list", token=token, page_size=100)
    assert {one["text"] for one in page["envelopes"]} == {str(number) for number in range(40)}


# --- noise ---------------------------------------------------------------------------------


def noise(seed: int) -> bytes:
    """Garbage of many kinds: bytes, JSON-like, requests with bytes changed."""
    chance = seeded(seed)
    valid = line("envelope.send", seed, to="agent:nex", text="noise", token="hba_wrong")
    parts = []
    for _ in range(chance.randrange(1, 30)):
        kind = chance.randrange(4)
        if kind == 0:
            parts.append(chance.randbytes(chance.randrange(2_000)))
        elif kind == 1:
            parts.append(bytes(chance.choice(b'{}[]",:0123456789.eE+-truefalsn \\u\n') for _ in range(200)))
        elif kind == 2:
            changed = bytearray(valid)
            changed[chance.randrange(len(changed))] = chance.randrange(256)
            parts.append(bytes(changed))
        else:
            parts.append(valid[: chance.randrange(len(valid))])
    return b"".join(parts)


@pytest.mark.slow
def test_garbage_is_answered_with_errors_and_the_daemon_goes_on(daemon: RunningDaemon) -> None:
    with sweep() as row:
        for seed in range(25):
            with row(f"seed {seed}"), daemon.connect() as connection:
                connection.sendall(noise(seed) + b"\n" + line("daemon.ping", "after the noise") + b"\n")
                connection.shutdown(socket.SHUT_WR)
                *errors, last = all_answers(connection)
                assert last["id"] == "after the noise" and last["result"]["pid"] == daemon.pid
                refused = [
                    one for answer in errors for one in (answer if isinstance(answer, list) else [answer])
                ]
                assert -32603 not in [one["error"]["code"] for one in refused]  # never a defect of ours
