"""Crash points: the process dies there as by kill -9, at the chosen pass, and nowhere else."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from hiboss.core import crashpoint as module

_WALK = """
import sys
from hiboss.core.crashpoint import crashpoint
for name in sys.argv[1:]:
    sys.stdout.write(name + "\\n")
    sys.stdout.flush()
    crashpoint(name)
"""
PASSES = ["store.before_write", "store.in_group", "store.after_commit"] * 3


def walk(armed: str | None) -> tuple[int, int]:
    """Return the status of a process that passes nine crash points, and how many of them it reached."""
    environment = {name: value for name, value in os.environ.items() if name != "HIBOSS_CRASH_AT"}
    if armed is not None:
        environment["HIBOSS_CRASH_AT"] = armed
    done = subprocess.run(
        [sys.executable, "-c", _WALK, *PASSES], env=environment, capture_output=True, text=True, check=False
    )
    return done.returncode, len(done.stdout.splitlines())


@pytest.mark.parametrize(
    ("armed", "reached"),
    [
        ("store.before_write", 1),
        ("store.in_group", 2),
        ("store.after_commit", 3),
        ("store.after_commit:1", 3),
        ("store.after_commit:", 3),
        ("store.before_write:2", 4),
        ("store.after_commit:3", 9),
    ],
)
def test_the_process_dies_at_the_pass_it_was_told(armed: str, reached: int) -> None:
    assert walk(armed) == (-signal.SIGKILL, reached)


@pytest.mark.parametrize(
    "armed", [None, "", "store", "store.in_group_", "setup.profiles_written", "store.in_group:4"]
)
def test_the_process_lives_when_no_place_it_passes_is_armed(armed: str | None) -> None:
    assert walk(armed) == (0, len(PASSES))


def test_passes_count_from_the_moment_that_a_file_exists(tmp_path: Path) -> None:
    armed = tmp_path / "armed"
    assert walk(f"store.in_group@{armed}") == (0, len(PASSES))
    armed.touch()
    assert walk(f"store.in_group@{armed}") == (-signal.SIGKILL, 2)
    assert walk(f"store.in_group:2@{armed}") == (-signal.SIGKILL, 5)


def test_every_crash_point_has_a_name_of_its_own() -> None:
    assert sorted([value for name, value in vars(module).items() if name.isupper()]) == [
        "ask.created",
        "ask.settled",
        "ask.woken",
        "attached.seen",
        "attached.submitted",
        "attached.told",
        "breaker.flagged",
        "breaker.obeyed",
        "breaker.pulled",
        "breaker.released",
        "change.made",
        "change.noted",
        "change.planned",
        "change.reacted",
        "control.stored",
        "delivery.claimed",
        "delivery.moved",
        "delivery.posted",
        "delivery.settled",
        "folder.received",
        "folder.taken",
        "intake.commanded",
        "intake.digested",
        "intake.taken",
        "live.became",
        "live.begun",
        "live.deleted",
        "live.noted",
        "live.posted",
        "media.copied",
        "media.placed",
        "runner.answered",
        "runner.asked",
        "runner.begun",
        "runner.session",
        "runner.set_aside",
        "runner.settled",
        "runner.started",
        "runner.steer_given",
        "runner.steer_held",
        "scheduler.arrived",
        "scheduler.arriving",
        "setup.profiles_written",
        "store.after_commit",
        "store.before_write",
        "store.in_group",
        "upload.used",
        "upload.written",
        "webhooks.facts_stored",
    ]
