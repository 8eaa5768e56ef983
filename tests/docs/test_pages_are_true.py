"""What the pages name exists: commands, flags, operations, settings, errors, columns, files, headings."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.docs import checks, pages, vocabulary
from tests.docs.pages import Page


@pytest.mark.parametrize("path", pages.every())
@pytest.mark.parametrize("check", checks.EVERY_PAGE, ids=lambda check: check.__name__)
def test_a_page_names_only_what_exists(check: Callable[[Page], list[str]], path: str) -> None:
    problems = check(Page.read(path))
    assert not problems, "\n".join(problems)


def test_the_checks_had_something_to_look_at() -> None:
    written = [Page.read(path) for path in pages.written()]
    inline = [code for page in written for code in page.inline()]
    assert sum(code.startswith("hiboss ") for code in inline) > 10
    assert any(code in vocabulary.codes() for code in inline)
    assert any(code in vocabulary.defaults() for code in inline)
    assert sum(len(page.links()) for page in written) > 10
    assert {block.language for page in written for block in page.blocks()} == checks.LANGUAGES


def test_the_route_names_the_files_of_an_envelopes_path() -> None:
    named = [code for code in Page.read("docs/route.md").inline() if code.endswith(".py")]
    assert len(named) > 10 and all("/" in code for code in named)
