"""A daemon with an MCP worker for all modules; a new chat, and clients of it in each of the four ways."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.mcp_clients import WAYS, Chat, McpClient, Way
from tests.support.web_daemons import WebDaemon, web_fixture

daemon = web_fixture(scope="session")


@pytest.fixture
def chat(daemon: WebDaemon) -> Chat:
    return Chat(daemon)


@pytest.fixture(params=WAYS, ids="-".join)
def way(request: pytest.FixtureRequest) -> Way:
    found: Way = request.param
    return found


@pytest.fixture
def client(chat: Chat, way: Way) -> Iterator[McpClient]:
    """A client of the agent."""
    with chat.client(way) as connected:
        yield connected


@pytest.fixture
def human(chat: Chat, way: Way) -> Iterator[McpClient]:
    """A client of the boss."""
    with chat.client(way, chat.boss) as connected:
        yield connected
