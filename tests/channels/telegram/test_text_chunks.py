"""How texts are split into posts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hiboss.channels.telegram import posting, text_chunks
from hiboss.core.contracts.adapter import File
from hiboss.testing.adapter_rig import letter

FAMILY = "👩\u200d👩\u200d👧"
FLAG = "🇩🇪"


def test_a_short_text_stays_as_it_is() -> None:
    assert text_chunks.split("  hello\n\nyou  ") == ["  hello\n\nyou  "]


def test_a_text_without_words_is_no_post_but_a_letter_has_at_least_one() -> None:
    assert text_chunks.split(" \n ") == []
    assert posting.chunks(letter("7", " \n ")) == [""]


def test_a_text_is_split_at_paragraphs_before_lines_before_words() -> None:
    lines = "x" * 1000 + "\n" + "y" * 1500 + "\n\n" + "z" * 1000 + "\n" + "w" * 1000
    assert text_chunks.split(lines) == lines.split("\n\n")
    lines = "x" * 3000 + "\n" + "y y" * 500
    assert text_chunks.split(lines) == lines.split("\n")
    words = "word " * 2000
    assert all(set(one.split()) == {"word"} for one in text_chunks.split(words))


@pytest.mark.parametrize("one", ["😀", FAMILY, FLAG, "e\u0301", "👍🏽", "✈\ufe0f"])
def test_no_character_is_split(one: str) -> None:
    for shift in range(4):
        text = "a" * shift + one * 5000
        found = text_chunks.split(text)
        assert "".join(found) == text
        assert all(len(part.removeprefix("a" * shift)) % len(one) == 0 for part in found)


@given(st.text(alphabet=st.sampled_from("ab \n😀\u0301\u200d🇩\x1f"), max_size=400).map(lambda one: one * 30))
def test_every_chunk_fits_is_no_file_and_no_word_is_lost(text: str) -> None:
    found = text_chunks.split(text)
    assert all(one.strip() and text_chunks.units(one) <= text_chunks.MOST_UNITS for one in found)
    assert all(text_chunks.file_number(one) is None for one in found)
    assert "".join("".join(found).split()) == "".join(text.split())


def test_units_are_those_of_utf_16() -> None:
    assert [text_chunks.units(one) for one in ("", "a", "ä€", "😀", FAMILY)] == [0, 1, 2, 2, 8]


def test_each_file_is_a_chunk_after_the_text() -> None:
    files = tuple(File(name, f"/{name}", "text/plain") for name in ("a", "b"))
    found = posting.chunks(letter("7", "hello", files=files))
    assert found[0] == "hello"
    assert [text_chunks.file_number(one) for one in found] == [None, 0, 1]
    assert [text_chunks.file_number(one) for one in posting.chunks(letter("7", "", files=files))] == [0, 1]


def test_a_text_that_looks_like_a_file_is_none() -> None:
    (found,) = posting.chunks(letter("7", text_chunks.file_chunk(0)))
    assert text_chunks.file_number(found) is None
