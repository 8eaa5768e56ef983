"""Clients that reconnect end with exactly the mail they should have. The long version: reconnect_soak.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.parties import agents, boss
from tests.support.web_daemons import kept_port, web_daemon
from tests.web.reconnect import reconnect

pytestmark = pytest.mark.slow


def test_every_client_ends_with_exactly_its_mail_though_the_daemon_was_killed(tmp_path: Path) -> None:
    with kept_port() as port, web_daemon(tmp_path, web_port=port) as daemon:
        sender, *parties = agents(daemon, 3)
        reconnect(daemon, sender, [*parties, boss(daemon)], clients=10, kills=2)
