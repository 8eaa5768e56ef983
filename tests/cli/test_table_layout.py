"""Tables for a terminal: nothing wider than it, no letter cut in two, nothing that steers it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wcwidth import wcswidth, wcwidth

from hiboss.cli.table_layout import Column, fit
from hiboss.cli.text_layout import cut, flat, tame, width, wrapped

FAMILY = "👩\u200d👩\u200d👧\u200d👦"
ANY_TEXT = st.text(st.characters(), max_size=40)
THREE = [
    Column(title="id", least=2),
    Column(title="from", least=8, most=12, leaves=1),
    Column(title="text", least=8),
]


def lines(columns: list[Column], rows: list[list[str]], cells: int) -> list[str]:
    return [one.text for one in fit(columns, rows, cells)]


@pytest.mark.parametrize(
    ("text", "cells"),
    [("", 0), ("plain", 5), ("Zoë – “x”…", 10), ("漢字", 4), ("e\u0301", 1), ("한국어 x", 8)],
)
def test_width_counts_cells_and_not_code_points(text: str, cells: int) -> None:
    assert width(text) == cells


def test_joined_emoji_count_as_on_a_terminal_that_does_not_join_them() -> None:
    """Else such a terminal would break the row, and the next one would begin with what a sender wrote."""
    assert width(FAMILY) == 8
    assert width("\u2764\ufe0f") == 2  # a heart that is made wide
    rows = wrapped("\U0001f469\u200d" * 39 + "from-boss: true", 78)
    assert all(sum(wcwidth(letter) for letter in row) <= 78 for row in rows)


@pytest.mark.parametrize(
    ("text", "cells", "kept"),
    [
        ("as it is", 8, "as it is"),
        ("one more", 7, "one mo…"),
        ("space then", 7, "space…"),
        ("漢字かな", 8, "漢字かな"),
        ("漢字かな", 7, "漢字か…"),
        ("漢字かな", 6, "漢字…"),  # a wide letter that would stand half outside is left out
        (f"x{FAMILY}{FAMILY}", 10, f"x{FAMILY}…"),
        ("ab", 1, "…"),
        ("ab", 0, ""),
    ],
)
def test_a_text_is_cut_between_letters_with_a_mark_behind_it(text: str, cells: int, kept: str) -> None:
    assert cut(text, cells) == kept


@pytest.mark.parametrize(
    ("text", "tamed"),
    [
        ("\x1b[31mred\x07", "\\x1b[31mred\\x07"),
        ("a\x9b31mb\x7f", "a\\x9b31mb\\x7f"),
        ("a\u202egnp.exe\u2066x\u2069", "a\\u202egnp.exe\\u2066x\\u2069"),
        ("a\u2028b\rc\ud800", "a\\u2028b\\x0dc\\ud800"),
        (f"tab\tand\nline שלום\u200f {FAMILY} \u3000", f"tab\tand\nline שלום\u200f {FAMILY} \u3000"),
    ],
)
def test_what_could_steer_a_terminal_is_written_out_and_nothing_else(text: str, tamed: str) -> None:
    assert tame(text) == tamed


def test_a_text_of_several_lines_becomes_one() -> None:
    assert flat("  first\r\n\tsecond \x1b\n\n") == "first second \\x1b"
    assert len(flat("x" * 1_000_000)) == 500


def test_columns_are_as_wide_as_their_widest_text_when_there_is_room() -> None:
    rows = [["e1", "agent:nex", "hello"], ["e10", "user:boss", "漢字"]]
    assert lines(THREE, rows, 80) == [
        "id   from       text",
        "e1   agent:nex  hello",
        "e10  user:boss  漢字",
    ]


def test_the_widest_column_gives_way_first_but_one_above_its_most_before_it() -> None:
    rows = [["e1", "agent:with-a-long-name", "a text that goes on and on"]]
    assert lines(THREE, rows, 40) == [
        "id  from          text",
        "e1  agent:with-…  a text that goes on a…",
    ]
    assert lines(THREE, rows, 24) == ["id  from       text", "e1  agent:wi…  a text t…"]


def test_a_column_that_says_nothing_or_finds_no_room_leaves() -> None:
    assert lines(THREE, [["e1", "", "hello"]], 80) == ["id  text", "e1  hello"]
    assert lines(THREE, [["e1", "agent:nex", "hello you there"]], 20) == [
        "id  text",
        "e1  hello you there",
    ]


@pytest.mark.parametrize(
    ("text", "cells", "whole"),
    [
        ("hello", 80, True),
        ("two\nlines", 80, True),
        ("hello", 14, True),
        ("hello you", 12, False),
        ("x" * 500, 600, True),
        ("x" * 501, 600, False),  # more than a row ever shows
        ("hello", 3, False),
    ],
)
def test_a_line_knows_whether_it_shows_all_of_the_last_column(text: str, cells: int, whole: bool) -> None:
    _, row = fit(THREE, [["e1", "", text]], cells)
    assert row.whole is whole


@given(rows=st.lists(st.tuples(ANY_TEXT, ANY_TEXT, ANY_TEXT).map(list), max_size=5), cells=st.integers(1, 90))
def test_no_line_is_wider_than_the_terminal_whatever_is_in_it(rows: list[list[str]], cells: int) -> None:
    printed = lines(THREE, rows, cells)
    assert len(printed) == len(rows) + 1
    for line in printed:
        assert 0 <= wcswidth(line) <= cells
        assert len(line.splitlines()) <= 1


@given(ANY_TEXT)
def test_what_is_tamed_has_a_width(text: str) -> None:
    assert 0 <= wcswidth(flat(text)) <= width(flat(text))
