"""Every name on a page exists: commands, flags, operations, settings, errors, columns, files, headings."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from hiboss.web.routes import ROUTES
from tests.docs import checks, pages, vocabulary
from tests.docs.pages import ROOT, Page


@pytest.mark.parametrize("check", checks.EVERY_PAGE, ids=lambda check: check.__name__)
def test_a_page_names_only_what_exists(check: Callable[[Page], list[str]]) -> None:
    problems = [problem for path in pages.every() for problem in check(Page.read(path))]
    assert not problems, "\n".join(problems)


def test_the_checks_had_something_to_check() -> None:
    written = [Page.read(path) for path in pages.written()]
    inline = [code for page in written for code in page.inline()]
    assert sum(code.startswith("hiboss ") for code in inline) > 10
    assert any(code in vocabulary.codes() for code in inline)
    assert any(code in vocabulary.defaults() for code in inline)
    assert sum(len(page.links()) for page in written) > 10
    assert {block.language for page in written for block in page.blocks()} == checks.LANGUAGES


def route() -> dict[str, int]:
    """The files in the first table of docs/route.md, with the number of lines that it states for each."""
    table = Page.read("docs/route.md").text.partition("\n## ")[0]
    rows = re.findall(r"^\|[^|]*\| `([\w/.]+)` \| ([\d,]+) \|", table, re.MULTILINE)
    return {path: int(lines.replace(",", "")) for path, lines in rows}


def lines_of(path: str) -> int:
    return len((ROOT / path).read_text(encoding="utf-8").splitlines())


def test_the_route_of_an_envelope_has_at_most_ten_files_and_2500_lines() -> None:
    assert 5 < len(route()) <= 10
    assert sum(lines_of(path) for path in route()) <= 2_500


def test_the_route_goes_through_every_layer_in_order() -> None:
    layers = [path.split("/")[1] for path in route()]
    assert list(dict.fromkeys(layers)) == ["rpc", "api", "routing", "store", "channels"]


def test_the_route_states_about_as_many_lines_as_there_are() -> None:
    for path, stated in route().items():
        assert abs(lines_of(path) - stated) <= 25, f"{path} has {lines_of(path)} lines, not {stated}"
    text = Page.read("docs/route.md").text
    assert f"{len(route())} files with {sum(route().values()):,} lines" in text


def test_the_page_about_http_names_exactly_the_routes_that_there_are() -> None:
    rows = re.findall(
        r"^\| `([A-Z]+) (/api/\S+)` \| `([\w.]+)` \|$", Page.read("docs/web.md").text, re.MULTILINE
    )
    assert rows == [(one.method, one.path, one.operation) for one in ROUTES]


def test_the_words_of_the_glossary_are_sorted_and_explained_once() -> None:
    tables = Page.read("docs/glossary.md").text.split("\n## ")
    words = {
        heading: re.findall(r"^\| ([a-z][a-z -]*) \| ", part, re.MULTILINE)[1:]  # without the heading line
        for part in tables
        for heading in [part.partition("\n")[0]]
        if heading.startswith(("Words", "Planned"))
    }
    for found in words.values():
        assert len(found) > 1 and found == sorted(found)
    every = [word for found in words.values() for word in found]
    assert len(every) == len(set(every)) > 60
