"""The life of the daemon: build, start, open the doors, wait, stop.

Parts are built in the order an envelope passes them, and stopped in reverse. Which part wakes which
is in `wiring`.
"""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import os
import resource
import signal
from collections.abc import Callable, Coroutine, Iterator
from contextlib import AsyncExitStack, contextmanager
from functools import partial
from typing import Any

import uvloop

from .. import __version__
from ..agents import process_control
from ..agents.providers.registry import Providers
from ..api import agent_states, web_logins
from ..api.auth import Authenticator
from ..api.context import Context
from ..api.dispatch import Dispatcher
from ..api.policy import Policy
from ..api.web_calls import WebCalls
from ..channels.registry import Registry
from ..core import bounded_calls, clock
from ..core.errors import BadConfig, HibossError
from ..core.paths import Home, unusable
from ..core.setting_values import Setting
from ..core.settings import Configuration
from ..routing.commands import State
from ..routing.router import Router
from ..rpc import codec
from ..rpc.server import Server
from ..store import secret_files, tokens
from ..store.store import Store
from ..web.server import Gateway
from . import logs
from .lock import Lock
from .mcp_worker import McpSupervisor
from .wiring import Wiring

log = logging.getLogger(__name__)


class Daemon:
    """All parts of one daemon. Call `build`, `begin`, `open_doors`, and `close` at the end."""

    def __init__(self, home: Home, configuration: Configuration) -> None:
        self.home = home
        self.configuration = configuration
        self.settings = configuration.settings
        self.stopping = asyncio.Event()
        self.dispatcher: Dispatcher
        self.server: Server
        self.gateway: Gateway
        self.mcp = McpSupervisor(home)
        self.wiring: Wiring
        self._cleanup = AsyncExitStack()  # what to do when it stops, last first
        self._reloaded: Callable[[], None] = lambda: None  # after the settings were read again
        self._served = False  # False for `--once`, which logs no start and no stop

    async def build(self) -> None:
        """Build all parts; the doors stay closed. If it fails, what was built is closed again."""
        async with AsyncExitStack() as cleanup:
            self.home.create()
            lock = Lock(self.home)
            cleanup.callback(lock.release)
            logs.start(self.home, self.settings)
            store = await Store.open(self.home, self.settings)
            cleanup.push_async_callback(store.close)
            self.home.settle_profiles(lambda token: store.read(lambda c: tokens.is_known(c, token)))
            self.home.settle_secrets(store.epoch, store.read(secret_files.named), clock.now() / 1000)
            policy = Policy(store)
            router = Router(store, self.home, self.settings)
            router.clean_up()
            self.wiring = Wiring(store, self.home, self.settings, router)
            auth = Authenticator(store, policy, self.wiring.presence)
            self.wiring.runner.on_token_ended = auth.forget
            auth.on_change = self.wiring.facts.recheck
            self._show_states(store)
            self.wiring.scheduler.may_send = auth.check_may_send
            self._reloaded = self.wiring.settings_changed
            context = Context(
                home=self.home,
                configuration=self.configuration,
                store=store,
                router=router,
                supervisor=self.wiring.supervisor,
                delivery=self.wiring.delivery,
                changes=self.wiring.changes,
                chat_setup=self.wiring.chat_setup,
                runner=self.wiring.runner,
                breaker=self.wiring.breaker,
                controls=self.wiring.controls,
                scheduler=self.wiring.scheduler,
                facts=self.wiring.facts,
                measurements=self.wiring.measurements,
                fact_webhooks=self.wiring.fact_webhooks,
                waiters=self.wiring.waiters,
                presence=self.wiring.presence,
                user_presence=self.wiring.user_presence,
                typing=self.wiring.typing,
                mcp=self.mcp,
                auth=auth,
                policy=policy,
                started_at=clock.now(),
                stop=self.stopping.set,
                reload=self.reload,
                connections=lambda: len(self.server.connections),
            )
            self.dispatcher = Dispatcher(context)
            self.server = Server(self.dispatcher, self.settings)
            self.gateway = Gateway(
                self.dispatcher,
                self.settings,
                WebCalls(context),
                context.gateway,
                self.server.serve_websocket,
            )
            self.wiring.on_heartbeat = partial(web_logins.end_expired, context)
            self._cleanup = cleanup.pop_all()

    def _show_states(self, store: Store) -> None:
        """Let facts and commands in chats tell the state of an agent."""
        asking, present = self.wiring.runner.asking, self.wiring.presence

        def live() -> agent_states.Live:
            return agent_states.Live(asking(), present.is_stuck, present.writes, present.is_here)

        self.wiring.facts.state = lambda agent: store.read(
            lambda c: agent_states.state_and_presence(c, agent, live())
        )
        self.wiring.intake.commands.state = lambda agent: State(
            *store.read(lambda c: agent_states.state_and_reason(c, agent, live()))
        )

    async def begin(self) -> None:
        """Start the parts before the doors open: free what was held, start adapters, wake what is overdue."""
        self._cleanup.push_async_callback(self.wiring.close)
        await self.wiring.start()
        self.home.forget_mcp_sockets()

        if process_control.is_limit_lowered():
            log.warning(
                "The hard limit of file locks (RLIMIT_LOCKS) is lowered here. So a process that leaves the"
                " session of its run and clears its environment is not ended with the run.",
                extra={"action": "start"},
            )

    async def open_doors(self) -> None:
        """Listen on the socket. From here on the daemon answers calls."""
        _allow_many_files()
        await self.server.listen(self.home.socket)
        self._cleanup.callback(_remove, self.home.socket)
        self.gateway.start()
        self._cleanup.push_async_callback(self._close_doors)
        # Before the doors close: agents that finish now may still send.
        self._cleanup.push_async_callback(self.wiring.runner.close)
        # First of all at the stop: calls that wait would keep the doors open.
        self._cleanup.callback(self.wiring.waiters.close)
        self._cleanup.callback(self.mcp.stop_starting)
        self._served = True
        log.info("Daemon %s serves %s.", __version__, self.home, extra={"action": "start"})

    async def _close_doors(self) -> None:
        """Answer what was asked, also over WebSockets, then disconnect everybody."""
        await self.gateway.stop_listening()
        await self.server.close()
        await self.mcp.close()  # after what it had asked was answered; its streams end with it
        await self.gateway.close()

    def reload(self) -> list[Setting]:
        """Read the settings again and return the changed ones. Wrong settings raise; the old ones stay."""
        changed = self.configuration.reload()
        logs.adjust(self.settings)
        self._reloaded()
        names = ", ".join(str(setting) for setting in changed) or "nothing"
        log.info("Settings read again; changed: %s.", names, extra={"action": "reload"})
        for setting in self.configuration.waiting:
            log.warning("%s takes effect at the next start.", setting, extra={"action": "reload"})
        return changed

    def on_hangup(self) -> None:
        """Reload the settings for SIGHUP; there is nobody to answer, so errors are logged."""
        try:
            self.reload()
        except BadConfig as error:
            log.error("The settings were not changed: %s", error, extra={"action": "reload"})

    async def close(self) -> None:
        """Stop and close everything that was built or started, in reverse order."""
        await self._cleanup.aclose()
        if self._served:
            log.info("Daemon stopped.", extra={"action": "stop"})


