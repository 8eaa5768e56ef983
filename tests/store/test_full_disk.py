"""A full disk: a clear error, nothing half-written, and normal service when there is space again."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from hiboss.testing.running_daemon import Answered, RunningDaemon
from tests.support.daemons import can_mount, mount, set_up, started, unmount
from tests.support.forked_daemons import spawn
from tests.support.waits import wait_until

pytestmark = pytest.mark.slow

MIB = 1024 * 1024


class FileLimit:
    """Limit the file size of the daemon: any user can do that."""

    code = "store_error"  # the system says EFBIG, which is not the same as a full disk

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    @contextmanager
    def full(self, daemon: RunningDaemon) -> Iterator[None]:
        soft, hard = resource.prlimit(daemon.pid, resource.RLIMIT_FSIZE)
        size = os.path.getsize(f"{daemon.home.database}-wal")
        resource.prlimit(daemon.pid, resource.RLIMIT_FSIZE, (size + 20_000, hard))
        yield
        resource.prlimit(daemon.pid, resource.RLIMIT_FSIZE, (soft, hard))


class TinyDisk:
    """A file system of a few megabytes, which is then filled."""

    code = "store_full"

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    @contextmanager
    def full(self, daemon: RunningDaemon | None = None) -> Iterator[None]:
        filler = self.directory / "filler"
        with open(filler, "wb", buffering=0) as file:
            try:
                while True:
                    file.write(b"\0" * 4096)
            except OSError:
                pass
        yield
        filler.unlink()


@pytest.fixture
def tiny(tmp_path: Path) -> Iterator[TinyDisk]:
    if not can_mount():
        pytest.skip("needs the right to mount")
    place = tmp_path / "small"
    place.mkdir()
    assert mount(place)
    yield TinyDisk(place)
    unmount(place)


@pytest.fixture(params=["file limit", "tiny disk"])
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    """The file limit serves everywhere."""
    return FileLimit(tmp_path) if request.param == "file limit" else request.getfixturevalue("tiny")


def send(daemon: RunningDaemon, number: int) -> Any:
    text = f"{number} " + "x" * 5_000
    return daemon.call("envelope.send", token=daemon.token("nex"), to="agent:nex", text=text, key=f"{number}")


def send_until_refused(daemon: RunningDaemon, stored: dict[int, str]) -> tuple[int, Answered]:
    for number in range(len(stored), len(stored) + 500):
        try:
            stored[number] = send(daemon, number)["ids"][0]
        except Answered as refused:
            return number, refused
    raise AssertionError("500 sends went through on a full disk")


def test_a_full_disk_is_named_and_nothing_answered_is_lost(disk: Any) -> None:
    with started(disk.directory) as daemon:
        token = daemon.token("nex")
        stored: dict[int, str] = {number: send(daemon, number)["ids"][0] for number in range(5)}
        with disk.full(daemon):
            first, refused = send_until_refused(daemon, stored)
            assert refused.stable_code == disk.code and daemon.home.database in refused.message
            for _ in range(3):  # it still refuses writes and still answers reads
                with pytest.raises(Answered) as again:
                    send(daemon, first)
                assert again.value.stable_code == disk.code
            page = daemon.call("envelope.list", token=token, page_size=1)["envelopes"]
            assert page[0]["id"] == stored[first - 1]
        after = send(daemon, first)
        assert after["duplicate"] is False  # the refused attempts left nothing behind
        stored[first] = after["ids"][0]
        daemon.kill()
        daemon.start()
        daemon.check()
        with daemon.database() as connection:
            rows = connection.execute("SELECT id, text FROM envelopes ORDER BY arrived").fetchall()
        assert {int(row["text"].split()[0]): row["id"] for row in rows} == stored
        assert len(rows) == len(stored)


def test_an_attachment_for_which_there_is_no_space_is_refused_and_leaves_nothing(
    disk: Any, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with started(disk.directory) as daemon:
        send(daemon, 0)
        big = tmp_path_factory.mktemp("elsewhere") / "big"
        big.write_bytes(os.urandom(9 * MIB))
        draft = {"to": "agent:nex", "text": "with a file", "attachments": [str(big)]}
        with disk.full(daemon), pytest.raises(Answered) as refused:
            daemon.call("envelope.send", token=daemon.token("nex"), **draft)
        assert refused.value.stable_code != "internal_error"
        assert [files for _, _, files in os.walk(daemon.home.media) if files] == []
        daemon.check()


def test_a_token_or_a_secret_for_which_there_is_no_space_is_refused_as_such_and_leaves_nothing(
    tiny: TinyDisk, tmp_path_factory: pytest.TempPathFactory
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    with started(tiny.directory) as daemon:
        boss, old = daemon.token("boss"), daemon.token("nex")
        bound = daemon.call(
            "agent.bind", token=boss, name="nex", adapter_type="folder", settings={"path": str(elsewhere)}
        )
        hook = {"provider": "webhook", "settings": {"url": "http://127.0.0.1:9/"}}
        calls: list[tuple[str, dict[str, Any]]] = [
            ("agent.register", {"name": "ada", "profile": True}),
            ("user.register", {"name": "zoe", "profile": True}),
            ("agent.register", {"name": "bob", **hook}),
            ("agent.set", {"name": "nex", **hook}),
            ("agent.token.rotate", {"name": "nex", "profile": True}),
        ]
        before = [sorted(os.listdir(place)) for place in (daemon.home.tokens, daemon.home.secrets)]
        with tiny.full():
            for method, params in calls:
                with pytest.raises(Answered) as refused:
                    daemon.call(method, token=boss, **params)
                assert refused.value.stable_code == "store_full", method
                assert "Free some space" in refused.value.message
        assert before == [sorted(os.listdir(place)) for place in (daemon.home.tokens, daemon.home.secrets)]
        names = [one["name"] for one in daemon.call("agent.list", token=boss)["agents"]]
        assert not {"ada", "bob"} & set(names)
        assert daemon.call("agent.self", token=old)["agent"]["provider"] is None
        daemon.call("envelope.send", token=old, to=bound["address"], text="posted")
        for method, params in calls:
            daemon.call(method, token=boss, **params)
        assert daemon.call("agent.self", token=daemon.token("nex"))["agent"]["provider"] == "webhook"
        daemon.check()


def test_a_folder_on_a_full_disk_keeps_mail_waiting_and_says_why(tiny: TinyDisk, tmp_path: Path) -> None:
    with started(tmp_path) as daemon:
        boss, root = daemon.token("boss"), tiny.directory / "reports"
        bound = daemon.call(
            "agent.bind", token=boss, name="nex", adapter_type="folder", settings={"path": str(root)}
        )
        with tiny.full():
            (root / "in" / "refused.json").touch()
            sent = {"to": bound["address"], "text": "x" * 10_000}
            (number,) = daemon.call("envelope.send", token=daemon.token("nex"), **sent)["ids"]
            wait_until(lambda: daemon.call("lane.list", token=boss)["lanes"][0]["failures"] == 1)
            assert "No space left" in daemon.call("lane.list", token=boss)["lanes"][0]["last_error"]
            assert [name for name in os.listdir(root / "out") if not name.startswith(".")] == []
        wait_until(lambda: (root / "broken" / "refused.json").exists())
        assert (root / "broken" / "refused.json.reason.txt").read_text().strip()
        daemon.call("lane.retry", token=boss, address=bound["address"])
        wait_until(lambda: (root / "out" / f"{number}.txt").exists())
        assert (root / "out" / f"{number}.txt").stat().st_size == 10_000


def test_a_daemon_cannot_start_on_a_full_disk_and_says_so(tiny: TinyDisk) -> None:
    home = set_up(tiny.directory)
    with tiny.full(), pytest.raises(Answered) as refused:
        spawn(home, {})
    assert refused.value.stable_code == "store_full" and "Traceback" not in refused.value.message
    daemon = RunningDaemon(home)
    daemon.start()
    assert daemon.stop() == 0
