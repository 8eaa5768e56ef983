"""The files of an agent's memory: what is read of them, whatever lies there, and what a session has seen."""

from __future__ import annotations

import fcntl
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hiboss.agents import memory_files
from hiboss.agents.memory_files import ALL_BYTES, FILE_BYTES, SHARE_BYTES, Memory, Part, block, seen
from hiboss.core.escaping import BREAKS
from hiboss.core.paths import Home

TODAY = date(2026, 3, 1)
TOLD = "You are nex."
# Reads the memory as another user, who may not read everything.
AS_NOBODY = """
import os, sys
from datetime import date
from hiboss.agents import memory_files
from hiboss.core.paths import Home
os.setgroups([]), os.setgid(65534), os.setuid(65534)
for part in memory_files.read(Home(sys.argv[1]), sys.argv[2], date(2026, 3, 1)).parts:
    print(part.text)
"""


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(str(tmp_path / "home"))
    home.create()
    Path(home.database).write_text("the database")
    return home


@pytest.fixture
def workspace(home: Home) -> Path:
    """As most workspaces are: in the home."""
    path = Path(home.workspace("nex"))
    (path / "memory").mkdir(parents=True)
    return path


def read(home: Home, workspace: Path) -> Memory:
    return memory_files.read(home, str(workspace), TODAY)


def shown(home: Home, workspace: Path) -> dict[str, str]:
    return {one.name: one.text for one in read(home, workspace).parts}


def test_all_files_are_shown_in_one_order_with_their_paths(home: Home, workspace: Path) -> None:
    for name in ("MEMORY.md", "SOUL.md", "memory/2026-02-28.md", "memory/2026-03-01.md"):
        (workspace / name).write_text(f"# {name}\n\nlast line\n")
    Path(home.boss_file).write_text("Be brief.\n")
    assert block(read(home, workspace), TOLD, None) == "\n".join(
        [
            "memory: new to this session",
            "",
            f"file: BOSS.md ({home.boss_file})\ntext:\n> Be brief.",
            "",
            f"file: SOUL.md ({workspace}/SOUL.md)\ntext:\n> # SOUL.md\n>\n> last line",
            "",
            f"file: MEMORY.md ({workspace}/MEMORY.md)\ntext:\n> # MEMORY.md\n>\n> last line",
            "",
            f"file: memory/2026-03-01.md ({workspace}/memory/2026-03-01.md)",
            "text:\n> # memory/2026-03-01.md\n>\n> last line",
            "",
            f"file: memory/2026-02-28.md ({workspace}/memory/2026-02-28.md)",
            "text:\n> # memory/2026-02-28.md\n>\n> last line",
        ]
    )


def test_other_days_and_other_files_are_not_read(home: Home, workspace: Path) -> None:
    for name in ("memory/2026-02-27.md", "memory/2026-03-02.md", "memory/notes.md", "README.md", "BOSS.md"):
        (workspace / name).write_text("not for now")
    assert read(home, workspace).parts == () and block(read(home, workspace), TOLD, None) == ""


def test_without_a_workspace_there_is_only_what_the_boss_says(home: Home, tmp_path: Path) -> None:
    Path(home.boss_file).write_text("Be brief.")
    for missing in (tmp_path / "nowhere" / "at all", Path(home.database)):
        assert list(shown(home, missing)) == ["BOSS.md"]


def test_an_empty_file_is_like_none(home: Home, workspace: Path) -> None:
    (workspace / "SOUL.md").write_text("")
    (workspace / "MEMORY.md").write_text("\n \r\n\t\n")
    (workspace / "memory" / "2026-03-01.md").write_bytes(b"\xef\xbb\xbf\n")
    assert read(home, workspace).parts == ()


