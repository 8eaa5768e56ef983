"""A canary token appears nowhere: files, logs, answers, output, the process list, the documentation."""

from __future__ import annotations

import base64
import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from hiboss.store import tokens
from tests.acceptance.canary import Canary, Evidence, started_by_hiboss, watched
from tests.acceptance.canary_story import Story, commands_with_a_token
from tests.acceptance.canary_words import COMMANDS
from tests.support.cli import Shell
from tests.support.told_once import told_once
from tests.support.waits import wait_until

ROOT = Path(__file__).parents[2]
PUBLISHED = ("README.md", "docs", "config.example.toml")
pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]  # a bound: the story is some eighty commands long
A_TOKEN = re.compile(rb"(hb[abur]|whsec)_[A-Za-z0-9_+/-]{30,}")


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Story:
    return told_once(tmp_path_factory, "canary", tell)


def tell(directory: Path) -> Story:
    story = Story(directory)
    try:
        story.tell()
    finally:
        story.shell.end_daemon()
    return story


def leaks(story: Story, kind: str) -> list[str]:
    assert any(place.startswith(kind) for place, _ in story.evidence.gathered)
    return story.evidence.leaks(story.canaries.values(), kind)


# --- the story is a whole one --------------------------------------------------------


def test_every_command_that_takes_a_token_is_in_the_story() -> None:
    assert commands_with_a_token() == set(COMMANDS)


def test_the_story_knows_tokens_of_every_fate(story: Story) -> None:
    """Of set-up, registered, rotated on- and offline; those that ended, strange, misplaced and spoken ones;
    of people, of runs that went well, were cancelled and failed, and what signs webhooks."""
    found = {canary.token for canary in story.canaries.values()}
    kinds = [token.partition("_")[0] for token in found]
    assert {kind: kinds.count(kind) for kind in ("hba", "hbb", "whsec")} == {"hba": 10, "hbb": 4, "whsec": 2}
    assert kinds.count("hbu") == 3 and kinds.count("hbr") >= 5
    assert set(kinds) == {"hba", "hbb", "hbu", "hbr", "whsec"}


def test_the_story_left_logs_of_every_kind(story: Story) -> None:
    names = {place.split()[1] for place, _ in story.evidence.gathered if place.startswith("file ")}
    assert {"hiboss.db", "hiboss.db-wal", "hiboss.db-shm", "tokens/boss", "logs/daemon.log.1"} <= names
    assert any(name.startswith("backups/") for name in names)
    log = story.logged()
    assert " debug " in log and "The settings were not changed" in log


# --- and leaves no token behind ------------------------------------------------------


@pytest.mark.parametrize(
    "kind",
    [
        "file",  # of the home, but its own profile
        "output",  # of a command, but once where it is made
        "answer",  # an error over the socket
    ],
)
def test_no_token_is_left_behind_in(story: Story, kind: str) -> None:
    assert leaks(story, kind) == []


def test_no_token_is_in_the_process_list_of_what_hiboss_starts(story: Story) -> None:
    assert any("--once" in place for place, _ in story.evidence.gathered)
    assert any("--ready-fd" in place for place, _ in story.evidence.gathered)
    assert leaks(story, "process") == []


def test_no_token_is_in_the_words_of_a_process(story: Story) -> None:
    """Those of a run neither, which are in its environment."""
    words = [place for place, _ in story.evidence.gathered if place.startswith("process ")]
    assert any(f"{story.directory}/think" in place for place in words)
    own = [one for one in story.canaries.values() if one.token.startswith("hbr_")]
    spoken = Evidence()
    for place in words:
        spoken.add("words", place)
    assert spoken.leaks([Canary(name=one.name, token=one.token) for one in story.canaries.values()]) == []
    environments = [data for place, data in story.evidence.gathered if "/think" in place]
    assert any(one.found_in(data) for one in own for data in environments)  # and there it is


def test_a_token_in_a_text_is_stored_as_it_was_written(story: Story) -> None:
    """It is what somebody said. That also shows that the search finds what there is to find."""
    spoken = Canary(name="the token in a text", token=story.content)
    assert any("hiboss.db" in leak for leak in story.evidence.leaks([spoken], "file"))


def test_no_token_of_any_home_is_published() -> None:
    evidence = Evidence()
    evidence.add_tree("page", ROOT, PUBLISHED)
    assert len(evidence.gathered) > 5
    assert [place for place, data in evidence.gathered if A_TOKEN.search(data)] == []


# --- the search bites ----------------------------------------------------------------

CANARY = Canary(name="the canary", token="hba_" + "Zq3-Xw7_Lk9vB2nM5tR8yU1iO4pA6sD0fGhJcEeKxQw"[:43])


