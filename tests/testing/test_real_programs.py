"""Without the real programs their tests skip, and the end of the run says so and what to do."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.real import programs

ROOT = Path(__file__).resolve().parents[2]


def test_without_the_programs_the_skip_is_loud(tmp_path: Path) -> None:
    tests = "tests/real/test_codex_contract.py"
    command = [sys.executable, "-m", "pytest", tests, "-p", "no:cacheprovider", "-n", "1"]
    environment = {**os.environ, "REAL_PROGRAMS": str(tmp_path)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stdout + done.stderr
    last = done.stdout.splitlines()[-2:]
    assert "did not run. Run: make real" in last[0]
    assert "passed" not in done.stdout and "failed" not in done.stdout
    assert "tests with real programs: SKIPPED" in done.stdout


def test_programs_of_another_pin_are_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stamp = tmp_path / "stamp"
    node = tmp_path / "node"
    monkeypatch.setattr(programs, "STAMP", stamp)
    monkeypatch.setattr(programs, "_node", lambda: node)
    assert programs.find() is None
    stamp.write_text("an older one\n")
    assert programs.find() is None
    stamp.write_text(programs._pinned())
    found = programs.find()
    assert found is not None and found.claude.endswith("/claude") and str(tmp_path) in found.path
