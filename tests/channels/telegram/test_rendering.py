"""How letters look in Telegram, by example."""

from __future__ import annotations

import pytest

from hiboss.channels.telegram import rendering
from hiboss.channels.telegram.chunk_form import Chunk
from hiboss.testing.adapter_rig import letter

from .markup_checkers import covered, entity_problems

# The Markdown, the text it becomes, and the words with their entities.
MARKDOWN = {
    "plain": ("just words", "just words", []),
    "styles": ("**b** *i* ~~s~~ `c`", "b i s c", ["bold b", "italic i", "strikethrough s", "code c"]),
    "styles in each other": ("**b *both* b**", "b both b", ["bold b both b", "italic both"]),
    "code in bold ends it": ("**a `b` c**", "a b c", ["bold a", "code b", "bold c"]),
    "lines stay lines": ("one\ntwo  \nthree", "one\ntwo\nthree", []),
    "link": ("see [it](https://a.org/b)", "see it", ["text_link it https://a.org/b"]),
    "code as a link is a link": ("[`x`](https://a.org)", "x", ["text_link x https://a.org"]),
    "link that has no host": ("[app](http://localhost:3000)", "app (http://localhost:3000)", []),
    "link to a file": ("[main](src/main.py)", "main (src/main.py)", []),
    "link to an address": ("[Ada](mailto:ada@a.org)", "Ada (ada@a.org)", []),
    "link to a place in the text": ("[above](#top)", "above", []),
    "link with a space": ("[a](<https://a.org/x y>)", "a", ["text_link a https://a.org/x%20y"]),
    "bare address": ("https://a.org/_x_ and <https://b.org>", "https://a.org/_x_ and https://b.org", []),
    "picture": ("![a cat](https://a.org/c.png)", "a cat", ["text_link a cat https://a.org/c.png"]),
    "picture in a link": ("[![a](https://i.org/a)](https://b.org)", "a", ["text_link a https://b.org"]),
    "heading": ("## About `x`\ntext", "About x\n\ntext", ["bold About", "code x"]),
    "code block": ("```python\n  if x:\n    y\n```", "  if x:\n    y", ["pre   if x:\n    y python"]),
    "quotation": ("> a\n>\n> > b", "a\n\nb", ["blockquote a\n\nb"]),
    "code in a quotation": ("> a\n> ```\n> b\n> ```", "a\n\nb", ["blockquote a\n\nb", "pre b"]),
    "rule": ("a\n\n---\n\nb", "a\n\n———\n\nb", []),
    "raw HTML is text": ("<b>a</b> <!-- c -->", "<b>a</b> <!-- c -->", []),
    "characters by name": ("a &lt; b &amp; c \\*d\\*", "a < b & c *d*", []),
    "emoji before": ("👩\u200d👧 **b**", "👩\u200d👧 b", ["bold b"]),
    "only a definition": ("[a]: https://a.org", "[a]: https://a.org", []),
}
LISTS = {
    "list": (
        "- a\n- b\n  - c\n    more\n- d",
        "• a\n• b\n   • c\n     more\n• d",
        "<ul><li>a</li><li>b<ul><li>c<br>more</li></ul></li><li>d</li></ul>",
    ),
    "numbers": ("3. a\n4. b", "3. a\n4. b", '<ol start="3"><li>a</li><li>b</li></ol>'),
    "tasks": (
        "- [x] a\n- [ ] b",
        "☑ a\n☐ b",
        '<ul><li><input type="checkbox" checked>a</li><li><input type="checkbox">b</li></ul>',
    ),
    "two paragraphs": ("- a\n\n  b", "• a\n   b", "<ul><li>a<p>b</p></li></ul>"),
    "code in an item": ("- a\n  ```\n  b\n  ```", "• a\nb", "<ul><li>a<pre>b</pre></li></ul>"),
    "an item that is code": ("- ```\n  b\n  ```", "•\nb", "<ul><li><pre>b</pre></li></ul>"),
    "empty item": ("- a\n-", "• a\n•", "<ul><li>a</li><li></li></ul>"),
    "in a quotation": ("> - **a**", "• a", "<blockquote><ul><li><b>a</b></li></ul></blockquote>"),
    "table": (
        "| Name | Size |\n|---|--:|\n| **日本** | 3 |\n| b |",
        "Name | Size\n-----+-----\n日本 |    3\nb    |",
        '<table><tr><th>Name</th><th align="right">Size</th></tr><tr><td><b>日本</b></td><td align="right">3</td></tr>'
        '<tr><td>b</td><td align="right"></td></tr></table>',
    ),
    "table with links": (
        "|a|b|\n|-|-|\n|[c](https://d.org)|e|",
        "a | b\nc | e",
        '<table><tr><th>a</th><th>b</th></tr><tr><td><a href="https://d.org">c</a></td><td>e</td></tr></table>',
    ),
    "details": (
        "<details><summary>More <of> *it*</summary>\n\n- a\n\n</details>\n\nafter",
        "More <of> it\n• a\n\nafter",
        "<details><summary>More &lt;of&gt; <i>it</i></summary><ul><li>a</li></ul></details><p>after</p>",
    ),
    "details in one line": (
        "<details><summary>a</summary>b</details> c",
        "a\nb\n\nc",
        "<details><summary>a</summary><p>b</p></details><p>c</p>",
    ),
    "details without a summary": (
        "<details>\nb\n</details>",
        "Details\nb",
        "<details><summary>Details</summary><p>b</p></details>",
    ),
    "details that are not finished": (
        "<details><summary>a</summary>\n\nb",
        "a\nb",
        "<details><summary>a</summary><p>b</p></details>",
    ),
    "details with a fence": (
        "<details>\n<summary>a</summary>\n\n```\n</details>\n```\n</details>",
        "a\n</details>",
        "<details><summary>a</summary><pre>&lt;/details&gt;</pre></details>",
    ),
}
HTML = {
    "styles": (
        "<b>b</b> <em>i</em> <u>u</u> <del>s</del> <code>c</code>",
        "b i u s c",
        ["bold b", "italic i", "underline u", "strikethrough s", "code c"],
    ),
    "spoilers": (
        '<tg-spoiler>a</tg-spoiler> <span class="tg-spoiler">b</span> <span>c</span>',
        "a b c",
        ["spoiler a", "spoiler b"],
    ),
    "lines stay lines": ("<b>a</b>\n  b<br>c<br/>\nd\n\n\ne", "a\nb\nc\nd\n\ne", ["bold a"]),
    "paragraphs": ("<p>a\n</p>\n<p>b</p>c<h2>d</h2>", "a\n\nb\n\nc\n\nd", ["bold d"]),
    "tags that cross": ("<b>a<i>b</b>c</i>", "abc", ["bold ab", "italic b", "italic c"]),
    "unknown tags": ("<x-y>a</x-y><font color=red>b</font>", "ab", []),
    "scripts": ("a<script>alert(1)</script><style>b</style>c<!-- d -->", "ac", []),
    "no tags": ("1 < 2 && 3 > 2 <3 <![x", "1 < 2 && 3 > 2 <3 <![x", []),
    "link": ('<a href="https://a.org/?b=1&amp;c=ü">d</a>', "d", ["text_link d https://a.org/?b=1&c=%C3%BC"]),
    "wrong link": ('<a href="javascript:x()">a</a>', "a (javascript:x())", []),
    "code": ('<pre><code class="language-js">\n  a\n</code></pre>', "  a", ["pre   a js"]),
    "quotations": (
        "<blockquote>a</blockquote><blockquote expandable>b</blockquote>",
        "a\n\nb",
        ["blockquote a", "expandable_blockquote b"],
    ),
    "never closed": (
        "<b>a<blockquote>b<pre>c",
        "a\n\nb\n\nc",
        ["bold a", "blockquote b\n\nc", "bold b", "pre c"],
    ),
}


