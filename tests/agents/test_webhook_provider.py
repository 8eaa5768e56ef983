"""The webhook provider against a real server on this machine: what it sends, and how it reads responses."""

from __future__ import annotations

import asyncio
import base64
import gzip
import hashlib
import hmac
import json
from pathlib import Path
from typing import Any

import pytest
from freezegun import freeze_time
from pydantic import SecretStr

import hiboss
from hiboss.agents.providers import webhook
from hiboss.agents.providers.webhook import Webhook, WebhookSettings
from hiboss.core import webhook_signatures
from hiboss.core.contracts.failures import LaneError, Refused, TurnError
from hiboss.core.contracts.provider import Answer, Progress, TurnInput
from hiboss.core.option_models import validate
from hiboss.core.webhook_signatures import PREFIX, new_secret
from hiboss.testing.recorded_run import RecordedRun
from tests.agents.provider_rigs import QUERY, plain_task
from tests.agents.webhook_receiver import Receiver, Request, response
from tests.support.raising import raised

SECRET = new_secret()
JSON = "application/json"
NOON = "2030-06-01 12:00:00"


class Asked:
    """Take one turn with a server that answers with these bytes."""

    def __init__(
        self, answer: bytes | None, url: str = "", secret: str | None = SECRET, **facts: Any
    ) -> None:
        self.run = RecordedRun()
        self.heard: list[Progress] = self.run.heard
        self.thought: Answer | None = None
        self.error: Exception | None = None
        self.requests: list[Request] = []
        self.task: TurnInput = plain_task(Path("/nowhere"), **facts)
        asyncio.run(self._story(answer, url, secret))

    async def _story(self, answer: bytes | None, url: str, secret: str | None) -> None:
        async with Receiver() as server, asyncio.timeout(30):
            server.answer = answer
            wanted = url.format(port=server.port) or f"{server.url}?{QUERY}"
            provider = Webhook(WebhookSettings(url=wanted, secret=SecretStr(secret or "")))
            try:
                self.thought = await provider.take_turn(self.task, self.run)
            except (TurnError, LaneError) as error:
                self.error = error
            while server.open:
                await asyncio.sleep(0.005)
            self.requests = server.requests
        assert not self.run.pids


# --- the request -------------------------------------------------------------------------


def test_a_turn_is_one_signed_post() -> None:
    with freeze_time(NOON, real_asyncio=True):
        asked = Asked(response())
    (request,) = asked.requests
    assert (request.method, request.target) == ("POST", f"/turns?{QUERY}")
    assert request.headers["user-agent"] == f"hiboss/{hiboss.__version__}"
    assert (request.headers["content-type"], request.headers["webhook-id"]) == (JSON, asked.task.delivery)
    assert request.headers["webhook-timestamp"] == "1906545600"
    key = base64.b64decode(SECRET[len("whsec_") :])
    content = asked.task.delivery.encode() + b".1906545600." + request.body
    expected = base64.b64encode(hmac.new(key, content, hashlib.sha256).digest()).decode()
    assert request.headers["webhook-signature"] == f"v1,{expected}"
    assert SECRET.removeprefix(PREFIX) not in str(request)


def test_a_signature_is_the_one_that_the_specification_shows() -> None:
    key = base64.b64decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    headers = webhook_signatures.signed(
        key, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}'
    )
    assert headers["webhook-signature"] == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_the_turn_is_all_there() -> None:
    asked = Asked(response())
    task = asked.task
    assert json.loads(asked.requests[0].body) == {
        "type": "turn",
        "run": task.run,
        "agent": "nex",
        "now": "2026-01-28T12:08:45.120Z",
        "timezone": "Asia/Shanghai",
        "session": None,
        "text": task.text,
        "envelopes": list(task.envelopes),
    }


def test_a_secret_is_32_bytes_and_never_the_same() -> None:
    made = {new_secret() for _ in range(10)}
    assert len(made) == 10
    assert all(len(base64.b64decode(one.removeprefix("whsec_"), validate=True)) == 32 for one in made)
    assert all(one.startswith("whsec_") for one in made)


@pytest.mark.parametrize("secret", [None, "", "whsec_", "whsec_not base64!", "whsec_ä"])
def test_without_a_secret_nothing_is_sent(secret: str | None) -> None:
    asked = Asked(response(), secret=secret)
    assert isinstance(asked.error, LaneError) and (asked.error.kind, asked.requests) == ("no_secret", [])
    assert "base64!" not in asked.error.text


def test_a_proxy_of_somebodys_shell_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "ALL_PROXY", "http_proxy", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.delenv("NO_PROXY", raising=False)
    assert Asked(response(200, b"direct")).thought == Answer(text="direct")


