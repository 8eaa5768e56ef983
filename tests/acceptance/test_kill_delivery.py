"""kill -9 during deliveries: posted once, or twice and labelled; and with a rough platform and schedules."""

from __future__ import annotations

import os
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hiboss.core.crashpoint import AFTER_COMMIT, BEFORE_WRITE, CLAIMED, IN_GROUP, POSTED, SETTLED
from hiboss.core.errors import DaemonUnreachable
from tests.acceptance.soak_platform import Accepted, Chunk, Platform
from tests.acceptance.soak_post import Death, Post
from tests.acceptance.soak_rough import Comparison
from tests.acceptance.soak_traffic import Office
from tests.support.failures import seeded

pytestmark = pytest.mark.slow

PIGEON = "channel:scripted:pigeon"
TRAY = "channel:folder:tray"


def die_at(post: Post, crash_at: str, texts: list[str], place: str = PIGEON) -> tuple[list[str], Death]:
    """Let it die on its way through these posts, which all lie there before; their ids, and what it left."""
    with post.paused(place):
        found = [post.send(place, text) for text in texts]
        post.daemon.stop()
        post.start(crash_at)
        post.wait_for_adapters()
    return found, post.die()


def recover(post: Post, *deaths: Death) -> None:
    """Start it again, wait until all is done, and see that nothing is left or broken."""
    if post.daemon.process is None:
        post.start()
    post.quiet()
    post.daemon.check()
    assert post.rows("SELECT id FROM envelope WHERE held_by IS NOT NULL") == []
    for death in deaths:  # whatever was posted had been marked before
        assert {number for number, _ in death.window} <= death.held


def labels(post: Post, numbers: list[str]) -> list[tuple[str, bool]]:
    found = [post.envelope(number) for number in numbers]
    return [(one["status"], one["redelivered"]) for one in found]


DONE, AGAIN = ("done", False), ("done", True)


def test_what_was_claimed_and_not_posted_is_posted_once(post: Post) -> None:
    before = len(post.posted())
    (first, second, third), death = die_at(post, f"{CLAIMED}:2", ["one", "two", "three"])
    assert post.posted()[before:] == [(first, 0)]
    assert (death.held, death.window) == ({second}, set())
    recover(post, death)
    assert post.posted()[before:] == [(first, 0), (second, 0), (third, 0)]
    assert labels(post, [first, second, third]) == [DONE, AGAIN, DONE]


def test_what_was_confirmed_and_not_settled_is_posted_twice_and_labelled(post: Post) -> None:
    before = len(post.posted())
    (first, second, third), death = die_at(post, f"{POSTED}:2", ["one", "two", "three"])
    assert post.posted()[before:] == [(first, 0), (second, 0)]
    assert (death.held, death.window) == ({second}, {(second, 0)})
    recover(post, death)
    assert post.posted()[before:] == [(first, 0), (second, 0), (second, 0), (third, 0)]
    assert labels(post, [first, second, third]) == [DONE, AGAIN, DONE]


def test_what_was_settled_is_not_posted_again(post: Post) -> None:
    before = len(post.posted())
    numbers, death = die_at(post, f"{SETTLED}:4", ["one", "two", "three", "four"])
    assert death.window == set()
    assert len(death.held) == 1  # settling one and claiming the next are one
    recover(post, death)
    assert post.posted()[before:] == [(number, 0) for number in numbers]
    assert labels(post, numbers) == [AGAIN if number in death.held else DONE for number in numbers]


def test_of_a_message_in_chunks_only_the_one_that_was_not_noted_is_posted_twice(post: Post) -> None:
    before = len(post.posted())
    (number,), death = die_at(post, f"{POSTED}:2", ["x" * 120])
    assert death.window == {(number, 1)}
    recover(post, death)
    assert post.posted()[before:] == [(number, 0), (number, 1), (number, 1), (number, 2)]
    assert labels(post, [number]) == [AGAIN]


@pytest.mark.parametrize("point", [BEFORE_WRITE, IN_GROUP, AFTER_COMMIT])
def test_what_is_accepted_is_posted_wherever_the_writer_dies(post: Post, point: str) -> None:
    """Accepting, claiming and settling all go through the writer, which dies amid them."""
    before = len(post.posted())
    post.daemon.stop()
    post.start(f"{point}:20")
    answered: list[str] = []
    with pytest.raises(DaemonUnreachable):
        while True:
            answered.append(post.send(PIGEON, f"{len(answered)}", key=f"{point}-{len(answered)}"))
    death = post.die()
    assert set(answered) <= set(death.arrived)
    post.start()
    last = post.send(PIGEON, f"{len(answered)}", key=f"{point}-{len(answered)}")  # nobody was told of it
    recover(post, death)
    numbers = [*answered, last]
    expected = [(number, 0) for number in numbers for _ in range(1 + ((number, 0) in death.window))]
    assert post.posted()[before:] == expected
    assert labels(post, numbers) == [AGAIN if number in death.held else DONE for number in numbers]