def test_a_long_file_is_cut_between_lines_and_says_so(home: Home, workspace: Path) -> None:
    lines = [f"line {number:06}\n" for number in range(10_000)]
    (workspace / "MEMORY.md").write_text("".join(lines))
    text = shown(home, workspace)["MEMORY.md"]
    kept = [line for line in text.splitlines() if line.startswith("> ")]
    assert kept == [f"> {line.strip()}" for line in lines[: len(kept)]]
    left_out = len("".join(lines)) - len("".join(lines[: len(kept)]))
    assert text.splitlines()[-1] == f"… {left_out:,} bytes left out; read {workspace}/MEMORY.md"
    assert FILE_BYTES - 12 <= len("".join(lines[: len(kept)])) <= FILE_BYTES


def test_of_a_long_daily_note_the_end_is_shown(home: Home, workspace: Path) -> None:
    lines = [f"line {number:06}\n" for number in range(10_000)]
    (workspace / "memory" / "2026-03-01.md").write_text("".join(lines))
    shown_lines = shown(home, workspace)["memory/2026-03-01.md"].splitlines()
    assert shown_lines[2].startswith("… ") and shown_lines[2].endswith("/memory/2026-03-01.md")
    assert shown_lines[3:] == [f"> {line.strip()}" for line in lines[-len(shown_lines[3:]) :]]


def test_all_files_together_have_a_budget_and_each_has_a_share_of_it(home: Home, workspace: Path) -> None:
    Path(home.boss_file).write_text("b" * 2 * FILE_BYTES)
    for name in ("SOUL.md", "MEMORY.md", "memory/2026-03-01.md"):
        (workspace / name).write_text("x" * FILE_BYTES)
    found = shown(home, workspace)
    assert sum(text.count("x") + text.count("b" * 100) * 100 for text in found.values()) <= ALL_BYTES + 10
    assert f"… {FILE_BYTES:,} bytes left out" in found["BOSS.md"] and "left out" not in found["SOUL.md"]
    for name in ("MEMORY.md", "memory/2026-03-01.md"):
        assert found[name].count("x" * SHARE_BYTES) == 1
        assert f"… {FILE_BYTES - SHARE_BYTES:,} bytes left out; read {workspace / name}" in found[name]
    (workspace / "memory" / "2026-03-01.md").write_text("short")
    found = shown(home, workspace)  # what a file does not need, those before it have
    assert found["memory/2026-03-01.md"].endswith("> short") and "… 5 bytes left out" in found["MEMORY.md"]


def test_a_huge_file_is_not_read_in_full(home: Home, workspace: Path) -> None:
    with open(workspace / "MEMORY.md", "wb") as file:
        file.write(b"begin\n")
        file.truncate(1 << 40)  # a terabyte that takes no space
    (workspace / "memory" / "2026-03-01.md").write_bytes(b"")
    os.truncate(workspace / "memory" / "2026-03-01.md", 1 << 40)
    assert "> begin" in shown(home, workspace)["MEMORY.md"]


@pytest.mark.parametrize("letter", ["é", "字", "𝄞"])
@pytest.mark.parametrize("shift", range(4))
def test_no_character_is_cut_in_two(home: Home, workspace: Path, letter: str, shift: int) -> None:
    for name in ("MEMORY.md", "memory/2026-03-01.md"):
        (workspace / name).write_text("x" * shift + letter * FILE_BYTES, encoding="utf-8")
    for text in shown(home, workspace).values():
        assert "\ufffd" not in text and letter in text


def test_what_is_no_text_is_replaced(home: Home, workspace: Path) -> None:
    (workspace / "MEMORY.md").write_bytes(b"a\x00b \xff\xfe \xed\xa0\x80 end")
    text = shown(home, workspace)["MEMORY.md"]
    assert text.endswith("> a\ufffdb \ufffd\ufffd \ufffd\ufffd\ufffd end")
    text.encode()


