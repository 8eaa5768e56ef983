"""The flag of the breaker: left, read and taken; also on a full disk, and whatever lies in its place."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from hiboss.core.errors import HomeUnusable
from hiboss.core.paths import Home
from hiboss.core.stop_flag import StopFlag
from tests.support.raising import raised

# No file can become larger than nothing: what is written is refused as on a full disk.
ON_FULL_DISK = """
import resource, sys
from hiboss.core.errors import StoreFull
from hiboss.core.paths import Home
from hiboss.core.stop_flag import StopFlag
resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
try:
    StopFlag(Home(sys.argv[1])).leave("full")
except StoreFull as error:
    print(error)
"""


@pytest.fixture
def flag(tmp_path: Path) -> StopFlag:
    return StopFlag(Home(str(tmp_path)))


def leave_on_full_disk(directory: Path) -> str:
    """Leave the flag without any space; return what was refused."""
    command = [sys.executable, "-c", ON_FULL_DISK, str(directory)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def names(directory: Path) -> list[str]:
    return sorted(os.listdir(directory))


def test_it_says_why_and_each_one_is_another_one(flag: StopFlag, tmp_path: Path) -> None:
    assert flag.read() is None and not flag.is_there()
    flag.leave("enough")
    first = flag.read()
    assert first is not None and first.reason == "enough" and flag.is_there()
    assert flag.read() == first
    flag.leave(None)
    second = flag.read()
    assert second is not None and second.reason is None and second.pull != first.pull
    assert os.stat(tmp_path / "stop-all").st_mode & 0o777 == 0o600
    flag.take()
    flag.take()
    assert flag.read() is None and names(tmp_path) == ["stop-all.spare"]


@pytest.mark.parametrize("words", ["", "no json", "[]", '{"reason": 5}', "\0"])
def test_a_file_that_cannot_be_understood_counts_too(flag: StopFlag, tmp_path: Path, words: str) -> None:
    (tmp_path / "stop-all").write_text(words)
    found = flag.read()
    assert found is not None and found.reason is None and flag.is_there()


def test_only_a_file_counts(flag: StopFlag, tmp_path: Path) -> None:
    (tmp_path / "stop-all").mkdir()
    assert flag.read() is None and not flag.is_there()
    assert "stop-all" in str(raised(HomeUnusable, flag.leave, "x"))
    (tmp_path / "stop-all").rmdir()
    (tmp_path / "stop-all").symlink_to("/dev/zero")
    assert flag.read() is None and not flag.is_there()
    flag.leave("x")
    assert flag.is_there() and not (tmp_path / "stop-all").is_symlink()


def test_on_a_full_disk_the_spare_file_becomes_the_flag(flag: StopFlag, tmp_path: Path) -> None:
    flag.keep_spare()
    assert leave_on_full_disk(tmp_path) == ""
    first = flag.read()
    assert first is not None and names(tmp_path) == ["stop-all"]
    assert leave_on_full_disk(tmp_path) == ""  # the one from before stays
    assert flag.read() == first
    flag.take()
    assert leave_on_full_disk(tmp_path) == ""
    second = flag.read()
    assert second is not None and second.pull != first.pull


def test_on_a_full_disk_without_a_spare_file_it_is_refused(flag: StopFlag, tmp_path: Path) -> None:
    assert "no space is left" in leave_on_full_disk(tmp_path) and names(tmp_path) == []
