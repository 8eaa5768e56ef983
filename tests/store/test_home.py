"""The home: an unusable one is refused, and only one daemon serves each."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from hiboss.cli.daemon_process import call_once
from hiboss.core.errors import DaemonRunning, DaemonUnreachable
from hiboss.core.paths import Home
from hiboss.testing.running_daemon import Answered, RunningDaemon
from tests.support.daemons import mount, set_up, started, unmount
from tests.support.forked_daemons import spawn
from tests.support.in_process_daemon import InProcessDaemon, frozen
from tests.support.raising import raised
from tests.support.waits import wait_until

# --- a home that cannot be used ------------------------------------------------------------


def below_a_file(home: Home) -> None:
    Path(home.path).parent.rmdir()
    Path(home.path).parent.write_text("a file, not a directory")


def a_file_itself(home: Home) -> None:
    Path(home.path).write_text("a file, not a directory")


def directory_at(name: str) -> Callable[[Home], None]:
    def spoil(home: Home) -> None:
        os.makedirs(os.path.join(home.path, name, "occupied"))

    spoil.__name__ = f"a directory is {name}"
    return spoil


def file_at(name: str) -> Callable[[Home], None]:
    def spoil(home: Home) -> None:
        os.makedirs(home.path)
        Path(home.path, name).write_text("a file, not a directory")

    spoil.__name__ = f"a file is {name}"
    return spoil


SPOILS = [
    below_a_file,
    a_file_itself,
    *(directory_at(name) for name in ("hiboss.db", "daemon.pid", "daemon.sock", "logs/daemon.log")),
    *(file_at(name) for name in ("media", "tokens", "logs", "backups")),
]


@pytest.mark.parametrize("spoil", SPOILS, ids=lambda spoil: spoil.__name__)
def test_a_home_that_cannot_be_used_is_refused_with_advice(
    tmp_path: Path, spoil: Callable[[Home], None]
) -> None:
    (tmp_path / "above").mkdir()
    home = Home(str(tmp_path / "above" / "home"))
    spoil(home)
    with pytest.raises(Answered) as refused:
        spawn(home, {})
    assert refused.value.stable_code == "home_unusable"
    assert home.path in refused.value.message and "HIBOSS_HOME" in refused.value.message
    assert "Traceback" not in refused.value.message


@pytest.fixture
def read_only(tmp_path: Path) -> Iterator[Path]:
    """A directory that cannot be written. Modes do not stop root, so root gets a read-only disk."""
    if os.geteuid() != 0:
        tmp_path.chmod(0o500)
        yield tmp_path
        tmp_path.chmod(0o700)
    elif mount(tmp_path):
        subprocess.run(["mount", "-o", "remount,ro", str(tmp_path)], check=True)
        yield tmp_path
        unmount(tmp_path)
    else:
        yield Path("/proc/hiboss")


def test_a_read_only_home_is_refused_with_advice(read_only: Path) -> None:
    with pytest.raises(Answered) as refused:
        spawn(Home(str(read_only)), {})
    assert refused.value.stable_code == "home_unusable"
    assert str(read_only) in refused.value.message and "Traceback" not in refused.value.message


def test_setting_up_an_unusable_home_is_refused_too(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    error = raised(Answered, call_once, Home(str(tmp_path / "file" / "home")), "setup.execute", {})
    assert error.stable_code == "home_unusable"


def test_a_home_checked_by_many_at_once_is_usable_for_all(tmp_path: Path) -> None:
    """Each start checks it before one of them gets the lock."""
    home = Home(str(tmp_path / "home"))
    with ThreadPoolExecutor(8) as pool:
        for done in [pool.submit(home.create) for _ in range(400)]:
            done.result()
    assert ".writable" not in os.listdir(home.path)


# --- profiles --------------------------------------------------------------------------------


# --- one daemon for a home -------------------------------------------------------------------


def test_a_second_daemon_is_refused_with_the_firsts_pid_and_the_first_goes_on(tmp_path: Path) -> None:
    with started(tmp_path) as daemon:
        error = raised(DaemonRunning, spawn, daemon.home, {})
        assert error.facts == {"pid": str(daemon.pid), "home": daemon.home.path}
        assert raised(Answered, call_once, daemon.home, "setup.check", {}).stable_code == "daemon_running"
        assert Path(daemon.home.pid_file).read_text().split()[0] == str(daemon.pid)
        assert daemon.call("daemon.ping")["pid"] == daemon.pid


@pytest.mark.slow
def test_of_many_daemons_started_at_once_exactly_one_serves(tmp_path: Path) -> None:
    home = set_up(tmp_path)
    starters = [
        subprocess.Popen(
            [sys.executable, "-m", "hiboss.daemon"],
            env={**os.environ, "HIBOSS_HOME": home.path},
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            cwd="/",
        )
        for _ in range(3)
    ]

    def pids() -> list[int]:
        """Return who answers; nobody does until the winner listens."""
        with suppress(DaemonUnreachable):
            return [RunningDaemon(home).call("daemon.ping")["pid"]]
        return []

    wait_until(lambda: sum(one.poll() is not None for one in starters) == 2, 120)  # three real starts
    losers = [one for one in starters if one.poll() is not None]
    (winner,) = [one for one in starters if one not in losers]
    wait_until(lambda: winner.pid in pids())
    for loser in losers:
        assert loser.returncode == 1 and f"pid {winner.pid}".encode() in loser.communicate()[1]
    winner.terminate()
    assert winner.wait(60) == 0
    winner.communicate()


def test_files_left_by_a_killed_daemon_are_no_hindrance(tmp_path: Path) -> None:
    with started(tmp_path) as daemon:
        dead = daemon.pid
        daemon.kill()
        assert os.path.exists(daemon.home.socket)
        assert Path(daemon.home.pid_file).read_text().split()[0] == str(dead)
        with pytest.raises(DaemonUnreachable):
            daemon.call("daemon.ping")
        daemon.start()
        assert daemon.call("daemon.ping")["pid"] == daemon.pid != dead
        assert Path(daemon.home.pid_file).read_text().split()[0] == str(daemon.pid)
        assert oct(os.stat(daemon.home.socket).st_mode & 0o777) == "0o600"


def test_a_daemon_that_ended_well_leaves_no_socket_and_no_pid(tmp_path: Path) -> None:
    with started(tmp_path) as daemon:
        assert daemon.stop() == 0
        assert not os.path.exists(daemon.home.socket)
        assert Path(daemon.home.pid_file).read_text() == ""
        assert not os.path.exists(f"{daemon.home.database}-wal")


# --- secrets -------------------------------------------------------------------------------


@frozen()
async def test_secrets_that_a_kill_left_behind_are_put_aside_at_the_next_start_and_deleted_a_month_later(
    daemon: InProcessDaemon,
) -> None:
    """A kill before the COMMIT leaves the new file, and one behind it the old file."""
    secrets = Path(daemon.home.secrets)
    hook = {"provider": "webhook", "settings": {"url": "http://127.0.0.1:1/"}}
    for name in ("kept", "changed", "deleted"):
        await daemon.ask("agent.register", name=name, **hook)
    before = {one: one.read_bytes() for one in secrets.iterdir()}
    await daemon.ask("agent.set", name="changed", **hook)
    await daemon.ask("agent.delete", name="deleted")
    in_use = set(secrets.iterdir())
    assert len(before) == 3 and len(in_use) == 2
    for file, content in before.items():
        file.write_bytes(content)
    (epoch,) = daemon.rows("SELECT value FROM config WHERE key = 'epoch'")
    daemon.home.keep_secrets({"secret": "of nobody"}, epoch["value"])
    await daemon.restart()
    aside = secrets / "aside"
    assert set(secrets.iterdir()) == {*in_use, aside} and len(list(aside.iterdir())) == 3
    await daemon.move(days=31)
    await daemon.restart()
    assert set(secrets.iterdir()) == {*in_use, aside} and list(aside.iterdir()) == []
