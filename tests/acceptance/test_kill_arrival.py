"""kill -9 while deferred mail arrives, and while somebody has claimed: once, in order, labelled."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from hiboss.core import clock
from hiboss.core.crashpoint import AFTER_COMMIT, ARRIVED, ARRIVING
from hiboss.core.errors import DaemonUnreachable
from tests.acceptance.soak_clients import Asked, ask_again
from tests.acceptance.soak_post import Post

PIGEON = "channel:scripted:pigeon"
MANY = 1_100  # two chunks of waking, and a bit


@pytest.fixture(scope="module")
def post(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Post]:
    post = Post(tmp_path_factory.mktemp("p"))
    yield post
    post.daemon.stop()


def defer(post: Post, seconds: float = 0.8) -> list[str]:
    """Many for one instant, every hundredth for a channel; the daemon is killed before it comes."""
    at = clock.now() + int(seconds * 1000)
    asked = [
        Asked(
            key=f"{at}-{n}",
            params={
                "token": post.daemon.token("nex"),
                "to": "agent:ada" if n % 100 else PIGEON,
                "text": f"{n}",
                "deliver_at": clock.iso(at),
            },
        )
        for n in range(MANY)
    ]
    numbers = [str(answer["result"]["ids"][0]) for answer in ask_again(post.daemon, asked)]
    death = post.kill()
    if clock.now() >= at:  # a slow machine: some may have arrived
        post.start()
        post.quiet()
        post.empty_box()
        return defer(post, seconds * 2)
    assert not set(numbers) & set(death.arrived)
    time.sleep((at - clock.now()) / 1000)
    return numbers


def test_deferred_mail_arrives_once_and_in_order_wherever_the_daemon_dies(post: Post) -> None:
    numbers = defer(post)
    for crash_at, arrived in (
        (ARRIVING, 0),
        (ARRIVED, 500),
        (f"{ARRIVING}:2", 1_000),
        (ARRIVED, MANY),
    ):
        post.start(crash_at)
        death = post.die()
        assert len(set(numbers) & set(death.arrived)) == arrived, crash_at
    post.start()
    post.quiet()
    post.daemon.check()
    rows = post.rows("SELECT 'e' || id AS id FROM envelope WHERE arrived IS NOT NULL ORDER BY arrived")
    assert [row["id"] for row in rows if row["id"] in set(numbers)] == numbers
    places = [number for n, number in enumerate(numbers) if n % 100 == 0]
    assert [number for number, _ in post.posted() if number in places] == places
    fetched = post.empty_box()
    assert [one["id"] for one in fetched] == [number for number in numbers if number not in places]
    assert not any(one["redelivered"] for one in fetched)


def test_a_lease_outlives_the_daemon_and_what_comes_back_is_labelled(post: Post) -> None:
    first, second, third = (post.send("agent:ada", text) for text in ("one", "two", "three"))
    claimed = post.ada("envelope.claim", limit=2, lease="1h")["envelopes"]
    assert [(one["id"], one["redelivered"]) for one in claimed] == [(first, False), (second, False)]
    post.kill()
    post.start()
    (left,) = post.ada("envelope.claim", lease="1h")["envelopes"]
    assert (left["id"], left["redelivered"]) == (third, False)
    assert post.ada("envelope.ack", ids=[second]) == {"changed": 1}
    post.ada("envelope.release", ids=[first])
    (again,) = post.ada("envelope.claim", lease="1h")["envelopes"]
    assert (again["id"], again["redelivered"]) == (first, True)
    post.ada("envelope.ack", ids=[first, third])
    post.daemon.check()


def test_a_claim_nobody_was_told_of_ends_with_its_lease(post: Post) -> None:
    numbers = [post.send("agent:ada", f"{n}") for n in range(12)]
    post.daemon.stop()
    post.start(f"{AFTER_COMMIT}:12")  # some are the daemon's own, at its start
    told: list[str] = []
    with pytest.raises(DaemonUnreachable):
        while True:
            (one,) = post.ada("envelope.claim", limit=1, lease="1s")["envelopes"]
            told.append(one["id"])
    post.die()
    post.start()
    fetched = post.empty_box()
    assert [one["id"] for one in fetched] == numbers
    had = len(told) + 1  # the last one she was not told of
    assert [one["redelivered"] for one in fetched] == [True] * had + [False] * (len(numbers) - had)
    post.daemon.check()
