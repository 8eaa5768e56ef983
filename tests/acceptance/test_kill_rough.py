"""kill -9 with a platform that has rules of its own, and with schedules; and the checks of the soak themselves."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hiboss.core.crashpoint import POSTED
from tests.acceptance.soak_platform import Accepted, Chunk, Platform
from tests.acceptance.soak_rough import Comparison
from tests.acceptance.soak_traffic import Office
from tests.support.failures import seeded

pytestmark = pytest.mark.slow


def test_a_rough_platform_and_schedules_lose_and_double_nothing_over_kills(tmp_path: Path) -> None:
    office = Office(tmp_path / "o", seed=seeded(31).randrange(2**32), rough=True)
    try:
        office.round(f"{POSTED}:20", most_seconds=0.3)
        while office.books.kills < 4:
            office.round(most_seconds=0.5)
        office.finish()
    finally:
        office.close()
    books = office.books
    sys.stdout.write(f"{books}\n")
    assert books.figures["platform-accepted"] > 0
    assert books.figures["slots-fired"] > 0
    assert not books.faults, str(books)


# --- the platform -----------------------------------------------------------------------


@pytest.fixture
def platform(tmp_path: Path) -> Iterator[Platform]:
    found = Platform(tmp_path / "rough", seed=1)
    yield found
    found.close()


def post(
    platform: Platform, chat: str = "oak", envelope: str = "e1", number: int = 0, text: str = "x"
) -> Any:
    request = {"do": "post", "chat": chat, "envelope": envelope, "number": number, "text": text}
    return platform.answer({**request, "key": f"{envelope}.{number}"})


def weather(platform: Platform, *what: str) -> None:
    platform._weather.extend(what)


def test_a_post_before_the_time_named_for_its_chat_is_counted(platform: Platform) -> None:
    weather(platform, "wait_chat")
    assert post(platform)["status"] == 429
    assert post(platform, "elm")["status"] == 200
    assert platform.too_early == []
    assert post(platform)["status"] == 429
    assert len(platform.too_early) == 1


def test_only_one_post_of_another_chat_can_have_begun_before_the_account_was_told(
    platform: Platform,
) -> None:
    weather(platform, "wait_account")
    assert post(platform)["scope"] == "account"
    assert post(platform, "elm")["status"] == 429
    assert platform.too_early == []
    assert post(platform, "elm")["status"] == 429
    assert len(platform.too_early) == 1


def test_only_what_was_not_stored_before_a_kill_may_be_forgotten(platform: Platform) -> None:
    weather(platform, "wait_chat", "wait_chat")
    until = {chat: post(platform, chat)["retry_after"] + time.time() for chat in ("oak", "elm")}
    platform.forget_unstored({"oak": int(until["oak"] * 1000)})
    assert post(platform, "elm")["status"] == 200
    assert platform.too_early == []
    assert post(platform, "oak")["status"] == 429
    assert len(platform.too_early) == 1


def test_a_lost_answer_is_in_the_book_and_counted(platform: Platform) -> None:
    weather(platform, "lost")
    assert post(platform) is None
    assert [one.heard for one in platform.book] == [False]
    assert platform.lost == {("e1", 0): 1}


def test_a_chat_with_keys_takes_each_chunk_once(platform: Platform) -> None:
    first, again = post(platform, "keyed"), post(platform, "keyed")
    assert (first, len(platform.book), platform.repeats) == (again, 1, 1)


# --- what compares its book ---------------------------------------------------------------


def row(number: str, **facts: Any) -> dict[str, Any]:
    known = {"id": number, "status": 1, "priority": 2, "arrived": int(number[1:]), "error_kind": None}
    return {**known, "text": "x" * 40, "deliver_at": None, **facts}


def accepted(envelope: str, number: int = 0, *, chat: str = "oak", at: float = 1.0) -> Accepted:
    return Accepted(at, chat, envelope, number, "x" * 40, heard=True)


def compared(*book: Accepted, rows: list[dict[str, Any]], windows: Counter[Chunk] | None = None) -> list[str]:
    """Return the kinds of what is found."""
    by_id = {one["id"]: one for one in rows}
    found = Comparison(book=list(book), rows=by_id, windows=windows or Counter()).faults()
    return [kind for kind, _ in found]


TWO_CHUNKS = {"text": "x" * 80}
TWICE = (accepted("e1"), accepted("e1"))
BETWEEN = (accepted("e1"), accepted("e2"), accepted("e1"), accepted("e1", 1))
URGENT = [row("e1", **TWO_CHUNKS, priority=3), row("e2", priority=1)]
WINDOW = Counter({("e1", 0): 1})  # accepted, and the daemon died before it could note that
FINE = [
    row("e1", **TWO_CHUNKS),
    row("e2"),
    row("e3", status=2, error_kind="refused"),
    row("e4", status=0),
]


@pytest.mark.parametrize(
    ("book", "rows", "windows", "found"),
    [
        pytest.param(
            (accepted("e1"), accepted("e1", 1), accepted("e2")), FINE, None, [], id="as it should be"
        ),
        pytest.param((accepted("e1"),), [row("e1", **TWO_CHUNKS)], None, ["lost"], id="done, and not there"),
        pytest.param(TWICE, [row("e1")], None, ["double"], id="twice"),
        pytest.param(TWICE, [row("e1")], WINDOW, [], id="twice, explained by a window"),
        pytest.param(
            (),
            [row("e1", status=2, error_kind="timed_out")],
            None,
            ["fault"],
            id="failed for no known reason",
        ),
        pytest.param((accepted("e1", at=1.0),), [row("e1", deliver_at=1_500)], None, ["fault"], id="early"),
        pytest.param(BETWEEN, URGENT, None, ["double", "fault"], id="between the chunks of another"),
        pytest.param(BETWEEN, URGENT, WINDOW, [], id="between, where nobody knew that it had begun"),
        pytest.param(
            (accepted("e2"), accepted("e1")), [row("e1"), row("e2")], None, ["fault"], id="in a wrong order"
        ),
    ],
)
def test_the_book_of_a_platform_is_compared_with_the_rows(
    book: tuple[Accepted, ...],
    rows: list[dict[str, Any]],
    windows: Counter[Chunk] | None,
    found: list[str],
) -> None:
    assert compared(*book, rows=rows, windows=windows) == found
