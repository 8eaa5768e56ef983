"""What most tests begin with: a daemon for the module, two agents, a team of those who think, and the boss."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hiboss.testing import RunningDaemon
from tests.integration.office import Party, agents, open_office
from tests.integration.thinkers import Chief, Team


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDaemon]:
    with open_office(tmp_path_factory.mktemp("d")) as running:
        yield running


@pytest.fixture
def two(daemon: RunningDaemon) -> tuple[Party, Party]:
    ada, bob = agents(daemon, 2)
    return ada, bob


@pytest.fixture(scope="module")
def team(daemon: RunningDaemon, tmp_path_factory: pytest.TempPathFactory) -> Team:
    return Team(daemon, tmp_path_factory.mktemp("programs"))


@pytest.fixture(scope="module")
def ada(daemon: RunningDaemon) -> Chief:
    return Chief(daemon)
