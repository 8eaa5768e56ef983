"""The app: which path is answered by whom. Everything passes the guard first."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Match, Route, Router, WebSocketRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from ..core.errors import MethodNotAllowed, NoSuchPath
from . import (
    api_page,
    attachments,
    event_stream,
    hooks,
    login,
    mcp_proxy,
    monitoring,
    openapi,
    operations,
    pages,
    routes,
    websockets,
)
from .door import Door
from .guard import Guard

Handler = Callable[[Door, Request], Awaitable[Response]]


def main_app(door: Door) -> ASGIApp:
    """Return what the main port serves."""
    served: list[BaseRoute] = [
        _route(door, "/api/op/{operation}", operations.call, "POST"),
        *(_route(door, one.path, partial(routes.answer, route=one), one.method) for one in routes.ROUTES),
        _route(door, "/api/events", event_stream.follow, "GET"),
        _route(door, "/api/attachments", attachments.upload, "POST"),
        _route(door, "/api/attachments/{message}/{file}", attachments.download, "GET"),
        _route(door, "/api/attachments/{message}/{file}/ticket", attachments.make_ticket, "POST"),
        _route(door, "/mcp", mcp_proxy.serve, "GET", "POST", "DELETE"),
        _route(door, "/api/mcp/call", mcp_proxy.call, "POST"),
        _route(door, "/api/tools/{tool}", mcp_proxy.call_tool, "POST"),
        _route(door, "/health", monitoring.health, "GET"),
        _route(door, "/metrics", monitoring.show_metrics, "GET"),
        _route(door, "/login", login.log_in, "POST"),
        _route(door, "/logout", login.log_out, "POST"),
        _route(door, "/hooks/{name}", hooks.receive, "POST"),
        _route(door, "/openapi.json", openapi.show, "GET"),
        _route(door, "/api", api_page.show, "GET"),
        *(_route(door, path, partial(pages.show, name=name), "GET") for path, name in pages.PATHS.items()),
        *(WebSocketRoute(path, _WebSocket(door)) for path in ("/ws", "/")),
    ]
    return Guard(_Paths(served), lambda: door.settings.web_hosts, "web.hosts", door.refused)


def hooks_app(door: Door) -> ASGIApp:
    """Return what the port for webhooks serves: nothing else."""
    served = [_route(door, "/hooks/{name}", hooks.receive, "POST")]
    settings = door.settings  # read at each request: a reload may change them
    return Guard(_Paths(served), lambda: settings.web_hooks_hosts or ("*",), "web.hooks_hosts", door.refused)


def _route(door: Door, path: str, handler: Handler, *methods: str) -> Route:
    async def endpoint(request: Request) -> Response:
        return await handler(door, request)

    return Route(path, endpoint, methods=list(methods), name=path)


class _WebSocket:
    """An ASGI app, so that the session has receive and send themselves."""

    def __init__(self, door: Door) -> None:
        self._door = door

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await websockets.serve(self._door, scope, receive, send)


class _Paths:
    """Finds the route of a path. What is not there, or takes another method, is answered with our errors."""

    def __init__(self, routes: Sequence[BaseRoute]) -> None:
        self._router = Router(routes, redirect_slashes=False)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        allowed: set[str] = set()
        for route in self._router.routes:
            match, found = route.matches(scope)
            if match is Match.FULL:
                scope.update(found)
                await route.handle(scope, receive, send)
                return
            if match is Match.PARTIAL and isinstance(route, Route):
                allowed |= route.methods or set()
        path = scope["path"][:200]
        if allowed:
            raise MethodNotAllowed(path=path, method=scope["method"][:20], allowed=", ".join(sorted(allowed)))
        raise NoSuchPath(path=path)
