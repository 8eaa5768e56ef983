"""The process of the MCP worker: started once for all who ask, watched, and ended whatever it does."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import shutil
import signal
import sys
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from hiboss.agents import process_control
from hiboss.api.mcp_sockets import McpSockets
from hiboss.core.errors import McpUnavailable, Stopping
from hiboss.core.paths import Home
from hiboss.daemon import mcp_process, mcp_worker
from hiboss.daemon.mcp_process import environment
from hiboss.daemon.mcp_worker import McpSupervisor
from tests.support.waits import happens, wait_until
from tests.support.web_clients import bearer
from tests.support.web_daemons import Answer, WebDaemon, web_daemon, web_fixture

SCRIPT = str(Path(__file__).parents[1] / "support" / "scripted_mcp_worker.py")
SECONDS = 30.0

Story = Callable[[McpSupervisor], Awaitable[None]]


def supervised(tmp_path: Path, story: Story, *words: str) -> Home:
    """Run a story with a supervisor whose worker does what the words say; nothing is left behind by it."""
    home = Home(str(tmp_path))
    home.create()

    async def run() -> None:
        supervisor = McpSupervisor(home, (sys.executable, SCRIPT, *words))
        try:
            async with asyncio.timeout(SECONDS):
                await story(supervisor)
        finally:
            await supervisor.close()
        assert supervisor.running is None

    asyncio.run(run())
    assert [name for name in os.listdir(home.path) if name.endswith(".sock")] == []
    return home


def is_there(pid: int) -> bool:
    return process_control.started_at(pid) is not None


async def ask(sockets: McpSockets, path: str = "/", *, http: bool = True) -> Any:
    """Ask a worker about itself."""
    where = sockets.http_socket if http else sockets.socket
    reader, writer = await asyncio.open_unix_connection(where)
    writer.write(f"GET {path} HTTP/1.1\r\n\r\n".encode())
    found = await reader.read()
    writer.close()
    return json.loads(found.partition(b"\r\n\r\n")[2] or b"null")


def noting(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return where the pids of workers will be, also of those that never become ready."""
    found: list[int] = []
    launch = mcp_process.launch

    async def noted(*given: Any) -> Any:
        made = await launch(*given)
        found.append(made.sockets.pid)
        return made

    monkeypatch.setattr(mcp_process, "launch", noted)
    return found


# --- one worker for all -------------------------------------------------------------------


def test_however_many_ask_at_the_same_time_they_get_one_worker(tmp_path: Path) -> None:
    async def story(supervisor: McpSupervisor) -> None:
        assert supervisor.running is None
        found = await asyncio.gather(*(supervisor.start() for _ in range(20)))
        assert len(set(found)) == 1 and supervisor.running == found[0]
        assert await supervisor.start() == found[0]
        for http in (True, False):
            assert (await ask(found[0], http=http))["pid"] == found[0].pid

    supervised(tmp_path, story)


def test_one_who_gives_up_does_not_stop_the_start_for_the_others(tmp_path: Path) -> None:
    async def story(supervisor: McpSupervisor) -> None:
        first, second = (asyncio.create_task(supervisor.start()) for _ in range(2))
        await asyncio.sleep(0)
        first.cancel()
        assert (await second) == supervisor.running

    supervised(tmp_path, story)


def test_a_start_that_nobody_waits_for_any_more_is_used_by_the_next(tmp_path: Path) -> None:
    async def story(supervisor: McpSupervisor) -> None:
        first = asyncio.create_task(supervisor.start())
        await asyncio.sleep(0)
        first.cancel()
        await happens(lambda: supervisor.running)
        assert await supervisor.start() == supervisor.running

    supervised(tmp_path, story)


# --- its end ------------------------------------------------------------------------------


def test_after_a_kill_the_next_start_starts_another_one_with_sockets_of_its_own(tmp_path: Path) -> None:
    async def story(supervisor: McpSupervisor) -> None:
        first = await supervisor.start()
        os.kill(first.pid, signal.SIGKILL)
        await happens(lambda: supervisor.running is None)
        second = await supervisor.start()
        assert second.pid != first.pid and second.socket != first.socket
        assert (await ask(second))["pid"] == second.pid
        await happens(lambda: not os.path.exists(first.socket) and not os.path.exists(first.http_socket))

    supervised(tmp_path, story)


def test_a_start_just_after_a_kill_never_gives_the_dead_one(tmp_path: Path) -> None:
    async def story(supervisor: McpSupervisor) -> None:
        for _ in range(2):
            first = await supervisor.start()
            os.kill(first.pid, signal.SIGKILL)
            await happens(lambda: not is_there(first.pid))  # noqa: B023 - awaited here
            assert (await ask(await supervisor.start()))["pid"] != first.pid

    supervised(tmp_path, story)


