"""What the tests of Telegram share: a daemon and its Bot API server, for a module or for one test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.telegram_bots import TelegramDaemon, telegram_daemon
from tests.support.telegram_casts import Stage


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TelegramDaemon]:
    """Give a module a daemon: each of its tests makes bots, agents and people of its own."""
    with telegram_daemon(tmp_path_factory.mktemp("d")) as running:
        yield running


@pytest.fixture
def own_office(tmp_path: Path) -> Iterator[TelegramDaemon]:
    """The same for one test alone."""
    with telegram_daemon(tmp_path) as running:
        yield running


@pytest.fixture(scope="module")
def theatre(office: TelegramDaemon) -> Stage:
    return Stage(office)
