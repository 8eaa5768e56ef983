"""What is one emoji, and how a platform writes it."""

from __future__ import annotations

from hiboss.core import emojis

EMOJIS = [
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
]
OTHERS = [
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
]


def test_one_emoji_is_one_and_nothing_else_is() -> None:
    assert [text for text in EMOJIS + OTHERS if emojis.is_emoji(text)] == EMOJIS


def test_an_emoji_is_given_as_the_platform_writes_it() -> None:
    taken = frozenset({"❤", "👍", "❤️‍🔥"})
    assert emojis.taken_as("❤️", taken) == "❤" and emojis.taken_as("❤‍🔥", taken) == "❤️‍🔥"
    assert emojis.taken_as("🎉", taken) is None and emojis.taken_as("🎉", None) == "🎉"


def test_some_of_those_that_are_taken_are_the_best_known() -> None:
    assert emojis.some_of(frozenset({"🗿", "👀", "👍"})) == "👍 👀"
    assert emojis.some_of(frozenset({"🗿"})) == "🗿"
