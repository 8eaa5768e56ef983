"""Ids: one letter and a number, and kinds that cannot be mixed up."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hiboss.core import ids
from hiboss.core.errors import BadId
from tests.support.raising import raised


def test_every_kind_has_a_letter_of_its_own() -> None:
    assert ids.KINDS == {
        "e": "envelope",
        "m": "message",
        "t": "thread",
        "c": "conversation",
        "r": "run",
        "s": "schedule",
        "q": "ask",
        "b": "binding",
        "k": "claim",
        "u": "upload",
    }
    assert len(ids.LETTERS) == len(ids.KINDS)


@given(kind=st.sampled_from(sorted(ids.LETTERS)), number=st.integers(1, ids.LARGEST))
def test_an_id_is_read_back_as_written(kind: str, number: int) -> None:
    assert ids.parse(f"{ids.LETTERS[kind]}{number}", kind) == (kind, number)
    assert ids.number(number, kind) == ids.number(str(number), kind) == number


def test_a_bare_number_means_the_first_kind_allowed() -> None:
    assert ids.parse(81, "envelope", "message") == ("envelope", 81)
    assert ids.parse("81", "message", "envelope") == ("message", 81)
    assert ids.parse("m81", "envelope", "message") == ("message", 81)


def test_spaces_around_an_id_do_not_matter() -> None:
    assert ids.number(" e81\n", "envelope") == 81


@pytest.mark.parametrize("value", ["m81", "t81", "E81", "x81", "é81"])
def test_an_id_of_another_kind_is_refused(value: str) -> None:
    with pytest.raises(BadId):
        ids.number(value, "envelope")


@pytest.mark.parametrize(
    "value",
    [
        *("", " ", "e", "e0", "0", 0, -1, "-1", "e-1", "e+1", "e1.0", "1e3", "ee1", "e1e", "e 1", "e1_000"),
        *("e²", "e٣", "e" + "9" * 5000, "e1\x00", True, None, "e81 or 1=1"),
    ],
)
def test_what_is_no_id_is_refused(value: str | int) -> None:
    with pytest.raises(BadId) as refused:
        ids.number(value, "envelope")
    assert "is not a valid envelope id; write for example e81" in refused.value.message
    assert len(refused.value.message) < 200


def test_the_largest_number_sqlite_holds_is_an_id_and_the_next_is_not() -> None:
    assert ids.number(f"e{2**63 - 1}", "envelope") == 2**63 - 1
    with pytest.raises(BadId):
        ids.number(f"e{2**63}", "envelope")


def test_a_refusal_names_every_kind_that_would_be_right() -> None:
    error = raised(BadId, ids.parse, "x1", "envelope", "thread")
    assert error.message == "x1 is not a valid envelope or thread id; write for example e81 or t81"


@given(value=st.text())
def test_any_text_is_an_id_or_refused_as_none(value: str) -> None:
    try:
        kind, number = ids.parse(value, "envelope", "message")
    except BadId:
        return
    assert kind in ("envelope", "message")
    assert 0 < number <= ids.LARGEST
