"""kill -9 while updates of Telegram stream in: each is one message, in the order of its chat, and none is lost."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hiboss.core.crashpoint import TAKEN
from tests.support.failures import seeded
from tests.support.telegram_bots import Stored, TelegramDaemon, hash_of, telegram_daemon
from tests.telegram.kill_soak import POINTS, Killing

pytestmark = pytest.mark.slow

RANDOM_KILLS = 4
SEED = 20261118
UPDATES = 80  # about; the soak has more (kill_soak.py)


@pytest.fixture
def office(tmp_path: Path) -> Iterator[TelegramDaemon]:
    with telegram_daemon(tmp_path) as running:
        yield running


@pytest.fixture
def killing(office: TelegramDaemon, tmp_path: Path) -> Killing:
    return Killing(office, tmp_path, seeded(SEED))


def test_every_update_is_one_message_wherever_the_intake_dies(killing: Killing) -> None:
    for point in POINTS:
        killing.at_point(point)
    faults = killing.finish()
    sys.stdout.write(f"{killing}\n")
    assert {*POINTS} == {*killing.causes}
    assert faults == []


def test_every_update_is_one_message_after_deaths_at_random_moments(killing: Killing) -> None:
    for step in killing.traffic.everything():
        step()
    killing.office.settle(
        60
    )  # the first round ends this daemon: an end in the middle of work would be one more in a row
    for left in range(RANDOM_KILLS, 0, -1):
        killing.at_random(burst=max(4, (UPDATES - killing.traffic.updates) // left))
    faults = killing.finish()
    sys.stdout.write(f"{killing}\n")
    assert killing.traffic.eras > 0
    assert killing.traffic.albums > 0
    assert faults == []


def test_an_album_whose_parts_came_before_and_after_a_death_is_one_message(
    office: TelegramDaemon, tmp_path: Path
) -> None:
    """However long it lasts: the parts that came meanwhile are fetched before the album is sealed."""
    ada = office.api.add_person("Ada")
    chat = office.pair(ada, office.bound_bot("nexbot"))
    armed = tmp_path / "armed"
    office.daemon.kill()
    # A kill by the test could come after the album is sealed.
    office.start(HIBOSS_CRASH_AT=f"{TAKEN}@{armed}")
    office.settle()
    album = ada.begins_album(chat)
    armed.touch()
    album.add(b"one", "the album")
    office.daemon.wait_for_death()
    album.add(b"two")
    ada.says(chat, "after it")
    with office.daemon.database() as database:  # as if it had been stored an hour ago
        database.execute("UPDATE platform_update SET received_at = received_at - 3600000")
        database.commit()
    office.start()
    office.settle()
    assert office.messages(chat) == [
        Stored("the album", (hash_of(b"one"), hash_of(b"two"))),
        Stored("after it"),
    ]
