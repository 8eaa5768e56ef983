"""What the tests of Telegram share: a daemon and its Bot API server, for a module or for one test."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from hiboss.testing.bot_api import BotApi
from tests.support.telegram_booths import VERSIONS, Booths, secrets_shown
from tests.support.telegram_bots import Stage, TelegramDaemon, telegram_daemon


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


@pytest.fixture(scope="module", params=VERSIONS)
def booths(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Booths]:
    """Return booths of one of the servers; a module may name variables for their daemon in ENVIRONMENT."""
    make, env = partial(BotApi, version=request.param), getattr(request.module, "ENVIRONMENT", {})
    with telegram_daemon(tmp_path_factory.mktemp("d"), make, **env) as office:
        yield Booths(office, tmp_path_factory.mktemp("files"))
        assert (secrets_shown(office), office.api.complaints) == ([], [])
