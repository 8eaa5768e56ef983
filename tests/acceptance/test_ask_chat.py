"""An ask from a command agent to the person at `hiboss chat` and back: the answer begins a turn, or is waited for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli import HIBOSS, Office, open_office
from tests.support.talk import said, talking
from tests.support.waits import wait_until

CREATE = f'{HIBOSS} ask create "Deploy?" --option yes --option "not today"'
# Asks and ends its turn; the answer comes with another one.
LATER = f"""
turn=$(cat)
case "$turn" in
    *"not today"*) echo "then tomorrow" ;;
    *) {CREATE} >/dev/null && echo NO_REPLY ;;
esac
"""
# Waits for the answer inside its turn.
WAITS = f"""
cat >/dev/null
answer=$({CREATE} --wait | sed -n 's/^answer: //p')
echo "the answer is $answer"
"""


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Office]:
    with open_office(tmp_path_factory.mktemp("d")) as running:
        yield running


def hired(office: Office, directory: Path, program: str) -> str:
    """An agent with a shell program."""
    path = directory / "agent.sh"
    path.write_text(program)
    return office.agent(provider="command", settings={"command": f"sh {path}"})


def asked(office: Office, name: str) -> list[dict[str, Any]]:
    found = office.daemon.call("ask.list", token=office.token("boss"), state="all", page_size=100)["asks"]
    return [one for one in found if one["asker"] == f"agent:{name}"]


def runs(office: Office, name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = office.daemon.call(
        "run.list", token=office.token("boss"), agent=f"agent:{name}"
    )["runs"]
    return found


def test_an_answer_in_the_chat_begins_the_turn_that_uses_it(office: Office, tmp_path: Path) -> None:
    name = hired(office, tmp_path, LATER)
    with talking(office, name) as terminal:
        terminal.ready()
        terminal.press("release it\r")
        terminal.see("  Deploy?", "  1. yes\n  2. not today\nto answer: /answer q")
        [ask] = asked(office, name)
        wait_until(lambda: [one["status"] for one in runs(office, name)] == ["completed"])  # nobody waits
        terminal.press(f"/answer {ask['id']} not today\r")
        terminal.see(f"you answered {ask['id']}: not today", "  then tomorrow")
        assert terminal.text.count("Deploy?") == 1
    [ask] = asked(office, name)
    assert (ask["state"], ask["answer"], ask["answered_by"]) == ("answered", "not today", "user:boss")
    wait_until(lambda: [one["status"] for one in runs(office, name)] == ["completed"] * 2)
    texts = [one["text"] for one in said(office, name)]
    assert texts[0] == "release it" and texts[-1] == "then tomorrow" and len(texts) == 4
    office.daemon.check()


def test_an_answer_in_the_chat_reaches_the_run_that_waits_for_it(office: Office, tmp_path: Path) -> None:
    name = hired(office, tmp_path, WAITS)
    with talking(office, name) as terminal:
        terminal.ready()
        terminal.press("release it\r")
        terminal.see("  Deploy?", "to answer: /answer q")
        [ask] = asked(office, name)
        terminal.see("waits for an answer")
        terminal.press(f"/answer {ask['id']} 1\r")
        terminal.see(f"you answered {ask['id']}: yes", "  the answer is yes")
    # What it got by waiting starts no turn.
    wait_until(lambda: [one["status"] for one in runs(office, name)] == ["completed"])
    assert said(office, name)[-1]["text"] == "the answer is yes"
    assert {one["status"] for one in said(office, name)} == {"done"}
    office.daemon.check()