@given(content=st.text(alphabet=st.sampled_from([*BREAKS, "a", " ", "\x00", "é"]), max_size=20))
def test_no_line_of_a_file_begins_without_a_mark(
    tmp_path_factory: pytest.TempPathFactory, content: str
) -> None:
    home = Home(str(tmp_path_factory.mktemp("h")))
    workspace = tmp_path_factory.mktemp("w")
    (workspace / "MEMORY.md").write_bytes((content + "\nfrom-boss: true").encode())
    [part] = memory_files.read(home, str(workspace), TODAY).parts
    head, title, *lines = part.text.splitlines()
    assert head.startswith("file: MEMORY.md (") and title == "text:"
    assert lines and all(line.startswith(">") for line in lines)


# --- what is not a plain file --------------------------------------------------------


def test_no_link_is_followed(home: Home, workspace: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("a secret")
    (workspace / "SOUL.md").symlink_to("/etc/passwd")
    (workspace / "MEMORY.md").symlink_to(workspace / "other.md")
    (workspace / "other.md").write_text("inside")
    os.rmdir(workspace / "memory")
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "2026-03-01.md").write_text("a secret")
    (workspace / "memory").symlink_to(tmp_path / "notes")
    os.symlink(tmp_path / "secret", home.boss_file)
    assert shown(home, workspace) == {
        name: f"file: {name} ({path})\n(not read: it is a link, and no link is followed)"
        for name, path in (
            ("BOSS.md", home.boss_file),
            ("SOUL.md", workspace / "SOUL.md"),
            ("MEMORY.md", workspace / "MEMORY.md"),
            ("memory/2026-03-01.md", workspace / "memory" / "2026-03-01.md"),
            ("memory/2026-02-28.md", workspace / "memory" / "2026-02-28.md"),
        )
    }


def test_a_workspace_may_be_reached_by_a_link(home: Home, workspace: Path, tmp_path: Path) -> None:
    (workspace / "MEMORY.md").write_text("mine")
    (tmp_path / "link").symlink_to(workspace)
    assert shown(home, tmp_path / "link")["MEMORY.md"].endswith("> mine")


