"""The folder adapter without a daemon: each poll is made by the test."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hiboss.channels.folder import FolderAdapter
from hiboss.core.contracts.adapter import Account, File
from hiboss.core.contracts.failures import LaneError, Refused
from hiboss.testing import adapter_rig


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "here").mkdir()
    return tmp_path / "here"


@pytest.fixture
def adapter(root: Path) -> FolderAdapter:
    home = str(root.parent / "home")
    made = FolderAdapter(
        Account(binding=1, name="here", settings=FolderAdapter.Settings(path=root), home=home)
    )
    asyncio.run(made.start())
    return made


def taken(root: Path) -> list[str]:
    return [file.read_text() for file in sorted((root / ".taken").glob("*/*"))]


def grow(file: Path) -> None:
    with file.open("a") as text:
        text.write(" and more")


def touch(file: Path) -> None:
    os.utime(file, ns=(1, 1))


def replace(file: Path) -> None:
    new = file.with_name(".new")
    new.write_text(file.read_text())
    os.utime(new, ns=(file.stat().st_mtime_ns,) * 2)
    new.replace(file)


@pytest.mark.parametrize("change", [grow, touch, replace])
def test_a_file_is_taken_only_when_it_is_unchanged_since_the_last_poll(
    adapter: FolderAdapter, root: Path, change: Callable[[Path], None]
) -> None:
    file = root / "in" / "a.txt"
    file.write_text("begun")
    adapter._inbox.take(())
    change(file)
    adapter._inbox.take(())
    assert file.exists()
    content = file.read_text()
    adapter._inbox.take(())
    assert not file.exists()
    assert taken(root) == [content]


def test_a_file_that_disappears_between_two_polls_does_no_harm(adapter: FolderAdapter, root: Path) -> None:
    file = root / "in" / "a.txt"
    file.write_text("x")
    adapter._inbox.take(())
    file.unlink()
    adapter._inbox.take(())
    file.write_text("back again")
    adapter._inbox.take(())
    assert taken(root) == []  # this file was seen by one poll only
    adapter._inbox.take(())
    assert taken(root) == ["back again"]


@pytest.mark.parametrize(
    "name", ["../up.txt", "/etc/passwd", "a/b/c", "..", ".", "", "x" * 300, "ü" * 300 + ".pdf"]
)
def test_no_name_of_an_attachment_leads_out_of_out(
    adapter: FolderAdapter, root: Path, tmp_path: Path, name: str
) -> None:
    source = tmp_path / "source"
    source.write_text("content")
    before = set(tmp_path.rglob("*"))
    asyncio.run(
        adapter.post(adapter_rig.letter("here", files=(File(name, str(source), "text/plain"),)), 0, "hello")
    )
    new = set(tmp_path.rglob("*")) - before
    assert {file.parent for file in new} == {root / "out"}
    assert sorted(file.read_text() for file in new) == ["content", "hello"]


def test_the_same_envelope_again_writes_the_same_files(
    adapter: FolderAdapter, root: Path, tmp_path: Path
) -> None:
    source = tmp_path / "source"
    source.write_text("content")
    one = adapter_rig.letter("here", files=tuple(File("a.txt", str(source), "text/plain") for _ in range(3)))
    listings = []
    for _ in range(2):
        assert asyncio.run(adapter.post(one, 0, "hello")) == "e1.txt"
        listings.append({file.name: file.read_text() for file in (root / "out").iterdir()})
    assert (listings[0], sorted(listings[0].values())) == (listings[1], ["content"] * 3 + ["hello"])


def test_what_a_crash_left_half_written_is_removed_at_the_next_start(
    adapter: FolderAdapter, root: Path
) -> None:
    for name in (".e1.txt.part", ".e1-0.12ab34cd.part", ".mine.part"):
        (root / "out" / name).write_text("half")
    asyncio.run(adapter.start())
    asyncio.run(adapter.post(adapter_rig.letter("here"), 0, "hello"))
    found = {file.name: file.read_text() for file in (root / "out").iterdir()}
    assert found == {"e1.txt": "hello", ".mine.part": "half"}


def test_a_write_that_a_stopped_daemon_left_behind_spoils_no_post_of_the_next(
    adapter: FolderAdapter, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It begins just before the next one gives its file the final name, and ends with its process."""

    class Ended(Exception):
        pass

    old = FolderAdapter(
        Account(
            binding=1, name="here", settings=FolderAdapter.Settings(path=root), home=str(root.parent / "home")
        )
    )
    asyncio.run(adapter.stop())  # of two processes, neither knows that the other serves the folder
    copy, copies = shutil.copyfileobj, []

    def copied(source: Any, file: Any, length: int) -> None:
        copies.append(file)
        if len(copies) == 2:
            raise Ended
        with pytest.raises(Ended):
            old._write(adapter_rig.letter("here"), "hello")
        copy(source, file, length)

    monkeypatch.setattr(shutil, "copyfileobj", copied)
    adapter._write(adapter_rig.letter("here"), "hello")
    assert (root / "out" / "e1.txt").read_text() == "hello"


