"""The commands of the README and the quickstart work as they are printed there, one after the other."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.cli import Shell

ROOT = Path(__file__).parents[2]


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    shell = Shell(tmp_path / "home")
    assert shell("up", "--detach").rc == 0
    yield shell
    shell.end_daemon()


def blocks(file: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / file).read_text(), re.DOTALL)


def commands(file: str) -> list[str]:
    """Every hiboss command of a document's shell blocks, in order."""
    lines = [
        line.replace(".venv/bin/hiboss", "hiboss")
        for block in blocks(file, "sh")
        for line in block.splitlines()
    ]
    return [line for line in lines if line.startswith("hiboss ")]


@pytest.mark.parametrize("file", ["README.md", "docs/quickstart.md"])
def test_the_commands_of_a_document_work_one_after_the_other(shell: Shell, file: str) -> None:
    found = commands(file)
    assert len(found) >= 4
    for command in found:
        done = shell.sh(command)
        assert (done.rc, done.stderr) == (0, ""), command
        assert done.stdout != "no-envelopes: true\n", command


def test_the_program_of_the_quickstart_works(shell: Shell) -> None:
    shell("envelope", "send", "--as", "nex", "--to", "agent:nex", "--text", "for the program")
    (program,) = blocks("docs/quickstart.md", "python")
    done = shell.run([sys.executable, "-c", program])
    assert done.rc == 0 and "for the program" in done.stdout