def test_while_an_idle_worker_is_ending_another_one_is_started(tmp_path: Path) -> None:
    async def story(supervisor: McpSupervisor) -> None:
        first = await supervisor.start()
        await ask(first, "/idle")
        second = await supervisor.start()
        assert second.pid != first.pid and (await ask(second))["pid"] == second.pid
        await happens(lambda: not is_there(first.pid))
        assert supervisor.running == second and not supervisor._deaths

    supervised(tmp_path, story)


def test_a_worker_that_ends_when_idle_is_no_death(tmp_path: Path) -> None:
    async def story(supervisor: McpSupervisor) -> None:
        for _ in range(mcp_worker.MOST_DEATHS + 1):
            await ask((await supervisor.start()), "/idle")
            await happens(lambda: supervisor.running is None)

    supervised(tmp_path, story)


@pytest.mark.parametrize("words", [(), ("stubborn",), ("chatty",)])
def test_a_close_ends_the_worker_whatever_it_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    monkeypatch.setattr(mcp_process, "END_SECONDS", 0.2 if "stubborn" in words else 20.0)
    found: list[McpSockets] = []

    async def story(supervisor: McpSupervisor) -> None:
        found.append(await supervisor.start())

    supervised(tmp_path, story, *words)
    assert not is_there(found[0].pid)


def test_after_a_close_none_is_started(tmp_path: Path) -> None:
    async def story(supervisor: McpSupervisor) -> None:
        await supervisor.close()
        with pytest.raises(Stopping):
            await supervisor.start()

    supervised(tmp_path, story)


def test_a_close_while_it_starts_tells_those_who_wait_and_leaves_no_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = noting(monkeypatch)

    async def story(supervisor: McpSupervisor) -> None:
        waiting = [asyncio.create_task(supervisor.start()) for _ in range(3)]
        await happens(lambda: started)
        supervisor.stop_starting()
        for one in waiting:
            with pytest.raises(Stopping):
                await one

    supervised(tmp_path, story, "deaf")
    assert len(started) == 1 and not is_there(started[0])


def test_the_worker_ends_when_the_daemon_is_killed(tmp_path: Path) -> None:
    """By the end of its input: nobody is left who could end it."""
    program = f"""
import asyncio, sys
from hiboss.core.paths import Home
from hiboss.daemon.mcp_worker import McpSupervisor
async def main():
    home = Home({str(tmp_path)!r})
    home.create()
    print((await McpSupervisor(home, (sys.executable, {SCRIPT!r})).start()).pid, flush=True)
    await asyncio.sleep(600)
asyncio.run(main())
"""

    async def story() -> None:
        daemon = await asyncio.create_subprocess_exec(
            sys.executable, "-c", program, stdout=asyncio.subprocess.PIPE
        )
        assert daemon.stdout is not None
        pid = int(await daemon.stdout.readline())
        assert is_there(pid)
        daemon.kill()
        await daemon.wait()
        async with asyncio.timeout(SECONDS):
            await happens(lambda: not is_there(pid))

    asyncio.run(story())


# --- it does not start --------------------------------------------------------------------


def test_a_worker_that_dies_while_it_starts_says_why_and_no_token(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def story(supervisor: McpSupervisor) -> None:
        for one in await asyncio.gather(*(supervisor.start() for _ in range(3)), return_exceptions=True):
            assert isinstance(one, McpUnavailable)
            assert "status 7: Traceback: hba_… is gone" in one.message
        assert len(supervisor._deaths) == 1  # they waited for the same one

    supervised(tmp_path, story, "die")
    assert "The MCP worker says: Traceback: hba_… is gone" in caplog.text


def test_one_that_dies_again_and_again_is_not_started_before_a_minute_is_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story(supervisor: McpSupervisor) -> None:
        for _ in range(mcp_worker.MOST_DEATHS):
            with pytest.raises(McpUnavailable, match="did not start"):
                await supervisor.start()
        supervisor.command = ("/nowhere/at/all",)  # it is not even tried
        with pytest.raises(McpUnavailable, match=r"died 3 times within a minute.*hba_… is gone.*seconds"):
            await supervisor.start()
        supervisor.command = (sys.executable, SCRIPT)
        monkeypatch.setattr(mcp_worker, "DEATH_SECONDS", 0.0)
        assert (await supervisor.start()).pid

    supervised(tmp_path, story, "die")


def test_a_program_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    async def story(supervisor: McpSupervisor) -> None:
        supervisor.command = ("/nowhere/at/all",)
        with pytest.raises(McpUnavailable, match="cannot be started"):
            await supervisor.start()

    supervised(tmp_path, story)


def test_one_that_is_never_ready_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mcp_worker, "START_SECONDS", 0.2)
    started = noting(monkeypatch)

    async def story(supervisor: McpSupervisor) -> None:
        with pytest.raises(McpUnavailable, match=r"not ready after 0.2 seconds"):
            await supervisor.start()

    supervised(tmp_path, story, "deaf")
    assert len(started) == 1 and not is_there(started[0])


