"""What all tests of channels share: a daemon with the scripted adapters; they may be coroutines."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hiboss.testing.running_daemon import RunningDaemon
from tests.support.scripted_channels import daemon_with_channels


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDaemon]:
    with daemon_with_channels(tmp_path_factory.mktemp("d"), HIBOSS_INTAKE_PARALLEL_CHATS="4") as running:
        yield running