def rendered(kind: str, text: str) -> Chunk:
    (chunk,) = rendering.render(letter("7", text, type=kind))
    assert entity_problems(chunk.text, chunk.entities) == []
    return chunk


def formatted(chunk: Chunk) -> list[str]:
    """Return the words with entities: the kind, the words, and an address or a language."""
    found = []
    for one in chunk.entities:
        more = one.get("url") or one.get("language")
        found.append(" ".join(filter(None, (one["type"], covered(chunk.text, one), more))))
    return found


@pytest.mark.parametrize("name", MARKDOWN)
def test_markdown_becomes_a_text_with_entities(name: str) -> None:
    source, text, entities = MARKDOWN[name]
    chunk = rendered("markdown", source)
    assert (chunk.text, formatted(chunk), chunk.rich) == (text, entities, None)


@pytest.mark.parametrize("name", LISTS)
def test_lists_tables_and_details_are_rich_too(name: str) -> None:
    source, text, rich = LISTS[name]
    chunk = rendered("markdown", source)
    assert (chunk.text, chunk.rich) == (text, rich)


@pytest.mark.parametrize("name", HTML)
def test_html_becomes_a_text_with_entities(name: str) -> None:
    source, text, entities = HTML[name]
    chunk = rendered("html", source)
    assert (chunk.text, formatted(chunk), chunk.rich) == (text, entities, None)