def test_what_it_says_is_logged_in_lines_that_have_an_end(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def story(supervisor: McpSupervisor) -> None:
        assert (await ask(await supervisor.start()))["pid"]  # nor does it wait for somebody to read it

    supervised(tmp_path, story, "chatty")
    said = [one.getMessage() for one in caplog.records if "says" in one.getMessage()]
    assert [len(one) < 3_000 for one in said] == [True, True] and said[1].endswith(": second line")


# --- what it has of the daemon ------------------------------------------------------------


def test_it_gets_nothing_of_the_daemon_that_it_does_not_need(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = {"HIBOSS_TOKEN": "hba_x", "HIBOSS_TOKEN_FILE": "/x", "HIBOSS_RUN": "r1", "HIBOSS_AGENT": "nex"}
    secret |= {"OPENAI_API_KEY": "k", "HIBOSS_CRASH_AT": "x"}
    kept = {"HIBOSS_MCP_IDLE_SECONDS": "7", "XDG_RUNTIME_DIR": "/run/x", "LC_TIME": "C"}
    for name, value in {**secret, **kept}.items():
        monkeypatch.setenv(name, value)
    told: dict[str, Any] = {}
    left = os.open(os.devnull, os.O_RDONLY)
    os.set_inheritable(left, True)

    async def story(supervisor: McpSupervisor) -> None:
        sockets = await supervisor.start()
        told.update(await ask(sockets))
        assert told["environment"]["HIBOSS_MCP_SOCKET"] == sockets.socket
        assert told["environment"]["HIBOSS_MCP_HTTP_SOCKET"] == sockets.http_socket

    supervised(tmp_path, story)
    os.close(left)
    assert not set(secret) & set(told["environment"])
    assert kept.items() <= told["environment"].items()
    assert told["environment"]["HIBOSS_HOME"] == told["cwd"] == str(tmp_path)
    # Its three pipes, two listeners, the connection that asks, and the directory that it lists for this.
    assert len(told["files"]) == 7
    assert told["session"] == told["pid"] and told["locks"] == resource.RLIM_INFINITY


def test_a_value_with_a_token_stays_here_whatever_its_name_is() -> None:
    assert environment({"LANG": "C", "LC_ALL": "hba_abcdefghijklmnopqrstuvwxyz0123456789"}) == {"LANG": "C"}


def test_a_home_with_a_long_path_has_its_sockets_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime = Path("/tmp") / f"hb{os.getpid()}"
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
    deep = tmp_path.joinpath(*["a-directory-with-a-long-name"] * 4)

    async def story(supervisor: McpSupervisor) -> None:
        found = await supervisor.start()
        assert found.socket.startswith(str(runtime)) and (await ask(found))["pid"] == found.pid

    runtime.mkdir(mode=0o700)
    try:
        home = supervised(deep, story)
        left = [home.mcp_socket("abcdef"), home.mcp_http_socket("abcdef")]
        for path in left:
            Path(path).touch()
        home.forget_mcp_sockets()
        assert not any(os.path.exists(path) for path in left)
    finally:
        shutil.rmtree(runtime)


def test_a_start_of_the_daemon_removes_sockets_that_were_left_and_nothing_else(tmp_path: Path) -> None:
    home = Home(str(tmp_path))
    left = [home.mcp_socket("abcdef"), home.mcp_http_socket("012345")]
    kept = [home.socket, str(tmp_path / "mcp-notes.md"), str(tmp_path / "my-mcp-abcdef.sock")]
    for path in left + kept:
        Path(path).touch()
    home.forget_mcp_sockets()
    assert [os.path.exists(path) for path in left + kept] == [False, False, True, True, True]


# --- under a real daemon ------------------------------------------------------------


STARTED = {"jsonrpc": "2.0", "id": 1, "method": "initialize"}
ABOUT = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
BOTH = [("Accept", "application/json, text/event-stream")]


daemon = web_fixture()


def team(daemon: WebDaemon) -> Answer:
    return daemon.request("POST", "/api/tools/team", bearer(daemon.token("nex")), {})


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
        daemon.start()
        assert daemon.call("daemon.status")["mcp_pid"] is None


def test_a_killed_daemon_takes_the_worker_along_and_the_next_one_starts_its_own(tmp_path: Path) -> None:
    with web_daemon(tmp_path) as daemon:
        old = worker(daemon)
        os.kill(old, signal.SIGSTOP)  # so that it ends only after the next daemon has begun
        daemon.kill()
        daemon.start()
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
