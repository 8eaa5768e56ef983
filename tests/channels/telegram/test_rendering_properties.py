"""Whatever a letter says, its chunks are all of it, within the limits, and formatted as Telegram wants it."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from wcwidth import iter_graphemes

from hiboss.channels.telegram import rendering
from hiboss.channels.telegram.chunk_form import CAPTION_UNITS, Chunk, decode, encode
from hiboss.core.contracts.adapter import Letter
from hiboss.testing.adapter_rig import letter
from tests.support import bulk

from . import generated_texts as texts
from .markup_checkers import RichReader, covered, entity_problems, words
from .telegram_rig import places

pytestmark = pytest.mark.slow

MANY = 10**9


def made(kind: str, text: str, front: str = "", subject: str | None = None) -> Letter:
    return letter("7", front + text, type=kind, front=len(front), subject=subject)


def whole(one: Letter) -> str:
    """Return the text of a letter that is not cut."""
    found = rendering.render(one, most_units=MANY, most_entities=MANY)
    assert len(found) <= 1
    return found[0].text if found else ""


def units(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


def check(chunk: Chunk, most_units: int = 4096, most_entities: int = 100) -> None:
    """Fail if a chunk is not as Telegram wants it."""
    assert chunk.text.strip() and units(chunk.text) <= most_units
    assert len(chunk.entities) <= most_entities and not re.search(r"[\x00-\x08\x0b-\x1f]", chunk.text)
    assert entity_problems(chunk.text, chunk.entities) == []
    assert chunk.files == () and chunk.problem is None
    assert decode(encode(chunk)) == chunk
    if chunk.rich is not None:
        assert len(chunk.rich) <= 32768
        read = RichReader(chunk.rich)
        assert read.blocks <= 500 and read.deepest <= 16
        assert words(read.seen) == words(chunk.text)
        linked = [one["url"] for one in chunk.entities if one["type"] == "text_link"]
        assert set(read.links) == set(linked)


@settings(max_examples=bulk.number(120, 400))
@given(texts.typed, texts.limits, st.sampled_from([12, 100]), st.sampled_from(["", "nex:\n", "nex: "]))
def test_every_chunk_is_within_the_limits_and_formatted_well(
    typed: tuple[str, str], most_units: int, most_entities: int, front: str
) -> None:
    one = made(*typed, front)
    chunks = rendering.render(one, most_units=most_units, most_entities=most_entities)
    for chunk in chunks:
        check(chunk, most_units, most_entities)
    assert chunks == rendering.render(one, most_units=most_units, most_entities=most_entities)


@settings(max_examples=bulk.number(100, 300))
@given(texts.typed, texts.limits, st.sampled_from([None, "about **it**"]))
def test_rejoined_chunks_are_the_text_and_no_letter_is_cut(
    typed: tuple[str, str], limit: int, subject: str | None
) -> None:
    one = made(*typed, "nex:\n", subject)
    text = whole(one)
    chunks = rendering.render(one, most_units=limit)
    name = "nex:" if limit >= 16 else ""  # each chunk begins with it
    edges = {edge for place in places(text, chunks, name) for edge in place}
    start = 0
    for letter_ in iter_graphemes(text):
        if any(start < edge < start + len(letter_) for edge in edges):
            room = limit - limit // 4 - len("nex:\n")  # a header may need a quarter
            assert units(letter_) > room, f"{letter_!r} was cut"
        start += len(letter_)


@given(texts.small_table, st.sampled_from(["", "> ", "- "]), st.integers(50, 150))
def test_a_table_that_is_cut_has_its_header_in_each_chunk(table: str, before: str, limit: int) -> None:
    inside = "\n".join(
        (before if not number else before.replace("-", " ")) + line
        for number, line in enumerate(table.split("\n"))
    )
    one = made("markdown", inside)
    text = whole(one)
    chunks = rendering.render(one, most_units=limit)
    places(text, chunks)
    header = re.search(r".*\n[-+]+(?=\n|$)", text)
    assert header is not None
    for chunk in chunks:
        check(chunk, limit)
        code = [covered(chunk.text, one) for one in chunk.entities if one["type"] == "pre"]
        if code and units(header[0]) < limit // 4:
            assert code[0].startswith(header[0])


@given(texts.plain, texts.limits)
def test_chunks_of_plain_text_are_the_text_of_the_letter(text: str, limit: int) -> None:
    expected = re.sub(r"[\x00-\x08\x0b-\x1f]", " ", re.sub("\r\n?", "\n", text))
    chunks = rendering.render(made("text", text), most_units=limit)
    places(expected, chunks)
    assert all(chunk == Chunk(chunk.text) for chunk in chunks)


@given(st.one_of(texts.plain, texts.json_text))
def test_every_word_of_json_and_of_text_with_a_front_is_there(text: str) -> None:
    for kind in ("json", "text"):
        first, *others = [one.text for one in rendering.render(made(kind, text, "nex:\n"))]
        found = "".join([first, *(one.removeprefix("nex:\n") for one in others)])
        if kind == "text" or not re.match(r'\s*[\[{"0-9NnIi-]', text):  # JSON may be written in another way
            expected = re.sub(r"[\x00-\x20]|\s", "", "nex:" + text)
            assert re.sub(r"\s", "", found) == expected


@settings(max_examples=bulk.number(12, 30))
@given(st.one_of(texts.nested_markdown, texts.noise), texts.limits)
def test_every_beginning_of_a_growing_text_renders_well(text: str, limit: int) -> None:
    for end in range(0, len(text) + 1, max(1, len(text) // 60)):
        for chunk in rendering.render(made("markdown", text[:end]), most_units=limit):
            check(chunk, limit)


@given(texts.typed)
def test_a_caption_is_the_only_chunk_of_its_letter_if_it_is_short_and_needs_no_rich_form(
    typed: tuple[str, str],
) -> None:
    one = made(*typed)
    chunks = rendering.render(one)
    fits = len(chunks) == 1 and units(chunks[0].text) <= CAPTION_UNITS and chunks[0].rich is None
    assert rendering.caption(one) == (chunks[0] if fits else None)


HOSTILE = [
    *(
        "[",
        "](",
        "![",
        ">",
        "> ",
        "*",
        "**a ",
        "_a ",
        "*_",
        "`",
        "`a``",
        "- ",
        "1. ",
        "| | ",
        "~~a",
        "<",
        "&",
    ),
    *(
        "<details>\n",
        "<details><summary>a</summary>\n",
        "|-\n",
        "a|b\n-|-\n",
        "- a\n",
        "[a]: b\n",
        "[x]\n",
        "http://_",
    ),
    *("<b>", "<ul><li>", "<table>", "<td>", "</b>", "<!--", "<![CDATA[", "<a href='", "<pre>", "&#", "<p"),
    *(
        '<a href=">',
        "<a b='>",
        "<!-- -->",
        "<script>",
        "</p <p>",
        "<p/ >",
        "<i><b></i>",
        "<a href=x>",
        "<td><tr>",
        "<p '",
    ),
    *("[1,", '{"a":', "👩\u200d", "🇩", "\u0301", "word ", "x", "\n", "\u2028", "\x1f", "# a\n", "    a\n"),
]


@pytest.mark.parametrize(
    ("kind", "size"), [("markdown", 8_000), ("html", 20_000), ("json", 20_000), ("markdown", 1 << 20)]
)
def test_nothing_hostile_raises_or_takes_long(kind: str, size: int) -> None:
    for piece in HOSTILE:
        chunks = rendering.render(made(kind, piece * (size // len(piece))))
        for chunk in chunks[:2] + chunks[-1:]:
            check(chunk)


@pytest.mark.parametrize("depth", [5, 12, 60, 400])
def test_what_is_nested_too_deeply_is_text(depth: int) -> None:
    for text in (
        ">" * depth + " inner",
        "\n".join("  " * level + "- item" for level in range(depth)),
        "<blockquote><ul><li>" * depth + "inner",
        "**_" * depth + "inner" + "_**" * depth,
    ):
        for kind in ("markdown", "html"):
            chunks = rendering.render(made(kind, text))
            assert "".join(one.text for one in chunks).count("item") == text.count("item")
            assert "".join(one.text for one in chunks).count("inner") == text.count("inner")
            for chunk in chunks:
                check(chunk)


@settings(max_examples=20)
@given(st.lists(st.sampled_from(["**a**", "`b`", "[c](https://d.org)", "_e_", "f"]), min_size=1, max_size=10))
def test_a_chunk_has_at_most_a_hundred_entities_and_none_is_lost(pieces: list[str]) -> None:
    chunks = rendering.render(made("markdown", " ".join(pieces * 150)))
    formatted = [covered(chunk.text, one) for chunk in chunks for one in chunk.entities]
    assert formatted == [one.strip("*`_[").partition("]")[0] for one in pieces * 150 if one != "f"]
    assert all(len(chunk.entities) <= 100 for chunk in chunks)
