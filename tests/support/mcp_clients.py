"""Official MCP clients for tests: over standard input and output and over HTTP, in both eras of the protocol.

The clients live in the event loop of a thread; tests use them from theirs. A way is a transport and an era.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import anyio
import httpx2
import mcp_types as types
from anyio.from_thread import BlockingPortal
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.client.subscriptions import ResourceUpdated, SubscriptionLost
from mcp.shared.exceptions import MCPError
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS

from hiboss.testing.running_daemon import RunningDaemon
from tests.support.parties import Party, agent, boss
from tests.support.waits import wait_until
from tests.support.web_daemons import WebDaemon

INBOX, HEAD, STATUS = "ui://chat/inbox", "ui://chat/head", "ui://agent/status"
SECONDS = 30.0
Notice = str  # the resource that has changed


class Way(NamedTuple):
    transport: str
    era: str

    @property
    def is_old(self) -> bool:
        return self.era == "legacy"


WAYS = [Way(transport, era) for transport in ("stdio", "http") for era in ("legacy", "auto")]


@cache
def portal() -> BlockingPortal:
    """Return the event loop of all clients of this process; it ends with the process."""
    found: list[BlockingPortal] = []
    there = threading.Event()

    async def live() -> None:
        async with BlockingPortal() as made:
            found.append(made)
            there.set()
            await made.sleep_until_stopped()

    threading.Thread(target=anyio.run, args=(live,), daemon=True, name="mcp-clients").start()
    assert there.wait(SECONDS)
    return found[0]


def message(number: str) -> str:
    """Return the resource that is one entry."""
    return f"ui://chat/message/{number}"


class McpClient:
    """A client that is connected. `pid`: of `hiboss mcp`, for a client that came by that."""

    def __init__(self, client: Client, way: Way, kept: list[Notice], pid: int) -> None:
        self.client, self.way, self.pid = client, way, pid
        self._kept = kept

    def run(self, method: Callable[..., Any], *given: Any, **named: Any) -> Any:
        """Run a coroutine function in the loop of the clients."""

        async def bounded() -> Any:
            with anyio.fail_after(SECONDS * 2):
                return await method(*given, **named)

        return portal().call(bounded)

    # --- tools -----------------------------------------------------------------------

    def raw_call(self, tool: str, arguments: dict[str, Any] | None = None) -> types.CallToolResult:
        found: types.CallToolResult = self.run(self.client.call_tool, tool, arguments)
        return found

    def call(self, tool: str, **arguments: Any) -> Any:
        """Call a tool and return its result; an error fails the test."""
        found = self.raw_call(tool, arguments)
        assert not found.is_error, found
        assert isinstance(found.content[0], types.TextContent)
        assert json.loads(found.content[0].text) == found.structured_content
        return found.structured_content

    def refusal(self, tool: str, **arguments: Any) -> str:
        """Return the stable code of the error of a tool. A model reads it in the text, with what to do."""
        found = self.raw_call(tool, arguments)
        assert found.is_error, found
        assert found.structured_content is not None and isinstance(found.content[0], types.TextContent)
        error = found.structured_content["error"]
        code = str(error["data"]["code"])
        assert found.content[0].text == f"{code}: {error['message']}" and len(error["message"]) > 10
        return code

    # --- the rest --------------------------------------------------------------------

    def contents(self, uri: str) -> Any:
        return self.run(self.client.read_resource, uri, cache_mode="bypass").contents

    def read(self, uri: str) -> Any:
        """Read a resource of JSON."""
        (found,) = self.contents(uri)
        assert (found.uri, found.mime_type) == (uri, "application/json")
        return json.loads(found.text)

    def error(self, method: Callable[..., Any], *given: Any, **named: Any) -> MCPError:
        """Return the error of the protocol that a call gets; the test fails here when there is none."""
        try:
            found = self.run(method, *given, **named)
        except MCPError as error:
            return error
        raise AssertionError(f"no error: {found}")

    def request(self, method: str, params: dict[str, Any]) -> Any:
        """Make a request for which the client has no method."""

        class Asked(types.Request[dict[str, Any], str]):
            pass

        return self.run(self.client.session.send_request, Asked(method=method, params=params), types.Result)

    def subscribe(self, uri: str) -> None:
        asked = types.SubscribeRequest(params=types.SubscribeRequestParams(uri=uri))
        self.run(self.client.session.send_request, asked, types.EmptyResult)

    def unsubscribe(self, uri: str) -> None:
        asked = types.UnsubscribeRequest(params=types.UnsubscribeRequestParams(uri=uri))
        self.run(self.client.session.send_request, asked, types.EmptyResult)

    @contextmanager
    def following(self, *uris: str) -> Iterator[Follower]:
        """Follow resources: by subscriptions in the old era, by one stream in the new one."""
        if self.way.is_old:
            for uri in uris:
                self.subscribe(uri)
            yield Follower(self._kept)
            return
        follower = Follower([])
        with portal().wrap_async_context_manager(_listening(self.client, uris, follower)):
            yield follower


class Follower:
    """What a client was told of."""

    def __init__(self, notices: list[Notice]) -> None:
        self.notices = notices
        self.ended: str | None = None  # how the stream ended (new era)

    def wait(self, uri: str, number: int = 1) -> None:
        """Wait until it was told of a resource so often."""
        wait_until(lambda: self.notices.count(uri) >= number)

    def take(self) -> list[Notice]:
        """Return the notices so far, and forget them."""
        found = list(self.notices)
        del self.notices[: len(found)]
        return found


@asynccontextmanager
async def _listening(client: Client, uris: Sequence[str], follower: Follower) -> AsyncIterator[None]:
    async def collect(stream: Any) -> None:
        try:
            async for event in stream:
                assert isinstance(event, ResourceUpdated)
                follower.notices.append(event.uri)
            follower.ended = "graceful"
        except (SubscriptionLost, MCPError) as error:
            follower.ended = type(error).__name__

    async with client.listen(resource_subscriptions=list(uris)) as stream, anyio.create_task_group() as tasks:
        tasks.start_soon(collect, stream)
        yield
        tasks.cancel_scope.cancel()


# --- connecting ----------------------------------------------------------------------


@contextmanager
def mcp_client(
    daemon: WebDaemon,
    way: Way,
    token: str | None,
    *,
    agent: str | None = None,
    words: Sequence[str] = (),
    **more: Any,
) -> Iterator[McpClient]:
    """Connect a client; `words` are more options of `hiboss mcp`, and `more` is for mcp.Client."""
    kept: list[Notice] = []

    async def take(received: Any) -> None:
        if isinstance(received, types.ResourceUpdatedNotification):
            kept.append(str(received.params.uri))

    before = _children()
    with ExitStack() as stack:
        if way.transport == "stdio":
            given = [*words, *(() if agent is None else ("--agent", agent))]
            errors = stack.enter_context(open(os.devnull, "w"))
            transport = stdio_client(parameters(daemon, token, given), errlog=errors)
        else:
            query = "" if agent is None else f"?agent={agent}"
            headers = {} if token is None else {"Authorization": f"Bearer {token}"}
            made = httpx2.AsyncClient(headers=headers, timeout=httpx2.Timeout(SECONDS, read=300))
            http = stack.enter_context(portal().wrap_async_context_manager(made))
            transport = streamable_http_client(f"{daemon.url}/mcp{query}", http_client=http)
        client = Client(transport, mode=way.era, message_handler=take, **more)
        stack.enter_context(portal().wrap_async_context_manager(client))
        eras = HANDSHAKE_PROTOCOL_VERSIONS if way.is_old else MODERN_PROTOCOL_VERSIONS
        assert client.protocol_version in eras, client.protocol_version
        pid = max(_children() - before) if way.transport == "stdio" else 0
        yield McpClient(client, way, kept, pid)


def parameters(daemon: RunningDaemon, token: str | None, words: Sequence[str]) -> StdioServerParameters:
    """Return how `hiboss mcp` is started."""
    variables = {"HIBOSS_HOME": daemon.home.path, "PYTHONPATH": os.getcwd()}
    if token is not None:
        variables["HIBOSS_TOKEN"] = token
    command = ["-m", "hiboss.cli.entry", "mcp", *words]
    return StdioServerParameters(command=sys.executable, args=command, env=variables)


def _children() -> set[int]:
    """Return the processes that this one has started."""
    found: set[int] = set()
    for task in Path("/proc/self/task").iterdir():
        found |= {int(pid) for pid in (task / "children").read_text().split()}
    return found


class Chat:
    """An agent and the boss, as parties that call over the socket: by them is seen what a client has done."""

    def __init__(self, daemon: WebDaemon) -> None:
        self.daemon, self.agent, self.boss = daemon, agent(daemon), boss(daemon)

    def human(self, content: str, **params: Any) -> Any:
        return self.boss.call("chat.post", agent=self.agent.name, content=content, **params)

    def assistant(self, content: str, **params: Any) -> Any:
        return self.agent.call("chat.post", content=content, **params)

    def entries(self) -> list[dict[str, Any]]:
        return list(self.agent.call("chat.read", after_id="0")["messages"])

    def said(self) -> list[tuple[str, str]]:
        return [(one["author"], one["content"]) for one in self.entries()]

    def pause(self) -> None:
        self.boss.call("agent.pause", name=self.agent.name, reason="lunch")

    @contextmanager
    def client(self, way: Way, who: Party | None = None, **more: Any) -> Iterator[McpClient]:
        """Connect a client of the agent, or of the boss."""
        if who is self.boss:
            more["agent"] = self.agent.name
        with mcp_client(self.daemon, way, (who or self.agent).token, **more) as connected:
            yield connected


def connections(daemon: RunningDaemon) -> int:
    """Return how many connections the daemon has, but for the one that asks."""
    return int(daemon.call("daemon.status")["connections"]) - 1


def worker_pid(daemon: RunningDaemon) -> int | None:
    found: int | None = daemon.call("daemon.status")["mcp_pid"]
    return found