# --- the answer --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (response(204), Answer()),
        (response(200), Answer()),
        (response(202, b" \n"), Answer()),
        (response(200, "grüß dich €".encode()), Answer(text="grüß dich €")),
        (response(201, b'{"text": "plain"}'), Answer(text='{"text": "plain"}')),
        (response(200, b'{"text": "hi", "more": 1}', kind=JSON), Answer(text="hi")),
        (response(200, b'{"text": "hi"}', kind="Application/JSON; charset=utf-8"), Answer(text="hi")),
        (response(200, b'{"text": ""}', kind=JSON), Answer()),
        (response(200, b'{"text": null}', kind=JSON), Answer()),
        (response(200, b"", kind=JSON), Answer()),
        (response(200, b'{"text": 5}', kind=JSON), Answer(text='{"text": 5}')),
        (response(200, b'{"ok": true}', kind=JSON), Answer(text='{"ok": true}')),
        (response(200, b'["text"]', kind=JSON), Answer(text='["text"]')),
        (response(200, b"{broken", kind=JSON), Answer(text="{broken")),
        (response(200, b"[" * 50_000, kind=JSON), Answer(text="[" * 50_000)),
        (
            response(200, b'{"text": "a", "usage": {"tokens_in": 5, "cost": 1, "other": "x"}}', kind=JSON),
            Answer(text="a", tokens_in=5, cost=1),
        ),
    ],
    ids=range(16),
)
def test_what_a_server_answers_is_the_answer(answer: bytes, expected: Answer) -> None:
    assert Asked(answer).thought == expected


def test_usage_that_is_none_is_ignored_with_a_note() -> None:
    thought = Asked(response(200, b'{"text": "a", "usage": 5}', kind=JSON)).thought
    assert thought is not None and (thought.text, thought.tokens_in) == ("a", None)
    assert thought.note is not None and "usage" in thought.note


def test_an_answer_in_pieces_is_heard_in_pieces() -> None:
    body = b"6\r\none \xe2\x82\r\n" + b"5\r\n\xac two\r\n" + b"0\r\n\r\n"
    asked = Asked(b"HTTP/1.1 200 x\r\ncontent-type: text/plain\r\ntransfer-encoding: chunked\r\n\r\n" + body)
    assert asked.thought == Answer(text="one € two")
    assert "".join(one.text for one in asked.heard) == "one € two"


@pytest.mark.parametrize(
    "answer",
    [
        response(200, b"x", content_length="4001"),
        response(200, b"x" * 4001),
        response(200, b"\xff" * 2000),  # each becomes three bytes
        response(200, json.dumps({"text": "x" * 4001}).encode(), kind=JSON),
        response(200, json.dumps({"text": "x", "more": "y" * 100_000}).encode(), kind=JSON),
    ],
    ids=["announced", "sent", "by replacing", "in JSON", "around it"],
)
def test_an_answer_that_is_too_long_is_a_turn_error(answer: bytes) -> None:
    error = Asked(answer, answer_bytes=4000).error
    assert isinstance(error, TurnError) and error.kind == "too_long"


def test_a_compressed_answer_is_not_unpacked() -> None:
    asked = Asked(response(200, gzip.compress(b"x" * 1_000_000), content_encoding="gzip"))
    assert isinstance(asked.error, TurnError) and asked.requests[0].headers["accept-encoding"] == "identity"


# --- failures --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        *[(status, "redirected") for status in (301, 302, 303, 307, 308, 304)],
        *[(status, "refused") for status in (401, 403)],
        *[(status, "not_found") for status in (404, 410)],
        *[(408, "unreachable"), (429, "rate_limited")],
        *[(status, "server_error") for status in (500, 502, 503, 599)],
    ],
)
def test_what_every_turn_would_meet_is_a_lane_error(status: int, kind: str) -> None:
    asked = Asked(response(status, f"{SECRET} {QUERY}".encode(), location=f"/elsewhere?{QUERY}"))
    assert isinstance(asked.error, LaneError) and asked.error.kind == kind
    assert str(status) in asked.error.text
    assert "http://127.0.0.1" in asked.error.text
    _shows_no_secret(asked.error)
    assert len(asked.requests) == 1  # neither repeated nor redirected


@pytest.mark.parametrize("status", [400, 409, 413, 415, 422, 451])
def test_what_this_turn_alone_met_is_a_turn_error(status: int) -> None:
    asked = Asked(response(status, f"{SECRET} {QUERY}".encode()))
    assert isinstance(asked.error, TurnError)
    assert str(status) in asked.error.text
    _shows_no_secret(asked.error)
    assert len(asked.requests) == 1


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        f"POST /turns?{QUERY} is what you said\r\n\r\n".encode(),
        b"HTTP/1.1 200 x\r\ncontent-length: 100\r\n\r\nhalf of it",
        f"HTTP/1.1 200 x\r\nbroken {QUERY}\r\n\r\n".encode(),
        b"HTTP/1.1 200 x\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
    ],
    ids=["nothing", "no HTTP", "half", "broken header", "broken chunk"],
)
def test_a_connection_that_breaks_off_is_a_lane_error(answer: bytes) -> None:
    asked = Asked(answer)
    assert isinstance(asked.error, LaneError) and asked.error.kind == "unreachable"
    _shows_no_secret(asked.error)


