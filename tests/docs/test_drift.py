"""When the code changes and the pages do not, the tests of the pages fail. Shown once with real changes."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import ROOT

# The tests of all pages run inside it.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

COPIED = [
    "hiboss",
    "docs",
    "bench",
    "tests/docs",
    "tests/real",
    "tests/support",
    "tests/conftest.py",
    "tests/__init__.py",
]
FILES = ["README.md", "config.example.toml", "pyproject.toml", "Makefile"]
OPTIONS = ["-rf", "-p", "no:cacheprovider", "-p", "no:xdist", "-k", "not made_anew"]
TESTS = ["tests/docs/test_generated.py"]

# A source file, a name in it, and the name it is changed to.
DRIFTS = [
    ("hiboss/cli/commands/envelope.py", '"--as-turn"', '"--as-prompt"'),
    ("hiboss/cli/main.py", '"List your inbox."', '"List all your mail."'),
    ("hiboss/core/settings.py", "    recipients: int", "    addressees: int"),
    ("hiboss/core/errors/access.py", '"key_reused"', '"key_used_again"'),
    ("hiboss/api/discovery.py", '"rpc.discover"', '"rpc.describe"'),
    ("hiboss/store/schema/views.sql", "e.arrived,", "e.arrived AS came,"),
]


def copy(directory: Path) -> None:
    for name in COPIED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, directory / name)  # what is compiled too: else it takes 5 s
        else:
            shutil.copy2(ROOT / name, directory / name)
    for name in FILES:
        shutil.copy(ROOT / name, directory / name)


def drift(directory: Path, file: str, before: str, after: str) -> None:
    path = directory / file
    text = path.read_text()
    assert before in text, f"{file} has no {before} any more; choose another name"
    path.write_text(text.replace(before, after))


def failures(directory: Path) -> tuple[set[str], str]:
    """Run the tests of the pages there. Return those that fail, and what was printed."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *OPTIONS, *TESTS],
        cwd=directory,
        env={"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    return set(re.findall(r"^FAILED tests/docs/(?:\w+)\.py::(\S+)", done.stdout, re.MULTILINE)), done.stdout


@pytest.fixture(scope="module")
def drifted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("drifted")
    copy(directory)
    for one in DRIFTS:
        drift(directory, *one)
    return directory


def test_a_flag_a_setting_an_error_an_operation_and_a_column_that_drift_are_found(drifted: Path) -> None:
    failed, printed = failures(drifted)
    assert {
        "test_the_command_finds_no_stale_page",
        "test_a_page_names_only_what_exists[commands]",
        "test_a_page_names_only_what_exists[names]",
        "test_a_reference_names_everything[docs/reference/settings.md-defaults]",
        "test_a_reference_names_everything[docs/reference/errors.md-codes]",
    } <= failed
    for page, name in (
        ("quickstart", "--as-turn"),
        ("guarantees", "limits.recipients"),
        ("guarantees", "key_reused"),
        ("quickstart", "rpc.discover"),
    ):
        assert re.search(rf"docs/{page}\.md: .*{re.escape(name)}", printed), name


def test_the_difference_shows_each_name_that_was_changed(drifted: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "docs.generate", "--check"],
        cwd=drifted,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1 and "8 generated files are stale" in done.stdout
    for gone, new in [
        ("| `--as-turn`", "| `--as-prompt`"),
        ('            "--as-turn": (', '            "--as-prompt": ('),  # what the quick way reads
        ("  inbox         List your inbox.", "  inbox         List all your mail."),
        ("| `limits.recipients`", "| `limits.addressees`"),
        ("| `key_reused`", "| `key_used_again`"),
        ("### rpc.discover", "### rpc.describe"),
        ("| `arrived`", "| `came`"),
        ("#recipients = 100", "#addressees = 100"),
    ]:
        assert re.search(f"^-{re.escape(gone)}", done.stdout, re.MULTILINE), gone
        assert re.search(f"^\\+{re.escape(new)}", done.stdout, re.MULTILINE), new
