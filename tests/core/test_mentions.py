"""Mentions in a text: which words with an @ are names, and that code and email addresses are none."""

from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hiboss.core import mentions
from hiboss.core.address import NAME_LIMIT
from hiboss.core.envelope import Kind


def words(text: str, kind: Kind = Kind.TEXT) -> list[str]:
    return list(mentions.find(text, kind))


@pytest.mark.parametrize(
    "text",
    [
        "@nex",
        "@Nex, please",
        "(@NEX)",
        "hey @nex.",
        "hey @nex: look",
        "is it @nex's?",
        "**@nex**",
        '"@nex"',
        "“@nex”",
        "@nex-",
        "and…@nex",
        "a\n@nex",
        "\t@nex\r\n",
    ],
)
def test_a_name_after_an_at_is_a_mention_in_lower_case(text: str) -> None:
    assert words(text) == ["nex"]


@pytest.mark.parametrize(
    "text",
    [
        "mail ada@nex.com",
        "ada.l@nex",
        "ada+x@nex",
        "ada-@nex",
        "josé@nex.com",
        "https://example.com/@nex",
        "@nex/package",
        "@@nex",
        "@nex@example.com",
        "@nex_bot",
        "@foo-nex_x",
        "@foo-nex/x",
        "@nexé",
        "@nex" * 2,
        "@ nex",
        "@",
        "@-",
        "@-nex",
        "nex",
        "",
        "@" + "n" * (NAME_LIMIT + 1),
    ],
)
def test_an_email_address_a_package_and_a_part_of_a_word_are_no_mention(text: str) -> None:
    assert words(text) == []


@pytest.mark.parametrize("text", ["请@nex看一下", "@nex、お願い", "네@nex", "，@nex，"])
def test_a_name_needs_no_spaces_where_people_write_none(text: str) -> None:
    assert words(text) == ["nex"]


def test_each_word_is_found_once_in_its_order_and_dashes_belong_to_it() -> None:
    assert words("@kai @tech-lead @NEX @Kai @all") == ["kai", "tech-lead", "nex", "all"]


@pytest.mark.parametrize("kind", [Kind.TEXT, Kind.MARKDOWN])
@pytest.mark.parametrize(
    "text",
    [
        "`@kai` @nex",
        "`` `@kai` `` @nex",
        "``a`@kai`` @nex",
        "@nex `a` `@kai`",
        "```\n@kai\n```\n@nex",
        "```py\n@kai ` ``\n```\n@nex",
        "````\n```\n@kai\n```\n````\n@nex",
        "  ~~~ sh\n@kai\n~~~~\n@nex",
        "@nex\n```\n@kai is never closed",
        "```@kai``` @nex",
        "@nex `a\nb @kai`",
    ],
)
def test_what_is_code_is_no_mention(text: str, kind: Kind) -> None:
    assert words(text, kind) == ["nex"]


@pytest.mark.parametrize(
    "text",
    [
        "a ` alone @nex",
        "`` @nex `",
        "\\`@nex\\`",
        "press ` first\n\n@nex then press ` again",
        "```x``` @nex\nand more",
        "~~@nex~~",
    ],
)
def test_what_only_looks_like_code_hides_nobody(text: str) -> None:
    assert words(text) == ["nex"]


def test_in_html_pre_and_code_are_code() -> None:
    assert words("<b>@nex</b> <code>@kai</code><PRE class=x>@kai</PRE > @max", Kind.HTML) == ["nex", "max"]
    assert words("@nex <code>@kai", Kind.HTML) == words("<coder>@nex</coder>", Kind.HTML) == ["nex"]
    assert words("`@nex`", Kind.HTML) == ["nex"]


@pytest.mark.parametrize("kind", [Kind.JSON, Kind.EVENT])
def test_data_mentions_nobody(kind: Kind) -> None:
    assert words('{"to": "@nex"}', kind) == []


def test_at_most_fifty_different_words_count() -> None:
    many = [f"n{number}" for number in range(80)]
    assert words(" ".join(f"@{one}" for one in many)) == many[: mentions.MOST]


def test_only_the_beginning_of_a_huge_text_is_looked_at_and_no_name_is_cut() -> None:
    room = mentions.SCANNED - len("@kai ")
    assert words("@kai " + "x" * (room - 4) + " @nex and so on") == ["kai"]
    assert words("@kai " + "x" * (room - 5) + " @nex-team and so on") == ["kai"]
    assert words("@kai " + "x" * (room - 10) + " @nex so on" * 9) == ["kai", "nex"]
    assert words("x" * (mentions.SCANNED - 5) + " @nex") == ["nex"]  # it ends there


@pytest.mark.parametrize(
    "text",
    [
        "".join("`" * number + "a" for number in range(1, 360)),
        "a" + "`" * 30_000 + "a" * 30_000,
        "a `" * 20_000,
        "~~~\n" * 16_000,
        "```\n```` " * 7_000,
        "@" * 65_536,
        "@" + "a-" * 32_000,
        "<code>" * 10_000,
        "<pre " * 12_000,
    ],
)
@pytest.mark.parametrize("kind", [Kind.TEXT, Kind.HTML])
def test_a_text_made_to_be_slow_holds_nobody_up(text: str, kind: Kind) -> None:
    for _ in range(10):  # who tries all pairs of backticks needs half a minute for each
        assert len(words(f"{text}@", kind)) <= 1


@given(st.text(alphabet="@nex-`~\n <>/.é看_", max_size=200), st.sampled_from(list(Kind)))
def test_any_text_gives_names_that_stand_in_it(text: str, kind: Kind) -> None:
    for word in words(text, kind):
        assert f"@{word}" in text.lower()
        assert set(word) <= set(string.ascii_lowercase + string.digits + "-")
        assert not (word.startswith("-") or word.endswith("-") or "--" in word)