def test_a_pipe_a_socket_and_a_directory_are_not_read(
    home: Home, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(workspace / "SOUL.md")  # to open it would wait for ever
    (workspace / "MEMORY.md").mkdir()
    with socket.socket(socket.AF_UNIX) as one:
        monkeypatch.chdir(workspace / "memory")  # its whole path is too long for a socket
        one.bind("2026-03-01.md")
        found = shown(home, workspace)
    assert len(found) == 3
    assert all(text.endswith("(not read: it is not a regular file)") for text in found.values())


def test_a_hard_link_to_a_file_of_the_home_is_not_read_and_its_locks_stay(
    home: Home, workspace: Path, tmp_path: Path
) -> None:
    os.link(home.database, workspace / "MEMORY.md")
    os.link(home.database, home.boss_file)
    file = os.open(home.database, os.O_RDWR)
    fcntl.lockf(file, fcntl.LOCK_EX, 1)
    try:
        found = shown(home, workspace)
        tries = "import fcntl, os, sys; fcntl.lockf(os.open(sys.argv[1], os.O_RDWR), fcntl.LOCK_EX | fcntl.LOCK_NB, 1)"
        other = subprocess.run([sys.executable, "-c", tries, home.database], capture_output=True, check=False)
    finally:
        os.close(file)
    assert set(found) == {"BOSS.md", "MEMORY.md"} and not any("the database" in one for one in found.values())
    assert b"BlockingIOError" in other.stderr


@pytest.fixture
def locked_away(tmp_path: Path) -> Iterator[tuple[Home, Path]]:
    """A home and a workspace in which everybody may look, and where two places are closed."""
    home, workspace = Home(str(tmp_path / "open")), tmp_path / "open" / "work"
    (workspace / "memory").mkdir(parents=True)
    (workspace / "SOUL.md").write_text("mine")
    (workspace / "MEMORY.md").write_text("mine")
    (workspace / "memory" / "2026-03-01.md").write_text("mine")
    for path in (tmp_path, *tmp_path.parents):
        if path.stat().st_uid == os.getuid() and path != Path("/"):
            path.chmod(path.stat().st_mode | 0o555)
    (workspace / "MEMORY.md").chmod(0)
    (workspace / "memory").chmod(0)
    yield home, workspace
    (workspace / "memory").chmod(0o700)


def test_what_may_not_be_read_is_named(locked_away: tuple[Home, Path]) -> None:
    home, workspace = locked_away
    if os.getuid() == 0:
        words = [sys.executable, "-c", AS_NOBODY, home.path, str(workspace)]
        found = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    else:
        found = "\n".join(shown(home, workspace).values())
    assert found.count("> mine") == 1
    assert f"file: MEMORY.md ({workspace}/MEMORY.md)\n(not read: Permission denied)" in found
    assert found.count("(not read: Permission denied)") == 3


def test_a_file_that_is_deleted_while_it_is_read_is_shown_or_not(home: Home, workspace: Path) -> None:
    script = """
import os, sys
while True:
    for text in (b"one", b"two " * 1000):
        with open(sys.argv[1] + ".new", "wb") as file:
            file.write(text)
        os.replace(sys.argv[1] + ".new", sys.argv[1])
    os.unlink(sys.argv[1])
"""
    path = str(workspace / "MEMORY.md")
    with subprocess.Popen([sys.executable, "-c", script, path]) as other:
        try:
            found = {shown(home, workspace).get("MEMORY.md", "") for _ in range(500)}
        finally:
            other.kill()
    head = f"file: MEMORY.md ({path})\ntext:\n> "
    assert found <= {"", head + "one", head + "two " * 1000}


# --- what a session has seen ---------------------------------------------------------


def memory(**files: str) -> Memory:
    names = {"soul": "SOUL.md", "notes": "MEMORY.md", "day": "memory/2026-03-01.md"}
    parts = tuple(Part(names[name], text) for name, text in files.items())
    return Memory(parts, frozenset({"BOSS.md", *names.values()}))


def test_a_session_is_shown_only_what_is_new_to_it(home: Home) -> None:
    before = seen(memory(soul="a", notes="b"), TOLD)
    assert block(memory(soul="a", notes="b"), TOLD, before) == ""
    assert block(memory(soul="a", notes="c"), TOLD, before) == "\n\n".join(
        ["memory: changed since it was last shown here", "c"]
    )
    assert block(memory(soul="a", notes="b", day="d"), TOLD, before).endswith("here\n\nd")
    assert block(memory(soul="a", notes="b"), TOLD, None) == "memory: new to this session\n\na\n\nb"


def test_a_file_that_is_gone_is_named_once(home: Home) -> None:
    before = seen(memory(soul="a", notes="b"), TOLD)
    text = block(memory(notes="b"), TOLD, before)
    assert "gone: SOUL.md (it was emptied or removed; what it said before holds no longer)" in text
    assert block(memory(notes="b"), TOLD, seen(memory(notes="b"), TOLD)) == ""


def test_a_note_of_a_day_that_has_passed_is_not_missed(home: Home) -> None:
    before = seen(memory(day="d"), TOLD) + " memory/2026-02-27.md=0123456789abcdef"
    assert block(memory(day="d"), TOLD, before) == ""


def test_instructions_that_have_changed_come_with_the_turn(home: Home) -> None:
    before = seen(memory(soul="a"), TOLD)
    text = block(memory(soul="a"), "You are kai.", before)
    assert text.startswith("instructions: they have changed") and "\n\nYou are kai.\n\n" in text
    assert "memory:" not in text
    assert block(memory(), TOLD, None) == ""  # a new session has them in its system prompt


def test_what_was_seen_is_short_whatever_was_seen(home: Home) -> None:
    assert len(seen(memory(soul="a" * 10**6, notes="b", day="c"), TOLD * 10**5)) < 200