def test_html_and_markdown_of_the_same_structure_become_the_same() -> None:
    html = (
        "<h1>a</h1><ul><li>b<ol><li>c</ol><li>d</ul><table><tr><th>e<th>f<tr><td>g<td>h</table>"
        "<details><summary>i</summary>j</details><hr><blockquote><p>k</blockquote>"
    )
    markdown = "# a\n- b\n  1. c\n- d\n\n|e|f|\n|-|-|\n|g|h|\n\n<details><summary>i</summary>\n\nj\n\n</details>\n\n---\n> k"
    assert rendered("html", html) == rendered("markdown", markdown)


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ('{"b":[1,2.50],"ü":null}', '{\n  "b": [\n    1,\n    2.5\n  ],\n  "ü": null\n}'),
        ('{"a":1,"a":2}', '{"a":1,"a":2}'),  # one of them would be lost
        ("1e999", "1e999"),
        ('"\\ud83d"', '"\\ud83d"'),  # half an emoji
        ("{broken", "{broken"),
        ("[" * 2000, "[" * 2000),
    ],
)
def test_json_is_a_code_block_in_lines_if_that_is_the_same(source: str, text: str) -> None:
    chunk = rendered("json", source)
    assert chunk == Chunk(text, ({"type": "pre", "offset": 0, "length": len(text), "language": "json"},))


def test_text_stays_as_it_is_but_for_control_characters() -> None:
    assert rendered("text", "**a** <b> \x1f\x07\tb\r\n\u00a0c\u200b") == Chunk(
        "**a** <b>   \tb\n\u00a0c\u200b"
    )
    assert rendered("event", "_a_") == Chunk("_a_")


def test_what_stands_in_front_is_plain_and_the_subject_is_bold() -> None:
    front = "*nex*:\n"
    one = letter("7", front + "**a**", type="markdown", front=len(front), subject="its _subject_")
    (chunk,) = rendering.render(one)
    assert chunk.text == "*nex*:\nits _subject_\n\na"
    assert formatted(chunk) == ["bold its _subject_", "bold a"]
    (chunk,) = rendering.render(letter("7", front + "- a", type="markdown", front=len(front)))
    assert (chunk.text, chunk.rich) == ("*nex*:\n• a", "<p>*nex*:</p><ul><li>a</li></ul>")
    (chunk,) = rendering.render(letter("7", "nex: - a", type="markdown", front=len("nex: ")))
    assert chunk.text == "nex: \n• a"


@pytest.mark.parametrize("kind", ["text", "markdown", "html", "json", "event"])
@pytest.mark.parametrize("text", ["", " \n\t ", "\x1f"])
def test_without_anything_to_see_there_is_no_chunk(kind: str, text: str) -> None:
    assert rendering.render(letter("7", text, type=kind)) == []
    assert rendering.caption(letter("7", text, type=kind)) is None


def test_html_that_shows_nothing_is_no_chunk() -> None:
    assert rendering.render(letter("7", "<p></p><script>alert(1)</script>", type="html")) == []


def test_a_caption_is_short_and_not_rich() -> None:
    assert rendering.caption(letter("7", "**a**", type="markdown")) == rendered("markdown", "**a**")
    assert rendering.caption(letter("7", "- a", type="markdown")) is None
    assert rendering.caption(letter("7", "x" * 1024)) == Chunk("x" * 1024)
    assert rendering.caption(letter("7", "x" * 1025)) is None
    assert rendering.caption(letter("7", "😀" * 513)) is None


def test_a_table_that_is_too_wide_for_letters_of_one_width_is_lines() -> None:
    chunk = rendered("markdown", "|" + "a|" * 21 + "\n|" + "-|" * 21 + "\n|" + "b|" * 21)
    assert chunk.text == " | ".join("a" * 21) + "\n" + " | ".join("b" * 21) and chunk.rich is None
    long = f"|a|\n|-|\n|{'b' * 3000}|"
    assert rendered("markdown", long).text == "a\n" + "b" * 3000


def test_what_is_too_much_for_a_rich_message_has_only_entities() -> None:
    many = "\n".join(["- a"] * 300)
    assert rendered("markdown", many).rich is None  # 601 blocks
    deep = "\n".join("  " * level + "- a" for level in range(8))
    assert rendered("markdown", deep).rich is None  # 17 levels
    address = "https://a.org/" + "x" * 1900
    links = "\n".join([f"- [a]({address})"] * 20)
    assert rendered("markdown", links).rich is None  # 38,000 characters
