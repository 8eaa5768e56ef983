"""kill -9 while posts are made: what was in hand comes again, in its place, and nothing else does."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from hiboss.core.crashpoint import AFTER_COMMIT, BEFORE_WRITE, CLAIMED, IN_GROUP, POSTED, SETTLED
from hiboss.core.errors import DaemonUnreachable
from tests.acceptance.soak_post import Death, Post
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
