"""The bodies of webhooks that are in memory at one time: also those that are read, and not answered yet."""

from __future__ import annotations

import asyncio
from typing import Any
from unittest.mock import patch

import pytest
from starlette.requests import Request

from hiboss.core.errors import Busy
from hiboss.web import hooks
from hiboss.web.door import Door
from hiboss.web.requests import Budget
from tests.support.in_process_daemon import InProcessDaemon, frozen
from tests.support.webhooks import Hook

BODY = b"x" * 1_000


def posted(hook: Hook) -> Request:
    """Return a request to a webhook, as the HTTP server gives it to its route."""
    headers = [(name.encode(), value.encode()) for name, value in hook.headers(BODY).items()]
    scope = {"type": "http", "method": "POST", "headers": headers, "path_params": {"name": hook.name}}

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": BODY, "more_body": False}

    return Request(scope, receive)


@frozen(quiet=False)
async def test_a_body_counts_until_its_request_is_answered(daemon: InProcessDaemon) -> None:
    hook = await Hook.create(daemon)
    unused: Any = None
    door = Door(daemon.daemon.dispatcher, daemon.daemon.settings, unused, unused)
    with patch.object(hooks, "BUDGET", Budget(1_500)):
        assert (await hooks.receive(door, posted(hook))).status_code == 200
        with daemon.locked():
            first = asyncio.create_task(hooks.receive(door, posted(hook)))
            for _ in range(20):  # its body is read, and it waits for the store
                await asyncio.sleep(0)
            with pytest.raises(Busy):
                await hooks.receive(door, posted(hook))
        assert (await first).status_code == (await hooks.receive(door, posted(hook))).status_code == 200
