"""The `hiboss` that a run calls, where no such command is installed: a small program in the home."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from hiboss.agents.turn_input import environment
from hiboss.core.paths import Home


def test_the_program_for_runs_is_made_once_and_never_written_while_another_run_may_start_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = tmp_path / "a python" / "python3"  # no `hiboss` lies beside it
    python.parent.mkdir()
    python.symlink_to(os.path.realpath(sys.executable))
    monkeypatch.setattr(sys, "executable", str(python))
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, sys.path)))
    home = Home(str(tmp_path / "home"))
    home.create()

    given = environment(home, "kai", "r1", "hbr_one")
    program = Path(given["PATH"].partition(os.pathsep)[0], "hiboss")
    found = subprocess.run([program, "--version"], env=given, capture_output=True, text=True, check=True)
    assert found.stdout.startswith("hiboss ")

    def identity(path: Path) -> tuple[int, int]:
        return path.stat().st_ino, path.stat().st_mtime_ns

    token = Path(given["HIBOSS_TOKEN_FILE"])
    before = identity(program), identity(token)
    assert environment(home, "kai", "r1", "hbr_one")["HIBOSS_TOKEN_FILE"] == str(
        token
    )  # another session of r1
    assert (identity(program), identity(token)) == before
    program.write_text("of an earlier version")
    with program.open() as reader:  # as a shell that has just begun with it
        environment(home, "kai", "r2", "hbr_two")
        assert reader.read() == "of an earlier version"
    assert subprocess.run([program, "--version"], env=given, capture_output=True, check=True).stdout
    assert os.listdir(program.parent) == ["hiboss"]
