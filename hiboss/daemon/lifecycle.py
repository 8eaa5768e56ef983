"""The daemon: the order of its life. Parts are built in route order and stopped in reverse.

`python -m hiboss.daemon` serves until it is told to stop.
`python -m hiboss.daemon --once` answers one request from standard input and ends; that is
how the CLI sets a home up while no daemon runs.
"""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import os
import resource
import signal
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager

from .. import __version__
from ..api.auth import Authenticator
from ..api.context import Context
from ..api.dispatch import Dispatcher
from ..api.policy import Policy
from ..core import clock
from ..core.errors import BadConfig, HibossError, HomeUnusable
from ..core.paths import Home
from ..core.settings import Configuration, Setting
from ..routing.router import Router
from ..rpc import codec
from ..rpc.server import Server
from ..store import tokens
from ..store.store import Store
from . import logs
from .lock import Lock
from .wiring import Wiring

log = logging.getLogger(__name__)


class Daemon:
    def __init__(self, home: Home, configuration: Configuration) -> None:
        self.home = home
        self.configuration = configuration
        self.settings = configuration.settings
        self.stopping = asyncio.Event()
        self.dispatcher: Dispatcher
        self.server: Server
        self.wiring: Wiring
        self._life = AsyncExitStack()
        self._served = False  # a single answer offline is no life

    async def build(self) -> None:
        """Everything up to the doors, which are still closed; nothing stays behind if it fails."""
        async with AsyncExitStack() as life:
            self.home.create()
            lock = Lock(self.home)
            life.callback(lock.release)
            logs.start(self.home, self.settings)
            store = await Store.open(self.home, self.settings)
            life.push_async_callback(store.close)
            self.home.settle_profiles(lambda token: store.read(lambda c: tokens.is_known(c, token)))
            policy = Policy(store)
            router = Router(store, self.home, self.settings)
            self.wiring = Wiring(store, self.home, self.settings, router)
            auth = Authenticator(store, policy, self.wiring.presence)
            self.wiring.runner.token_ended = auth.forget
            context = Context(
                home=self.home,
                configuration=self.configuration,
                store=store,
                router=router,
                supervisor=self.wiring.supervisor,
                delivery=self.wiring.delivery,
                runner=self.wiring.runner,
                scheduler=self.wiring.scheduler,
                bus=self.wiring.bus,
                waiters=self.wiring.waiters,
                presence=self.wiring.presence,
                auth=auth,
                policy=policy,
                started_at=clock.now(),
                stop=self.stopping.set,
                reload=self.reload,
                connections=lambda: len(self.server.connections),
            )
            self.dispatcher = Dispatcher(context)
            self.server = Server(self.dispatcher, self.settings)
            self._life = life.pop_all()

    async def begin(self) -> None:
        """Before the doors open: what was in hand comes back, what is overdue arrives, adapters start."""
        self._life.push_async_callback(self.wiring.close)
        await self.wiring.start()

    async def open_doors(self) -> None:
        _allow_many_files()
        await self.server.listen(self.home.socket)
        self._life.callback(_remove, self.home.socket)
        self._life.push_async_callback(self.server.close)
        self._life.push_async_callback(
            self.wiring.runner.close
        )  # agents at work may still say what they found
        self._life.callback(self.wiring.waiters.close)  # first of all: nobody keeps the doors waiting
        self._served = True
        log.info("Daemon %s serves %s.", __version__, self.home, extra={"action": "start"})

    def reload(self) -> list[Setting]:
        """Follow the settings as they are now; wrong ones raise, and the last good ones stay."""
        changed = self.configuration.reload()
        logs.adjust(self.settings)
        names = ", ".join(str(setting) for setting in changed) or "nothing"
        log.info("Settings read again; changed: %s.", names, extra={"action": "reload"})
        for setting in self.configuration.waiting:
            log.warning("%s changes with the next start.", setting, extra={"action": "reload"})
        return changed

    def on_hangup(self) -> None:
        try:
            self.reload()
        except BadConfig as error:
            log.error("The settings stay as they were: %s", error, extra={"action": "reload"})

    async def close(self) -> None:
        await self._life.aclose()
        if self._served:
            log.info("Daemon stopped.", extra={"action": "stop"})


@contextmanager
def _usable(home: Home) -> Iterator[None]:
    """What the system refuses while we start is about the home: say so, without a traceback."""
    try:
        yield
    except OSError as error:
        where = f" ({error.filename})" if error.filename else ""
        raise HomeUnusable(home=str(home), why=f"{error.strerror or error}{where}") from error


async def serve(home: Home, ready: int | None) -> None:
    """Live: build, open the doors, wait for the end, close in reverse."""
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
        _spare_the_collector()
        tell(ready, {"ready": True, "pid": os.getpid()})
        await daemon.stopping.wait()
    finally:
        await daemon.close()


async def once(home: Home, line: bytes) -> bytes:
    """Answer a single request, with the lock held and no door open."""
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


def tell(ready: int | None, word: dict[str, object]) -> None:
    """Tell whoever started us, once, how it went."""
    if ready is not None:
        os.write(ready, json.dumps(word, default=str).encode() + b"\n")
        os.close(ready)


def _spare_the_collector() -> None:
    """What lives as long as we do is never looked at again, and a send makes no cycles to look for."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


def _allow_many_files() -> None:
    """A thousand idle clients need a thousand descriptors; the usual soft limit is 1,024."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 16_384 if hard == resource.RLIM_INFINITY else min(hard, 16_384)
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _remove(path: str) -> None:
    if os.path.exists(path):
        os.unlink(path)