@pytest.mark.parametrize(
    "url",
    [
        f"http://127.0.0.1:9/x?{QUERY}",
        f"http://localhost:9/x?{QUERY}",
        f"https://127.0.0.1:{{port}}/?{QUERY}",
        f"https://nobody.invalid/?{QUERY}",
        f"https://999.999.999.999/?{QUERY}",
    ],
)
def test_a_server_that_cannot_be_reached_is_a_lane_error(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        webhook, "CONNECT_SECONDS", 0.3
    )  # for the server that never answers the TLS handshake
    error = Asked(response(), url).error
    assert isinstance(error, LaneError) and error.kind == "unreachable"
    _shows_no_secret(error)


@pytest.mark.parametrize(
    ("status", "said", "seconds"),
    [
        (429, "7", 7.0),
        (503, "0", 0.0),
        (503, "Sat, 01 Jun 2030 12:05:00 GMT", 300.0),
        (429, "Sat, 01 Jun 2030 11:00:00 GMT", 0.0),
        (429, "Sat, 01 Jun 2030 12:05:00 -0000", 300.0),
        (429, "9" * 400, 86_400.0),
        (429, "Fri, 01 Jan 2999 00:00:00 GMT", 86_400.0),
        (429, "soon", None),
        (429, "-5", None),
        (429, "Sat, 99 Jun 2030 12:05:00 GMT", None),
        (500, "7", None),
    ],
)
def test_how_long_to_wait_is_what_the_server_says(status: int, said: str, seconds: float | None) -> None:
    with freeze_time(NOON, real_asyncio=True):
        error = Asked(response(status, retry_after=said)).error
    assert isinstance(error, LaneError) and error.retry_after == seconds


def _shows_no_secret(error: Exception) -> None:
    chain: BaseException | None = error
    while chain is not None:  # also what a traceback in the log would show
        for secret in (QUERY, SECRET, SECRET.removeprefix(PREFIX)):
            assert secret not in str(chain)
        chain = None if chain.__suppress_context__ else chain.__cause__ or chain.__context__


# --- the address -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "url",
    [
        "https://example.org",
        "https://example.org:8443/a/b?c=d%20e",
        "https://xn--mller-kva.example/",
        "https://192.0.2.1/",
        "https://[2001:db8::1]:8443/x",
        "http://localhost:8080/x",
        "HTTP://LOCALHOST/x",
        "http://127.0.0.1",
        "http://127.9.9.9:1/x",
        "http://[::1]:8080/x",
        "https://under_score.example./x",
    ],
)
def test_an_address_that_can_work_is_kept(url: str) -> None:
    assert validate(WebhookSettings, {"url": f" {url}\n"}, "webhook").settings == {"url": url}


@pytest.mark.parametrize(
    "url",
    [
        *(
            "",
            "   ",
            "example.org",
            "//example.org",
            "ftp://example.org",
            "file:///etc/passwd",
            "javascript:x",
        ),
        *("http://example.org", "http://192.0.2.1", "http://0.0.0.0", "http://[::]", "http://10.0.0.1:80"),
        *("http://localhost.example.org", "http://127.0.0.1.example.org", "http://example.org#127.0.0.1"),
        *(
            "http://127.1",
            "http://2130706433",
            "http://0177.0.0.1",
            "http://[fe80::1]",
            "http://127.0.0.1\\@a.org",
        ),
        *(
            "https://user@example.org",
            "https://u:pass@example.org",
            "https://@example.org",
            "http://a@localhost",
        ),
        *("http://example.org\\@localhost", "https://example.org/#part", "https://example.org#"),
        *(
            "https://",
            "https:///x",
            "https://:443/",
            "https://a..b/",
            "https://-" + "a" * 64 + ".org",
            "https://[::1",
        ),
        *(
            "https://example.org:99999",
            "https://example.org:0",
            "https://example.org:x",
            "https://exa mple.org",
        ),
        *(
            "https://example.org/a\nb",
            "https://example.org/\x00",
            "https://müller.example",
            "https://example.org/ü",
        ),
        "https://example.org/" + "x" * 2000,
    ],
)
def test_an_address_that_cannot_work_is_refused(url: str) -> None:
    caught = raised(Refused, validate, WebhookSettings, {"url": url}, "webhook")
    assert caught.why and "pass@" not in caught.why


def test_a_password_in_the_address_is_refused_with_the_way_out() -> None:
    raised(
        Refused,
        validate,
        WebhookSettings,
        {"url": "https://nex:secret@example.org/"},
        "webhook",
        says="signature",
    )
