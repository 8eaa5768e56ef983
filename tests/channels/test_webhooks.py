"""Webhooks: what one posts, and what a request to one becomes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from hiboss.channels.webhook import posting, request_text, templates
from hiboss.channels.webhook.adapter import WebhookAdapter
from hiboss.channels.webhook.request_text import SPECIAL, Wording
from hiboss.core.contracts.adapter import Account, File
from hiboss.core.contracts.failures import AccountError, EnvelopeError, LaneError
from hiboss.core.contracts.inbound import Inbound, path_of
from hiboss.core.settings import DEFAULTS
from hiboss.core.webhook_signatures import new_secret
from hiboss.routing.update_forms import LARGEST_RAW, new_update
from hiboss.testing.adapter_rig import letter
from tests.support.fact_receivers import FactReceiver, fact_receiver

SECRET = new_secret()
FACT = json.dumps({"type": "run.ended", "timestamp": "…", "data": {"run": "r1"}})


async def posted(server: FactReceiver | str, times: int = 1, **facts: Any) -> None:
    url = server if isinstance(server, str) else server.url
    settings = WebhookAdapter.Settings(hook="x", secret=SECRET, url=url)  # type: ignore[arg-type]
    adapter = WebhookAdapter(Account(binding=1, name="x", settings=settings, home="/nowhere"))
    await adapter.start()
    try:
        for _ in range(times):
            one = letter("x", **{"text": FACT, "type": "json", "sender": "agent:system", **facts})
            (chunk,) = adapter.chunks(one)
            assert await adapter.post(one, 0, chunk) == one.chunk_key(0)
    finally:
        await adapter.stop()


def error(answer: Any) -> LaneError | EnvelopeError:
    with fact_receiver() as server:
        server.usual = answer
        with pytest.raises((LaneError, EnvelopeError)) as caught:
            asyncio.run(posted(server))
        assert len(server.posts) == 1  # an adapter never repeats anything by itself
    assert SECRET not in caught.value.text and "a-word-of-the-url" not in caught.value.text
    return caught.value


def test_a_fact_is_posted_as_it_is_and_signed_with_the_key_of_its_chunk() -> None:
    with fact_receiver() as server:
        server.secret = SECRET
        asyncio.run(posted(server, times=2))
        first, second = server.posts
        assert (first.id, second.id) == ("home-e1.0", "home-e1.0")
        assert first.body == FACT.encode()
        assert server.forged == []
        assert first.headers["content-type"] == "application/json"
        assert first.path == "/facts?key=a-word-of-the-url"


def test_what_others_send_is_posted_as_a_message() -> None:
    with fact_receiver() as server:
        asyncio.run(posted(server, text="häl\n", type="markdown", sender="agent:nex", subject="s"))
        said = {"from": "agent:nex", "subject": "s", "type": "markdown", "text": "häl\n"}
        assert server.posts[0].fact == {"type": "message", "data": said}


@pytest.mark.parametrize("status", [200, 201, 202, 204])
def test_every_success_confirms(status: int) -> None:
    with fact_receiver() as server:
        server.usual = status
        asyncio.run(posted(server))
        assert len(server.taken) == 1


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        *((status, EnvelopeError) for status in (400, 404, 405, 410, 413, 415, 422)),
        *((status, LaneError) for status in (301, 302, 307, 308, 408, 425, 500, 502, 503, 504, 599)),
        *((status, AccountError) for status in (401, 402, 403)),
    ],
)
def test_a_status_fails_the_message_lets_the_lane_wait_or_stops_the_account(
    status: int, kind: type[Exception]
) -> None:
    found = error((status, {"location": "https://example.org/"}))
    assert type(found) is kind and str(status) in found.text
    assert not isinstance(found, LaneError) or found.retry_after is None


def test_a_server_that_hangs_up_lets_the_lane_wait() -> None:
    assert isinstance(error(0), LaneError)


def http_date(**ahead: int) -> str:
    return format_datetime(datetime.now(UTC) + timedelta(**ahead), usegmt=True)


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize(
    ("value", "least", "most"),
    [
        ("30", 30, 30),
        ("0", 0, 0),
        ("999999999", 86_400, 86_400),
        (lambda: http_date(hours=1), 3000, 3601),
        (lambda: http_date(days=-1), 0, 0),
    ],
)
def test_a_time_that_the_server_names_is_kept(
    status: int, value: str | Callable[[], str], least: float, most: float
) -> None:
    found = error((status, {"retry-after": value if isinstance(value, str) else value()}))
    assert isinstance(found, LaneError)
    assert found.retry_after is not None and least <= found.retry_after <= most


@pytest.mark.parametrize("value", ["soon", "-5", "1.5", "٣"])
def test_a_time_that_is_none_is_ignored(value: str) -> None:
    found = error((429, {"retry-after": value.encode().decode("latin-1")}))
    assert isinstance(found, LaneError) and found.retry_after is None


def test_a_server_that_says_nothing_lets_the_lane_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(posting, "ANSWER_SECONDS", 0.2)
    found = error(-1)
    assert isinstance(found, LaneError) and "in time" in found.text


@pytest.mark.parametrize("kind", ["endless", "slow", "silent", "broken off"])
def test_a_status_confirms_whatever_its_body_is(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """Else a server that took it would get it again and again, and what comes after it would wait."""
    monkeypatch.setattr(posting, "READ_SECONDS", 0.3)
    monkeypatch.setattr(posting, "ANSWER_SECONDS", 0.6)
    with fact_receiver() as server:

        def body(out: BinaryIO) -> None:
            while kind == "endless":
                out.write(b"x" * 10_000)
            while kind == "slow" and not server.released.wait(0.1):
                out.write(b"x")
            if kind == "silent":
                server.released.wait(60)

        server.usual, server.body = 200, body
        asyncio.run(posted(server, times=2))
        assert len(server.posts) == 2


@pytest.mark.parametrize("url", ["http://127.0.0.1:9/x", "https://nobody.invalid/x?key=a-word-of-the-url"])
def test_a_server_that_is_not_there_lets_the_lane_wait(url: str) -> None:
    with pytest.raises(LaneError) as caught:
        asyncio.run(posted(url))
    assert "a-word-of-the-url" not in caught.value.text


def test_files_cannot_be_posted() -> None:
    with fact_receiver() as server:
        with pytest.raises(EnvelopeError, match="no files"):
            asyncio.run(posted(server, files=(File("a", "/a", "text/plain"),)))
        assert server.posts == []


# --- what a request becomes -----------------------------------------------------------


PUSH = {
    "ref": "main",
    "repository": {"name": "nex", "full_name": "us/nex"},
    "commits": [{"id": "a1"}, {"id": 2}],
}


def inbound(directory: Path, body: bytes, wording: Wording | None = None, **headers: str) -> Inbound:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    came = request_text.update("d1", "ci", named, body)
    assert json.loads(json.dumps(came.raw)) == came.raw
    return (wording or Wording()).inbound(came, str(directory))


def attached(one: Inbound) -> tuple[str, bytes]:
    (file,) = one.files
    return Path(path_of(file)).name, Path(path_of(file)).read_bytes()


# --- the body itself -------------------------------------------------------------------


def test_json_is_shown_with_a_field_on_each_line(tmp_path: Path) -> None:
    one = inbound(tmp_path, b'{"b":1,"a":["\xc3\xa4",null,1.5]}')
    assert (one.type, one.text) == ("json", '{\n  "b": 1,\n  "a": [\n    "ä",\n    null,\n    1.5\n  ]\n}')
    assert (one.chat, one.auto, one.subject, one.note, list(one.files)) == ("ci", True, None, None, [])
    assert one.author.bot


@pytest.mark.parametrize(
    "body",
    ["hello", "5", '"a"', "null", "{broken", "[1,]", '{"a": NaN}', "[" * 5_000, "1" * 5_000, "  ä\r\n€ "],
)
def test_other_text_is_shown_as_it_is(tmp_path: Path, body: str) -> None:
    one = inbound(tmp_path, body.encode())
    assert (one.type, one.text, one.note) == ("text", body, None)


def test_a_mark_of_the_encoding_is_no_part_of_the_text(tmp_path: Path) -> None:
    assert inbound(tmp_path, b"\xef\xbb\xbf[1]").type == "json"


@pytest.mark.parametrize("body", [b"\xff\xfe", b"a\x00b", b"\x89PNG\r\n\x1a\n"])
def test_what_is_no_text_is_attached(tmp_path: Path, body: bytes) -> None:
    one = inbound(tmp_path, body)
    assert attached(one) == ("body.bin", body)
    assert (one.text, one.note) == ("", f"the body of {len(body)} bytes is no text; it is attached")


@pytest.mark.parametrize("body", [b"", b" \n"])
def test_a_request_that_says_nothing_is_told_of_all_the_same(tmp_path: Path, body: bytes) -> None:
    one = inbound(tmp_path, body)
    assert one.says_something
    assert one.note == ("the request says nothing" if body else "the request has no body")


def test_a_long_body_is_cut_and_attached_whole(tmp_path: Path) -> None:
    body = json.dumps({"text": "ä" * 100_000}, ensure_ascii=False).encode()
    one = inbound(tmp_path, body)
    assert len(one.text.encode()) <= request_text.TEXT_BYTES + 3
    assert one.text.endswith("ä…")
    assert one.type == "text"  # it is no JSON any more
    assert attached(one) == ("body.json", body)
    assert attached(inbound(tmp_path, b"x" * 70_000))[0] == "body.txt"


def test_a_deep_document_does_not_become_a_huge_one(tmp_path: Path) -> None:
    body = b"[" * 900 + b"1," * 100_000 + b"1" + b"]" * 900
    one = inbound(tmp_path, body)
    assert len(one.text) <= request_text.TEXT_BYTES + 1
    assert attached(one)[1] == body


@pytest.mark.parametrize(
    ("body", "template", "text"),
    [
        (
            '{"a": "{b} {@body} {{", "b": "no"}',
            "{a}",
            "{b} {@body} {{",
        ),  # what a field says is not read again
        # The intake makes it storable, as all that adapters give.
        ('{"a": "\\ud800", "b": "\\u0000"}', "{a}{b}", "\ud800\x00"),
        ('{"a": null}', "<{a}>", "<null>"),
        ('{"a": true}', "<{a}>", "<true>"),
        ('{"a": 1.5}', "<{a}>", "<1.5>"),
        ('{"a": ""}', "<{a}>", "<>"),
        ('{"a": []}', "<{a}>", "<[]>"),
        ("all is well", "CI: {@body}", "CI: all is well"),
        ("[1]", "{@body}", "[\n  1\n]"),
    ],
)
def test_values_are_shown_as_in_json_and_texts_as_they_are(
    tmp_path: Path, body: str, template: str, text: str
) -> None:
    assert inbound(tmp_path, body.encode(), Wording(template=template)).text == text


def test_a_form_of_github_has_the_document_in_it(tmp_path: Path) -> None:
    form = {"content_type": "application/x-www-form-urlencoded"}
    one = inbound(tmp_path, b"payload=%7B%22a%22%3A1%7D", **form)
    assert (one.type, one.text) == ("json", '{\n  "a": 1\n}')
    assert inbound(tmp_path, b"a=1&b=2", **form).text == "a=1&b=2"
    assert inbound(tmp_path, b"&".join([b"a=1"] * 200), **form).type == "text"


def test_the_event_of_github_is_the_subject(tmp_path: Path) -> None:
    assert inbound(tmp_path, b"{}", x_github_event="push").subject == "push"


def test_only_some_headers_are_stored(tmp_path: Path) -> None:
    headers = {"authorization": "secret", "cookie": "secret", "user-agent": "x" * 10_000}
    assert request_text.update("d", "ci", headers, b"").raw["headers"] == {"user-agent": "x" * 200}


def test_the_largest_body_fits_into_an_update() -> None:
    body = b"\x01" * DEFAULTS.webhook_body_bytes
    headers = dict.fromkeys(request_text.HEADERS, "\x7f\u00e4" * 10_000)
    stored = new_update(request_text.update("d" * 256, "c" * 64, headers, body), DEFAULTS, acts=False)
    assert stored.problem is None and stored.raw is not None
    assert len(stored.raw) <= LARGEST_RAW


# --- templates -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("{repository.name} at {ref}", "nex at main"),
        ("{commits.0.id}, {commits.1.id}", "a1, 2"),
        ("{repository}", '{"name": "nex", "full_name": "us/nex"}'),
        ("{{ref}} is {ref}", "{ref} is main"),
        ("{{{ref}}}", "{main}"),
        ("{nothing} {repository.nothing} {commits.2.id} {commits.x} {ref.a}",) * 2,
        ("{commits.-1} {commits.٠} {commits.99999999999999999999}",) * 2,
        ("{__class__} {repository.__class__.__init__} {ref.upper}",) * 2,
        ("{@headers.x-github-event} {@headers.user-agent}", "push {@headers.user-agent}"),
        ("plain", "plain"),
    ],
)
def test_a_template_is_filled_from_the_document(tmp_path: Path, template: str, text: str) -> None:
    templates.check(template, SPECIAL)
    one = inbound(tmp_path, json.dumps(PUSH).encode(), Wording(template=template), x_github_event="push")
    assert (one.type, one.text) == ("text", text)


def test_a_template_whose_text_is_too_long_is_cut_and_the_body_attached(tmp_path: Path) -> None:
    body = json.dumps({"a": "x" * 1_000}).encode()
    one = inbound(tmp_path, body, Wording(template="{a}" * 200))
    assert len(one.text) == request_text.TEXT_BYTES + 1
    assert attached(one) == ("body.json", body)


def test_a_subject_is_a_template_too_and_is_bounded(tmp_path: Path) -> None:
    wording = Wording(subject="{repository.full_name}")
    assert inbound(tmp_path, json.dumps(PUSH).encode(), wording, x_github_event="push").subject == "us/nex"
    long = inbound(tmp_path, json.dumps({"a": "x" * 9_999}).encode(), Wording(subject="{a}")).subject
    assert long is not None and len(long) == request_text.SUBJECT_CHARACTERS + 1


@pytest.mark.parametrize(
    "template", ["{", "}", "{}", "{a", "a}", "{a..b}", "{.a}", "{a.}", "{ a}", "{@}", "{@x}"]
)
def test_a_template_that_is_none_is_refused(template: str) -> None:
    with pytest.raises(ValueError):
        templates.check(template, SPECIAL)
