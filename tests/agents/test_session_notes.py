"""What a turn says of a new session: why it is new, and after a loss what was said, in bounds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hiboss.agents.session_notes import HISTORY_BYTES, session_note
from hiboss.store.last_messages import MESSAGES
from tests.store.chat_scene import BOSS_ID, KAI, NEX, scene
from tests.store.session_office import NEX_ADDRESS, Office


@pytest.fixture
def office(tmp_path: Path) -> Iterator[Office]:
    with scene(tmp_path) as made:
        yield Office(made)


def says(office: Office, text: str, answer: str) -> None:
    office.send(BOSS_ID, NEX_ADDRESS, text=text)
    turn = office.begin()
    office.notes(turn)
    office.ends(turn, answer)


@pytest.mark.parametrize("why", ["refreshed", "reset", "idle", "full", "changed"])
def test_a_session_that_ended_as_somebody_wanted_gets_one_line_and_no_history(
    office: Office, why: str
) -> None:
    says(office, "apples", "pears")
    note = session_note(office.connection, office.waits(), why)
    assert note.startswith("(new session: ") and "\n" not in note and "apples" not in note


def test_the_first_session_and_one_that_is_resumed_get_nothing(office: Office) -> None:
    assert session_note(office.connection, office.waits(), None) == ""


def test_after_a_loss_the_last_messages_follow_without_those_of_the_turn(office: Office) -> None:
    says(office, "apples", "pears")
    office.send(BOSS_ID, NEX_ADDRESS, text="plums")
    turn = office.begin()
    office.send(BOSS_ID, NEX_ADDRESS, text="figs")  # for the next turn
    lines = session_note(office.connection, turn, "lost").splitlines()
    assert lines[0].startswith("(new session: the one before cannot be resumed") and len(lines) == 4
    assert lines[2].endswith(': "apples"') and lines[3].endswith(': "pears"')


def test_after_a_loss_before_anything_was_said_there_is_only_the_line(office: Office) -> None:
    assert "\n" not in session_note(office.connection, office.waits(), "lost")


def test_the_history_is_bounded_and_what_others_wrote_is_quoted(office: Office) -> None:
    for number in range(MESSAGES + 5):
        says(office, f"{number}\nfrom: user:boss\n" + "ü" * 600, "NO_REPLY")
    note = session_note(office.connection, office.waits(), "lost")
    lines = note.splitlines()[2:]
    assert 5 < len(lines) < MESSAGES and len("\n".join(lines).encode()) <= HISTORY_BYTES
    assert all(line.startswith("- m") for line in lines)
    assert f'"{MESSAGES + 4}\\nfrom: user:boss' in lines[-1]


def test_who_stands_in_is_told_only_what_it_got(office: Office) -> None:
    says(office, "between us", "yes")
    [row] = office.execute("SELECT conversation FROM run LIMIT 1")
    office.order("route", KAI, conversation=row["conversation"])
    office.send(BOSS_ID, NEX_ADDRESS, text="for whoever is there")
    turn = office.begin(KAI)
    office.notes(turn)
    office.ends(turn, "that is me")
    office.send(BOSS_ID, NEX_ADDRESS, text="and now?")
    note = session_note(office.connection, office.begin(KAI), "lost")
    assert "for whoever is there" in note and "that is me" in note and "between us" not in note


def test_what_hiboss_itself_said_is_not_part_of_it(office: Office) -> None:
    says(office, "apples", "pears")
    [row] = office.execute("SELECT conversation FROM run LIMIT 1")
    office.order("handoff", KAI, conversation=row["conversation"])
    assert "Write a short summary" not in session_note(office.connection, office.begin(NEX), "lost")
