"""The operations in /openapi.json: each by its own name, and by its friendly routes."""

from __future__ import annotations

from typing import Any

from ..api.discovery import examples
from ..api.operation import REGISTRY, Operation
from ..core import errors
from ..core.errors import HibossError
from .openapi_components import JSON, OF_ANY, OF_CHANGES, OF_JSON, Components, Json
from .routes import ROUTES, FriendlyRoute

KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "description": "the parameter key: a repeated request with it sends nothing again",
    "schema": {"type": "string", "minLength": 1, "maxLength": 128, "pattern": "^[!-~]+$"},
}


def offered() -> list[Operation]:
    """Return the operations that a request over HTTP can call, by name."""
    return [one for _, one in sorted(REGISTRY.items()) if "web" in one.doors and not one.follows]


def level_of(operation: Operation) -> str:
    """Return what a caller must at least be here, unless a policy says otherwise."""
    return (operation.elsewhere or operation.level).word


def by_name(parts: Components, operation: Operation) -> Json:
    """Describe POST /api/op/NAME."""
    params = parts.params(operation)
    takes_key = "key" in params["properties"]
    recorded = _recorded(parts, operation)
    shown = {} if recorded is None else {"recorded": {"value": recorded}}
    described = _described(parts, operation, operation.name)
    if takes_key:
        described["parameters"] = [KEY]
    described["requestBody"] = _body(parts.named(f"{operation.name}.params", params), params, shown)
    failures = (*_errors_of(operation), *OF_JSON, *OF_CHANGES, *(() if takes_key else (errors.KeyNotTaken,)))
    described["responses"] = {"200": _answer(parts, operation), **parts.failures(failures)}
    return described


def by_route(parts: Components, route: FriendlyRoute) -> Json:
    """Describe a friendly route."""
    operation = REGISTRY[route.operation]
    params = parts.params(operation)
    words = {own: name for name, own in route.renamed.items()}
    recorded = _recorded(parts, operation)
    shown = recorded or {}
    left = {
        words.get(name, name): one for name, one in params["properties"].items() if name not in route.given
    }
    required = [words.get(name, name) for name in params.get("required", []) if name not in route.given]
    identity = "-".join((route.method.lower(), *route.path.replace("{", "").replace("}", "").split("/")[2:]))
    described = _described(parts, operation, identity)
    described["parameters"] = [
        _place(place, params["properties"][name], _first(shown.get(name), route.listed))
        for place, name in route.places.items()
    ]
    failures = [*_errors_of(operation), errors.TokenInUrl]
    if route.places:  # with a slash in one it is another path
        failures += [errors.NoSuchPath, errors.MethodNotAllowed]
    if route.in_query:
        described["parameters"] += [in_query(name, one, name in required) for name, one in left.items()]
    else:
        given = {
            words.get(name, name): value for name, value in shown.items() if words.get(name, name) in left
        }
        fits = route.places.keys() and set(route.places.values()) <= shown.keys() and not route.listed
        body = {"type": "object", "additionalProperties": False, "properties": left, "required": required}
        told = {"recorded": {"value": given}} if (fits or not route.places) and recorded is not None else {}
        described["requestBody"] = _body(body, body, told)
        failures += [*OF_JSON]
    if route.method != "GET":
        failures += [*OF_CHANGES]
    if route.takes_key:
        described["parameters"].append(KEY)
    else:
        failures.append(errors.KeyNotTaken)
    described["responses"] = {str(route.status): _answer(parts, operation), **parts.failures(failures)}
    return described


def in_query(name: str, schema: Json, required: bool = False) -> Json:
    """Return a parameter in the query. There is no null there: what is left out is not given."""
    kind = _without_null(schema)
    described: Json = {"name": name, "in": "query", "required": required}
    described["description"] = schema.get("description", "")
    if kind.get("type") == "object":
        return {**described, "content": {JSON: {"schema": kind}}}
    if kind.get("$ref", "").endswith("/Tag"):
        kind = {"type": "string", "pattern": "^[^:]+:.+$", "description": "its type and value: module:auth"}
    if kind.get("type") == "array":
        described["description"] += " (several times, or separated by commas)"
        return {**described, "style": "form", "explode": True, "schema": kind}
    return {**described, "schema": kind}


def _without_null(schema: Json) -> Json:
    kept = {name: one for name, one in schema.items() if name not in ("anyOf", "title", "description")}
    if kept.get("default", ...) is None:
        del kept["default"]
    kinds = [one for one in schema.get("anyOf", []) if one.get("type") != "null"]
    if len(kinds) == 1:
        return {**kept, **kinds[0]}
    return {**kept, "anyOf": kinds} if kinds else kept


def _place(place: str, schema: Json, example: Any) -> Json:
    """Return a parameter in the path, where everything is text."""
    described: Json = {"name": place, "in": "path", "required": True}
    described["description"] = schema.get("description", "")
    described["schema"] = {"type": "string", "minLength": 1}
    if example is not None:
        described["example"] = str(example)
    return described


def _first(value: Any, listed: bool) -> Any:
    return value[0] if listed and value else value


def _described(parts: Components, operation: Operation, identity: str) -> Json:
    return {
        "operationId": identity,
        "tags": [operation.name.partition(".")[0]],
        "summary": operation.summary,
        "x-operation": operation.name,
        "x-level": level_of(operation),
        "x-effect": operation.effect,
    }


def _body(schema: Json, params: Json, shown: Json) -> Json:
    """Return what the body is. Without one, all parameters have their defaults."""
    content = {"schema": schema, **({"examples": shown} if shown else {})}
    return {"required": bool(params.get("required")), "content": {JSON: content}}


def _answer(parts: Components, operation: Operation) -> Json:
    content = {"schema": parts.result(operation)}
    if shown := parts.result_examples(operation):
        content["examples"] = shown
    return {"description": "The result.", "content": {JSON: content}}


def _errors_of(operation: Operation) -> list[type[HibossError]]:
    return [*operation.errors, *operation.dispatch_errors, *OF_ANY]


def _recorded(parts: Components, operation: Operation) -> Json | None:
    """Return the recorded parameters, without the token and what only the socket takes."""
    if (found := examples().get(operation.name)) is None:
        return None
    taken = parts.params(operation)["properties"]
    return {name: value for name, value in found["params"].items() if name in taken}


def paths(parts: Components) -> dict[str, Json]:
    """Return every path that calls an operation."""
    found: dict[str, Json] = {}
    for route in ROUTES:
        found.setdefault(route.path, {})[route.method.lower()] = by_route(parts, route)
    for operation in offered():
        found[f"/api/op/{operation.name}"] = {"post": by_name(parts, operation)}
    return found
