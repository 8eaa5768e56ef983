"""What a webhook posts, against a server that takes it, refuses it, hangs up, or says nothing."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any, BinaryIO

import pytest

from hiboss.channels.webhook import posting
from hiboss.channels.webhook.adapter import WebhookAdapter
from hiboss.core.contracts.adapter import Account, File
from hiboss.core.contracts.failures import AccountError, EnvelopeError, LaneError
from hiboss.core.webhook_signatures import new_secret
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
    assert SECRET not in caught.value.text
    assert "a-word-of-the-url" not in caught.value.text
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


@pytest.mark.parametrize("status", [400, 404, 405, 410, 413, 415, 422])
def test_what_the_server_will_never_take_fails_alone(status: int) -> None:
    found = error(status)
    assert isinstance(found, EnvelopeError)
    assert str(status) in found.text


@pytest.mark.parametrize("status", [301, 302, 307, 308, 408, 425, 500, 502, 503, 504, 599])
def test_what_may_be_better_later_lets_the_lane_wait(status: int) -> None:
    found = error((status, {"location": "https://example.org/"}))
    assert isinstance(found, LaneError)
    assert not isinstance(found, AccountError)
    assert str(status) in found.text
    assert found.retry_after is None


@pytest.mark.parametrize("status", [401, 402, 403])
def test_a_server_that_does_not_know_the_secret_stops_the_account(status: int) -> None:
    assert isinstance(error(status), AccountError)


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize(
    ("value", "least", "most"),
    [
        ("30", 30, 30),
        ("0", 0, 0),
        ("999999999", 86_400, 86_400),
        (lambda: format_datetime(datetime.now(UTC) + timedelta(hours=1), usegmt=True), 3000, 3601),
        (lambda: format_datetime(datetime.now(UTC) - timedelta(days=1), usegmt=True), 0, 0),
    ],
)
def test_a_time_that_the_server_names_is_kept(
    status: int, value: str | Callable[[], str], least: float, most: float
) -> None:
    found = error((status, {"retry-after": value if isinstance(value, str) else value()}))
    assert isinstance(found, LaneError)
    assert found.retry_after is not None
    assert least <= found.retry_after <= most


@pytest.mark.parametrize("value", ["soon", "-5", "1.5", "٣"])
def test_a_time_that_is_none_is_ignored(value: str) -> None:
    found = error((429, {"retry-after": value.encode().decode("latin-1")}))
    assert isinstance(found, LaneError)
    assert found.retry_after is None


def test_a_server_that_hangs_up_lets_the_lane_wait() -> None:
    assert isinstance(error(0), LaneError)


def test_a_server_that_says_nothing_lets_the_lane_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(posting, "ANSWER_SECONDS", 0.2)
    found = error(-1)
    assert isinstance(found, LaneError)
    assert "in time" in found.text


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
