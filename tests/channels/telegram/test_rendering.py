"""How letters look in Telegram, by example, and which posts a letter becomes."""

from __future__ import annotations

import pytest

from hiboss.channels.telegram import file_kinds, rendering
from hiboss.channels.telegram.chunk_form import Chunk, decode, encode
from hiboss.channels.telegram.letter_chunks import chunks
from hiboss.core.contracts.adapter import Button, File
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
    assert rendered("markdown", f"|a|\n|-|\n|{'b' * 3000}|").text == "a\n" + "b" * 3000


def test_what_is_too_much_for_a_rich_message_has_only_entities() -> None:
    many = "\n".join(["- a"] * 300)
    assert rendered("markdown", many).rich is None  # 601 blocks
    deep = "\n".join("  " * level + "- a" for level in range(8))
    assert rendered("markdown", deep).rich is None  # 17 levels
    address = "https://a.org/" + "x" * 1900
    links = "\n".join([f"- [a]({address})"] * 20)
    assert rendered("markdown", links).rich is None  # 38,000 characters


# --- the chunks of a letter -----------------------------------------------------------------------


MEGABYTE = 1024 * 1024
BUTTONS = (Button("yes", "Yes"),)
PHOTO, VIDEO, AUDIO = ("a.png", "image/png"), ("a.mp4", "video/mp4"), ("a.mp3", "audio/mpeg")
VOICE, PDF, GIF = ("a.ogg", "audio/ogg"), ("a.pdf", "application/pdf"), ("a.gif", "image/gif")


def files(*given: tuple[str, str], size: int = 100) -> tuple[File, ...]:
    return tuple(File(name, f"/stored/{number}", mime, size) for number, (name, mime) in enumerate(given))


def planned(text: str, given: tuple[File, ...] = (), *, buttons: tuple[Button, ...] = ()) -> list[Chunk]:
    return [decode(one) for one in chunks(letter("7", text, files=given, buttons=buttons))]


def numbers(found: list[Chunk]) -> list[tuple[int, ...]]:
    return [one.files for one in found]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ((PHOTO,), [(0,)]),
        ((PHOTO, VIDEO, PHOTO), [(0, 1, 2)]),
        ((PDF, GIF, PDF), [(0, 1, 2)]),
        ((AUDIO, AUDIO), [(0, 1)]),
        ((VOICE, VOICE), [(0,), (1,)]),
        ((PHOTO, PDF, PHOTO), [(0,), (1,), (2,)]),
        ((PHOTO, PHOTO, PDF, PDF, AUDIO, VOICE), [(0, 1), (2, 3), (4,), (5,)]),
        ((PDF,) * 21, [tuple(range(10)), tuple(range(10, 20)), (20,)]),
    ],
    ids=str,
)
def test_neighbours_that_telegram_lets_be_together_are_an_album(
    given: tuple[tuple[str, str], ...], expected: list[tuple[int, ...]]
) -> None:
    assert numbers(planned("", files(*given))) == expected


def test_a_large_picture_is_a_document_also_among_others() -> None:
    small, large = files(PHOTO, PHOTO, size=100), files(PHOTO, PDF, size=11 * MEGABYTE)
    assert numbers(planned("", (*small, *large))) == [(0, 1), (2, 3)]


def test_an_album_is_no_larger_than_one_upload_can_be() -> None:
    assert numbers(planned("", files(PDF, PDF, PDF, size=20 * MEGABYTE))) == [(0, 1), (2,)]


def test_a_short_text_is_the_caption_of_the_first_file() -> None:
    assert [(one.text, one.files) for one in planned("see", files(PDF, PHOTO))] == [("see", (0,)), ("", (1,))]


def test_a_text_that_is_too_long_for_a_caption_goes_apart_and_first() -> None:
    for text, apart in (("x" * 1024, False), ("x" * 1025, True), ("😀" * 512, False), ("😀" * 513, True)):
        found = planned(text, files(PHOTO, PHOTO))
        assert (numbers(found), found[0].text) == (([(), (0, 1)] if apart else [(0, 1)]), text)


def test_files_without_a_text_have_no_caption() -> None:
    assert [one.text for one in planned(" \n ", files(PDF, PHOTO))] == ["", ""]


def test_a_letter_with_nothing_is_one_empty_post() -> None:
    assert planned(" ") == [Chunk()]


# --- buttons --------------------------------------------------------------------------------


def under(found: list[Chunk]) -> list[int]:
    return [number for number, one in enumerate(found) if one.buttons]


def test_the_buttons_are_under_the_last_text() -> None:
    assert under(planned("x" * 4000 + "\n\n" + "y" * 4000, files(PDF), buttons=BUTTONS)) == [1]
    assert under(planned("hello", buttons=BUTTONS)) == [0]


def test_the_buttons_are_under_the_file_that_has_the_text() -> None:
    found = planned("see", files(PDF, PHOTO), buttons=BUTTONS)
    assert (numbers(found), under(found)) == ([(0,), (1,)], [0])


def test_an_album_has_no_buttons_so_the_text_goes_apart() -> None:
    found = planned("see", files(PHOTO, PHOTO), buttons=BUTTONS)
    assert (numbers(found), under(found), found[0].text) == ([(), (0, 1)], [0], "see")


def test_without_a_text_the_last_file_stands_alone_for_the_buttons() -> None:
    found = planned("", files(PHOTO, PHOTO, PHOTO), buttons=BUTTONS)
    assert (numbers(found), under(found)) == ([(0, 1), (2,)], [1])


def test_a_letter_with_nothing_but_buttons_has_them_in_its_one_post() -> None:
    assert under(planned("", buttons=BUTTONS)) == [0]


# --- too big --------------------------------------------------------------------------------


def test_a_file_that_is_too_big_is_named_and_the_rest_goes() -> None:
    big = File("film.mkv", "/stored/film", "video/x-matroska", 51 * MEGABYTE)
    found = planned("see", (*files(PDF, PDF), big, *files(PDF)))
    assert (numbers(found), found[0].text, found[1].problem) == ([(0, 1, 3), ()], "see", found[1].text)
    assert "film.mkv" in found[1].text and "51.0 MB" in found[1].text


def test_the_text_and_its_buttons_go_also_if_all_files_are_too_big() -> None:
    big = File("film.mkv", "/stored/film", "video/x-matroska", 51 * MEGABYTE)
    found = planned("see", (big,), buttons=BUTTONS)
    assert ([one.text.partition(" ")[0] for one in found], under(found)) == (["see", "film.mkv"], [0])
    assert under(planned("", (big,), buttons=BUTTONS)) == [0]


def test_what_is_stored_is_read_as_it_was() -> None:
    bold = ({"type": "bold", "offset": 0, "length": 1},)
    for one in (
        Chunk("plain"),
        Chunk("\x1fodd"),
        Chunk("b", bold, "<b>b</b>"),
        Chunk("c", bold, files=(0, 3), buttons=True),
        Chunk("p", problem="p"),
    ):
        assert decode(encode(one)) == one
    assert encode(Chunk("plain")) == "plain"


def test_markup_that_shows_nothing_is_posted_as_it_was_written() -> None:
    assert [decode(one).text for one in chunks(letter("7", "<b></b>", type="html"))] == ["<b></b>"]


@pytest.mark.parametrize(
    ("name", "sent"),
    [("plan.pdf", "plan.pdf"), ('the "plan".pdf', "the 'plan'.pdf"), ("a\nb.txt", "a b.txt"), ("\n", "file")],
)
def test_a_file_is_uploaded_under_a_name_that_a_form_need_not_escape(name: str, sent: str) -> None:
    assert file_kinds.sent_name(name) == sent
