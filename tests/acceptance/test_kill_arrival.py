"""kill -9 while deferred mail arrives, and while somebody has claimed: once, in order, labelled."""

from __future__ import annotations

import pytest

from hiboss.api import leases
from hiboss.core import clock
from hiboss.core.crashpoint import AFTER_COMMIT, ARRIVED, ARRIVING
from hiboss.core.errors import DaemonUnreachable
from tests.acceptance.soak_clients import Asked, ask_again
from tests.acceptance.soak_post import Post
from tests.support.crash_groups import groups_of

pytestmark = pytest.mark.slow

PIGEON = "channel:scripted:pigeon"
MANY = 1_100  # two chunks of waking, and a bit


def time_passes(post: Post) -> None:
    """Let an hour pass for what waits for a time, while no daemon runs."""
    with post.daemon.database() as database:
        database.execute("UPDATE message SET deliver_at = deliver_at - 3600000 WHERE seq IS NULL")
        database.execute("UPDATE envelope SET wait_until = wait_until - 3600000 WHERE waits IS NOT NULL")
        database.commit()


def defer(post: Post) -> list[str]:
    """Many for one instant, every hundredth for a channel; the daemon is killed, and then it comes."""
    at = clock.iso(clock.now() + 3_600_000)
    places = ["agent:ada" if n % 100 else PIGEON for n in range(MANY)]
    send = {"token": post.daemon.token("nex"), "deliver_at": at}
    asked = [Asked(key=f"{n}", params={**send, "to": to, "text": f"{n}"}) for n, to in enumerate(places)]
    numbers = [str(answer["result"]["ids"][0]) for answer in ask_again(post.daemon, asked)]
    assert not set(numbers) & set(post.kill().arrived)
    time_passes(post)
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


def test_a_claim_nobody_was_told_of_ends_with_its_lease(post: Post) -> None:
    numbers = [post.send("agent:ada", f"{n}") for n in range(12)]
    post.daemon.stop()
    post.start(f"{AFTER_COMMIT}:5", **groups_of(leases.claim))
    told: list[str] = []
    with pytest.raises(DaemonUnreachable):
        while True:
            (one,) = post.ada("envelope.claim", limit=1, lease="1h")["envelopes"]
            told.append(one["id"])
    post.die()
    claimed = [
        row["id"] for row in post.rows("SELECT 'e' || id AS id FROM envelope WHERE waits = 2 ORDER BY id")
    ]
    assert (told, claimed) == (numbers[:4], numbers[:5])  # she was not told of the last one
    time_passes(post)
    post.start()
    fetched = post.empty_box()
    assert [one["id"] for one in fetched] == numbers
    assert [one["id"] for one in fetched if one["redelivered"]] == claimed
    post.daemon.check()
