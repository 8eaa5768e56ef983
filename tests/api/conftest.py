"""What the tests of operations share: a daemon, the boss, and agents that are new in each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hiboss.testing.running_daemon import RunningDaemon
from tests.support.parties import Party, agent
from tests.support.python_agents import Boss
from tests.support.scripted_channels import daemon_with_channels


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDaemon]:
    """A daemon that can also bind scripted channels."""
    with daemon_with_channels(tmp_path_factory.mktemp("d")) as running:
        yield running


@pytest.fixture
def chief(daemon: RunningDaemon) -> Boss:
    return Boss(daemon)


def _new(daemon: RunningDaemon) -> Party:
    return agent(daemon)


ada, bob, eve, kai, nex = (pytest.fixture(_new, name=name) for name in ("ada", "bob", "eve", "kai", "nex"))