@pytest.mark.parametrize(
    "hide",
    [
        lambda token: token,
        lambda token: token[4:],
        lambda token: token[:20],
        lambda token: token[-14:],
        lambda token: token.lower(),
        lambda token: token.upper(),
        lambda token: token.encode().hex(),
        lambda token: token.encode().hex().upper(),
        lambda token: base64.b64encode(token.encode()).decode(),
        lambda token: base64.b64encode(b"." + token.encode()).decode(),
        lambda token: base64.b64encode(b".." + token.encode()).decode(),
        lambda token: base64.b64encode(base64.urlsafe_b64decode(token[4:] + "=")).decode(),
        lambda token: base64.urlsafe_b64decode(token[4:] + "=").hex(),
    ],
)
def test_a_token_is_found_in_whatever_form_it_stands(hide: Callable[[str], str]) -> None:
    evidence = Evidence()
    evidence.add("output of x", f"before {hide(CANARY.token)} after")
    assert len(evidence.leaks([CANARY])) == 1


def test_what_is_no_token_and_what_is_redacted_is_not_found() -> None:
    evidence = Evidence()
    evidence.add("output of x", f"hba_… {tokens.new('agent')} {tokens.digest(CANARY.token).hex()}")
    assert evidence.leaks([CANARY]) == []


def _plant_cell(home: Path) -> None:
    with sqlite3.connect(home / "hiboss.db") as database:
        database.execute("UPDATE user SET name = ?", (CANARY.token,))
    database.close()


def _plant_in_wal(home: Path) -> None:
    """As one leaves it who is killed."""
    script = "import os, sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute(sys.argv[2]); c.commit(); os._exit(9)"
    change = f"UPDATE user SET name = '{CANARY.token}'"
    subprocess.run([sys.executable, "-c", script, str(home / "hiboss.db"), change], check=False)


def _plant_file(name: str, text: str) -> Callable[[Path], object]:
    return lambda home: (home / name).write_text(text)


PLANTS: dict[str, Callable[[Path], object]] = {
    "hiboss.db after": _plant_cell,
    "hiboss.db-wal": _plant_in_wal,
    "logs/daemon.log.7": _plant_file("logs/daemon.log.7", f"x {CANARY.token}\n"),
    "backups/old.db": _plant_file("backups/old.db", CANARY.token),
    "media/": _plant_file(f"media/{CANARY.token}", "only its name"),
    "daemon.pid": _plant_file("daemon.pid", CANARY.token),
    "tokens/nex after": _plant_file("tokens/nex", f"its own\n{CANARY.token}\n"),
    "secrets/one after": _plant_file("secrets/one", f"its own\n{CANARY.token}\n"),
    "tokens/nex.1.new": _plant_file("tokens/nex.1.new", CANARY.token),  # no start has settled it
}


@pytest.mark.parametrize(("place", "plant"), PLANTS.items(), ids=PLANTS.keys())
def test_a_token_planted_in_a_home_is_found(
    tmp_path: Path, place: str, plant: Callable[[Path], object]
) -> None:
    shell = Shell(tmp_path / "home")
    shell.set_up()
    evidence = Evidence()
    evidence.add_home(shell.home.path, "before")
    assert evidence.leaks([CANARY]) == []
    plant(tmp_path / "home")
    evidence.add_home(shell.home.path, "after")
    found = evidence.leaks([CANARY], "file")
    assert any(leak.startswith(f"the canary stands in file {place}") for leak in found), found


def test_a_profile_may_hold_its_own_token(tmp_path: Path) -> None:
    shell = Shell(tmp_path / "home")
    shell.set_up()
    evidence = Evidence()
    evidence.add_home(shell.home.path, "now")
    kept = [Canary(name=name, token=shell.token(name)) for name in ("boss", "nex")]
    assert evidence.leaks(kept) == []
    shutil.copy(shell.home.profile("nex"), tmp_path / "home" / "media" / "copy")
    evidence.add_home(shell.home.path, "later")
    assert len(evidence.leaks(kept)) == 1


@pytest.mark.parametrize("where", ["words", "environment"])
def test_a_token_of_a_process_is_found(tmp_path: Path, where: str) -> None:
    shell, evidence = Shell(tmp_path / "home"), Evidence()
    words = [CANARY.token] if where == "words" else []
    given = {"HIBOSS_TOKEN": CANARY.token} if where == "environment" else {}
    command = [sys.executable, "-c", "import sys; sys.stdin.read()", *words]
    with watched(shell.home.path, evidence):
        process = subprocess.Popen(command, env=shell.environment(**given), stdin=subprocess.PIPE)
        with process:
            wait_until(lambda: list(started_by_hiboss(shell.home.path)))
            found = list(started_by_hiboss(shell.home.path))
            assert process.stdin
            process.stdin.close()
    assert len(found) == 1 and CANARY.found_in(found[0][1])


def test_a_token_on_a_page_is_found(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "page.md").write_text(f"use {tokens.new('boss')}")
    evidence = Evidence()
    evidence.add_tree("page", tmp_path, ["docs"])
    assert [place for place, data in evidence.gathered if A_TOKEN.search(data)] == ["page docs/page.md"]
