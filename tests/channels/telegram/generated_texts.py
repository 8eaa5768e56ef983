"""Texts of all kinds for property tests: Markdown that is nested, HTML, JSON, and what no parser expects."""

from __future__ import annotations

import json

from hypothesis import strategies as st

ODD = [
    "👩\u200d👩\u200d👧",  # a family: five code points, eight units
    "🇩🇪🇫🇷",
    "e\u0301o\u0308",
    "👍🏽",
    "✈\ufe0f",
    "שלום",
    "مرحبا",
    "日本語。文",
    "हिन्दी",
    "\u0600a",
    "\u00a0",
    "\u2028",
    "\x1f",
    "\x07",
    "\r",
    "\t",
    " \u0301",
]
PLAIN = [
    "a",
    "word",
    "sentence.",
    "Is it? ",
    "x" * 70,
    "https://example.org/a_b_c",
    "<b>",
    "&amp;",
    "1.",
    "-",
]
MARKS = [
    "*",
    "**",
    "_",
    "`",
    "~~",
    "[",
    "](",
    ")",
    "![",
    ">",
    "#",
    "|",
    "\n",
    "\n\n",
    "```",
    "- ",
    "    ",
    "<",
    "\\",
]
word = st.sampled_from(PLAIN + ODD)
words = st.lists(word, min_size=1, max_size=8).map(" ".join)
url = st.sampled_from(
    [
        "https://example.org/a",
        "http://localhost:80",
        "tg://user?id=7",
        "mailto:a@b.org",
        "src/x.py",
        "#top",
        "a b",
    ]
)

inline = st.recursive(
    words,
    lambda inner: st.one_of(
        inner.map(lambda one: f"**{one}**"),
        inner.map(lambda one: f"*{one}*"),
        inner.map(lambda one: f"~~{one}~~"),
        inner.map(lambda one: f"`{one}`"),
        st.tuples(inner, url).map(lambda one: f"[{one[0]}]({one[1]})"),
        st.tuples(inner, url).map(lambda one: f"![{one[0]}](<{one[1]}>)"),
        st.tuples(inner, inner).map(" ".join),
        st.tuples(inner, inner).map("\n".join),
    ),
    max_leaves=6,
)


def _indented(text: str, first: str, rest: str) -> str:
    lines = text.split("\n")
    return "\n".join([first + lines[0], *(rest + line if line.strip() else line for line in lines[1:])])


def _table(cells: list[str]) -> str:
    cells = [one.replace("\n", " ").replace("|", "/") for one in cells]
    rows = [f"| {first} | {second} |" for first, second in zip(cells[::2], cells[1::2], strict=False)]
    return "\n".join([rows[0], "|:--|--:|", *rows[1:]])


def _list(items: list[str], marks: list[str]) -> str:
    made = zip(items, marks * len(items), strict=False)
    return "\n".join(_indented(item, mark, " " * (3 if mark[0].isdigit() else 2)) for item, mark in made)


code = st.tuples(
    st.sampled_from(["", "python", "c++ x", "<bad>"]),
    st.lists(st.sampled_from(["", "    if x:", "\tpass", "}" * 60])),
)
leaf = st.one_of(
    inline,
    st.tuples(st.integers(1, 6), words).map(lambda one: "#" * one[0] + " " + one[1].replace("\n", " ")),
    code.map(lambda one: "\n".join(["```" + one[0], *one[1], "```"])),
    st.lists(inline, min_size=2, max_size=12).map(_table),
    st.just("---"),
    words.map(lambda one: f"<div>{one}</div>"),
)
block = st.recursive(
    leaf,
    lambda inner: st.one_of(
        inner.map(lambda one: _indented(one, "> ", "> ")),
        st.tuples(
            st.lists(inner, min_size=1, max_size=4),
            st.sampled_from([["- "], ["1. "], ["7) "], ["- [ ] ", "- [x] "], ["* "]]),
        ).map(lambda one: _list(*one)),
        st.tuples(words, inner).map(
            lambda one: f"<details><summary>{one[0]}</summary>\n\n{one[1]}\n\n</details>".replace("\r", " ")
        ),
        st.lists(inner, min_size=2, max_size=3).map("\n\n".join),
    ),
    max_leaves=8,
)
small_table = st.lists(
    st.sampled_from(["a", "`b`", "**c**", "日本", "e\u0301", "", "d e", "👍🏽", "f|"]),
    min_size=20,
    max_size=60,
).map(_table)
nested_markdown = st.lists(block, min_size=1, max_size=4).map("\n\n".join)
noise = st.lists(st.sampled_from(MARKS + PLAIN + ODD), max_size=60).map("".join)
markdown = st.one_of(nested_markdown, nested_markdown.map(lambda one: one.replace("\n", "\r\n")), noise)

TAGS = [
    *(
        "b",
        "i",
        "u",
        "s",
        "code",
        "pre",
        "a",
        "tg-spoiler",
        "span",
        "blockquote",
        "p",
        "br",
        "h1",
        "h3",
        "ul",
        "ol",
    ),
    *("li", "table", "tr", "td", "th", "details", "summary", "hr", "script", "div", "unknown", "img"),
]
tag = st.one_of(
    st.sampled_from(TAGS).map(lambda one: f"<{one}>"),
    st.sampled_from(TAGS).map(lambda one: f"</{one}>"),
    url.map(lambda one: f'<a href="{one}">'),
    st.sampled_from(
        ["<blockquote expandable>", '<code class="language-js">', "<![x", "<!--", "&#31;", "<p", "&#13;"]
    ),
)
html = st.lists(st.one_of(tag, word, st.just("\n")), max_size=60).map("".join)

json_text = st.one_of(
    st.recursive(
        st.one_of(st.none(), st.integers(), st.floats(), words),
        lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(words, inner, max_size=4)),
        max_leaves=20,
    ).map(json.dumps),
    noise,
    st.sampled_from(['{"a": 1, "a": 2}', '"\\ud83d"', "1e999", "[" * 3000, "9" * 5000]),
)
plain = st.lists(st.one_of(word, st.sampled_from(MARKS), st.text(max_size=5)), max_size=80).map("".join)

typed = st.one_of(
    st.tuples(st.just("markdown"), markdown),
    st.tuples(st.just("html"), html),
    st.tuples(st.just("json"), json_text),
    st.tuples(st.sampled_from(["text", "event"]), plain),
)
limits = st.sampled_from([24, 40, 64, 100, 250, 1000, 4096])
