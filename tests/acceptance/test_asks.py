"""An ask from a command agent to the person at `hiboss chat` and back; and two hundred who race for the same asks."""

from __future__ import annotations

import json
import socket
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from hiboss.testing.running_daemon import RunningDaemon
from tests.support.cli import HIBOSS, Office, open_office
from tests.support.failures import seeded
from tests.support.parties import Party, agents
from tests.support.python_agents import Boss
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


# --- a race ---------------------------------------------------------------------------


ASKS = 20
RACING = 200  # requests, besides the time-outs
AHEAD = 0.6  # seconds in which all is prepared; then the asks end, and the requests come around that moment
APART = 0.0005  # seconds between two requests: some come before the end, most with it

Request = tuple[str, str, dict[str, Any]]  # the ask, the operation, its parameters


def test_each_of_twenty_asks_has_one_winner_of_two_hundred(daemon: RunningDaemon, ada: Boss) -> None:
    asker, asked = agents(daemon, 2)
    with ExitStack() as stack:
        lines = [stack.enter_context(daemon.connect()) for _ in range(RACING)]
        end = time.monotonic() + AHEAD
        numbers = [_created(asker, asked, end) for _ in range(ASKS)]
        requests = [
            _request(numbers[place % ASKS], place // ASKS, asker, asked, ada) for place in range(RACING)
        ]
        seeded(16).shuffle(requests)
        for place, (line, request) in enumerate(zip(lines, requests, strict=True), -RACING // 20):
            time.sleep(max(0.0, end + place * APART - time.monotonic()))
            _write(line, request)
        answers = [json.loads(line.makefile("rb").readline()) for line in lines]
    wait_until(lambda: ada.call("ask.list", state="open", page_size=100)["asks"] == [])
    won = Counter(request[0] for request, answer in zip(requests, answers, strict=True) if "result" in answer)
    told = defaultdict(set)
    for (number, _, _), answer in zip(requests, answers, strict=True):
        told[number].add(_outcome(answer))
    for number in numbers:
        ask = ada.call("ask.get", id=number)["ask"]
        assert won[number] == (0 if ask["state"] == "expired" else 1)
        assert told[number] == {
            (ask["state"], ask["answer"], ask["answered_by"])
        }  # the losers know the winner
    _check_mail(daemon, numbers)


def _created(asker: Party, asked: Party, end: float) -> str:
    timeout = f"{max(0.001, end - time.monotonic()):.3f}s"
    made = asker.call("ask.create", question="Go?", to=asked.address, timeout=timeout, default="no")
    return str(made["ask"]["id"])


def _request(number: str, turn: int, asker: Party, asked: Party, ada: Party) -> Request:
    """Return the next of those who race for an ask: two answer it, and two cancel it."""
    params = {"id": number, "token": (asked, ada, asker, ada)[turn % 4].token}
    if turn % 4 < 2:
        return number, "ask.answer", params | {"choice": ("yes", "no")[turn % 2]}
    return number, "ask.cancel", params


def _write(line: socket.socket, request: Request) -> None:
    _, method, params = request
    sent = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    line.sendall(json.dumps(sent).encode() + b"\n")


def _outcome(answer: dict[str, Any]) -> tuple[str, str | None, str | None]:
    """Return how an ask ended, as a winner or a loser was told."""
    if "result" in answer:
        ask = answer["result"]["ask"]
        return ask["state"], ask["answer"], ask["answered_by"]
    error = answer["error"]["data"]
    assert error["code"] == "ask_settled", error
    return error["state"], error["answer"], error["by"]


def _check_mail(daemon: RunningDaemon, numbers: list[str]) -> None:
    """The asker has one message about each, but for what it cancelled itself."""
    with daemon.database() as database:
        rows = database.execute(
            """
            SELECT k.state, k.answered_by IS k.asker AS own, k.reply IS NOT NULL AS told,
                   (SELECT count(*) FROM message m WHERE json_extract(m.metadata, '$.ask') = 'q' || k.id
                    AND m.id <> k.message) AS messages
            FROM ask k
            """
        ).fetchall()
    assert len(rows) == len(numbers)
    for row in rows:
        expected = 0 if row["own"] else 1
        assert (row["told"], row["messages"]) == (expected, expected)
