"""What is one emoji, and how a platform writes it."""

from __future__ import annotations

import pytest

from hiboss.core import emojis


@pytest.mark.parametrize(
    "text",
    [
        "👍",
        "👍🏽",
        "❤",
        "❤️",
        "🇩🇪",
        "👨‍👩‍👧‍👦",
        "🏳️‍🌈",
        "🏴󠁧󠁢󠁥󠁮󠁧󠁿",
        "1️⃣",
        "#⃣",
        "☃",
        "⚡",
        "✍️",
        "🤷🏻‍♀️",
        "🫨",
        "🅰️",
        "©️",
        "㊗️",
    ],
)
def test_these_are_one_emoji(text: str) -> None:
    assert emojis.is_emoji(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "a",
        "A👍",
        "👍👍",
        "👍 ",
        " 👍",
        "ok",
        ":)",
        "1",
        "#",
        "ß",
        "字",
        "🇩",
        "🇩🇪🇩🇪",
        "\u200d",
        "👍\n",
        "“",
    ],
)
def test_these_are_none(text: str) -> None:
    assert not emojis.is_emoji(text)


def test_an_emoji_is_given_as_the_platform_writes_it() -> None:
    taken = frozenset({"❤", "👍", "❤️‍🔥"})
    assert emojis.taken_as("❤️", taken) == "❤"
    assert emojis.taken_as("❤‍🔥", taken) == "❤️‍🔥"
    assert emojis.taken_as("🎉", taken) is None
    assert emojis.taken_as("🎉", None) == "🎉"


def test_some_of_those_that_are_taken_are_the_best_known() -> None:
    assert emojis.some_of(frozenset({"🗿", "👀", "👍"})) == "👍 👀"
    assert emojis.some_of(frozenset({"🗿"})) == "🗿"
