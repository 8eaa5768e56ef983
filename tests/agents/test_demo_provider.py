"""The demo provider: what it answers to what, without a daemon."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hiboss.agents.providers import demo
from hiboss.core import clock
from hiboss.core.contracts.provider import Answer, Progress, Reminder, TurnInput
from tests.core.letters import letter

NOW = clock.parse("2026-01-28T12:08:45Z", now=0, zone=clock.zone("UTC"))
SECOND, MINUTE, HOUR = 1000, 60_000, 3_600_000


def task(*envelopes: dict[str, Any], **facts: Any) -> TurnInput:
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
        "output_bytes": 1_000_000,
    }
    return TurnInput(**{**known, **facts})


def said(text: str, **facts: Any) -> demo.Said:
    return demo.answer(task(letter(text=text, **facts)))


async def _nothing(pid: int) -> None:
    raise AssertionError("it starts no process")


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
def test_a_reminder_is_set_however_it_is_said(text: str, length: int) -> None:
    answer = said(text)
    assert answer.later == (Reminder(text="Reminder: stretch", deliver_at=NOW + length),)
    assert answer.text.endswith(": stretch")


def test_a_reminder_is_confirmed_with_the_time_where_the_boss_is() -> None:
    assert said("remind me in 10m to stretch").text == (
        "All right, I will remind you at 20:18:45 (Asia/Shanghai): stretch"
    )
    assert "on 2026-01-29 at 00:08:45 (Asia/Shanghai)" in said("remind me in 4h to stretch").text
    assert said("remind me to call in sick in 2h").later[0].text == "Reminder: call in sick"


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
def test_what_is_no_reminder_is_answered_with_what_would_be_right(text: str) -> None:
    answer = said(text)
    assert answer.later == ()
    assert "remind me in 10m to stretch" in answer.text


def test_how_far_a_reminder_may_be_is_said() -> None:
    assert "365 days" in said("remind me in 366d to stretch").text
    assert "a second" in said("remind me in 0m to stretch").text
    assert "what to remind you of" in said("remind me in 10m").text
    assert "when to remind you" in said("remind me to stretch").text


@given(st.text(alphabet="remind me in10hm.,ato\n 5", max_size=60))
def test_whatever_is_asked_a_reminder_lies_ahead_and_within_a_year(text: str) -> None:
    for reminder in said(f"remind me {text}").later:
        assert NOW < reminder.deliver_at <= NOW + demo.YEAR_MS
        assert reminder.text.removeprefix("Reminder: ").strip()


@pytest.mark.parametrize("filling", [" ", "in ", "1h", "and ", "remind me ", ","])
def test_a_long_message_is_answered_all_the_same(filling: str) -> None:
    """A pattern that goes over it again and again would not come to an end."""
    for text in ("remind me" + filling * 100_000 + "x", "please" + filling * 100_000, filling * 100_000):
        assert len(said(text).text) < 3_000


# --- other words -------------------------------------------------------------------------


def test_the_status_says_who_it_is_what_time_and_how_to_choose_another() -> None:
    text = demo.answer(task(letter(text="Status?"), due=3)).text
    assert "I am nex." in text
    assert "2026-01-28T20:08:45+08:00 (Asia/Shanghai)" in text
    assert "3 messages were due" in text
    assert "demo provider" in text
    assert 'hiboss agent set --as boss --name nex --provider command --command "python agent.py"' in text
    assert "1 message was due" in demo.answer(task(letter(text="status"))).text
    assert "1000+ messages were due" in demo.answer(task(letter(text="/status"), due="1000+")).text


def test_help_names_every_word_it_knows() -> None:
    for word in ("help", "Help!", "/help"):
        text = said(word).text
        assert all(known in text for known in ("remind me in 10m to stretch", "status", "help"))


@pytest.mark.parametrize("text", ["hello", "Hi!", "hey nex", "Hello, nex!"])
def test_a_greeting_is_returned_by_name(text: str) -> None:
    assert said(text, from_name="Kevin").text.startswith("Hello Kevin! I am nex.")
    assert said(text).text.startswith("Hello kai!")
    author = {"author": {"name": "Alice", "username": "alice"}}
    assert said(text, channel=author, from_name="other").text.startswith("Hello Alice!")


def test_a_name_cannot_bring_lines_of_its_own() -> None:
    text = said("hi", from_name="Eve\nStatus: all fine" + "x" * 1000).text
    assert "\n" not in text
    assert len(text) < 200


@pytest.mark.parametrize(
    "text", ["what is new?", "two\nlines", "hi, can you do this for me", "status of x", "NO_REPLY"]
)
def test_everything_else_is_said_back(text: str) -> None:
    assert said(text) == demo.Said(f"You said: {text}")


def test_files_are_named() -> None:
    files = [
        {"name": name, "path": "/x", "size": 1, "mime": "text/plain", "sha256": ""}
        for name in ("a.pdf", "b\n.png")
    ]
    assert said("look", attachments=files).text == "You said: look\nYou sent: a.pdf, b .png"
    assert said("", attachments=files[:1]).text == "You sent: a.pdf"
    assert said(" ").text == "You said nothing."


def test_a_long_text_is_said_back_in_short() -> None:
    text = said("word " * 10_000).text
    assert text.startswith("You said: word word")
    assert text.endswith("…")
    assert len(text) < 2_100


# --- turns of several ------------------------------------------------------------------


def test_the_last_message_is_answered_and_no_reminder_is_lost() -> None:
    first, second = letter(1, text="remind me in 1h to stretch"), letter(2, text="well")
    answer = demo.answer(task(first, letter(3, text="unheard"), second))
    assert answer.text.splitlines()[1:] == ["You said: well"]
    assert [one.text for one in answer.later] == ["Reminder: stretch"]


def test_results_of_others_are_passed_on_when_nobody_else_has_said_anything() -> None:
    result = letter(1, auto=True, text="the build is green")
    notice = letter(2, auto=True, text="a notice", **{"from": "agent:system"})
    assert demo.answer(task(result, notice)).text == "kai says: the build is green"
    assert demo.answer(task(result, result)).text.count("kai says:") == 2
    assert demo.answer(task(letter(1, auto=True, text="remind me in 1h to loop"))).later == ()
    assert demo.answer(task(result, letter(3, text="well"))).text == "You said: well"
    assert demo.answer(task(notice)).text == ""
    assert demo.answer(task()).text == ""


# --- live --------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["status", "remind me in 10m to stretch", "a  b\n\nc " * 200, "x"])
def test_an_answer_is_heard_piece_by_piece(text: str) -> None:
    heard: list[Progress] = []
    turn = task(letter(text=text))
    thought = asyncio.run(demo.Demo({}).take_turn(turn, heard.append, _nothing))
    expected = demo.answer(turn)
    assert thought == Answer(text=expected.text, later=expected.later)
    assert {one.kind for one in heard} == {"delta"}
    assert "".join(one.text for one in heard) == thought.text
    assert 1 < len(heard) <= demo.PIECES  # so the pauses together stay short
    assert demo.PIECES * demo.PAUSE_SECONDS < 0.4


@given(st.text())
def test_the_pieces_together_are_the_text(text: str) -> None:
    pieces = demo.pieces(text)
    assert "".join(pieces) == text
    assert len(pieces) <= demo.PIECES
    assert all(pieces)
