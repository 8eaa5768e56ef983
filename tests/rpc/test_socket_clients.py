"""Clients that are many, slow, greedy or gone: none hurts another."""

from __future__ import annotations

import json
import resource
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import ExitStack

import psutil
import pytest

from hiboss.core.settings import DEFAULTS
from hiboss.testing.running_daemon import RunningDaemon
from tests.support.daemons import answers, ask, line, notification
from tests.support.waits import wait_until

MIB = 1024 * 1024


@pytest.fixture
def many_files() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def write_until_stuck(connection: socket.socket, data: bytes) -> int:
    """Write the same lines again and again as long as the daemon takes them; how much that was."""
    connection.settimeout(0.5)
    written = 0
    try:
        while True:
            written += connection.send(data[written % len(data) :])
    except TimeoutError:
        return written


# --- many ----------------------------------------------------------------------------------


def test_a_client_is_served_while_a_thousand_others_are_idle(daemon: RunningDaemon, many_files: None) -> None:
    token = daemon.token("nex")
    with ExitStack() as stack:
        idle = [stack.enter_context(daemon.connect()) for _ in range(1_000)]
        wait_until(lambda: daemon.call("daemon.status")["connections"] >= 1_000)
        sent = daemon.call("envelope.send", token=token, to="agent:nex", text="among the idle")
        got = daemon.call("envelope.get", token=token, id=sent["ids"][0])
        assert got["envelope"]["text"] == "among the idle"
        for connection in (idle[0], idle[500], idle[999]):
            assert ask(connection, "daemon.ping")["result"]["pong"] is True
    wait_until(lambda: daemon.call("daemon.status")["connections"] <= 2)


def test_requests_begin_in_order_also_while_the_peer_does_not_read(daemon: RunningDaemon) -> None:
    """A notification among them must not wait for the peer, while those that follow it do not."""
    token = daemon.token("nex")
    large = daemon.call("envelope.send", token=token, to="agent:nex", text="x" * 60_000)["ids"][0]
    lines, texts = [], [f"unread {number}" for number in range(400)]
    for text in texts:
        sent = {"token": token, "to": "agent:nex", "text": text}
        noted = json.dumps(notification("envelope.send", **sent)).encode() + b"\n"
        lines.append(line("envelope.get", 0, token=token, id=large))
        lines.append(noted if text.endswith("0") else line("envelope.send", text, **sent))
    with daemon.connect() as connection:
        writer = threading.Thread(target=connection.sendall, args=(b"".join(lines),))
        writer.start()
        answers(connection, len(texts) * 2 - len(texts) // 10)
        writer.join()
    assert stored(daemon, "unread *") == texts


def stored(daemon: RunningDaemon, pattern: str) -> list[str]:
    """Return the texts of messages that are like this, in the order in which they were stored."""
    with daemon.database() as database:
        rows = database.execute("SELECT text FROM message WHERE text GLOB ? ORDER BY id", (pattern,))
        return [row["text"] for row in rows]


def test_clients_at_the_same_time_get_their_own_answers(daemon: RunningDaemon) -> None:
    token = daemon.token("nex")
    found: dict[int, list[object]] = {}

    def talk(client: int) -> None:
        with daemon.connect() as connection:
            for number in range(20):
                text = f"client {client} says {number}"
                connection.sendall(line("envelope.send", text, token=token, to="agent:nex", text=text))
            found[client] = [one["id"] for one in answers(connection, 20)]

    threads = [threading.Thread(target=talk, args=(client,)) for client in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {client: [f"client {client} says {n}" for n in range(20)] for client in range(16)}


# --- greedy and slow -----------------------------------------------------------------------


def test_a_client_that_never_reads_is_not_read_from_and_others_are_served(daemon: RunningDaemon) -> None:
    token = daemon.token("nex")
    sent = daemon.call("envelope.send", token=token, to="agent:nex", text="t" * 20_000)
    with daemon.connect() as deaf:
        written = write_until_stuck(deaf, line("envelope.get", 1, token=token, id=sent["ids"][0]) * 50)
        assert written < 2 * DEFAULTS.frame_bytes
        assert daemon.call("envelope.send", token=token, to="agent:nex", text="past the deaf one")["ids"]
        # When it reads after all, its answers are still there, each whole.
        deaf.settimeout(30)
        found = answers(deaf, 100)
    assert [one["result"]["envelope"]["id"] for one in found] == sent["ids"] * 100


def test_answers_that_nobody_reads_do_not_pile_up_in_memory(daemon: RunningDaemon) -> None:
    token = daemon.register("wordy")
    for _ in range(20):
        daemon.call("envelope.send", token=token, to="agent:wordy", text="w" * 100_000)
    process = psutil.Process(daemon.pid)
    before = process.memory_info().rss
    with daemon.connect() as deaf:
        write_until_stuck(deaf, line("envelope.list", 1, token=token, page_size=20) * 128)
        assert daemon.call("daemon.ping")["pong"] is True
        growth = process.memory_info().rss - before
    assert growth < 60 * MIB


# --- gone ----------------------------------------------------------------------------------


@pytest.mark.parametrize("abruptly", [False, True], ids=["closed", "reset"])
def test_a_client_that_vanishes_in_mid_request_leaves_nothing_behind(
    daemon: RunningDaemon, abruptly: bool
) -> None:
    base = daemon.call("daemon.status")["connections"]
    for cut in range(1, 40, 3):
        with daemon.connect() as connection:
            if abruptly:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            connection.sendall(line("daemon.ping")[:cut])
    wait_until(lambda: daemon.call("daemon.status")["connections"] <= base)
    assert daemon.call("daemon.ping")["pong"] is True


def test_what_a_client_asked_before_it_vanished_is_done_all_the_same(daemon: RunningDaemon) -> None:
    token = daemon.register("vanisher")
    with daemon.connect() as connection:
        for number in range(30):
            connection.sendall(
                line("envelope.send", number, token=token, to="agent:vanisher", text=f"{number}")
            )
        answers(connection, 1)  # the daemon has read something; now go, with answers unread

    def stored() -> set[str]:
        return {one["text"] for one in daemon.call("envelope.list", token=token, page_size=100)["envelopes"]}

    wait_until(lambda: "0" in stored())
    # What it had read was taken in order: a beginning of what was asked, without holes.
    found = stored()
    assert found == {str(number) for number in range(len(found))}
    daemon.check()


def test_a_client_that_vanishes_while_its_answers_are_being_written_hurts_nobody(
    daemon: RunningDaemon,
) -> None:
    token = daemon.token("nex")
    sent = daemon.call("envelope.send", token=token, to="agent:nex", text="t" * 100_000)
    base = daemon.call("daemon.status")["connections"]
    for _ in range(5):
        with daemon.connect() as connection:
            connection.sendall(line("envelope.get", 1, token=token, id=sent["ids"][0]) * 60)
            connection.recv(1_000)
    wait_until(lambda: daemon.call("daemon.status")["connections"] <= base)
    assert daemon.call("daemon.ping")["pid"] == daemon.pid
