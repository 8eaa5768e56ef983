"""The guard for files that come in and go out: what it opens, and that it never opens a file of the home."""

from __future__ import annotations

import errno
import fcntl
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hiboss.core import file_guard
from hiboss.core.file_guard import FileGuard, HomeFile, NotAFile, PrivateFile, create_file
from hiboss.core.paths import Home
from tests.support.daemons import can_mount
from tests.support.raising import raised


@pytest.fixture(params=[True, False], ids=["with O_PATH", "without O_PATH"])
def guard(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FileGuard:
    """The guard of a home, also as on a system that has no O_PATH."""
    if not request.param:
        read = os.O_RDONLY | os.O_NONBLOCK
        monkeypatch.setattr(file_guard, "_HAS_PATH_ONLY", False)
        monkeypatch.setattr(file_guard, "_PATH_ONLY", read)
        monkeypatch.setattr(file_guard, "_STEP", read | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    home = Home(str(tmp_path / "home"))
    for directory in ("media/ab", "tokens", "workspaces/nex"):
        (tmp_path / "home" / directory).mkdir(parents=True)
    for file in ("hiboss.db", "tokens/boss", "media/ab/abcd", "workspaces/nex/work"):
        (tmp_path / "home" / file).write_text(f"content of {file}")
    return FileGuard(home)


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    (tmp_path / "outside").mkdir()
    return tmp_path / "outside"


@pytest.fixture
def database(tmp_path: Path, guard: FileGuard) -> Iterator[str]:
    """The database of the home, locked by this process as SQLite locks it."""
    path = str(tmp_path / "home" / "hiboss.db")
    file = os.open(path, os.O_RDWR)
    fcntl.lockf(file, fcntl.LOCK_EX, 1)
    yield path
    os.close(file)


_opening: list[Callable[[], None]] = []  # what to do before the next calls of os.open, the next one last


def _hook(event: str, arguments: tuple[object, ...]) -> None:
    if event == "open" and _opening:
        _opening.pop()()


sys.addaudithook(_hook)  # it stays for the life of the process, and does nothing while the list is empty


@contextmanager
def before_open(moment: int, act: Callable[[], None]) -> Iterator[None]:
    """Call a function once, just before the next open but so many."""
    _opening[:] = [act, *[lambda: None] * moment]
    try:
        yield
    finally:
        _opening.clear()


def is_locked(path: str) -> bool:
    """Whether another process finds it locked."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1
    try:
        fcntl.lockf(os.open(path, os.O_RDWR), fcntl.LOCK_EX | fcntl.LOCK_NB, 1)
    except OSError:
        os._exit(1)
    finally:
        os._exit(0)


def content(guard: FileGuard, path: Path) -> str:
    with guard.open_file(str(path)) as file:
        return file.read().decode()


def test_a_file_outside_the_home_and_one_in_media_are_opened(guard: FileGuard, outside: Path) -> None:
    (outside / "a").write_text("a")
    os.link(outside / "a", outside / "b")
    assert (content(guard, outside / "a"), content(guard, outside / "b")) == ("a", "a")
    assert content(guard, outside.parent / "home" / "media" / "ab" / "abcd") == "content of media/ab/abcd"
    os.link(outside.parent / "home" / "workspaces" / "nex" / "work", outside / "work")
    assert content(guard, outside / "work") == "content of workspaces/nex/work"


@pytest.mark.parametrize("file", ["hiboss.db", "tokens/boss", "tokens/nobody", "workspaces/nex/work"])
def test_a_file_of_the_home_is_refused(guard: FileGuard, tmp_path: Path, file: str) -> None:
    with pytest.raises(HomeFile):
        guard.open_file(str(tmp_path / "home" / file))


def test_a_hard_link_to_a_file_of_the_home_is_refused_and_its_locks_stay(
    guard: FileGuard, outside: Path, database: str
) -> None:
    os.link(database, outside / "link")
    for _ in range(3):
        with pytest.raises(HomeFile):
            guard.open_file(str(outside / "link"))
    assert is_locked(database)


@pytest.mark.parametrize("moment", range(12))
def test_a_file_exchanged_for_the_database_while_it_is_opened_costs_no_lock(
    guard: FileGuard, outside: Path, database: str, moment: int
) -> None:
    """The file is exchanged just before one of the calls that open something on the way to it."""
    (outside / "file").write_text("plain")
    os.link(database, outside / "new")
    with before_open(moment, lambda: os.replace(outside / "new", outside / "file")):
        try:
            assert content(guard, outside / "file") == "plain"
        except HomeFile:
            assert not (outside / "new").exists()
    assert is_locked(database)


@pytest.mark.skipif(not can_mount(), reason="needs the right to mount")
def test_another_way_to_the_database_is_recognized_also_if_it_is_no_hard_link(
    guard: FileGuard, outside: Path, database: str
) -> None:
    """So is a hard link that is removed again between opening and checking."""
    (outside / "file").touch()
    (outside / "tokens").mkdir()
    ways = {outside / "file": database, outside / "tokens": str(Path(database).parent / "tokens")}
    for way, target in ways.items():
        subprocess.run(["mount", "--bind", target, str(way)], check=True)
    try:
        assert os.stat(outside / "file").st_nlink == 1
        for file in ("file", "tokens/boss"):
            with pytest.raises(HomeFile):
                guard.open_file(str(outside / file))
        assert is_locked(database)
    finally:
        for way in ways:
            subprocess.run(["umount", str(way)], check=True)


@pytest.mark.parametrize("moment", range(14))
def test_a_directory_exchanged_for_a_link_into_the_home_opens_nothing_there(
    guard: FileGuard, outside: Path, moment: int
) -> None:
    (outside / "real").mkdir()
    (outside / "real" / "boss").write_text("plain")

    def exchange() -> None:
        (outside / "real").rename(outside / "aside")
        (outside / "real").symlink_to(outside.parent / "home" / "tokens")

    with before_open(moment, exchange):
        try:
            assert content(guard, outside / "real" / "boss") == "plain"
        except NotADirectoryError:
            assert (outside / "aside").exists()
    if (outside / "aside").exists():
        (outside / "real").unlink()
        (outside / "aside").rename(outside / "real")
    with before_open(moment, exchange):
        try:
            with guard.open_directory(str(outside / "real")) as directory:
                assert os.stat("boss", dir_fd=directory).st_size == len("plain")
        except (NotADirectoryError, HomeFile):
            assert (outside / "aside").exists()


def test_what_is_no_regular_file_is_refused_and_hangs_nobody(guard: FileGuard, outside: Path) -> None:
    os.mkfifo(outside / "pipe")
    (outside / "link").symlink_to(outside / "pipe")
    (outside / "directory").mkdir()
    for name in ("pipe", "link", "directory"):
        with pytest.raises((NotAFile, OSError)):
            guard.open_file(str(outside / name))
    error = raised(FileNotFoundError, guard.open_file, str(outside / "missing"))
    assert error.filename == str(outside / "missing")


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="it needs /proc")
def test_a_file_of_the_kernel_is_refused(guard: FileGuard) -> None:
    """/proc/self/environ is the environment of the daemon, with keys of its owner."""
    for path in ("/proc/self/environ", "/proc/version", f"/proc/{os.getppid()}/status"):
        with pytest.raises(NotAFile):
            guard.open_file(os.path.realpath(path))


def test_a_file_of_a_private_place_is_refused_by_whatever_name(guard: FileGuard, outside: Path) -> None:
    (outside / "keys").mkdir()
    (outside / "keys" / "id").write_text("secret")
    (outside / "netrc").write_text("secret")
    os.link(outside / "netrc", outside / "other")
    places = [str(outside / "keys"), str(outside / "netrc"), str(outside / "nowhere")]
    for file, place in (("keys/id", "keys"), ("keys/none", "keys"), ("netrc", "netrc"), ("other", "netrc")):
        with pytest.raises((PrivateFile, FileNotFoundError)) as refused:
            guard.open_file(str(outside / file), private=places)
        if file != "keys/none":
            assert isinstance(refused.value, PrivateFile) and refused.value.place == str(outside / place)


def test_no_directory_in_or_around_the_home_is_opened(guard: FileGuard, outside: Path) -> None:
    home = outside.parent / "home"
    (outside / "link").symlink_to(home / "tokens")
    for path in (home, home / "media", home / "tokens", outside / "link", home.parent, Path("/")):
        with pytest.raises(HomeFile), guard.open_directory(str(path)):
            pass
    with guard.open_directory(str(outside)) as directory:
        assert os.listdir(directory) == ["link"]


def test_media_that_is_a_link_into_the_home_opens_no_secrets(guard: FileGuard, tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / "media").rename(tmp_path / "elsewhere")
    (home / "media").symlink_to(home / "tokens")
    with pytest.raises(HomeFile):
        guard.open_file(str(home / "tokens" / "boss"))


def test_a_new_file_takes_the_place_of_a_link_and_writes_to_nothing_else(outside: Path) -> None:
    (outside / "victim").write_text("untouched")
    (outside / "symlink").symlink_to(outside / "victim")
    os.link(outside / "victim", outside / "hardlink")
    directory = os.open(outside, os.O_RDONLY)
    for name in ("symlink", "hardlink", "new"):
        with create_file(name, directory) as file:
            file.write(b"written")
        assert (outside / name).read_text() == "written" and not (outside / name).is_symlink()
    os.close(directory)
    assert (outside / "victim").read_text() == "untouched"


# --- files that agents and people write, in workspaces and in the home ---------------


def test_a_file_of_a_workspace_in_the_home_and_one_that_people_write_there_are_opened(
    guard: FileGuard, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    (home / "BOSS.md").write_text("rules")
    with guard.open_in_home("BOSS.md") as file:
        assert file.read() == b"rules"
    with guard.open_below_workspace(str(home / "workspaces"), "nex", "work") as file:
        assert file.read() == b"content of workspaces/nex/work"


@pytest.mark.parametrize("moment", range(12))
def test_a_memory_file_exchanged_for_the_database_while_it_is_opened_costs_no_lock(
    guard: FileGuard, tmp_path: Path, database: str, moment: int
) -> None:
    workspace = tmp_path / "home" / "workspaces" / "nex"
    ways = (
        (workspace / "MEMORY.md", lambda: guard.open_below_workspace(str(workspace), "MEMORY.md")),
        (tmp_path / "home" / "BOSS.md", lambda: guard.open_in_home("BOSS.md")),
    )
    for path, opens in ways:
        path.write_text("mine")

        def exchange(path: Path = path) -> None:
            path.unlink()
            os.link(database, path)

        with before_open(moment, exchange):
            try:
                with opens() as file:
                    assert file.read() == b"mine"
            except HomeFile:
                pass
        assert is_locked(database)


def test_below_a_workspace_no_link_is_followed(guard: FileGuard, tmp_path: Path, outside: Path) -> None:
    workspace = tmp_path / "home" / "workspaces" / "nex"
    (outside / "note").write_text("secret")
    (workspace / "memory").symlink_to(outside)
    (workspace / "MEMORY.md").symlink_to(outside / "note")
    for names in (("memory", "note"), ("MEMORY.md",)):
        assert raised(OSError, guard.open_below_workspace, str(workspace), *names).errno == errno.ELOOP
