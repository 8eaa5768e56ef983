"""WebSockets of strangers: without a token they have few places, and little time to show one."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from websockets.exceptions import InvalidStatus

from hiboss.core.settings import Configuration
from hiboss.rpc.server import Server
from hiboss.web import websockets
from hiboss.web.door import Door
from tests.support.daemons import set_up
from tests.support.in_process_daemon import InProcessDaemon
from tests.support.web_daemons import web_daemon


class MovedLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock the test moves."""

    ahead = 0.0

    def time(self) -> float:
        return super().time() + self.ahead


class Client:
    """A WebSocket as the HTTP server hands it over."""

    def __init__(self, door: Door, **headers: str) -> None:
        self._given: asyncio.Queue[Any] = asyncio.Queue()
        self._sent: asyncio.Queue[Any] = asyncio.Queue()
        self._given.put_nowait({"type": "websocket.connect"})
        pairs = [(name.encode(), value.encode()) for name, value in headers.items()]
        scope = {"type": "websocket", "headers": pairs}
        self.served = asyncio.create_task(websockets.serve(door, scope, self._given.get, self._sent.put))

    async def asks(self, message: Any) -> None:
        self._given.put_nowait({"type": "websocket.receive", "text": json.dumps(message)})

    async def gets(self) -> Any:
        """Return the next answer, or the code with which it was closed."""
        while (message := await self._sent.get())["type"] == "websocket.accept":
            pass
        return message["code"] if message["type"] == "websocket.close" else json.loads(message["text"])

    async def calls(self, method: str, token: str | None, number: int = 1) -> Any:
        params = {} if token is None else {"token": token}
        await self.asks({"jsonrpc": "2.0", "method": method, "params": params, "id": number})
        return await self.gets()

    async def goes(self) -> None:
        self._given.put_nowait({"type": "websocket.disconnect"})
        await self.served


Story = Callable[[InProcessDaemon, Door], Awaitable[None]]


def run(directory: Path, story: Story) -> None:
    """Run a story with a daemon inside the test, in a loop whose clock can be moved."""

    async def whole() -> None:
        daemon = InProcessDaemon(set_up(directory), None, {})
        await daemon.open()
        try:
            dispatcher = daemon.daemon.dispatcher
            settings = Configuration(daemon.home.config, {}).settings
            server = Server(dispatcher, settings)
            await story(daemon, Door(dispatcher, settings, None, server.serve_websocket))  # type: ignore[arg-type]
        finally:
            await daemon.close()

    with asyncio.Runner(loop_factory=MovedLoop) as runner:
        runner.run(whole())


async def pass_time() -> None:
    """Move the clock behind the end of the time that a stranger has."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, MovedLoop)
    loop.ahead += websockets.FIRST_SECONDS + 1


def test_who_shows_a_token_in_time_stays_and_a_stranger_is_disconnected(tmp_path: Path) -> None:
    async def story(daemon: InProcessDaemon, door: Door) -> None:
        nex = daemon.token("nex")
        one, batch, waiting, silent, guessing = (Client(door) for _ in range(5))
        pretender = Client(door, cookie="hiboss-00000000=x")
        assert (await one.calls("agent.self", nex))["result"]["address"] == "agent:nex"
        await batch.asks([{"jsonrpc": "2.0", "method": "agent.self", "params": {"token": nex}, "id": 1}])
        assert (await batch.gets())[0]["result"]["address"] == "agent:nex"
        poll = {"token": nex, "always_block": True}
        await waiting.asks({"jsonrpc": "2.0", "method": "envelope.poll", "params": poll, "id": 1})
        for token, code in ((None, "no_token"), ("hba_x", "bad_token")):
            assert (await guessing.calls("agent.self", token))["error"]["data"]["code"] == code
        assert len(door.strangers) == 3
        await pass_time()
        for stranger in (silent, guessing, pretender):
            assert await stranger.gets() == websockets.NOT_LOGGED_IN
            await stranger.served
        assert not door.strangers
        assert {(await client.calls("agent.self", nex, 2))["id"] for client in (one, batch)} == {2}
        await daemon.send("agent:nex", who="boss", text="news")
        assert (await waiting.gets())["id"] == 1
        for client in (one, batch, waiting):
            await client.goes()

    run(tmp_path, story)


def test_strangers_do_not_take_the_places_of_others(tmp_path: Path) -> None:
    with (
        web_daemon(tmp_path, {"web.websockets.FIRST_SECONDS": 600}, web_connections=24) as web,
        ExitStack() as open_,
    ):
        nex = web.token("nex")
        assert open_.enter_context(web.websocket(nex)).call("agent.self")["address"] == "agent:nex"
        strangers = [open_.enter_context(web.websocket()) for _ in range(3)]
        for cookie in ({}, {"Cookie": "hiboss-00000000=x"}):
            with pytest.raises(InvalidStatus) as caught, web.websocket(headers=cookie):
                pass
            assert json.loads(caught.value.response.body or b"")["error"]["data"]["code"] == "busy"
        assert open_.enter_context(web.websocket(nex)).call("agent.self")["address"] == "agent:nex"
        # One that shows its token is a stranger no more: its place is free for another one.
        assert strangers[0].call("agent.self", token=nex)["address"] == "agent:nex"
        assert open_.enter_context(web.websocket()).call("agent.self", token=nex)["address"] == "agent:nex"
