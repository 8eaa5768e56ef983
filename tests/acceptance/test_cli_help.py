"""The help of every command, as a new user reads it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.acceptance.cli import Done, Shell

VERBS = {
    "envelope": ["send", "list", "get", "read", "ack", "cancel", "archive", "trash", "restore"],
    "agent": ["register", "list", "set", "delete", "self"],
    "daemon": ["start", "stop", "restart", "status", "ping", "time", "logs"],
}
PLACES = [(), ("up",), ("setup",), *((noun,) for noun in VERBS)]
PLACES += [(noun, verb) for noun, verbs in VERBS.items() for verb in verbs]


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path / "home")


def section(text: str, title: str) -> list[str]:
    """The lines below `Title:`, each entry with its continuation lines joined."""
    _, _, rest = text.partition(f"\n{title}:\n")
    entries: list[str] = []
    for line in rest.split("\n\n")[0].splitlines():
        if re.match(r"  \S", line):
            entries.append(line.strip())
        else:
            entries[-1] += "  " + line.strip()
    return entries


def purpose(done: Done) -> str:
    """What stands between the usage line and the options."""
    return done.stdout.partition("\n\n")[2].partition("\nOptions:\n")[0].strip()


@pytest.mark.parametrize("place", PLACES, ids=" ".join)
def test_help_is_a_sentence_and_describes_every_option_and_every_command_has_json(
    shell: Shell, place: tuple[str, ...]
) -> None:
    done = shell(*place, "--help")
    assert (done.rc, done.stderr) == (0, "")
    assert done.stdout.startswith(f"Usage: {' '.join(('hiboss', *place))} ")
    assert re.match(r"[A-Z][^\n]+ [^\n]+", purpose(done)) and purpose(done).split("\n\n")[0].endswith(".")
    options = section(done.stdout, "Options")
    assert any(option.startswith("-h, --help ") for option in options)
    for option in options:
        names, _, words = option.partition("  ")
        assert re.search(r"\w+ .*\w", words), f"{names} has no help"
    if place and place[-1] not in VERBS:
        assert any(option.startswith("--json ") for option in options)


@pytest.mark.parametrize("place", [(), ("up",), ("agent",), ("daemon", "logs")], ids=" ".join)
def test_the_short_name_of_help_is_the_same(shell: Shell, place: tuple[str, ...]) -> None:
    assert shell(*place, "-h") == shell(*place, "--help")


@pytest.mark.parametrize("noun", VERBS)
def test_the_help_of_a_noun_lists_every_verb_with_a_line_that_is_not_cut_off(shell: Shell, noun: str) -> None:
    lines = section(shell(noun, "--help").stdout, "Commands")
    assert [line.split()[0] for line in lines] == VERBS[noun]
    assert [line for line in lines if line.endswith("...")] == []


def test_the_root_lists_every_noun(shell: Shell) -> None:
    lines = section(shell("--help").stdout, "Commands")
    assert sorted(line.split()[0] for line in lines) == ["agent", "daemon", "envelope", "setup", "up"]


@pytest.mark.parametrize("place", [(), ("envelope",)], ids=" ".join)
def test_a_command_without_its_verb_shows_the_help(shell: Shell, place: tuple[str, ...]) -> None:
    done = shell(*place)
    assert done.rc == 2
    assert done.stderr == shell(*place, "--help").stdout


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (("envlope", "list"), "envelope"),
        (("envelope", "snd"), "send"),
        (("envelope", "list", "--statu", "done"), "--status"),
        (("envelope", "list", "--status", "finished"), "'pending', 'done', 'failed', 'cancelled'"),
        (("envelope", "send", "--priority", "urgent"), "'critical', 'high', 'normal', 'low'"),
        (("envelope", "get"), "'--id'"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_a_mistyped_word_is_wrong_usage_and_hears_what_would_be_right(
    shell: Shell, words: tuple[str, ...], meant: str
) -> None:
    done = shell(*words)
    assert (done.rc, done.stdout) == (2, "")
    assert meant in done.stderr.partition("\nError: ")[2]
    assert "--help" in done.stderr or " -h" in done.stderr


def test_wrong_usage_is_json_too_when_json_was_asked_for(shell: Shell) -> None:
    done = shell("envelope", "list", "--status", "finished", "--json")
    assert done.rc == 2
    assert "pending" in done.error["message"] and done.error["code"]


def test_the_version_is_printed(shell: Shell) -> None:
    assert re.fullmatch(r"hiboss \d+\.\d+\.\d+\S*\n", shell("--version").stdout)


def test_help_makes_no_home(shell: Shell, tmp_path: Path) -> None:
    shell("envelope", "send", "--help")
    assert list(tmp_path.iterdir()) == []
