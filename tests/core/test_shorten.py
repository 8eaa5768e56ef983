"""The beginning of a text, for a quote: one line, not too long, and no character cut in two."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hiboss.core.shortening import QUOTE_CHARACTERS, shorten

FAMILY = "👨\u200d👩\u200d👧\u200d👦"
ENGLAND = "🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f"
# What people see as one character, although it is several code points.
CLUSTERS = {
    "an accent": "e\u0301",
    "three accents": "a\u0301\u0323\u0308",
    "a skin tone": "👋🏽",
    "a family": FAMILY,
    "a family with skin tones": "👩🏽\u200d🤝\u200d👨🏿",
    "a flag": "🇩🇪",
    "a flag of tags": ENGLAND,
    "a keycap": "1\ufe0f\u20e3",
    "a heart": "❤\ufe0f",
    "a Hindi syllable": "\u0915\u093f",
    "a Korean syllable in parts": "\u1112\u1161\u11ab",
    "a Hebrew letter with points": "\u05e9\u05c1\u05b8",
}


def test_a_short_text_stays_as_it_is() -> None:
    assert shorten("is it green?") == "is it green?"
    assert shorten("") == ""


def test_a_text_at_the_limit_is_whole_and_one_over_it_is_cut() -> None:
    assert QUOTE_CHARACTERS == 60
    assert shorten("x" * 60) == "x" * 60
    assert shorten("x" * 61) == "x" * 59 + "…"


@pytest.mark.parametrize(
    "sign",
    [
        "\n",
        "\r\n",
        "\t",
        "\x0b",
        "\x0c",
        "\x1c",
        "\x1d",
        "\x1e",
        "\x1f",
        "\x85",
        "\u2028",
        "\u2029",
        "\u3000",
    ],
)
def test_every_line_break_and_blank_becomes_one_blank(sign: str) -> None:
    assert shorten(f"{sign}is{sign}{sign} it{sign}") == "is it"


def test_no_blank_stands_before_the_dots() -> None:
    assert shorten("five words and then blanks", 6) == "five…"
    assert shorten("ab cdefg", 4) == "ab…"


@pytest.mark.parametrize("cluster", CLUSTERS.values(), ids=CLUSTERS)
def test_what_people_see_as_one_character_is_never_cut(cluster: str) -> None:
    """For every limit, only whole characters come before the dots, as many as fit."""
    text = cluster * 12
    for limit in range(1, len(text)):
        cut = shorten(text, limit)
        assert cut == cluster * ((limit - 1) // len(cluster)) + "…", limit


@pytest.mark.parametrize("cluster", CLUSTERS.values(), ids=CLUSTERS)
def test_a_cut_behind_other_letters_leaves_them(cluster: str) -> None:
    for before in range(1, 8):
        assert shorten("x" * before + cluster + "tail", before + len(cluster)) == "x" * before + "…"


def test_flags_are_counted_in_pairs_from_the_first() -> None:
    flags = "🇩🇪🇫🇷🇮🇹🇯🇵"
    assert shorten(f"x{flags}", 6) == "x🇩🇪🇫🇷…"
    assert shorten(f"x{flags}", 5) == "x🇩🇪…"


def test_one_character_longer_than_the_limit_is_left_out() -> None:
    assert shorten("z" + "\u0301" * 100) == "…"


@given(st.text(), st.integers(1, 80))
def test_a_quote_is_one_line_of_at_most_so_many_characters_and_begins_like_the_text(
    text: str, limit: int
) -> None:
    flat, cut = " ".join(text.split()), shorten(text, limit)
    assert len(cut) <= limit or cut == flat == ""
    assert len(cut.splitlines()) <= 1
    assert cut == flat or (cut.endswith("…") and flat.startswith(cut[:-1]))
