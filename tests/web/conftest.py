"""A daemon with HTTP for the module; a browser of the boss that is logged in there; REST clients."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.web_clients import RestClient
from tests.support.web_daemons import Browser, web_fixture

daemon = web_fixture()


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