@contextmanager
def _usable(home: Home) -> Iterator[None]:
    """Turn an OSError during the start into HomeUnusable or StoreFull, which have no traceback."""
    try:
        yield
    except OSError as error:
        raise unusable(error, str(home)) from error


async def serve(home: Home, ready: int | None) -> None:
    """Build the daemon, open the doors, wait for the stop, close everything in reverse."""
    process_control.unmark()  # it may have been started inside a run, perhaps of another home
    daemon = Daemon(home, Configuration(home.config, os.environ))
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, daemon.stopping.set)
    loop.add_signal_handler(signal.SIGHUP, daemon.on_hangup)
    with _usable(home):
        await daemon.build()
    try:
        with _usable(home):
            await daemon.begin()
            await daemon.open_doors()
        _tune_garbage_collection()
        report_start(ready, {"ready": True, "pid": os.getpid()})
        await daemon.stopping.wait()
    finally:
        await daemon.close()


def run(main: Coroutine[Any, Any, None]) -> bool:
    """Run a coroutine like asyncio.run, but do not wait for ever for tasks that ignore their cancellation.

    Return whether some are left. The process must then end without them.
    """
    loop = uvloop.new_event_loop()
    left: set[asyncio.Task[Any]] = set()
    serving = loop.create_task(main)
    try:
        while not serving.done():
            try:
                loop.run_until_complete(serving)
            except (SystemExit, KeyboardInterrupt):  # asyncio lets them of any task end the event loop
                if serving.done():
                    raise
                log.exception("A task of an adapter or a provider failed.", extra={"action": "work"})
    finally:
        left = loop.run_until_complete(bounded_calls.end(asyncio.all_tasks(loop), "A task"))
        if not left:
            loop.run_until_complete(loop.shutdown_asyncgens())
            loop.run_until_complete(loop.shutdown_default_executor())
            loop.close()
    return bool(left)


def check(home: Home) -> bytes:
    """Load the settings and the modules that they name, and nothing else; raise what a start would refuse."""
    settings = Configuration(home.config, os.environ).settings
    Registry(settings.adapter_modules)
    Providers(settings.provider_modules)
    return codec.result(1, {})


async def once(home: Home, line: bytes) -> bytes:
    """Answer a single request, with the lock of the home held and the doors closed."""
    request = codec.parse(line)
    if not isinstance(request, codec.Request):
        raise SystemExit("usage: one JSON-RPC request on standard input")
    daemon = Daemon(home, Configuration(home.config, os.environ))
    with _usable(home):
        await daemon.build()
    try:
        return codec.result(request.id, await daemon.dispatcher.call_offline(request.method, request.params))
    except HibossError as error:
        return codec.failure(request.id, error)
    finally:
        await daemon.close()


def report_start(ready: int | None, report: dict[str, object]) -> None:
    """Report to the process that started the daemon, once, whether the start succeeded."""
    if ready is not None:
        os.write(ready, json.dumps(report, default=str).encode() + b"\n")
        os.close(ready)


def _tune_garbage_collection() -> None:
    """Exclude what lives as long as the daemon, and collect less often: a send makes no cycles."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


def _allow_many_files() -> None:
    """Raise the limit of open files: 1,000 idle clients need 1,000, and the usual soft limit is 1,024."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 16_384 if hard == resource.RLIM_INFINITY else min(hard, 16_384)
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _remove(path: str) -> None:
    if os.path.exists(path):
        os.unlink(path)
