"""The daemon's life seen from outside: kill -9 and what it leaves, other versions, stopping under load."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hiboss import __version__
from hiboss.core.paths import Home
from hiboss.testing.running_daemon import RunningDaemon
from tests.support.cli import Office, Shell, gone, open_office
from tests.support.waits import wait_until

# A real daemon, but of another version.
_OLDER = """
import sys
import hiboss
hiboss.__version__ = "0.0.1"
from hiboss.daemon.__main__ import main
sys.exit(main(["--ready-fd", sys.argv[1]]))
"""
SENDERS = 8


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    shell = Shell(tmp_path / "home")
    yield shell
    shell.end_daemon()


@contextmanager
def older_daemon(shell: Shell) -> Iterator[int]:
    reader, writer = os.pipe()
    process = subprocess.Popen(
        [sys.executable, "-c", _OLDER, str(writer)], env=shell.environment(), pass_fds=[writer]
    )
    os.close(writer)
    try:
        with open(reader, "rb") as pipe:
            assert json.loads(pipe.readline())["ready"]
        yield process.pid
    finally:
        process.kill()
        process.wait()


# --- what kill -9 leaves behind ------------------------------------------------------


def test_what_a_killed_daemon_left_is_cleaned_by_the_next_start(shell: Shell) -> None:
    shell.set_up()
    first = int(shell("daemon", "start").record["pid"])
    sent = shell("envelope", "send", "--as", "nex", "--to", "agent:nex", "--text", "before")
    os.kill(first, signal.SIGKILL)
    wait_until(lambda: gone(first))
    assert os.path.exists(shell.home.socket) and shell.pid_file_words()[0] == str(first)
    assert shell("daemon", "ping").rc == 3
    assert shell("daemon", "stop").record == {"stopped": "false"}
    second = shell("daemon", "start")
    assert (second.rc, second.stderr) == (0, "")
    assert shell.pid_file_words()[0] == second.record["pid"] != str(first)
    assert shell("envelope", "list", "--as", "nex").values("envelope-id") == sent.values("id")


def test_a_pid_that_now_belongs_to_another_program_is_left_alone(shell: Shell) -> None:
    shell.set_up()
    with subprocess.Popen(["sleep", "60"]) as bystander:
        try:
            Path(shell.home.pid_file).write_text(f"{bystander.pid} {__version__}\n")
            assert shell("daemon", "stop").record == {"stopped": "false"}
            started = shell("daemon", "start")
            assert started.rc == 0 and shell.pid_file_words()[0] == started.record["pid"]
            assert bystander.poll() is None
        finally:
            bystander.kill()


def test_a_spoilt_pid_file_hinders_nothing(shell: Shell) -> None:
    shell.set_up()
    Path(shell.home.pid_file).write_text("rubbish and\x00 more\n")
    assert shell("agent", "self", "--as", "nex").rc == 3
    assert shell("daemon", "stop").record == {"stopped": "false"}
    assert shell("daemon", "start").rc == 0
    assert shell.pid_file_words() == [str(shell.pid), __version__]


@pytest.mark.slow
def test_a_home_whose_path_is_too_long_for_a_socket_still_works(tmp_path: Path) -> None:
    shell = Shell(tmp_path / ("long" * 30))
    # Not below tmp_path, which may itself be too long for a socket.
    with tempfile.TemporaryDirectory(prefix="hiboss-") as runtime:
        environment = {"XDG_RUNTIME_DIR": runtime}
        try:
            assert shell("up", "--detach", env=environment).rc == 0
            path = shell("daemon", "status", env=environment).record["socket"]
            assert path.startswith(runtime) and os.stat(path).st_mode & 0o777 == 0o600
            assert shell("agent", "self", "--as", "nex", env=environment).rc == 0
            assert shell("daemon", "stop", env=environment).record["stopped"] == "true"
            assert not os.path.exists(path)
        finally:
            shell.end_daemon()


# --- a daemon of another version -----------------------------------------------------


@pytest.mark.slow
def test_a_daemon_of_another_version_is_noticed_with_what_to_do(shell: Shell) -> None:
    shell.set_up()
    with older_daemon(shell) as pid:
        assert shell.pid_file_words() == [str(pid), "0.0.1"]
        for words in (("agent", "self", "--as", "nex"), ("daemon", "status"), ("up",)):
            done = shell(*words)
            assert done.rc == 0, words
            assert "0.0.1" in done.stderr and "hiboss daemon restart" in done.stderr, words
        assert shell("agent", "self", "--as", "nex", "--json").json["address"] == "agent:nex"
        restarted = shell("daemon", "restart")
        assert (restarted.rc, restarted.stderr) == (0, "")
        wait_until(lambda: gone(pid))  # its lock ends a moment before it
    assert shell("agent", "self", "--as", "nex").stderr == ""


@pytest.mark.slow
def test_a_dead_daemon_of_another_version_is_not_said_to_run(shell: Shell) -> None:
    shell.set_up()
    with older_daemon(shell):
        pass  # killed at the end of the block
    done = shell("agent", "self", "--as", "nex")
    assert done.rc == 3 and "hiboss daemon start" in done.stderr
    assert "running daemon" not in done.stderr


# --- stopping under load -------------------------------------------------------------


def send_until_closed(daemon: RunningDaemon, token: str, answered: list[str], strange: list[object]) -> None:
    """Send one message after the other; note every answer, and whatever is neither answer nor end."""
    with daemon.connect() as connection, connection.makefile("rb") as stream:
        while True:
            params = {"token": token, "to": "agent:nex", "text": "x"}
            request = {"jsonrpc": "2.0", "id": 1, "method": "envelope.send", "params": params}
            try:
                connection.sendall(json.dumps(request).encode() + b"\n")
                line = stream.readline()
            except (ConnectionResetError, BrokenPipeError):
                return
            except OSError as error:
                strange.append(error)
                return
            if not line.endswith(b"\n"):
                if line:
                    strange.append(line)
                return
            answer = json.loads(line)
            if "result" not in answer:
                strange.append(answer)
                return
            answered += answer["result"]["ids"]


@pytest.mark.slow
def test_senders_get_an_answer_or_a_closed_connection_when_the_daemon_stops(tmp_path: Path) -> None:
    with open_office(tmp_path) as office:
        answered: list[str] = []
        strange: list[object] = []
        threads = [
            threading.Thread(
                target=send_until_closed, args=(office.daemon, office.token("nex"), answered, strange)
            )
            for _ in range(SENDERS)
        ]
        for thread in threads:
            thread.start()
        wait_until(lambda: len(answered) > 200)
        assert office("daemon", "stop").record["stopped"] == "true"
        for thread in threads:
            thread.join(60)
        assert not any(thread.is_alive() for thread in threads)
        assert strange == []
        assert set(answered) <= stored(office) and len(set(answered)) == len(answered)
        office.daemon.check()


def stored(office: Office) -> set[str]:
    with office.daemon.database() as database:
        return {f"e{row['id']}" for row in database.execute("SELECT id FROM envelope")}


def test_a_request_in_hand_is_answered_before_the_daemon_ends(tmp_path: Path) -> None:
    with open_office(tmp_path) as office, office.daemon.connect() as connection:
        params = {"token": office.token("nex"), "to": "agent:nex", "text": "x" * 500_000}
        request = {"jsonrpc": "2.0", "id": 1, "method": "envelope.send", "params": params}
        stop = {"jsonrpc": "2.0", "id": 2, "method": "daemon.stop"}
        connection.sendall(json.dumps([request, stop]).encode() + b"\n")
        sent, stopping = json.loads(connection.makefile().readline())
        assert stopping["result"]["stopping"] is True
        assert office.daemon.wait_for_death() == 0
        assert set(sent["result"]["ids"]) <= stored(office)


def test_idle_clients_do_not_keep_a_daemon_from_stopping(tmp_path: Path) -> None:
    with open_office(tmp_path) as office:
        clients = [socket.socket(socket.AF_UNIX) for _ in range(20)]
        try:
            for client in clients:
                client.connect(Home(office.home.path).socket)
            clients[0].sendall(b'{"jsonrpc": "2.0", "half')
            wait_until(lambda: office.daemon.call("daemon.status")["connections"] > 20)
            assert office("daemon", "stop").rc == 0
            assert [client.recv(1) for client in clients[1:]] == [b""] * 19
        finally:
            for client in clients:
                client.close()