@pytest.mark.parametrize(
    "names", [("a", "2-a", "a"), ("a", "a", "1-a"), ("x" * 300, "2-" + "x" * 300, "x" * 300)]
)
def test_no_attachment_is_written_over_another_of_its_envelope(
    adapter: FolderAdapter, root: Path, tmp_path: Path, names: tuple[str, ...]
) -> None:
    files = []
    for number, name in enumerate(names):
        source = tmp_path / f"source {number}"
        source.write_text(f"content {number}")
        files.append(File(name, str(source), "text/plain"))
    for _ in range(2):
        asyncio.run(adapter.post(adapter_rig.letter("here", files=tuple(files)), 0, "hello"))
    assert sorted(file.read_text() for file in (root / "out").iterdir()) == [
        "content 0",
        "content 1",
        "content 2",
        "hello",
    ]


def test_in_on_another_file_system_is_refused_with_the_reason_and_nothing_is_left_in_taken(
    adapter: FolderAdapter, root: Path, other_disk: Path
) -> None:
    """A file can be moved out of it only by copying it, and then it could become two messages."""
    (root / "in").rmdir()
    (root / "in").symlink_to(other_disk)
    (other_disk / "a.txt").write_text("x")
    adapter._inbox.take(())
    with pytest.raises(OSError, match="cross-device"):
        adapter._inbox.take(())
    assert os.listdir(root / ".taken") == [] and (other_disk / "a.txt").exists()
    with pytest.raises(LaneError, match=r"/in: it is on another file system than \.taken"):
        asyncio.run(adapter.start())
    with pytest.raises(Refused, match="another file system"):
        asyncio.run(FolderAdapter.check(FolderAdapter.Settings(path=root), str(root.parent / "home")))


def test_out_may_be_on_another_file_system(adapter: FolderAdapter, root: Path, other_disk: Path) -> None:
    (root / "out").rmdir()
    (root / "out").symlink_to(other_disk)
    asyncio.run(adapter.start())
    asyncio.run(adapter.post(adapter_rig.letter("here"), 0, "hello"))
    assert (other_disk / "e1.txt").read_text() == "hello"


@pytest.fixture
def other_disk(tmp_path: Path) -> Iterator[Path]:
    """Return a directory on another file system: tests may have their homes on a disk or in memory."""
    own = tmp_path.stat().st_dev
    places = [
        place for place in ("/dev/shm", "/tmp", "/var/tmp", Path(__file__).parent) if os.path.isdir(place)
    ]
    others = [place for place in places if os.stat(place).st_dev != own and os.access(place, os.W_OK)]
    assert others, f"none of these is on another file system than {tmp_path}: {places}"
    with tempfile.TemporaryDirectory(dir=others[0], prefix="hiboss-test-") as directory:
        yield Path(directory)
