"""Two changes at once of one agent, or of one account: both are kept, with the secrets that they name."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Coroutine
from typing import Any

import pytest

from hiboss.core.errors import HomeUnusable, UnknownAgent
from tests.support.in_process_daemon import InProcessDaemon, frozen

FIRST, SECOND = "whsec_" + "A" * 32, "whsec_" + "B" * 32


async def at_once(daemon: InProcessDaemon, *calls: Coroutine[Any, Any, Any]) -> None:
    """Begin these calls while nothing can be written, and wait until they are done."""
    with daemon.locked():
        tasks = [asyncio.create_task(one) for one in calls]
        for _ in range(50):  # each has gone as far as it can without a write
            await asyncio.sleep(0)
    await asyncio.gather(*tasks)


def secrets(daemon: InProcessDaemon, query: str) -> dict[str, str]:
    """Return the secrets that the only row of a query names; nothing else is stored."""
    [row] = daemon.rows(query)
    assert [name for name in os.listdir(daemon.home.secrets) if name != "aside"] == [row[0]]
    return daemon.home.needed_secrets(row[0])


OF_AGENT = "SELECT provider_secrets FROM agent WHERE provider = 'webhook' AND deleted_at IS NULL"
OF_ACCOUNT = "SELECT secrets FROM binding WHERE removed_at IS NULL"


@frozen()
async def test_two_settings_of_an_agent_at_once_are_both_kept(daemon: InProcessDaemon) -> None:
    url = {"url": "http://127.0.0.1:9/1", "secret": FIRST}
    await daemon.ask("agent.register", name="hook", provider="webhook", settings=url)
    await daemon.ask("agent.set", name="hook", settings={"secret": FIRST})
    assert secrets(daemon, OF_AGENT) == {"secret": FIRST}
    change = {"secret": SECOND}, {"url": "http://127.0.0.1:9/2"}
    await at_once(daemon, *(daemon.ask("agent.set", name="hook", settings=one) for one in change))
    assert secrets(daemon, OF_AGENT) == {"secret": SECOND}
    [agent] = [one for one in (await daemon.ask("agent.list"))["agents"] if one["name"] == "hook"]
    assert agent["settings"]["url"] == "http://127.0.0.1:9/2"
    await at_once(
        daemon,
        daemon.ask("agent.set", name="hook", settings={"secret": FIRST}),
        daemon.ask("agent.delete", name="hook"),
    )
    assert [name for name in os.listdir(daemon.home.secrets) if name != "aside"] == []


@frozen(adapter_modules="hiboss.testing.scripted_adapter", quiet=False)
async def test_an_account_that_is_unbound_and_bound_at_once_has_its_secret(daemon: InProcessDaemon) -> None:
    path = os.path.join(os.path.dirname(daemon.home.database), "place")
    os.mkdir(path)
    to = {"name": "nex", "adapter_type": "scripted"}
    bind = {**to, "settings": {"path": path, "password": "hush"}}
    await daemon.ask("agent.bind", **bind)
    assert secrets(daemon, OF_ACCOUNT) == {"password": "hush"}
    await at_once(daemon, daemon.ask("agent.unbind", **to), daemon.ask("agent.bind", **bind))
    assert secrets(daemon, OF_ACCOUNT) == {"password": "hush"}


@frozen(quiet=False)
async def test_a_change_that_is_refused_leaves_no_secret_behind(daemon: InProcessDaemon) -> None:
    hook = {"provider": "webhook", "settings": {"url": "http://127.0.0.1:9/", "secret": FIRST}}
    with pytest.raises(UnknownAgent):
        await daemon.ask("agent.set", name="nobody", **hook)
    token = daemon.token("boss")
    os.rename(daemon.home.tokens, daemon.home.tokens + "-away")
    try:
        with pytest.raises(HomeUnusable):  # after its secret was stored
            await daemon.call("agent.register", token=token, name="hook", profile=True, **hook)
    finally:
        os.rename(daemon.home.tokens + "-away", daemon.home.tokens)
    assert os.listdir(daemon.home.secrets) == []
    await daemon.ask("agent.register", name="hook", profile=True, **hook)
    assert secrets(daemon, OF_AGENT) == {"secret": FIRST}
