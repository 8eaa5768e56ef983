"""The story of issue 6: the boss asks, an agent delegates, the answer comes back, and then all is quiet."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli import Office, open_office
from tests.support.waits import wait_until

NEX = """
import subprocess, sys
turn = sys.stdin.read()
def hiboss(*words):
    subprocess.run(["hiboss", *words], check=True, stdout=subprocess.DEVNULL)
if "\\nfrom: agent:kai\\n" in turn:
    said = "".join(line[2:] for line in turn.splitlines() if line.startswith(">"))
    print(f"kai has looked: {said}")
else:
    hiboss("envelope", "send", "--to", "agent:kai", "--text", "Is the build green?")
    hiboss("envelope", "send", "--to", "user:boss", "--text", "Look at the build again.", "--deliver-at", "+2s")
    print("NO_REPLY")
"""
KAI = """
import sys
turn = sys.stdin.read()
assert "\\nfrom: agent:nex\\n" in turn, turn
print("It is green.")
"""


@pytest.fixture
def office(tmp_path: Path) -> Iterator[Office]:
    with open_office(tmp_path) as office:
        yield office


def _program(directory: Path, name: str, code: str) -> str:
    path = directory / f"{name}.py"
    path.write_text(code)
    return f"{sys.executable} {path}"


def _inbox(office: Office) -> list[str]:
    found = office("inbox", "--peek", "--json").json["envelopes"]
    return [one["text"] for one in found if one["from"] == "agent:nex"]


def _runs(office: Office) -> list[dict[str, Any]]:
    return office("run", "list", "--json").json["runs"]


def test_the_boss_asks_nex_delegates_kai_answers_and_all_comes_to_rest(
    office: Office, tmp_path: Path
) -> None:
    nex, kai = _program(tmp_path, "nex", NEX), _program(tmp_path, "kai", KAI)
    for words in (
        ("set", "--as", "boss", "--name", "nex", "--provider", "command", "--command", nex),
        ("register", "--as", "boss", "--name", "kai", "--provider", "command", "--command", kai),
    ):
        done = office("agent", *words)
        assert done.rc == 0, done.stderr

    asked = office("chat", "nex", "--once", "How is the build?", "--timeout", "50s")
    assert (asked.rc, asked.stdout) == (0, "kai has looked: It is green.\n"), asked.stderr

    wait_until(lambda: len(_inbox(office)) == 2)
    assert _inbox(office) == ["Look at the build again.", "kai has looked: It is green."]
    wait_until(lambda: all(run["status"] == "completed" for run in _runs(office)))
    runs = _runs(office)[::-1]
    # nex was asked; kai was; kai's answer came to nex. Nobody thanked anybody for anything.
    assert [run["agent"] for run in runs] == ["nex", "kai", "nex"]
    assert len({run["trace"] for run in runs}) == 1
    assert [run["hops"] for run in runs] == [0, 1, 2]
    assert office("team").values("due") == ["0", "0"]
    sent = office("envelope", "list", "--as", "boss", "--box", "outbox", "--address", "agent:nex", "--json")
    assert {one["trace"] for one in sent.json["envelopes"]} == {runs[0]["trace"]}
