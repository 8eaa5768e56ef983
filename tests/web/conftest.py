"""A daemon with HTTP for the module; a browser of the boss that is logged in there; REST clients."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.web_clients import RestClient, WebDaemon, web_daemon
from tests.support.web_daemons import Browser


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebDaemon]:
    with web_daemon(tmp_path_factory.mktemp("d")) as running:
        yield running
        running.check()


@pytest.fixture(scope="module")
def browser(web: Any) -> Browser:
    """Of the `web` of the module, as tests/support/web_daemons has it."""
    found: Browser = web.log_in()
    return found


@pytest.fixture
def ada(web: Any) -> RestClient:
    """The boss, of the `web` of the module."""
    found: RestClient = web.rest(web.token("boss"))
    return found


@pytest.fixture
def nex(web: Any) -> RestClient:
    found: RestClient = web.rest(web.token("nex"))
    return found
