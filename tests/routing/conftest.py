"""What the tests of routing share: a daemon with scripted channels, a channel there, the boss and his phone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hiboss.testing.running_daemon import RunningDaemon
from tests.support.parties import Party, agent, boss
from tests.support.phones import Phone
from tests.support.scripted_channels import Place, daemon_with_channels


@pytest.fixture(scope="module")
def daemon(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningDaemon]:
    """A daemon with scripted channels; a module may name variables for it in ENVIRONMENT."""
    environment = getattr(request.module, "ENVIRONMENT", {})
    with daemon_with_channels(tmp_path_factory.mktemp("d"), **environment) as running:
        yield running


@pytest.fixture
def place(request: pytest.FixtureRequest, daemon: RunningDaemon, tmp_path: Path) -> Place:
    """A channel with an agent of its own; a module may name another class in PLACE."""
    return getattr(request.module, "PLACE", Place)(tmp_path).bound(daemon)


@pytest.fixture
def chief(daemon: RunningDaemon) -> Party:
    return boss(daemon)


@pytest.fixture
def kai(daemon: RunningDaemon) -> Party:
    """An agent that is not one of the place or the phone."""
    return agent(daemon)


@pytest.fixture
def phone(daemon: RunningDaemon, tmp_path: Path) -> Iterator[Phone]:
    """A chat in which the boss can be reached; after the test he is reached nowhere."""
    yield Phone(tmp_path).bound(daemon)
    boss(daemon).call("boss.set", reach="", forward="all")
    daemon.check()
