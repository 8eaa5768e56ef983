"""The tests with real programs run where they are named, and a program that is missing is a failure that says what helps."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.real import programs

ROOT = Path(__file__).resolve().parents[2]


def run(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *words]
    return subprocess.run(
        command, cwd=ROOT, env={**os.environ, **environment}, capture_output=True, text=True, timeout=100
    )


def make_bwrap(directory: Path, script: str) -> None:
    (directory / "bwrap").write_text(f"#!/bin/sh\n{script}\n")
    (directory / "bwrap").chmod(0o755)


def test_without_the_programs_nothing_runs_and_it_fails(tmp_path: Path) -> None:
    done = run("tests/real/test_codex_contract.py", "-n", "1", REAL_PROGRAMS=str(tmp_path))
    assert done.returncode == pytest.ExitCode.USAGE_ERROR, done.stdout + done.stderr
    assert f"not installed in {tmp_path}" in done.stderr and "make real" in done.stderr
    assert "passed" not in done.stdout and "skipped" not in done.stdout


def test_who_does_not_name_them_does_not_even_collect_them() -> None:
    others = [f"--ignore={one}" for one in ROOT.glob("tests/*/") if one.name != "real"]
    done = run("tests", "--collect-only", *others)
    assert done.returncode == pytest.ExitCode.NO_TESTS_COLLECTED, done.stdout + done.stderr


def test_programs_of_another_pin_are_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stamp = tmp_path / "stamp"
    make_bwrap(tmp_path, "exit 0")
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr(programs, "STAMP", stamp)
    monkeypatch.setattr(programs, "_node", lambda: tmp_path / "node")
    for pinned in (None, "an older one\n"):
        if pinned is not None:
            stamp.write_text(pinned)
        with pytest.raises(LookupError, match="not installed"):
            programs.find()
    stamp.write_text(programs._pinned())
    found = programs.find()
    assert found.claude.endswith("/claude") and str(tmp_path) in found.path


def test_without_a_bubblewrap_that_works_nothing_is_installed_and_the_advice_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SystemExit, match="apt-get install bubblewrap"):
        programs.install()
    make_bwrap(tmp_path, "echo no namespaces today >&2; exit 1")
    with pytest.raises(SystemExit, match=r"no namespaces today.*needs user namespaces"):
        programs.install()
