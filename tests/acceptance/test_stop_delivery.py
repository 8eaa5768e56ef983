"""A clean stop while posts are made: what can be settled is, for a bounded time; the rest comes back."""

from __future__ import annotations

import json
import os
import signal

from tests.acceptance.soak_clients import Asked, ask_again
from tests.acceptance.soak_post import Post
from tests.support.cli import Shell
from tests.support.waits import wait_until

PIGEON = "channel:scripted:pigeon"


def row(post: Post, number: str) -> tuple[int, int | None, int]:
    """Status, holder and hand-overs, as they lie in the database."""
    query = "SELECT status, held_by, handovers FROM envelope WHERE id = ?"
    (found,) = post.rows(query, int(number[1:]))
    return found["status"], found["held_by"], found["handovers"]


def in_hand(post: Post, number: str) -> bool:
    return row(post, number)[1] is not None


def stop_by_command(post: Post) -> None:
    """`hiboss daemon stop`, as a person does it; it returns when the daemon has ended."""
    done = Shell(post.daemon.home.path)("daemon", "stop", "--json")
    assert (done.rc, done.json["stopped"]) == (0, True)
    assert post.daemon.wait_for_death() == 0


def test_a_post_that_hangs_holds_the_stop_up_for_a_bounded_time_and_comes_back(post: Post) -> None:
    post.daemon.stop()
    post.start(HIBOSS_DELIVERY_DRAIN_SECONDS="0.2")
    post.script({"do": "hang"})
    number, next_one = post.send(PIGEON, "hangs"), post.send(PIGEON, "waits behind it")
    before = len(post.posted())
    wait_until(lambda: in_hand(post, number))
    stop_by_command(post)
    assert row(post, number) == (0, None, 1)
    assert row(post, next_one) == (0, None, 0)
    post.daemon.check()
    post.start()
    post.quiet()
    assert post.posted()[before:] == [(number, 0), (next_one, 0)]
    assert post.envelope(number)["redelivered"] is True
    assert post.envelope(next_one)["redelivered"] is False


def test_a_slow_post_is_settled_before_the_daemon_ends(post: Post) -> None:
    post.script({"do": "hang", "seconds": 0.3})
    number = post.send(PIGEON, "slow")
    wait_until(lambda: in_hand(post, number))
    stop_by_command(post)
    assert row(post, number) == (1, None, 1)
    assert [one for one, _ in post.posted()].count(number) == 1


def test_a_stop_while_a_thousand_are_due_loses_and_doubles_none(post: Post) -> None:
    asked = [
        Asked(key=f"{n}", params={"token": post.daemon.token("nex"), "to": PIGEON, "text": f"{n}"})
        for n in range(1_000)
    ]
    with post.paused(PIGEON):
        numbers = [str(answer["result"]["ids"][0]) for answer in ask_again(post.daemon, asked)]
        before = len(post.posted())
        post.script(*[{"do": "ok"}] * 20, {"do": "hang", "seconds": 1})
    wait_until(lambda: len(post.posted()) >= before + 20)
    os.kill(post.daemon.pid, signal.SIGTERM)
    assert post.daemon.wait_for_death() == 0
    posted = [number for number, _ in post.posted()[before:]]
    assert posted == numbers[: len(posted)]
    assert len(posted) >= 20
    query = "SELECT 'e' || id AS id FROM envelope e WHERE status = 1 AND e.id >= ? ORDER BY e.id"
    done = post.rows(query, int(numbers[0][1:]))
    assert [one["id"] for one in done] == posted  # settled, each that was posted
    assert post.rows("SELECT id FROM envelope WHERE held_by IS NOT NULL") == []
    post.start()
    post.quiet()
    assert [number for number, _ in post.posted()[before:]] == numbers
    again = post.rows("SELECT id FROM envelope WHERE handovers > 1 AND id >= ?", int(numbers[0][1:]))
    assert again == []
    post.daemon.check()


def test_a_stop_while_an_adapter_crashes_ends_well_and_its_mail_waits(post: Post) -> None:
    settings = json.loads((post.pigeon / "settings.json").read_text())
    post.daemon.stop()
    (post.pigeon / "settings.json").write_text(json.dumps({**settings, "fail_listens": 1_000}))
    post.start()
    wait_until(lambda: any(one["state"] == "failed" for one in post.boss("agent.bindings")["bindings"]))
    number = post.send(PIGEON, "for later")
    before = len(post.posted())
    assert post.daemon.stop() == 0
    assert row(post, number)[:2] == (0, None)
    post.daemon.check()
    (post.pigeon / "settings.json").write_text(json.dumps(settings))
    post.start()
    post.quiet()
    assert post.posted()[before:] == [(number, 0)]
