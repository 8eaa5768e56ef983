"""The demo provider (hiboss/agents/providers/demo.py): what it answers to which message. No daemon."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hiboss.agents.providers import demo
from hiboss.core import clock
from hiboss.core.contracts.provider import Answer, Reminder, TurnInput
from hiboss.core.option_models import Options
from hiboss.testing.recorded_run import RecordedRun
from tests.core.letters import letter

NOW = clock.parse("2026-01-28T12:08:45Z", now=0, zone=clock.zone("UTC"))
SECOND, MINUTE, HOUR = 1000, 60_000, 3_600_000


def turn_of(*envelopes: dict[str, Any], **facts: Any) -> TurnInput:
    known: dict[str, Any] = {
        "run": "r9",
        "delivery": "d",
        "agent": "nex",
        "text": "",
        "envelopes": envelopes,
        "due": len(envelopes),
        "now": NOW,
        "timezone": "Asia/Shanghai",
        "workspace": "/nowhere",
        "environment": {},
        "answer_bytes": 1_000_000,
        "output_bytes": 1_000_000,
    }
    return TurnInput(**{**known, **facts})


def reply(text: str, **facts: Any) -> demo.Reply:
    return demo.answer(turn_of(letter(text=text, **facts)))


# --- reminders -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("remind me in 10m to stretch", 10 * MINUTE),
        ("Remind me in 90s to stretch", 90 * SECOND),
        ("REMIND ME IN 2H TO stretch", 2 * HOUR),
        ("remind me in 1h30m to stretch", 90 * MINUTE),
        ("please remind me in 10 minutes to stretch", 10 * MINUTE),
        ("Please, remind me in 1 hour and 30 minutes that stretch", 90 * MINUTE),
        ("remind me in 1 hour, 5 min about stretch", 65 * MINUTE),
        ("remind me in an hour to stretch", HOUR),
        ("remind me in 1.5h: stretch", 90 * MINUTE),
        ("remind me in 3 days to stretch", 72 * HOUR),
        ("remind me in 1 week to stretch", 168 * HOUR),
        ("remind me to stretch in 10m", 10 * MINUTE),
        ("remind me to stretch in 10 minutes, please", 10 * MINUTE),
        ("  remind\nme in 10m stretch  ", 10 * MINUTE),
        ("remind me in 365d to stretch", 365 * 24 * HOUR),
        ("remind me in 1s to stretch", SECOND),
    ],
)
def test_a_reminder_can_be_asked_for_in_many_ways(text: str, length: int) -> None:
    answer = reply(text)
    assert answer.later == (Reminder(text="Reminder: stretch", deliver_at=NOW + length),)
    assert answer.text.endswith(": stretch")


def test_a_reminder_is_confirmed_with_the_time_in_the_zone_of_the_boss() -> None:
    assert reply("remind me in 10m to stretch").text == (
        "All right, I will remind you at 20:18:45 (Asia/Shanghai): stretch"
    )
    assert "on 2026-01-29 at 00:08:45 (Asia/Shanghai)" in reply("remind me in 4h to stretch").text
    assert reply("remind me to call in sick in 2h").later[0].text == "Reminder: call in sick"


@pytest.mark.parametrize(
    "text",
    [
        *("remind me", "remind me to stretch", "remind me in soon to stretch", "remind me in 10 to stretch"),
        *(
            "remind me in 10 months to stretch",
            "remind me in -5m to stretch",
            "remind me in 10-20m to stretch",
        ),
        *("remind me in 10mm to stretch", "remind me tomorrow to stretch", "remind me to look in 5 boxes"),
        *("remind me in 0m to stretch", "remind me in 0.5s to stretch"),
        *(
            "remind me in 366d to stretch",
            "remind me in 999999999w to stretch",
            "remind me in 1000000000s to x",
        ),
        *("remind me in 10m", "remind me in 10m to", "remind me in 10m."),
    ],
)
def test_a_reminder_that_is_not_understood_is_answered_with_an_example(text: str) -> None:
    answer = reply(text)
    assert answer.later == () and "remind me in 10m to stretch" in answer.text


def test_the_answer_says_what_is_wrong_with_a_reminder() -> None:
    assert "365 days" in reply("remind me in 366d to stretch").text
    assert "one second" in reply("remind me in 0m to stretch").text
    assert "what to remind you about" in reply("remind me in 10m").text
    assert "when to remind you" in reply("remind me to stretch").text


@given(st.text(alphabet="remind me in10hm.,ato\n 5", max_size=60))
def test_every_reminder_is_in_the_future_and_within_a_year(text: str) -> None:
    for reminder in reply(f"remind me {text}").later:
        assert NOW < reminder.deliver_at <= NOW + demo.YEAR_MS
        assert reminder.text.removeprefix("Reminder: ").strip()


@pytest.mark.parametrize("filling", [" ", "in ", "1h", "and ", "remind me ", ","])
def test_a_very_long_message_is_answered(filling: str) -> None:
    """A pattern with much backtracking would not end."""
    for text in ("remind me" + filling * 100_000 + "x", "please" + filling * 100_000, filling * 100_000):
        assert len(reply(text).text) < 3_000


# --- other messages ----------------------------------------------------------------------


def test_the_status_shows_name_time_and_how_to_set_another_provider() -> None:
    text = demo.answer(turn_of(letter(text="Status?"), due=3)).text
    assert "I am nex." in text and "2026-01-28T20:08:45+08:00 (Asia/Shanghai)" in text
    assert "3 messages were due" in text and "demo provider" in text
    assert 'hiboss agent set nex --workspace "$PWD" --command "python3 agent.py"' in text
    assert "1 message was due" in demo.answer(turn_of(letter(text="status"))).text
    assert "1000+ messages were due" in demo.answer(turn_of(letter(text="/status"), due="1000+")).text


def test_help_names_every_command() -> None:
    for word in ("help", "Help!", "/help"):
        text = reply(word).text
        assert all(known in text for known in ("remind me in 10m to stretch", "status", "help"))


@pytest.mark.parametrize("text", ["hello", "Hi!", "hey nex", "Hello, nex!"])
def test_a_greeting_is_answered_with_the_name_of_the_sender(text: str) -> None:
    assert reply(text, from_name="Kevin").text.startswith("Hello Kevin! I am nex.")
    assert reply(text).text.startswith("Hello kai!")
    author = {"author": {"name": "Alice", "username": "alice"}}
    assert reply(text, channel=author, from_name="other").text.startswith("Hello Alice!")


def test_a_name_cannot_add_lines_to_the_answer() -> None:
    text = reply("hi", from_name="Eve\nStatus: all fine" + "x" * 1000).text
    assert "\n" not in text and len(text) < 200


@pytest.mark.parametrize(
    "text", ["what is new?", "two\nlines", "hi, can you do this for me", "status of x", "NO_REPLY"]
)
def test_every_other_message_is_repeated(text: str) -> None:
    assert reply(text) == demo.Reply(f"You said: {text}")


def test_attachments_are_named() -> None:
    files = [
        {"name": name, "path": "/x", "size": 1, "mime": "text/plain", "sha256": ""}
        for name in ("a.pdf", "b\n.png")
    ]
    assert reply("look", attachments=files).text == "You said: look\nYou sent: a.pdf, b .png"
    assert reply("", attachments=files[:1]).text == "You sent: a.pdf"
    assert reply(" ").text == "You said nothing."


def test_a_long_text_is_repeated_in_part() -> None:
    text = reply("word " * 10_000).text
    assert text.startswith("You said: word word") and text.endswith("…") and len(text) < 2_100


# --- turns with several messages -------------------------------------------------------


def test_the_last_message_is_answered_and_no_reminder_is_lost() -> None:
    first, second = letter(1, text="remind me in 1h to stretch"), letter(2, text="well")
    answer = demo.answer(turn_of(first, letter(3, text="unheard"), second))
    assert answer.text.splitlines()[1:] == ["You said: well"]
    assert [one.text for one in answer.later] == ["Reminder: stretch"]


def test_results_of_other_agents_are_passed_on_when_there_is_no_other_message() -> None:
    result = letter(1, auto=True, text="the build is green")
    notice = letter(2, auto=True, text="a notice", **{"from": "agent:system"})
    assert demo.answer(turn_of(result, notice)).text == "kai says: the build is green"
    assert demo.answer(turn_of(result, result)).text.count("kai says:") == 2
    assert demo.answer(turn_of(letter(1, auto=True, text="remind me in 1h to loop"))).later == ()
    assert demo.answer(turn_of(result, letter(3, text="well"))).text == "You said: well"
    assert demo.answer(turn_of(notice)).text == demo.answer(turn_of()).text == ""


# --- live --------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["status", "remind me in 10m to stretch", "a  b\n\nc " * 200, "x"])
def test_an_answer_is_reported_live_in_pieces(text: str) -> None:
    run = RecordedRun()
    turn = turn_of(letter(text=text))
    answer = asyncio.run(demo.Demo(Options()).take_turn(turn, run))
    progress = run.heard
    expected = demo.answer(turn)
    assert answer == Answer(text=expected.text, later=expected.later)
    assert {one.kind for one in progress} == {"delta"}
    assert "".join(one.text for one in progress) == answer.text
    assert 1 < len(progress) <= demo.PIECES  # so the pauses together stay short
    assert demo.PIECES * demo.PAUSE_SECONDS < 0.4


@given(st.text())
def test_the_pieces_together_are_the_text(text: str) -> None:
    pieces = demo.pieces(text)
    assert "".join(pieces) == text
    assert len(pieces) <= demo.PIECES and all(pieces)
