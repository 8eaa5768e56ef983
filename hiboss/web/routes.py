"""The routes besides /api/op: each is an operation, with parameters from the path, the query and the body.

One table is for the app and for /openapi.json. A route holds no rule: it only names what it calls.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from ..api.operation import REGISTRY
from ..core.errors import InvalidParams, InvalidRequest
from . import answers, query, requests
from .door import Door

BOX = {"agent": "address"}  # whose box: the word of this door, and of the operation


@dataclass(frozen=True, kw_only=True, slots=True)
class FriendlyRoute:
    method: str
    path: str
    operation: str
    places: Mapping[str, str] = field(
        default_factory=dict
    )  # parameters in the path: their names there and in the operation
    listed: bool = False  # the operation takes a list of ids, and the path has one
    renamed: Mapping[str, str] = field(
        default_factory=dict
    )  # other parameters that have a name of their own here
    fixed: Mapping[str, Any] = field(default_factory=dict)  # parameters that the route itself gives
    status: int = 200

    @property
    def in_query(self) -> bool:
        """Whether parameters come in the query. Else they come in the body."""
        return self.method in ("GET", "DELETE")

    @property
    def given(self) -> set[str]:
        """The parameters of the operation that the path or the route gives."""
        return {*self.places.values(), *self.fixed}

    @property
    def takes_key(self) -> bool:
        return "key" in REGISTRY[self.operation].param_names and not self.in_query


def _marks() -> Iterator[FriendlyRoute]:
    for verb in ("read", "ack", "archive", "trash", "restore", "snooze", "unsnooze"):
        yield FriendlyRoute(
            method="POST",
            path=f"/api/messages/{{id}}/{verb}",
            operation=f"envelope.{verb}",
            places={"id": "ids"},
            listed=True,
            renamed=BOX,
        )


def _route(method: str, path: str, operation: str, **more: Any) -> FriendlyRoute:
    names = [part[1:-1] for part in path.split("/") if part.startswith("{")]
    places = more.pop("places", {name: name for name in names})
    if "address" in REGISTRY[operation].param_names and "address" not in places.values():
        more.setdefault("renamed", BOX)
    return FriendlyRoute(method=method, path=path, operation=operation, places=places, **more)


CONVERSATION = "/api/conversations/{conversation}"
ROUTES: tuple[FriendlyRoute, ...] = (
    _route("GET", "/api/messages", "message.list"),
    _route("POST", "/api/messages", "envelope.send", status=201),
    _route("GET", "/api/messages/{id}", "message.get", places={"id": "message_id"}),
    _route("PATCH", "/api/messages/{id}", "message.edit"),
    _route("DELETE", "/api/messages/{id}", "message.delete"),
    _route("POST", "/api/messages/{id}/reply", "envelope.send", places={"id": "reply_to"}, status=201),
    *_marks(),
    _route("GET", "/api/thread/{id}", "thread.get", places={"id": "thread_id"}),
    _route("GET", "/api/threads", "thread.list"),
    _route("GET", "/api/conversations", "conversation.list"),
    _route("POST", "/api/conversations", "conversation.create", status=201),
    _route("GET", CONVERSATION, "conversation.get"),
    _route("PATCH", CONVERSATION, "conversation.set"),
    _route("DELETE", CONVERSATION, "conversation.delete"),
    _route("POST", f"{CONVERSATION}/archive", "conversation.archive"),
    _route("POST", f"{CONVERSATION}/read", "conversation.markRead"),
    _route("GET", f"{CONVERSATION}/messages", "conversation.messages"),
    _route("POST", f"{CONVERSATION}/messages", "envelope.send", status=201),
    _route("POST", f"{CONVERSATION}/control", "control.send"),
    _route("POST", f"{CONVERSATION}/typing", "presence.typing"),
    _route("GET", f"{CONVERSATION}/participants", "conversation.get"),
    _route("POST", f"{CONVERSATION}/participants", "participant.add"),
    _route("PATCH", f"{CONVERSATION}/participants/{{address}}", "participant.role"),
    _route("DELETE", f"{CONVERSATION}/participants/{{address}}", "participant.remove"),
    _route("GET", "/api/attachments", "upload.list"),
    _route("DELETE", "/api/attachments/{id}", "upload.delete", places={"id": "ids"}, listed=True),
    _route("GET", "/api/agents", "agent.list"),
    _route("POST", "/api/agents", "agent.register", status=201),
    _route("GET", "/api/agents/{name}", "agent.status"),
    _route("PATCH", "/api/agents/{name}", "agent.set"),
    _route("DELETE", "/api/agents/{name}", "agent.delete"),
    _route("POST", "/api/agents/{name}/pause", "agent.pause"),
    _route("POST", "/api/agents/{name}/resume", "agent.resume"),
    _route("GET", "/api/asks", "ask.list"),
    _route("POST", "/api/asks", "ask.create", status=201),
    _route("GET", "/api/asks/{id}", "ask.get"),
    _route("POST", "/api/asks/{id}/answer", "ask.answer"),
    _route("POST", "/api/asks/{id}/cancel", "ask.cancel"),
    _route("GET", "/api/schedules", "cron.list"),
    _route("POST", "/api/schedules", "cron.create", status=201),
    _route("GET", "/api/schedules/{id}", "cron.show"),
    _route("PATCH", "/api/schedules/{id}", "cron.set"),
    _route("DELETE", "/api/schedules/{id}", "cron.delete"),
    _route("POST", "/api/schedules/{id}/enable", "cron.enable"),
    _route("POST", "/api/schedules/{id}/disable", "cron.disable"),
    _route("POST", "/api/schedules/{id}/run", "cron.run"),
    _route("GET", "/api/runs", "run.list"),
    _route("GET", "/api/runs/{id}", "run.get"),
    _route("POST", "/api/runs/{id}/cancel", "run.cancel"),
    _route("POST", "/api/runs/{id}/pause", "run.pause"),
    _route("POST", "/api/runs/{id}/resume", "run.resume"),
    _route("POST", "/api/runs/{id}/steer", "run.steer"),
)


async def answer(door: Door, request: Request, route: FriendlyRoute) -> Response:
    """Call the operation of a route."""
    operation = REGISTRY[route.operation]
    words = query.params(operation, list(request.query_params.multi_items()), route.renamed)
    if route.in_query:
        if await requests.json_object(request, requests.SMALL):
            raise InvalidRequest(detail=f"{route.method} takes its parameters in the query, not in a body")
        given = words
    else:
        given = _renamed(route, await door.params(request))
        given = _merged(given, {name: words[name] for name in words})
    for place, name in route.places.items():
        value = request.path_params[place]
        given = _merged(given, {name: [value] if route.listed else value})
    given = requests.with_key(request, {**given, **route.fixed}, route.takes_key)
    return answers.result(await door.call(request, route.operation, given), route.status)


def _renamed(route: FriendlyRoute, given: dict[str, Any]) -> dict[str, Any]:
    own = {route.renamed[name]: value for name, value in given.items() if name in route.renamed}
    return _merged({name: value for name, value in given.items() if name not in route.renamed}, own)


def _merged(given: dict[str, Any], more: dict[str, Any]) -> dict[str, Any]:
    """Return both; what is given twice is refused, and not decided here."""
    if twice := sorted(given.keys() & more.keys()):
        raise InvalidParams(detail=f"{twice[0]} is given twice: in the path, the query or the body")
    return {**given, **more}
