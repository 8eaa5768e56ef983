"""The life of the HTTP door: listen, serve, try again where the port is taken, and stop.

Starlette and uvicorn are imported when it starts, after the socket is open: nobody who uses the socket waits
for them.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from typing import TYPE_CHECKING

from ..api.dispatch import Dispatcher
from ..api.gateway_state import GatewayState
from ..api.web_calls import WebCalls
from ..core.settings import Settings

if TYPE_CHECKING:
    from starlette.types import ASGIApp

    from .door import Door, ServeWebSocket
    from .http_server import HttpServer

log = logging.getLogger(__name__)
RETRY_SECONDS = 5.0  # between two attempts to listen on a port that is taken


class Gateway:
    """Listens on the port of `web.port`, and on that of `web.hooks_port`. It never stops the daemon."""

    def __init__(
        self,
        dispatcher: Dispatcher,
        settings: Settings,
        calls: WebCalls,
        state: GatewayState,
        serve_websocket: ServeWebSocket,
    ) -> None:
        self._dispatcher = dispatcher
        self._settings = settings
        self._calls = calls
        self._state = state
        self._serve_websocket = serve_websocket
        self._door: Door | None = None
        self._servers: list[HttpServer] = []
        state.connections = lambda: sum(server.connections for server in self._servers)
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to listen, soon."""
        if self._settings.web_enabled == "on":
            self._state.state = "starting"
            self._task = asyncio.create_task(self._keep_listening())

    async def stop_listening(self) -> None:
        """Take no new connections, and end the streams. What was asked is still answered."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        if self._door is not None:
            self._door.stopping.set()
        for server in self._servers:
            server.stop_listening()
        self._state.url = self._state.hooks_url = None
        self._state.state = "off"

    async def close(self) -> None:
        """End all connections; requests under way are answered, within `daemon.stop_seconds`."""
        await asyncio.gather(*(server.close() for server in self._servers))

    # --- listening -------------------------------------------------------------------

    async def _keep_listening(self) -> None:
        try:
            why = _not_allowed(self._settings)
            if why is None:
                tls = _tls(self._settings)
                door = await self._load()
                await self._listen_on_all(door, tls)
                return
        except (OSError, ssl.SSLError) as error:  # of the TLS files
            why = f"web.tls_cert_file or web.tls_key_file cannot be used: {error.strerror or error}"
        except Exception:  # a defect: the rest of the daemon goes on
            log.exception("The HTTP door failed to start.", extra={"action": "web"})
            why = "it failed to start; the log says why"
        self._state.state, self._state.error = "off", why
        log.error("HTTP is not served: %s.", why, extra={"action": "web"})

    async def _load(self) -> Door:
        """Import what this door needs, in another thread: it takes some tenths of a second."""

        def load() -> type[Door]:
            from . import app, http_server  # noqa: F401
            from .door import Door

            return Door

        kind = await asyncio.to_thread(load)
        self._door = kind(self._dispatcher, self._settings, self._calls, self._serve_websocket)
        return self._door

    async def _listen_on_all(self, door: Door, tls: ssl.SSLContext | None) -> None:
        from . import app

        self._state.url = await self._listen(app.main_app(door), self._settings.web_port, tls)
        self._state.state, self._state.error = "listening", None
        if self._settings.web_hooks_port:
            self._state.hooks_url = await self._listen(
                app.hooks_app(door), self._settings.web_hooks_port, tls
            )

    async def _listen(self, app: ASGIApp, port: int, tls: ssl.SSLContext | None) -> str:
        """Listen on a port and return the URL; while it is taken, try again."""
        from . import http_server

        host, told = self._settings.web_host, False
        while True:
            try:
                opened = await asyncio.to_thread(_open, host, port)
                break
            except OSError as error:
                why = f"{host}:{port} cannot be listened on: {error.strerror or error}"
                self._state.state, self._state.error = "retrying", why
                if not told:
                    log.warning(
                        "HTTP is not served: %s. Tried again every %g s.",
                        why,
                        RETRY_SECONDS,
                        extra={"action": "web"},
                    )
                    told = True
                await asyncio.sleep(RETRY_SECONDS)
        server = http_server.HttpServer(app, self._settings)
        self._servers.append(server)
        await server.listen(opened, tls)
        url = _url(host, opened.getsockname()[1], tls is not None)
        log.info("HTTP is served at %s.", url, extra={"action": "web"})
        return url


def _not_allowed(settings: Settings) -> str | None:
    """Return why it must not listen there; None: it may."""
    from .guard import is_loopback

    if bool(settings.web_tls_cert_file) != bool(settings.web_tls_key_file):
        return "web.tls_cert_file and web.tls_key_file belong together"
    if is_loopback(settings.web_host) or settings.web_tls_cert_file or settings.web_insecure == "on":
        return None
    return (
        f"web.host is {settings.web_host}, which others can reach; set web.tls_cert_file and"
        " web.tls_key_file, or web.insecure = on"
    )


def _tls(settings: Settings) -> ssl.SSLContext | None:
    if not settings.web_tls_cert_file:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(settings.web_tls_cert_file, settings.web_tls_key_file)
    return context


def _open(host: str, port: int) -> socket.socket:
    """Open a listening socket. It names its protocol: else there is no TCP_NODELAY, which costs 40 ms."""
    family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    opened = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        opened.bind(address)
        opened.setblocking(False)
    except OSError:
        opened.close()
        raise
    return opened


def _url(host: str, port: int, tls: bool) -> str:
    named = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"{'https' if tls else 'http'}://{f'[{named}]' if ':' in named else named}:{port}"
