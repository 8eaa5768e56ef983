"""REST as people write it by hand: what has a route of its own is asked there, and all else by its operation."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote, urlencode

from hiboss.web.routes import ROUTES, FriendlyRoute
from tests.support.doors import Answer, RestDoor, in_header


class FriendlyDoor(RestDoor):
    name = "rest"  # to the daemon it is the same door

    def __init__(self, daemon: Any) -> None:
        super().__init__(daemon)
        self.used: set[tuple[str, str]] = set()  # method and path of the routes that were asked

    def answer(self, method: str, params: dict[str, Any]) -> Answer:
        route = route_of(method, params)
        token = params.get("token")
        if route is None or not (token is None or in_header(token)):
            return super().answer(method, params)
        self.used.add((route.method, route.path))
        client = self.client
        client.token = token
        reply = client.request(route.method, *written(route, params))
        if reply.status < 400:
            assert reply.status == route.status
            return {"result": reply.json}
        found: Answer = reply.json
        assert set(found) == {"error"}, found
        return found


def route_of(operation: str, params: dict[str, Any]) -> FriendlyRoute | None:
    """Return the route for a call, that with most of it in the path; None: no route can say this."""
    found = [one for one in ROUTES if one.operation == operation and _fits(one, params)]
    return max(found, key=lambda one: len(one.places), default=None)


def _fits(route: FriendlyRoute, params: dict[str, Any]) -> bool:
    for name in route.places.values():
        given = params.get(name)
        if route.listed:
            given = given[0] if isinstance(given, list) and len(given) == 1 else None
        if not isinstance(given, str) or not given or "/" in given or given in (".", ".."):
            return False
    others = [value for name, value in params.items() if name not in (*route.given, "token")]
    return not route.in_query or all(value is not None and value != [] for value in others)


def written(route: FriendlyRoute, params: dict[str, Any]) -> tuple[str, Any]:
    """Return the path with the query, and the body."""
    path = route.path
    for place, name in route.places.items():
        given = params[name][0] if route.listed else params[name]
        path = path.replace(f"{{{place}}}", quote(given, safe=""))
    names = {name: word for word, name in route.renamed.items()}
    rest = {names.get(key, key): one for key, one in params.items() if key not in (*route.given, "token")}
    if not route.in_query:
        return path, rest
    words = {name: _words(value) for name, value in rest.items()}
    return (f"{path}?{urlencode(words, doseq=True)}" if words else path), None


def _words(value: Any) -> Any:
    """Return a value as it is written in a query."""
    if isinstance(value, dict):
        return f"{value['type']}:{value['value']}" if set(value) == {"type", "value"} else json.dumps(value)
    if isinstance(value, list):
        return [one if isinstance(one, str) else json.dumps(one) for one in value]
    return value if isinstance(value, str) else json.dumps(value)
