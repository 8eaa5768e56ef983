"""Asks and controls in `hiboss chat`, as a person sees them on a real terminal."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli import Office
from tests.support.talk import Terminal, chatting, gated, said, talking


@pytest.fixture(autouse=True)
def nothing_is_left(office: Office) -> Iterator[None]:
    yield
    for one in call(office, "ask.list")["asks"]:
        call(office, "ask.cancel", id=one["id"])


def call(office: Office, method: str, who: str = "boss", **params: Any) -> Any:
    return office.daemon.call(method, token=office.token(who), **params)


def asks(office: Office, name: str, question: str = "Deploy?", **params: Any) -> str:
    """Let an agent ask the boss; the id of the ask."""
    return str(call(office, "ask.create", name, question=question, **params)["ask"]["id"])


def ask(office: Office, number: str) -> dict[str, Any]:
    return call(office, "ask.get", id=number)["ask"]


# --- asks ----------------------------------------------------------------------------


def test_an_ask_is_shown_with_its_options_and_answered_with_a_comment(office: Office) -> None:
    name = office.agent()
    with chatting(office, name) as terminal:
        number = asks(office, name, options=["yes", "yes, always", "no"])
        terminal.see("  Deploy?\n\n  1. yes\n  2. yes, always\n  3. no\nto answer: /answer", number)
        assert "hiboss ask answer" not in terminal.text
        terminal.enter(
            f"/answer {number} Yes, always but not on Fridays",
            f'you answered {number}: "yes, always" ("but not on Fridays")',
        )
        terminal.see_last(">")
    found = ask(office, number)
    assert (found["answer"], found["comment"]) == ("yes, always", "but not on Fridays")
    assert terminal.text.count("answered") == 1  # neither the message nor the fact shows it again
    with talking(office, name) as terminal:  # later it says how it ended
        terminal.ready()
        assert terminal.text.count(f"you answered {number}:") == 1  # below the question
        assert "to answer:" not in terminal.text


def test_an_ask_of_another_agent_is_one_line_and_can_be_answered_here(office: Office) -> None:
    name, other = office.agent(), office.agent()
    first = asks(office, other, "Before you came?")
    with talking(office, name, columns=120) as terminal:
        terminal.see(f'{other} asks {first}: "Before you came?" (yes, no): /answer {first} yes')
        terminal.ready()
        second = asks(office, other, "Now?\nyou  14:05", options=["go on", "stop"])
        terminal.see(f'{other} asks {second}: "Now? you 14:05" (go on, stop): /answer {second} 1')
        terminal.enter(
            f"/answer {second} 2\r/answer {first} no",
            f"you answered {second}: stop",
            f"you answered {first}: no",
        )
    assert (ask(office, first)["answer"], ask(office, second)["answer"]) == ("no", "stop")


def test_an_answer_from_elsewhere_is_a_line_and_leaves_what_is_typed(office: Office) -> None:
    name = office.agent()
    with chatting(office, name) as terminal:
        number = asks(office, name)
        terminal.see(f"to answer: /answer {number} yes")
        terminal.type("half a")
        call(office, "ask.answer", id=number, choice="no")
        terminal.see(f"you answered {number}: no")
        terminal.see_last("> half a")
        terminal.press(" sentence\r")
        terminal.until(lambda: said(office, name)[-1]["text"] == "half a sentence")
        assert terminal.text.count(f"answered {number}") == 1


def test_who_is_too_late_is_told_who_was_first_and_a_wrong_option_what_would_be_right(office: Office) -> None:
    name = office.agent()
    with chatting(office, name, columns=150) as terminal:
        number = asks(office, name)
        terminal.see("to answer:")
        terminal.enter(
            f"/answer {number} maybe tomorrow",
            "error: maybe tomorrow is no option of",
            "the options are: yes, no",
        )
        call(office, "ask.answer", id=number, choice="yes")
        terminal.enter(f"/answer {number} no", f"error: {number} was settled before: user:boss answered yes")
        terminal.enter("/answer q999999 no", "q999999")
        terminal.enter(
            "/answer yes", "error: /answer: name the ask and one of its options, like /answer q2 yes"
        )
        terminal.see_last("> /answer yes")
    assert ask(office, number)["answer"] == "yes"


def test_an_ask_that_is_taken_back_is_told_once(office: Office) -> None:
    name = office.agent()
    with chatting(office, name, columns=120) as terminal:
        number = asks(office, name)
        terminal.see("to answer:")
        call(office, "ask.cancel", name, id=number)
        terminal.see(f"No answer is needed any more to {number}")
        terminal.enter("/agents", "fetches")
        assert f"cancelled {number}" not in terminal.text


def test_a_message_that_only_claims_to_be_an_ask_is_a_message(office: Office) -> None:
    name, other = office.agent(), office.agent()
    real = asks(office, other)
    text = f"Your password?\nTo answer {real}: hiboss ask answer {real} --choice yes"
    with chatting(office, name) as terminal:
        for claimed in (real, "q999999", 7, ["q1"], f"{real} yes"):
            call(office, "envelope.send", name, to="user:boss", text=text, metadata={"ask": claimed})
        call(office, "envelope.send", name, to="user:boss", text="the last one")
        terminal.see("the last one")
        assert terminal.text.count(f"  To answer {real}: hiboss ask answer") == 5
        assert "to answer:" not in terminal.text


def test_the_asker_sees_its_own_ask_without_a_way_to_answer_it(office: Office) -> None:
    name = office.agent()
    number = asks(office, name)
    with chatting(office, "user:boss", "--as", name) as terminal:
        assert "Deploy?" in terminal.text and "to answer" not in terminal.text
        call(office, "ask.answer", id=number, choice="yes")
        terminal.see(f"boss answered {number}: yes")


# --- controls ------------------------------------------------------------------------


def control(terminal: Terminal, words: str) -> None:
    terminal.until(lambda: re.search(f"^you: {words}", terminal.text, re.MULTILINE), words)


def test_a_run_is_paused_resumed_and_cancelled_and_each_is_a_line(office: Office, tmp_path: Path) -> None:
    with gated(office, tmp_path) as (name, _), chatting(office, name) as terminal:
        for command in ("/pause", "/cancel"):
            terminal.enter(f"{command}", "is not working on anything")
        terminal.enter("too much", "thinking aloud")
        terminal.enter("/resume", "/resume was refused: r")
        terminal.enter("/pause", "Paused. /resume lets it go on", "(paused; /resume lets it go on)")
        control(terminal, "pause r[0-9]+: applied")
        terminal.enter("/resume", "It goes on.")
        control(terminal, "resume r[0-9]+: applied")
        terminal.until(lambda: "(paused; " not in terminal.text)
        terminal.enter("/cancel", "Cancelled. To retry: hiboss envelope retry e")
        control(terminal, "cancel r[0-9]+: applied")
        terminal.until(lambda: said(office, name)[0]["status"] == "cancelled")


def test_everything_can_be_stopped_and_go_on(office: Office, tmp_path: Path) -> None:
    with gated(office, tmp_path) as (name, gate), chatting(office, name) as terminal:
        terminal.enter("/go", "Nothing was stopped.")
        terminal.enter("work", "thinking aloud")
        terminal.enter("/stop", "error: /stop all ends what every agent is doing")
        terminal.enter("\x03/stop all", "Everything is stopped. 1 run ends, and nobody gets a turn until /go")
        assert call(office, "breaker.status")["breaker"] is not None
        gate.touch()
        terminal.enter("/go", "Everybody works again.", "answer to work")
    assert call(office, "breaker.status")["breaker"] is None


def test_who_may_not_stop_everything_is_refused(office: Office) -> None:
    with chatting(office, "user:boss", "--as", office.agent(), columns=150) as terminal:
        terminal.enter("/stop all", "error: ")
    assert call(office, "breaker.status")["breaker"] is None
