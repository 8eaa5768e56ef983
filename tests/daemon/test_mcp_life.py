"""The real MCP worker under a real daemon: kills of both, a restart, idleness, and a run that ends beside it."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hiboss.agents import process_control
from tests.support.waits import wait_until
from tests.support.web_daemons import Answer, WebDaemon, bearer, web_daemon

STARTED = {"jsonrpc": "2.0", "id": 1, "method": "initialize"}
ABOUT = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
BOTH = [("Accept", "application/json, text/event-stream")]
WEB = {"HIBOSS_WEB_ENABLED": "on", "HIBOSS_WEB_PORT": "0"}


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebDaemon]:
    with web_daemon(tmp_path_factory.mktemp("d")) as running:
        yield running


def team(daemon: WebDaemon) -> Answer:
    return daemon.request("POST", "/api/tools/team", bearer(daemon.token("nex")), {})


def is_there(pid: int) -> bool:
    return process_control.started_at(pid) is not None


def sockets(daemon: WebDaemon) -> list[str]:
    return sorted(name for name in os.listdir(daemon.home.path) if name.startswith("mcp-"))


def worker(daemon: WebDaemon) -> int:
    """Start the worker if none runs, and return its pid."""
    return int(daemon.call("mcp.start")["pid"])


def session(daemon: WebDaemon) -> list[tuple[str, str]]:
    """Begin a session of MCP; return the headers of its later requests."""
    own = [*bearer(daemon.token("nex")), *BOTH]
    answer = daemon.request("POST", "/mcp", own, {**STARTED, "params": ABOUT})
    assert answer.status == 200, answer
    return [*own, ("Mcp-Session-Id", answer.header("mcp-session-id"))]


def test_a_tool_is_called_over_http_and_a_wrong_one_is_refused(daemon: WebDaemon) -> None:
    found = team(daemon)
    assert found.status == 200 and "nex" in [one["name"] for one in found.json["team"]]
    refused = daemon.request("POST", "/api/tools/ui_nonsense", bearer(daemon.token("nex")), {})
    assert refused.status == 404 and refused.header("content-type") == "application/json"
    assert daemon.call("daemon.status")["mcp_pid"] == worker(daemon)


def test_a_killed_worker_is_followed_by_one_other_for_all_who_come(daemon: WebDaemon) -> None:
    old, found = worker(daemon), list[tuple[int, int]]()
    with daemon.connected() as stream:
        stream.write(daemon.text("GET", "/mcp", session(daemon)))
        assert stream.socket.recv(1000).startswith(b"HTTP/1.1 200")
        os.kill(old, signal.SIGKILL)
        assert stream.is_closed()

    def come() -> None:
        found.append((team(daemon).status, worker(daemon)))

    threads = [threading.Thread(target=come) for _ in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert {status for status, _ in found} == {200} and len({pid for _, pid in found} - {old}) == 1
    assert old not in {pid for _, pid in found} and len(sockets(daemon)) == 2
    assert daemon.still_works()


def test_the_processes_of_a_run_are_ended_and_the_worker_is_not(daemon: WebDaemon, tmp_path: Path) -> None:
    before = worker(daemon)
    daemon.register("sleeper", provider="command", settings={"command": "sleep 600"}, workspace=str(tmp_path))
    daemon.call("envelope.send", token=daemon.token("boss"), to="agent:sleeper", text="sleep")

    def running() -> list[Any]:
        found: list[Any] = daemon.call("run.list", token=daemon.token("boss"))["runs"]
        return [one for one in found if one["status"] == "running"]

    wait_until(running)
    daemon.call("breaker.pull", token=daemon.token("boss"))  # it ends all processes of all runs
    wait_until(lambda: not running())
    assert worker(daemon) == before and is_there(before)


def test_a_stop_ends_the_worker_and_the_streams(tmp_path: Path) -> None:
    with web_daemon(tmp_path) as daemon:
        pid = worker(daemon)
        with daemon.connected() as stream:
            stream.write(daemon.text("GET", "/mcp", session(daemon)))
            assert stream.socket.recv(1000).startswith(b"HTTP/1.1 200")
            daemon.stop()
            assert stream.rest().endswith(b"0\r\n\r\n")
        assert not is_there(pid) and sockets(daemon) == []
        assert [
            line for line in daemon.logged().splitlines() if line.split()[1] in ("error", "warning")
        ] == []
        daemon.start(**WEB)
        daemon.listens()
        assert daemon.call("daemon.status")["mcp_pid"] is None


def test_a_killed_daemon_takes_the_worker_along_and_the_next_one_starts_its_own(tmp_path: Path) -> None:
    with web_daemon(tmp_path) as daemon:
        old = worker(daemon)
        os.kill(old, signal.SIGSTOP)  # so that it ends only after the next daemon has begun
        daemon.kill()
        daemon.start(**WEB)
        daemon.listens()
        assert sockets(daemon) == []
        new = worker(daemon)
        os.kill(old, signal.SIGCONT)
        wait_until(lambda: not is_there(old))
        assert new != old and len(sockets(daemon)) == 2
        assert team(daemon).status == 200 and worker(daemon) == new


def test_an_idle_worker_ends_and_the_next_client_starts_another_one(tmp_path: Path) -> None:
    with web_daemon(tmp_path, mcp_idle_seconds=0.1) as daemon:
        pid = worker(daemon)
        wait_until(lambda: daemon.call("daemon.status")["mcp_pid"] is None)
        assert not is_there(pid) and sockets(daemon) == []
        assert team(daemon).status == 200
