"""Who is at the other end: tokens, logging in once, the peer's uid, and modes of files."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hiboss.testing.running_daemon import RunningDaemon, running_daemon
from tests.support.daemons import answers, ask, code, line, notification, started
from tests.support.sweeps import sweep
from tests.support.waits import wait_until

NOBODY = 65534
_AS_ANOTHER_USER = """
import os, socket, sys
os.setgid(int(sys.argv[2])); os.setuid(int(sys.argv[2]))
with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
    connection.settimeout(30)
    connection.connect(sys.argv[1])
    while part := connection.recv(65536):
        sys.stdout.write(part.decode())
"""


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDaemon]:
    with started(tmp_path_factory.mktemp("d")) as running:
        running.register("other")
        yield running


# --- tokens with each request ----------------------------------------------------------------


def test_without_a_token_nothing_but_open_operations_is_done(daemon: RunningDaemon) -> None:
    with daemon.connect() as connection:
        assert code(ask(connection, "envelope.list")) == "no_token"
        assert code(ask(connection, "envelope.send", to="agent:nex", text="anonymous")) == "no_token"
        assert code(ask(connection, "auth.login")) == "no_token"
        assert code(ask(connection, "daemon.ping")) == "ok"


def test_a_token_that_is_not_in_force_is_refused_everywhere(daemon: RunningDaemon) -> None:
    short = daemon.token("nex")[:-1]
    with daemon.connect() as connection, sweep() as row:
        for token in ("", "hba_wrong", "hbb_" + "A" * 43, "x" * 100_000, "ÄÖ\U0001f600", short):
            for method in ("envelope.list", "auth.login", "daemon.ping"):
                with row((method, token[:20])):
                    error = ask(connection, method, token=token)["error"]
                    assert (error["data"]["code"], error["code"]) == ("bad_token", -32002)


@pytest.mark.parametrize("token", [5, 1.5, True, [], ["hba_x"], {}, {"a": 1}], ids=repr)
def test_a_token_that_is_no_text_is_invalid_params(daemon: RunningDaemon, token: Any) -> None:
    with daemon.connect() as connection:
        for method in ("envelope.list", "auth.login"):
            assert ask(connection, method, token=token)["error"]["code"] == -32602
        assert code(ask(connection, "daemon.ping")) == "ok"


def test_an_error_about_a_token_does_not_repeat_the_token(daemon: RunningDaemon) -> None:
    secret = "hba_canary-canary-canary"
    requests = [line("envelope.list", 1, token=secret), line("auth.login", 1, token=[secret])]
    requests.append(line("auth.login", 1, token=daemon.token("nex"), tokn=secret))
    with daemon.connect() as connection:
        connection.sendall(b"".join(requests))
        found = answers(connection, 3)
    assert all("error" in one for one in found)
    assert "canary" not in json.dumps(found)
    assert "canary" not in Path(daemon.home.log_file).read_text()


# --- logging in once ---------------------------------------------------------------------------


def speaker(answer: Any) -> str:
    return str(answer["result"]["address"]) if "result" in answer else code(answer)


def whoami(connection: Any) -> str:
    return speaker(ask(connection, "agent.self"))


# What is said on a new connection (a login, or who one is: by a token that comes along, or without), and who that is.
LOGINS: dict[str, list[tuple[str, str | None, str]]] = {
    "one who logs in needs no token afterwards": [("in", "nex", "agent:nex"), ("self", None, "agent:nex")],
    "before the login one is nobody": [("self", None, "no_token"), ("in", "nex", "agent:nex")],
    "each speaks for who was logged in when it was written": [
        step
        for name in ("nex", "other", "nex", "other")
        for step in (("in", name, f"agent:{name}"), ("self", None, f"agent:{name}"))
    ],
    "a failed login changes nothing": [
        ("in", "wrong", "bad_token"),
        ("self", None, "no_token"),
        ("in", "nex", "agent:nex"),
        ("in", "wrong", "bad_token"),
        ("self", None, "agent:nex"),
    ],
    "a token that comes along wins": [
        ("in", "nex", "agent:nex"),
        ("self", "other", "agent:other"),
        ("self", None, "agent:nex"),
    ],
}


@pytest.mark.parametrize("pipelined", [True, False], ids=["pipelined", "one by one"])
def test_a_login_counts_for_what_follows_on_its_connection(daemon: RunningDaemon, pipelined: bool) -> None:
    methods = {"in": "auth.login", "self": "agent.self"}
    tokens = {"wrong": "hba_wrong", **{name: daemon.token(name) for name in ("nex", "other")}}
    with sweep() as row:
        for name, steps in LOGINS.items():
            lines = [
                line(methods[verb], 1, **({"token": tokens[who]} if who else {})) for verb, who, _ in steps
            ]
            with row(name), daemon.connect() as connection:
                found = []
                for asked in [b"".join(lines)] if pipelined else lines:
                    connection.sendall(asked)
                    found += answers(connection, asked.count(b"\n"))
                assert [speaker(one) for one in found] == [who for *_, who in steps]


def test_a_login_sent_as_a_notification_counts_too(daemon: RunningDaemon) -> None:
    login = json.dumps(notification("auth.login", token=daemon.token("nex"))).encode() + b"\n"
    with daemon.connect() as connection:
        connection.sendall(login)
        assert whoami(connection) == "agent:nex"


def test_a_login_in_a_batch_counts_for_what_follows_the_batch(daemon: RunningDaemon) -> None:
    batch = [{"jsonrpc": "2.0", "method": "auth.login", "id": 1, "params": {"token": daemon.token("nex")}}]
    with daemon.connect() as connection:
        connection.sendall(json.dumps(batch).encode() + b"\n" + line("agent.self", 2))
        found = answers(connection, 2)
    assert found[1]["result"]["address"] == "agent:nex"


def test_a_login_ends_when_the_agent_is_deleted(daemon: RunningDaemon) -> None:
    token = daemon.register("shortlived")
    with daemon.connect() as connection:
        ask(connection, "auth.login", token=token)
        assert whoami(connection) == "agent:shortlived"
        daemon.call("agent.delete", token=daemon.token("boss"), name="shortlived")
        assert whoami(connection) == "bad_token"


# --- the machine's own users ---------------------------------------------------------------------


def mode(path: str) -> int:
    return stat.S_IMODE(os.stat(path).st_mode)


def test_home_socket_database_and_tokens_are_open_to_their_owner_only(daemon: RunningDaemon) -> None:
    home = daemon.home
    daemon.call("envelope.send", token=daemon.token("nex"), to="agent:nex", text="so that there is a WAL")
    directories = [home.path, home.tokens, home.media, home.backups, os.path.dirname(home.log_file)]
    files = [home.socket, home.database, f"{home.database}-wal", f"{home.database}-shm"]
    files += [home.pid_file, home.log_file, home.profile("boss"), home.profile("nex")]
    assert {path: oct(mode(path)) for path in directories} == {path: "0o700" for path in directories}
    assert {path: oct(mode(path)) for path in files} == {path: "0o600" for path in files}


def test_modes_do_not_depend_on_the_umask(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        with running_daemon(tmp_path) as daemon:
            home = daemon.home
            found = [mode(p) for p in (home.path, home.socket, home.database, home.pid_file, home.log_file)]
    finally:
        os.umask(old)
    assert [oct(one) for one in found] == ["0o700", "0o600", "0o600", "0o600", "0o600"]


@pytest.fixture
def open_house() -> Iterator[RunningDaemon]:
    """A daemon whose directories and socket anybody may reach, against every default."""
    directory = tempfile.mkdtemp(prefix="hb", dir="/tmp")  # pytest's own lie below a closed one
    os.chmod(directory, 0o755)
    try:
        with started(directory) as running:
            os.chmod(running.home.path, 0o755)
            os.chmod(running.home.socket, 0o666)
            yield running
    finally:
        shutil.rmtree(directory)


def test_another_user_of_the_machine_is_refused_even_when_the_modes_are_open(
    open_house: RunningDaemon,
) -> None:
    """Only root can become another user; anybody else is served, being the owner."""
    uid = NOBODY if os.geteuid() == 0 else os.geteuid()
    child = subprocess.Popen(
        [sys.executable, "-c", _AS_ANOTHER_USER, open_house.home.socket, str(uid)],
        stdout=subprocess.PIPE,
        text=True,
        cwd="/",
    )
    if uid == os.geteuid():
        wait_until(lambda: open_house.call("daemon.status")["connections"] == 2)
        open_house.stop()  # which hangs up on a client that was let in, without a word
        assert child.communicate(timeout=30)[0] == ""
        return
    answer = json.loads(child.communicate(timeout=30)[0])
    assert code(answer) == "foreign_peer" and answer["error"]["code"] == -32003
    assert answer["error"]["data"] == {"code": "foreign_peer", "owner": 0, "uid": NOBODY}
    assert answer["id"] is None
    assert open_house.call("daemon.ping")["pong"] is True
