"""What most tests of the operations begin with: a daemon for the module, and two agents."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hiboss.testing import RunningDaemon
from tests.integration.office import Party, agents, open_office


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDaemon]:
    with open_office(tmp_path_factory.mktemp("d")) as running:
        yield running


@pytest.fixture
def two(daemon: RunningDaemon) -> tuple[Party, Party]:
    ada, bob = agents(daemon, 2)
    return ada, bob
