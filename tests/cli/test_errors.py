"""How commands end: exit statuses, errors a person can act on, JSON for both outcomes."""

from __future__ import annotations

import json
import os
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hiboss.cli import client
from hiboss.core.errors import EXIT_TIMEOUT, TimedOut
from tests.support.cli import Done, Office, Shell


@contextmanager
def deaf_daemon(directory: Path) -> Iterator[tuple[Shell, socket.socket]]:
    """Somebody listens at daemon.sock and never says a word."""
    shell = Shell(directory / "home")
    os.makedirs(shell.home.path)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(shell.home.socket)
        listener.listen()
        yield shell, listener


# --- --json --------------------------------------------------------------------------


def test_every_command_prints_one_json_document(office: Office) -> None:
    name = office.agent()
    mail = ("--as", name, "--id", office.send("nex", name))
    commands = [
        ("agent", "register", "--as", "boss", "--name", "jay"),
        ("agent", "list", "--as", "jay"),
        ("agent", "set", "--as", "boss", "--name", "jay", "--role", "x"),
        ("agent", "self", "--as", "jay"),
        ("agent", "delete", "--as", "boss", "--name", "jay", "--yes"),
        ("envelope", "send", "--as", "nex", "--to", f"agent:{name}", "--text", "x"),
        ("envelope", "list", "--as", name),
        *(("envelope", verb, *mail) for verb in ("get", "read", "ack", "archive", "trash", "restore")),
        ("envelope", "cancel", "--as", "nex", "--id", office.send("nex", name)),
        ("daemon", "status"),
        ("daemon", "ping"),
        ("daemon", "time"),
        ("setup",),
        ("up", "--detach"),
    ]
    for words in commands:
        done = office.ok(*words, "--json")
        assert isinstance(done.json, dict) and done.json, words


def test_the_log_comes_as_json_too(office: Office) -> None:
    done = office("daemon", "logs", "-n", "1", "--json")
    assert done.rc == 0 and done.json


def test_a_warning_does_not_spoil_the_document_of_a_failure(office: Office) -> None:
    done = office("agent", "self", "--token", "hba_wrong", "--json")
    assert done.rc == 1 and done.error["code"] == "bad_token"


# --- what is wrong is said in words of the command line ------------------------------


# --- nobody there, nobody answers ----------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [("envelope", "list"), ("agent", "list"), ("daemon", "status"), ("daemon", "ping"), ("daemon", "time")],
    ids=" ".join,
)
def test_without_a_daemon_a_command_ends_with_3_and_says_how_to_start_it(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    shell = Shell(tmp_path / "home")
    done = shell(*words)
    assert (done.rc, done.stdout) == (3, "")
    assert "Start it with: hiboss up\ncode: daemon_unreachable\n" in done.stderr
    assert not (tmp_path / "home").exists()
    shell.set_up()
    done = shell(*words)
    assert done.rc == 3 and "Start it with: hiboss daemon start\n" in done.stderr


def test_a_socket_left_by_a_dead_daemon_is_unreachable_too(tmp_path: Path) -> None:
    with deaf_daemon(tmp_path) as (shell, _):
        pass  # the listener is gone, its file is not
    done = shell("daemon", "ping", "--json")
    assert done.rc == 3 and done.error["code"] == "daemon_unreachable"


def test_no_answer_ends_with_4_and_says_that_it_may_still_happen(tmp_path: Path) -> None:
    with deaf_daemon(tmp_path) as (shell, _):
        with pytest.raises(TimedOut) as caught:
            client.call(shell.home, "daemon.ping", {}, timeout=0.05)
        done = shell.impatient("daemon", "ping")
    assert caught.value.exit == EXIT_TIMEOUT == done.rc == 4
    assert "may still be carried out" in done.stderr and "code: timed_out" in done.stderr


def test_a_daemon_that_hangs_up_without_an_answer_leaves_the_outcome_open(tmp_path: Path) -> None:
    words = ("envelope", "send", "--to", "agent:nex", "--text", "x")
    with deaf_daemon(tmp_path) as (shell, listener), shell.open(*words) as sender:
        connection, _ = listener.accept()
        with connection:
            assert json.loads(connection.makefile().readline())["method"] == "envelope.send"
        error = sender.communicate()[1]
    assert sender.returncode == 3
    assert "may still" in error or "may have" in error


# --- a reader that goes away ---------------------------------------------------------


def test_a_pipe_closed_early_is_no_error_to_tell_of(office: Office) -> None:
    name = office.agent()
    for _ in range(30):
        office.send("nex", name, "line\n" * 2_000)
    done = office.sh(f"hiboss envelope list --as {name} -n 100 | head -n 1")
    assert done.stdout.startswith("envelope-id: ") and (done.rc, done.stderr) == (0, "")
    shut = office.sh(f"hiboss envelope list --as {name} -n 1 | true; hiboss agent list --as {name} | true")
    assert (shut.rc, shut.stdout, shut.stderr) == (0, "", "")


def interrupt(connection: socket.socket, pid: int) -> None:
    os.kill(pid, signal.SIGINT)


def answer_nonsense(connection: socket.socket, pid: int) -> None:
    connection.sendall(b"this is no answer\n")


def asked(directory: Path, act: Callable[[socket.socket, int], None], *words: str) -> Done:
    """Let a command ask somebody who then does this; return how it ended."""
    with deaf_daemon(directory) as (shell, listener), shell.open("daemon", "ping", *words) as asking:
        connection, _ = listener.accept()
        with connection:
            connection.recv(1)  # it has asked, so now it waits
            act(connection, asking.pid)
            output, error = asking.communicate()
    return Done(rc=asking.returncode, stdout=output, stderr=error)


def test_a_command_interrupted_while_it_waits_ends_without_a_traceback(tmp_path: Path) -> None:
    assert asked(tmp_path, interrupt) == Done(rc=130, stdout="", stderr="")


def test_an_interrupt_and_a_defect_are_told_in_json_when_json_was_asked_for(tmp_path: Path) -> None:
    for rc, act, message in ((130, interrupt, "interrupted"), (1, answer_nonsense, "")):
        done = asked(tmp_path / str(rc), act, "--json")  # a socket has a short path
        assert (done.rc, done.stdout) == (rc, "") and done.error["message"].startswith(message)
        assert set(done.error) == {"code", "message", "data"}
