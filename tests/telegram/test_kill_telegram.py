"""kill -9 while updates of Telegram stream in: each is one message, in the order of its chat, and none is lost."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.telegram_bots import TelegramDaemon, telegram_daemon
from tests.telegram.kill_soak import POINTS, Killing

RANDOM_KILLS = 6
UPDATES = 150


@pytest.fixture
def office(tmp_path: Path) -> Iterator[TelegramDaemon]:
    with telegram_daemon(tmp_path) as running:
        yield running


@pytest.fixture
def killing(office: TelegramDaemon, tmp_path: Path) -> Killing:
    seed = random.randrange(10**6)
    sys.stdout.write(f"seed: {seed}\n")  # shown when the test fails
    return Killing(office, tmp_path, seed)


def test_every_update_is_one_message_wherever_the_intake_dies(killing: Killing) -> None:
    for point in POINTS:
        killing.at_point(point)
    faults = killing.finish()
    sys.stdout.write(f"{killing}\n")
    assert {*POINTS} == {*killing.causes}
    assert faults == []


def test_every_update_is_one_message_after_deaths_at_random_moments(killing: Killing) -> None:
    while killing.kills < RANDOM_KILLS or killing.traffic.updates < UPDATES:
        killing.at_random()
    faults = killing.finish()
    sys.stdout.write(f"{killing}\n")
    assert killing.traffic.eras > 0
    assert killing.traffic.albums > 0
    assert faults == []
