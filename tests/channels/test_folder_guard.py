"""The folder adapter and the home: no link in a folder leads into the home, and nothing of it comes in or goes out."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hiboss.testing.running_daemon import Answered, RunningDaemon
from tests.channels.bound_folder import Folder
from tests.support.forked_daemons import pauses
from tests.support.parties import boss, checked_daemon, stored
from tests.support.scripted_channels import daemon_with_channels, notices
from tests.support.waits import wait_until

pytestmark = pytest.mark.slow

PARTS = ("in", "out", "broken", ".taken")


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDaemon]:
    soon = pauses({"channels.supervisor.UNREACHABLE_SECONDS": 0.2})
    with daemon_with_channels(tmp_path_factory.mktemp("d"), **soon) as running:
        yield running


@pytest.fixture
def folder(daemon: RunningDaemon, tmp_path: Path) -> Folder:
    return Folder(daemon, tmp_path / f"guard-{tmp_path.name.replace('_', '-')}")


def names_in(home: str) -> dict[str, list[str]]:
    """Return the names in the home, without those that come and go by themselves."""
    return {
        directory: sorted(name for name in (*directories, *files) if "-journal" not in name)
        for directory, directories, files in os.walk(home)
        if os.path.basename(directory) not in ("logs", "run-tokens")
    }


def lane(folder: Folder) -> dict[str, Any]:
    lanes = boss(folder.daemon).call("lane.list")["lanes"]
    return next((one for one in lanes if one["address"] == folder.address), {})


def replace_by_link(path: Path, target: str | Path) -> Path:
    """Move a directory aside and put a link in its place, as one may do at any time; return where it is."""
    aside = path.with_name(f"{path.name.lstrip('.')}-aside")
    path.rename(aside)
    path.symlink_to(target)
    return aside


def put_back(path: Path, aside: Path) -> None:
    path.unlink()
    aside.rename(path)


# --- files -------------------------------------------------------------------------------


def test_a_hard_link_of_the_database_in_a_folder_loses_no_acknowledged_mail(tmp_path: Path) -> None:
    with checked_daemon(tmp_path) as daemon:
        folder = Folder(daemon, tmp_path / "reports")
        (known,) = folder.owner.send(folder.owner, text="before")["ids"]
        for name in ("as.txt", "as.json", "as.bin", "as.md"):
            os.link(daemon.home.database, folder.root / "in" / name)
        os.link(f"{daemon.home.database}-wal", folder.root / "in" / "wal.bin")
        os.link(f"{daemon.home.database}-shm", folder.root / "in" / "shm.bin")
        wait_until(lambda: len(folder.refused()) == 6)
        assert all("home directory of hiboss" in reason for reason in folder.refused().values())
        # If the daemon has lost its locks, this reader is the last user and deletes the WAL.
        stored(daemon)
        numbers = [folder.owner.send(folder.owner, text=f"{n}")["ids"][0] for n in range(5)]
        stored(daemon)
        daemon.kill()
        daemon.start()
        assert sorted(folder.owner.ids()) == sorted([known, *numbers])


def test_a_hard_link_of_a_token_in_a_folder_becomes_no_message(folder: Folder) -> None:
    home = folder.daemon.home
    for name in ("token.txt", "token.bin"):
        os.link(home.profile("boss"), folder.root / "in" / name)
    folder.put("good.txt", "behind them")
    assert [one["text"] for one in folder.heard(1)] == ["behind them"]
    wait_until(lambda: len(folder.refused()) == 2)
    secret = Path(home.profile("boss")).read_text().strip()
    kept = [file for file in Path(home.media).rglob("*") if file.is_file()]
    assert not any(secret.encode() in file.read_bytes() for file in kept)


def test_a_hard_link_with_the_name_of_an_unfinished_post_is_not_written_to(folder: Folder) -> None:
    """The next names in `out/` and `broken/` can be guessed."""
    token = Path(folder.daemon.home.profile("nex"))
    secret = token.read_text()
    boss(folder.daemon).call("lane.pause", address=folder.address)
    (number,) = folder.owner.send(folder.address, text="posted")["ids"]
    os.link(token, folder.root / "out" / f".{number}.txt.part")
    os.link(token, folder.root / "broken" / "x.json.reason.txt")
    boss(folder.daemon).call("lane.resume", address=folder.address)
    folder.put("x.json", "[]")
    wait_until(lambda: folder.owner.get(number)["status"] == "done")
    wait_until(lambda: (folder.root / "broken" / "x.json").exists())
    assert token.read_text() == secret
    assert folder.out()[f"{number}.txt"] == b"posted"
    assert "it must be an object" in folder.refused()["x.json"]


def test_a_copy_in_media_that_is_a_hard_link_of_a_token_is_not_posted(folder: Folder, tmp_path: Path) -> None:
    home = folder.daemon.home
    (tmp_path / "a.bin").write_text(tmp_path.name)
    boss(folder.daemon).call("lane.pause", address=folder.address)
    (number,) = folder.owner.send(folder.address, text="x", attachments=[str(tmp_path / "a.bin")])["ids"]
    copy = Path(folder.owner.get(number)["attachments"][0]["path"])
    copy.unlink()
    os.link(home.profile("boss"), copy)
    boss(folder.daemon).call("lane.resume", address=folder.address)
    wait_until(lambda: folder.owner.get(number)["status"] == "failed")
    assert folder.out() == {}
    copy.unlink()
    shutil.copy(tmp_path / "a.bin", copy)


# --- directories -------------------------------------------------------------------------


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("target", ["", "tokens", "media", ".."])
def test_a_folder_with_a_link_into_the_home_cannot_be_bound(
    daemon: RunningDaemon, tmp_path: Path, part: str, target: str
) -> None:
    root = tmp_path / "linked"
    root.mkdir()
    (root / part).symlink_to(os.path.join(daemon.home.path, target))
    before = names_in(daemon.home.path)
    with pytest.raises(Answered) as answer:
        boss(daemon).call("agent.bind", name="nex", adapter_type="folder", settings={"path": str(root)})
    assert answer.value.stable_code == "invalid_params"
    assert f"{root}/{part}" in str(answer.value) and "home directory of hiboss" in str(answer.value)
    assert names_in(daemon.home.path) == before


def test_a_folder_reached_by_a_way_around_is_still_in_the_home(daemon: RunningDaemon, tmp_path: Path) -> None:
    home = daemon.home.path
    (tmp_path / "door").symlink_to(home)
    ways = [
        tmp_path / "door",
        tmp_path / "door" / "new-folder",
        f"{tmp_path}/{os.path.relpath(home, tmp_path)}/media",
        f"{home}/../home/tokens",
        f"/proc/self/root{home}/tokens",
    ]
    before = names_in(home)
    for way in ways:
        code = boss(daemon).refusal(
            "agent.bind", name="nex", adapter_type="folder", settings={"path": str(way)}
        )
        assert code == "invalid_params", way
    assert names_in(home) == before


def test_in_that_becomes_a_link_to_the_home_moves_nothing_and_is_told_to_the_boss(folder: Folder) -> None:
    home = folder.daemon.home.path
    before = names_in(home)
    aside = replace_by_link(folder.root / "in", home)
    wait_until(lambda: folder.shown()["state"] == "failed")
    wait_until(lambda: [one for one in notices(boss(folder.daemon)) if folder.root.name in one["text"]])
    error = folder.shown()["last_error"]
    assert f"{folder.root}/in" in error and "home directory of hiboss" in error
    assert names_in(home) == before
    assert os.listdir(folder.root / ".taken") == []
    put_back(folder.root / "in", aside)
    wait_until(lambda: folder.shown()["state"] == "running")
    folder.put("after.txt", "mended")
    assert [one["text"] for one in folder.heard(1)] == ["mended"]


def test_out_that_becomes_a_link_into_the_home_is_not_written_to_and_mail_waits(folder: Folder) -> None:
    home = folder.daemon.home
    before = names_in(home.path)
    aside = replace_by_link(folder.root / "out", home.tokens)
    (number,) = folder.owner.send(folder.address, text="held up")["ids"]
    wait_until(lambda: lane(folder).get("failures") == 1)
    assert f"{folder.root}/out" in lane(folder)["last_error"]
    assert "home directory of hiboss" in lane(folder)["last_error"]
    assert names_in(home.path) == before
    put_back(folder.root / "out", aside)
    boss(folder.daemon).call("lane.retry", address=folder.address)
    wait_until(lambda: folder.owner.get(number)["status"] == "done")
    assert folder.out() == {f"{number}.txt": b"held up"}


def test_broken_that_becomes_a_link_into_the_home_is_not_written_to(folder: Folder) -> None:
    home = folder.daemon.home
    before = names_in(home.path)
    aside = replace_by_link(folder.root / "broken", home.tokens)
    folder.put("bad.json", "[]")
    wait_until(lambda: folder.shown()["state"] == "failed")
    assert names_in(home.path) == before
    put_back(folder.root / "broken", aside)
    wait_until(lambda: "bad.json" in folder.refused())


@pytest.mark.parametrize("level", ["root", "parent"])
def test_a_folder_that_becomes_a_link_into_the_home_touches_nothing_there(
    daemon: RunningDaemon, tmp_path: Path, level: str
) -> None:
    (tmp_path / "above").mkdir()
    folder = Folder(daemon, tmp_path / "above" / {"root": "moved", "parent": "tokens"}[level])
    home = daemon.home.path
    replaced = folder.root if level == "root" else folder.root.parent
    before = names_in(home)
    aside = replace_by_link(replaced, home)
    (number,) = folder.owner.send(folder.address, text="held up")["ids"]
    # Twice: it was also started again, and that made no directories there.
    failed, log = f"folder:{folder.root.name} cannot run", Path(daemon.home.log_file)
    wait_until(lambda: log.read_text().count(failed) >= 2)
    assert names_in(home) == before
    put_back(replaced, aside)
    wait_until(lambda: folder.owner.get(number)["status"] == "done")


def test_a_link_that_leads_elsewhere_is_followed(folder: Folder, tmp_path: Path) -> None:
    """Another disk for `out/`, or a folder that has moved and left a link."""
    (tmp_path / "disk").mkdir()
    (folder.root / "out").rmdir()
    (folder.root / "out").symlink_to(tmp_path / "disk")
    number = folder.send("there")
    assert (tmp_path / "disk" / f"{number}.txt").read_text() == "there"
    replace_by_link(folder.root, folder.root.with_name(f"{folder.root.name}-aside"))
    folder.put("a.txt", "through the link", at=1)
    folder.put("b.bin", b"a file through the link", at=2)
    text, file = folder.heard(2)
    assert text["text"] == "through the link"
    assert Path(file["attachments"][0]["path"]).read_bytes() == b"a file through the link"


def test_one_directory_cannot_be_both_in_and_out(daemon: RunningDaemon, tmp_path: Path) -> None:
    """Every post would come back as a new message."""
    root = tmp_path / "echo"
    (root / "out").mkdir(parents=True)
    (root / "in").symlink_to("out")
    code = boss(daemon).refusal("agent.bind", name="nex", adapter_type="folder", settings={"path": str(root)})
    assert code == "invalid_params"


def test_two_names_of_one_directory_are_not_served_twice(folder: Folder, tmp_path: Path) -> None:
    other = Folder(folder.daemon, tmp_path / "other-name")
    shutil.rmtree(other.root)
    other.root.symlink_to(folder.root)
    wait_until(lambda: other.shown()["state"] == "failed" and "same directory" in other.shown()["last_error"])
    folder.put("a.txt", "once")
    assert [one["text"] for one in folder.heard(1)] == ["once"]
    assert other.owner.list() == []
    other.root.unlink()
    other.root.mkdir()
    wait_until(lambda: other.shown()["state"] == "running")
