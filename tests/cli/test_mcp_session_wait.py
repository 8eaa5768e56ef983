"""`hiboss mcp` waits for the session of its harness only where hooks will attach one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.cli import HIBOSS, Shell

pytestmark = pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="needs /proc")

# What the server does to find out who speaks. It ends when it begins to wait.
SCRIPT = """
import sys
from hiboss.cli.mcp_stdio import speaker
from hiboss.core.paths import Home

options = speaker.Options()
options.or_as = "nex"
speaker.find_token(Home(), options, lambda: sys.exit("waits"))
sys.exit("speaks")
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A person's directory, in which hooks of both harnesses are installed."""
    shell = Shell(tmp_path / "hiboss")
    shell.set_up()
    for client in ("claude", "codex"):
        environment = {"HOME": str(tmp_path), "CLAUDE_CONFIG_DIR": "", "CODEX_HOME": ""}
        done = shell("hooks", "install", "--client", client, env=environment)
        assert done.rc == 0, done.stderr
    return tmp_path


def server_of(
    place: Path,
    harness: str,
    *words: str,
    given: dict[str, str] | None = None,
    kept: tuple[str, ...] = (),
) -> str:
    """Return what the server says below a process with the name of a harness, which keeps variables back."""
    program = place / harness
    if not program.exists():
        program.symlink_to("/bin/sh")
    without = " ".join(f"-u {name}" for name in kept)
    command = f"env {without} '{sys.executable}' -c '{SCRIPT}'; true"  # true: else the shell becomes it
    environment = {"PATH": os.environ["PATH"], "HOME": str(place), "HIBOSS_HOME": str(place / "hiboss")}
    done = subprocess.run(
        [str(program), "-c", command, *words],
        env={**environment, **(given or {})},
        cwd=os.path.dirname(HIBOSS),
        capture_output=True,
        text=True,
        timeout=60,
    )
    return done.stderr.strip()


@pytest.mark.parametrize(
    ("entrypoint", "said"), [("cli", "waits"), ("sdk-cli", "speaks"), ("sdk-py", "speaks")]
)
def test_it_waits_in_a_claude_code_that_is_open(place: Path, entrypoint: str, said: str) -> None:
    assert server_of(place, "claude", given={"CLAUDE_CODE_ENTRYPOINT": entrypoint}) == said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["codex"], "waits"),
        (["codex", "--no-daemon"], "waits"),
        (["codex", "app-server", "--listen", "unix://", "--managed-daemon"], "waits"),
        (["codex", "exec", "-"], "speaks"),
        (["codex", "-c", "model=x", "exec", "resume"], "speaks"),
        (["codex", "app-server"], "speaks"),
    ],
)
def test_it_waits_in_a_codex_that_is_open(place: Path, words: list[str], said: str) -> None:
    assert server_of(place, "codex", *words) == said


def test_it_finds_the_hooks_of_a_codex_that_keeps_its_variables_back(place: Path) -> None:
    (place / ".codex").rename(place / "elsewhere")
    given = {"CODEX_HOME": str(place / "elsewhere")}
    assert server_of(place, "codex", given=given, kept=("CODEX_HOME",)) == "waits"


def test_without_hooks_it_waits_for_nothing(place: Path) -> None:
    (place / ".codex" / "hooks.json").unlink()
    assert server_of(place, "codex") == "speaks"
