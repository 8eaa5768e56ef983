"""kill -9 while files are taken from a folder: each becomes one message, none is lost or doubled."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hiboss.core.crashpoint import (
    AFTER_COMMIT,
    BEFORE_WRITE,
    DIGESTED,
    FOLDER_RECEIVED,
    FOLDER_TAKEN,
    IN_GROUP,
    TAKEN,
)
from hiboss.routing.intake import Intake
from tests.acceptance.soak_post import Post
from tests.support.crash_groups import groups_of

pytestmark = pytest.mark.slow

FILES = 14


def nothing_is_left(post: Post) -> None:
    assert os.listdir(post.tray / "in") == []
    assert os.listdir(post.tray / ".taken") == []
    assert [name for name in os.listdir(post.tray / "out") if name.endswith(".part")] == []


def test_a_file_becomes_one_message_wherever_the_daemon_dies(post: Post) -> None:
    before = len(post.kill().arrived)
    for n in range(FILES):
        post.drop(f"{n:02}.txt", f"file {n:02}")
        if n in (1, 9):
            post.drop(f"broken-{n}.json", '{"text": 1}')
    for crash_at, stored in (
        (FOLDER_TAKEN, 0),
        (TAKEN, 0),
        (DIGESTED, 0),
        (FOLDER_RECEIVED, 1),
        (f"{DIGESTED}:2", 2),
        (f"{FOLDER_RECEIVED}:2", 4),
        (f"{BEFORE_WRITE}:2", 5),
        (f"{IN_GROUP}:2", 6),
        (f"{AFTER_COMMIT}:2", 8),
    ):
        post.start(crash_at, **groups_of(Intake._store_meaning))
        death = post.die()
        assert len(death.arrived) - before == stored, crash_at
    post.start()
    post.quiet()
    post.daemon.check()
    assert [row["text"] for row in post.received()] == [f"file {n:02}" for n in range(FILES)]
    aside = post.tray / "broken"
    assert {name.removesuffix(".reason.txt") for name in os.listdir(aside)} == {
        "broken-1.json",
        "broken-9.json",
    }
    assert "text must be a text" in (aside / "broken-9.json.reason.txt").read_text()
    nothing_is_left(post)


def test_a_post_cut_short_leaves_nothing_that_looks_like_one(post: Post, tmp_path: Path) -> None:
    """Killed while a large file is copied: afterwards the post is there whole, and only that."""
    large = tmp_path / "large.bin"
    with open(large, "wb") as file:
        file.truncate(40 * 1024 * 1024)
    out = post.tray / "out"
    before = set(os.listdir(out))
    number = post.send("channel:folder:tray", "see the file", attachments=[str(large)])
    while not set(os.listdir(out)) - before:  # no pause: the copying takes a few milliseconds
        pass
    death = post.kill()
    cut_short = {name for name in set(os.listdir(out)) - before if name[0] != "."}
    post.start()
    post.quiet()
    post.daemon.check()
    assert cut_short <= {f"{number}-large.bin", f"{number}.txt"}
    assert set(os.listdir(out)) - before == {f"{number}-large.bin", f"{number}.txt"}
    assert (out / f"{number}-large.bin").stat().st_size == 40 * 1024 * 1024
    assert post.envelope(number)["redelivered"] is (number in death.held)
    nothing_is_left(post)
