"""`python -m bench --beside`: what it refuses; a copy of the tree beside it, and one that is slower."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bench.load import ROOT

# Processes are started and work in turns: where the machine is busy, that takes long.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

SLOWED = """
import time
_quick = Authenticator.authorize
def _slow(self, *given):
    time.sleep(0.002)
    return _quick(self, *given)
Authenticator.authorize = _slow
"""


def bench(*arguments: str, cwd: Path = ROOT, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "bench", *arguments],
        cwd=cwd,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """Another checkout: the code alone."""
    for name in ("hiboss", "bench"):
        shutil.copytree(ROOT / name, tmp_path / "tree" / name)
    return tmp_path / "tree"


def words(path: Path) -> dict[str, str]:
    """What was said of each row."""
    found: dict[str, Any] = json.loads(path.read_text())["rows"]
    return {key: row["verdict"][-1] if row["verdict"] else "not there" for key, row in found.items()}


def test_a_copy_of_the_tree_is_measured_in_turns_and_a_few_rounds_say_nothing(
    copied: Path, tmp_path: Path
) -> None:
    path = tmp_path / "found.json"
    done = bench("--quick", "--only", "callers", "--beside", str(copied), "--json", str(path))
    assert done.returncode == 0, done.stderr
    assert set(words(path)) == {"token_known", "token_revoked", "token_unknown"}
    assert set(words(path).values()) == {"no verdict"}
    assert "3 rows: 3 no verdict" in done.stdout
    said = [line for line in done.stderr.splitlines() if "round" in line]
    assert said == [f"bench: knowing callers, round {number} of 3" for number in (1, 2, 3)]
    assert "part 1 of 1: callers; about" in done.stderr


def test_a_tree_that_was_made_slower_is_worse_than_this_one(copied: Path, tmp_path: Path) -> None:
    with (copied / "hiboss" / "api" / "auth.py").open("a") as file:
        file.write(SLOWED)
    path = tmp_path / "found.json"
    options = ["--seconds", "0.01", "--only", "callers", "--json", str(path)]
    done = bench(*options, "--beside", str(ROOT), cwd=copied, PYTHONPATH="")
    assert done.returncode == 1, done.stderr
    assert set(words(path).values()) == {"WORSE"}
    assert "WORSE token check, known caller" in done.stdout


def test_what_another_tree_cannot_do_is_not_there_and_is_no_failure(copied: Path, tmp_path: Path) -> None:
    (copied / "hiboss" / "store" / "tokens.py").write_text('raise ImportError("of another time")\n')
    path = tmp_path / "found.json"
    done = bench("--quick", "--only", "callers", "--beside", str(copied), "--json", str(path))
    assert done.returncode == 0, done.stderr
    assert set(words(path).values()) == {"not there"}
    assert "callers: not there: ImportError: of another time" in done.stderr


def test_without_redis_the_bench_says_how_to_install_it(tmp_path: Path) -> None:
    done = bench("--beside", "redis", PATH=str(tmp_path))
    assert done.returncode == 2
    assert "apt-get install redis-server" in done.stderr


def test_a_directory_that_is_no_checkout_is_refused(tmp_path: Path) -> None:
    done = bench("--beside", str(tmp_path))
    assert done.returncode == 2
    assert f"{tmp_path} is neither the word redis nor a checkout of hiboss" in done.stderr


def test_the_help_says_what_better_equal_and_worse_mean() -> None:
    done = bench("--help")
    assert done.returncode == 0
    assert "worse   when the whole interval is over 1.03" in done.stdout