def test_errors_and_deaths_together_keep_the_order(post: Post) -> None:
    """The first waits with its lane, the second fails, and the daemon dies with the third confirmed."""
    before = len(post.posted())
    post.script(
        {"do": "lane_error", "retry_after": 0.05}, {"do": "ok"}, {"do": "envelope_error"}, {"do": "ok"}
    )
    (first, second, third, last), death = die_at(post, f"{POSTED}:2", ["one", "two", "three", "four"])
    assert death.held == {third}
    recover(post, death)
    assert post.posted()[before:] == [(first, 0), (third, 0), (third, 0), (last, 0)]
    assert [status for status, _ in labels(post, [first, second, third, last])] == [
        "done",
        "failed",
        "done",
        "done",
    ]
    assert post.envelope(first)["attempts"] == 1


def test_a_file_of_the_folder_is_there_once_and_whole(post: Post) -> None:
    numbers, death = die_at(post, f"{POSTED}:2", ["one", "two", "three"], TRAY)
    assert death.held == {numbers[1]}
    recover(post, death)
    out = post.out()
    assert [out[f"{number}.txt"] for number in numbers] == ["one", "two", "three"]
    assert labels(post, numbers) == [DONE, AGAIN, DONE]
    assert [name for name in os.listdir(post.tray / "out") if name.endswith(".part")] == []


def notices(post: Post, number: str) -> list[str]:
    found = post.boss("envelope.list", address="user:boss", page_size=100)["envelopes"]
    return [one["text"] for one in found if one["from"] == "agent:system" and number in one["text"]]


def test_what_was_in_hand_at_three_crashes_in_a_row_is_parked_and_retry_takes_it_up(post: Post) -> None:
    before = len(post.posted())
    (first, second), death = die_at(post, CLAIMED, ["one", "two"])
    deaths = [death]
    for _ in range(2):
        post.start(CLAIMED)
        deaths.append(post.die())
    assert [one.held for one in deaths] == [{first}] * 3
    recover(post, *deaths)
    parked = post.envelope(first)
    assert (parked["status"], parked["last_error"]["kind"]) == ("failed", "crashed")
    assert post.posted()[before:] == [(second, 0)]
    (told,) = notices(post, first)
    assert f"hiboss envelope retry {first}" in told
    post.boss("envelope.retry", ids=[first])
    post.quiet()
    assert post.posted()[before:] == [(second, 0), (first, 0)]
    assert post.rows("SELECT crashes, error_kind FROM envelope WHERE id = ?", int(first[1:])) == [
        {"crashes": 0, "error_kind": "crashed"}
    ]


def test_crashes_with_a_stop_between_them_are_not_in_a_row(post: Post) -> None:
    """What the stop freed was not the cause of it."""
    before = len(post.posted())
    (first,), death = die_at(post, CLAIMED, ["one"])
    post.start(CLAIMED)
    deaths = [death, post.die()]
    post.script({"do": "lane_error", "retry_after": 0.2}, *[{"do": "ok"}] * 3)
    post.start()  # the third handover ends in an error and not in a crash: the count begins again
    post.quiet()
    recover(post, *deaths)
    assert post.posted()[before:] == [(first, 0)]
    assert post.rows("SELECT crashes FROM envelope WHERE id = ?", int(first[1:])) == [{"crashes": 0}]
    assert notices(post, first) == []


def test_a_normal_stop_starts_the_count_of_crashes_again_also_for_what_is_not_in_hand(post: Post) -> None:
    before = len(post.posted())
    (first,), death = die_at(post, CLAIMED, ["one"])
    post.start(CLAIMED)
    deaths = [death, post.die()]
    with post.daemon.database() as database:  # while no daemon runs, which would try it at its start
        database.execute("UPDATE lane SET state = 'paused'")
        database.commit()
    post.start()
    post.daemon.stop()
    with post.daemon.database() as database:
        database.execute("UPDATE lane SET state = 'open'")
        database.commit()
    post.start(CLAIMED)
    deaths.append(post.die())
    assert [one.held for one in deaths] == [{first}] * 3
    recover(post, *deaths)
    assert post.posted()[before:] == [(first, 0)]
    assert notices(post, first) == []


def test_six_deaths_at_random_moments_lose_nothing_and_double_nothing_unexplained(
    tmp_path: Path,
) -> None:
    office = Office(tmp_path, seed=seeded(23).randrange(2**32))
    try:
        while office.books.kills < 6:
            office.round(most_seconds=0.3)
        office.finish()
    finally:
        office.post.daemon.stop()
    books = office.books
    sys.stdout.write(f"{books}\n")  # to be seen with pytest -rP: how many were doubled, and where
    assert books.posts > 0 and books.files.total() > 0
    assert not books.faults, str(books)


# --- a rough platform -----------------------------------------------------------------


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
