"""GET /api: the page shows every operation and every route, and needs nothing that its policy forbids."""

from __future__ import annotations

import re
from html import escape
from html.parser import HTMLParser

import httpx
import pytest

from hiboss.api import dispatch  # noqa: F401 - it declares the operations
from hiboss.web import api_page
from hiboss.web.routes import ROUTES
from tests.support.openapi_document import document
from tests.support.web_daemons import WebDaemon, web_fixture

VOID = {"meta", "link"}


class Page(HTMLParser):
    """Reads a page; remembers its tags, ids and links, and checks that what is opened is closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.ids: list[str] = []
        self.links: set[str] = set()
        self._open: list[str] = []
        self.feed(text)
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.tags.add(tag)
        self.attributes |= given.keys()
        self.ids += [given["id"] or ""] if "id" in given else []
        self.links |= {given[name] or "" for name in ("href", "src") if name in given}
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag


daemon = web_fixture()


@pytest.fixture(scope="module")
def answer(daemon: WebDaemon) -> httpx.Response:
    return httpx.get(f"{daemon.url}/api", timeout=60)


def test_it_is_served_without_a_token_under_the_policy_of_every_page(answer: httpx.Response) -> None:
    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert "unsafe" not in answer.headers["content-security-policy"]


def test_it_has_no_script_no_style_of_its_own_and_loads_nothing_from_elsewhere(
    answer: httpx.Response,
) -> None:
    page = Page(answer.text)
    assert not {"script", "style", "iframe", "img", "form", "object"} & page.tags
    assert not [name for name in page.attributes if name == "style" or name.startswith("on")]
    assert {link for link in page.links if not link.startswith("#")} == {
        "/static/hiboss.css",
        "/openapi.json",
    }
    assert {link[1:] for link in page.links if link.startswith("#")} <= set(page.ids)
    assert len(page.ids) == len(set(page.ids))


def test_it_shows_every_operation_with_its_level_parameters_errors_and_an_example(
    answer: httpx.Response,
) -> None:
    text = answer.text
    ids = set(Page(text).ids)
    for path, item in document()["paths"].items():
        if path.startswith("/api/op/"):
            assert item["post"]["x-operation"] in ids and f"$HIBOSS{path}" in text
    part = text[text.index('<details id="envelope.send">') :]
    part = part[: part.index("</details>")]
    assert "Level: standard. Effect: change." in part
    assert "<code>deliver_at</code>" in part and "<code>attachments</code>" not in part
    assert '<a href="#error.bad_address"><code>bad_address</code></a>' in part
    assert escape("curl -H @header.txt -H 'Content-Type: application/json' -d ") in part


def test_it_shows_every_friendly_route_with_the_operation_that_it_calls(answer: httpx.Response) -> None:
    for route in ROUTES:
        shown = f'<code>{route.method} {escape(route.path)}</code></td><td><a href="#{route.operation}">'
        assert shown in answer.text


def test_no_token_is_in_it_nor_in_the_process_list_of_who_follows_it(answer: httpx.Response) -> None:
    assert re.findall(r"hb[a-z]_[A-Za-z0-9]", answer.text) == []
    assert "Bearer $" not in answer.text  # curl's arguments can be seen by everybody on the machine


def test_both_are_the_same_for_the_next_who_asks_and_take_no_other_method(daemon: WebDaemon) -> None:
    for path in ("/api", "/openapi.json"):
        first, second = (httpx.get(f"{daemon.url}{path}", timeout=60) for _ in range(2))
        assert first.content == second.content
        assert httpx.post(f"{daemon.url}{path}").status_code == 405
    assert first.json() == document() and first.headers["content-type"] == "application/json"


def test_text_with_an_odd_number_of_backticks_is_shown_as_it_is() -> None:
    assert api_page._prose("a `b` <c>") == "a <code>b</code> &lt;c&gt;" and api_page._prose("a `b") == "a `b"
