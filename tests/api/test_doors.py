"""What only the unix socket allows is refused through every other door, with the same code."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hiboss.api import dispatch  # noqa: F401 - it declares the operations
from hiboss.api.operation import REGISTRY, Level
from hiboss.core.errors import BadToken, DoorRefused, Forbidden, NoToken
from tests.support.in_process_daemon import InProcessDaemon, frozen

OTHER_DOORS = ("web", "mcp")


async def through(door: Any, daemon: InProcessDaemon, method: str, who: str | None, **params: Any) -> Any:
    """Call an operation as another door than the socket does."""
    token = None if who is None else daemon.token(who)
    return await daemon.daemon.dispatcher.call(method, params, token, door=door)


SOCKET_ALONE = {"setup.check", "setup.execute", "attached.start", "mcp.start"}


@frozen()
async def test_operations_that_need_no_token_at_the_socket_need_one_elsewhere(
    daemon: InProcessDaemon,
) -> None:
    opened = {name for name, one in REGISTRY.items() if one.level is Level.OPEN}
    assert {name for name in opened if REGISTRY[name].elsewhere is None} == SOCKET_ALONE
    for door in OTHER_DOORS:
        for name in sorted(opened - SOCKET_ALONE):
            with pytest.raises(NoToken):
                await through(door, daemon, name, None)
        for name in ("daemon.stop", "config.show"):
            with pytest.raises(Forbidden):
                await through(door, daemon, name, "nex")
        assert (await through(door, daemon, "daemon.ping", "nex"))["pong"]
        assert (await through(door, daemon, "daemon.status", "nex"))["set_up"]
        assert (await through(door, daemon, "config.show", "boss"))["settings"]
    assert (await daemon.call("daemon.ping"))["pong"]


@frozen()
async def test_setting_up_and_attaching_a_session_are_for_the_socket_alone(daemon: InProcessDaemon) -> None:
    for door in OTHER_DOORS:
        for name in sorted(SOCKET_ALONE):
            for who in (None, "boss"):  # a token does not help
                with pytest.raises(DoorRefused) as caught:
                    await through(door, daemon, name, who)
                assert caught.value.payload() == {"code": "door_refused", "what": name, "door": door}


@frozen()
async def test_nothing_is_followed_where_no_connection_stays_open(daemon: InProcessDaemon) -> None:
    for door in OTHER_DOORS:
        for name in ("event.subscribe", "event.unsubscribe"):
            with pytest.raises(DoorRefused):
                await through(door, daemon, name, "boss", **({"subscription": 1} if "un" in name else {}))


@frozen()
async def test_files_of_this_machine_are_attached_through_the_socket_only(daemon: InProcessDaemon) -> None:
    file = Path(daemon.home.path).parent / "plan.txt"
    file.write_text("plan")
    calls: dict[str, dict[str, Any]] = {
        "envelope.send": {"to": "agent:nex", "text": "see the file"},
        "cron.create": {"to": "agent:nex", "text": "see the file", "every": "2h"},
    }
    for method, params in calls.items():
        for door in OTHER_DOORS:
            with pytest.raises(DoorRefused):
                await through(door, daemon, method, "boss", **params, attachments=[str(file)])
            await through(door, daemon, method, "boss", **params, attachments=[])
        await daemon.ask(method, **params, attachments=[str(file)])
    number = (await daemon.ask("cron.list"))["schedules"][0]["id"]
    with pytest.raises(DoorRefused):
        await through("mcp", daemon, "cron.set", "boss", id=number, attachments=[str(file)])
    found = (await daemon.ask("envelope.list", "nex"))["envelopes"]
    assert sorted(len(one["attachments"]) for one in found) == [0, 0, 1]


@frozen()
async def test_a_caller_through_another_door_needs_its_token_and_level_as_ever(
    daemon: InProcessDaemon,
) -> None:
    for door in OTHER_DOORS:
        with pytest.raises(NoToken):
            await through(door, daemon, "agent.list", None)
        with pytest.raises(BadToken):
            await daemon.daemon.dispatcher.call("agent.list", {}, "hba_wrong", door=door)
        assert (await through(door, daemon, "agent.self", "nex"))["address"] == "agent:nex"


@frozen()
async def test_one_token_used_through_two_doors_is_two_callers(daemon: InProcessDaemon) -> None:
    auth, token = daemon.daemon.dispatcher._context.auth, daemon.token("nex")
    for door in ("socket", "web", "mcp", "socket", "web"):
        assert auth.authorize(token, "agent.list", door).door == door
    assert auth.authenticate(None, "agent.list", "web").door == "web"


def test_every_parameter_that_names_files_to_attach_says_that_it_is_for_the_socket() -> None:
    marked = {(name, param) for name, one in REGISTRY.items() for param in one.socket_only}
    named = {(name, "attachments") for name, one in REGISTRY.items() if "attachments" in one.param_names}
    assert named and named <= marked
