"""The paths in /openapi.json that are no operation: events, files, logins, webhooks, monitoring and pages."""

from __future__ import annotations

from ..api.discovery import schema_of
from ..api.health import Health
from ..api.operation import REGISTRY
from ..api.webhook_receiving import Received
from ..core import errors
from . import metrics, openapi_files, openapi_mcp
from .openapi_components import JSON, OF_ANY, OF_BODIES, OF_CHANGES, OF_JSON, OF_STORE, Components, Json
from .openapi_operations import by_name, in_query

NO_TOKEN: list[Json] = []  # as `security`: no token is needed
TEXT = {"type": "string"}


def paths(parts: Components) -> dict[str, Json]:
    return {
        "/api/events": {"get": _events(parts)},
        "/api/attachments": {"post": openapi_files.upload(parts)},
        "/api/attachments/{message}/{file}": {"get": openapi_files.download(parts)},
        "/api/attachments/{message}/{file}/ticket": {"post": openapi_files.ticket(parts)},
        **openapi_mcp.paths(parts),
        "/login": {
            "get": _page(parts, "login-page", "The page that a one-time link opens."),
            **_login(parts),
        },
        "/logout": _logout(parts),
        "/hooks/{name}": _hooks(parts),
        "/health": {"get": _health(parts)},
        "/metrics": {"get": _metrics(parts)},
        "/": {"get": _page(parts, "status-page", "The page that shows the state of the daemon.")},
        "/api": {"get": _page(parts, "api-page", "This API as a page to read.")},
        "/openapi.json": {"get": _itself(parts)},
    }


def _described(identity: str, tag: str, summary: str, **more: object) -> Json:
    return {"operationId": identity, "tags": [tag], "summary": summary, **more}


def _events(parts: Components) -> Json:
    operation = REGISTRY["event.subscribe"]
    words = parts.params(operation)["properties"]
    agent = {**TEXT, "description": "whose box; of others than the caller's own only for the boss"}
    last = {
        "name": "Last-Event-ID",
        "in": "header",
        "required": False,
        "description": "the id of the event seen last: what followed it comes first",
        "schema": {**TEXT, "maxLength": 200, "pattern": "^[0-9A-Za-z-]*$"},
    }
    summary = "Follow what happens as server-sent events, until the client or the daemon ends it."
    described = _described("events", "event", summary)
    described["parameters"] = [
        in_query("agent", agent),
        *(in_query(name, words[name]) for name in ("topics", "conversations")),
        last,
    ]
    failures = (*operation.errors, *operation.dispatch_errors, *OF_ANY, errors.TokenInUrl)
    told = (
        "Events: `open`, `new-message`, `unread-count`, `run-delta`, `ask`, `control`, `presence`, `gap`, "
        "`caught-up`, `closed`. The data of each is one line of JSON."
    )
    stream = {"description": told, "content": {"text/event-stream": {"schema": TEXT}}}
    described["responses"] = {"200": stream, **parts.failures(failures)}
    return described


def _login(parts: Components) -> Json:
    described = _described("login", "web", "Log a browser in, by the code of a one-time link.")
    code = {**TEXT, "description": "the code in the link of `hiboss web`, after the #"}
    answer = {
        "type": "object",
        "properties": {
            "tab": {**TEXT, "description": "what the tab keeps, and sends as X-Hiboss-Tab"},
            "address": {**TEXT, "description": "who is logged in"},
            "expires_in": {"type": "integer", "description": "how long, in seconds"},
        },
        "required": ["tab", "address", "expires_in"],
    }
    described["security"] = NO_TOKEN
    described["requestBody"] = _json_body({"code": code}, "code")
    failures = (errors.InvalidParams, errors.LoginRefused, errors.TooManyAttempts)
    failures_of_all = (*failures, errors.StoreFull, *OF_STORE, *OF_JSON, *OF_ANY, *OF_CHANGES)
    logged_in = {**_answer("The other half of the session is in a cookie.", answer), "headers": _COOKIE}
    described["responses"] = {"200": logged_in, **parts.failures(failures_of_all)}
    return {"post": described}


def _logout(parts: Components) -> Json:
    described = by_name(parts, REGISTRY["web.logout"])
    described["operationId"] = "logout"
    kept = {name: one for name, one in described["responses"]["200"].items()}
    described["responses"]["200"] = {**kept, "headers": _COOKIE}
    return {"post": described}


def _hooks(parts: Components) -> Json:
    described = _described(
        "hook", "webhook", "Take a request for a webhook. Its signature proves who sent it."
    )
    name = {"name": "name", "in": "path", "required": True, "description": "the name of the webhook"}
    described["parameters"] = [{**name, "schema": {**TEXT, "minLength": 1}}]
    described["security"] = NO_TOKEN
    described["requestBody"] = {"required": False, "content": {JSON: {}, "text/plain": {"schema": TEXT}}}
    received = parts.named("Received", schema_of(Received, parts.schemas))
    failures = (errors.WebhookRefused, errors.TooLarge, errors.StoreFull)
    of_path = (errors.NoSuchPath, errors.MethodNotAllowed)
    of_all = (*failures, *OF_STORE, *OF_BODIES, *OF_ANY, *OF_CHANGES, *of_path)
    described["responses"] = {"200": _answer("It is stored.", received), **parts.failures(of_all)}
    return {"post": described}


def _health(parts: Components) -> Json:
    described = _described("health", "daemon", "Tell whether the daemon works.", security=NO_TOKEN)
    health = parts.named("Health", schema_of(Health, parts.schemas))
    failing = {"anyOf": [health, parts.error(errors.Busy)]}
    described["responses"] = {
        **parts.failures((*OF_ANY, errors.InternalError)),
        "200": _answer("It works.", health),
        "503": _answer("It does not, and the log says why; or too many connections are open.", failing),
    }
    return described


def _metrics(parts: Components) -> Json:
    operation = REGISTRY["daemon.metrics"]
    described = _described("metrics", "daemon", "Show the metrics as Prometheus reads them.")
    text = {"description": "The exposition.", "content": {metrics.CONTENT_TYPE: {"schema": TEXT}}}
    failures = (*operation.errors, *operation.dispatch_errors, *OF_ANY)
    described["responses"] = {"200": text, **parts.failures(failures)}
    return described


def _page(parts: Components, identity: str, summary: str) -> Json:
    page = {"description": "A page.", "content": {"text/html": {"schema": TEXT}}}
    responses = {"200": page, **parts.failures((*OF_ANY, errors.InternalError))}
    return _described(identity, "web", summary, security=NO_TOKEN, responses=responses)


def _itself(parts: Components) -> Json:
    answer = _answer("This document.", {"type": "object"})
    responses = {"200": answer, **parts.failures((*OF_ANY, errors.InternalError))}
    return _described("openapi", "web", "Describe this API.", security=NO_TOKEN, responses=responses)


def _json_body(properties: Json, *required: str) -> Json:
    schema = {"type": "object", "additionalProperties": False, "properties": properties}
    return {"required": True, "content": {JSON: {"schema": {**schema, "required": list(required)}}}}


def _answer(description: str, schema: Json) -> Json:
    return {"description": description, "content": {JSON: {"schema": schema}}}


_COOKIE = {"Set-Cookie": {"description": "the cookie of the session, or its end", "schema": TEXT}}
