"""The files in /openapi.json: uploads for messages to come, and downloads of those of messages."""

from __future__ import annotations

from ..api.discovery import schema_of
from ..api.operation import REGISTRY
from ..api.uploads import UploadJson
from ..core import errors
from .openapi_components import JSON, OF_ANY, OF_BODIES, OF_CHANGES, OF_JSON, OF_STORE, Components, Json

TEXT = {"type": "string", "minLength": 1}
OF_CALLERS = (errors.NoToken, errors.BadToken, errors.Forbidden, errors.InvalidParams, errors.TokenInUrl)
OF_FILES = (errors.NotFound, errors.BadId, errors.AttachmentLost, errors.NoSuchPath, errors.MethodNotAllowed)


def upload(parts: Components) -> Json:
    """Describe POST /api/attachments."""
    name = {"name": "name", "in": "query", "required": True, "description": "the name of the file"}
    stored = parts.named("UploadJson", schema_of(UploadJson, parts.schemas))
    of_files = (errors.TooLarge, errors.StoreFull, errors.WrongContentType, errors.KeyNotTaken)
    failures = (*OF_CALLERS, *of_files, *OF_BODIES, *OF_CHANGES, *OF_STORE, *OF_ANY)
    any_type = {"schema": {"description": "the bytes of the file; Content-Type says what it is"}}
    return {
        "operationId": "upload",
        "tags": ["upload"],
        "summary": "Upload a file; a message that names its id in `uploads` takes it along.",
        "x-level": REGISTRY["envelope.send"].level.word,
        "x-effect": "change",
        "parameters": [{**name, "schema": TEXT}],
        "requestBody": {"required": True, "content": {"application/octet-stream": any_type}},
        "responses": {"201": _answer("It is on disk.", stored), **parts.failures(failures)},
    }


def download(parts: Components) -> Json:
    """Describe GET /api/attachments/{message}/{file}."""
    ticket = {"name": "ticket", "in": "query", "required": False, "schema": TEXT}
    ticket_of = {**ticket, "description": "instead of a token: good once, for this file and a minute"}
    part = {"name": "Range", "in": "header", "required": False, "description": "only this part of it"}
    content = {"content": {"*/*": {"schema": {"description": "the bytes of the file"}}}}
    failures = parts.failures((*OF_CALLERS, *OF_FILES, errors.NoSuchPart, *OF_STORE, *OF_ANY))
    return {
        "operationId": "download",
        "tags": ["upload"],
        "summary": "Download a file of a message.",
        "x-level": REGISTRY["message.get"].level.word,
        "x-effect": "read",
        "security": [{"bearer": []}, {}],
        "parameters": [*_places(), ticket_of, {**part, "schema": {**TEXT, "pattern": "^bytes=[0-9,-]+$"}}],
        "responses": {
            "200": {"description": "The file, to be stored and not shown.", **content},
            "206": {"description": "The part of it.", **content},
            **failures,
        },
    }


def ticket(parts: Components) -> Json:
    """Describe POST /api/attachments/{message}/{file}/ticket."""
    properties = {
        "url": {"type": "string", "description": "the path with a ticket; it can be used once"},
        "expires_in": {"type": "integer", "description": "how long it can be used, in seconds"},
    }
    made = {"type": "object", "properties": properties, "required": list(properties)}
    failures = (*OF_CALLERS, *OF_FILES, errors.KeyNotTaken, *OF_JSON, *OF_CHANGES, *OF_STORE, *OF_ANY)
    nothing = {"type": "object", "additionalProperties": False}
    return {
        "operationId": "ticket",
        "tags": ["upload"],
        "summary": "Make a link that downloads a file of a message once, without a token.",
        "x-level": REGISTRY["message.get"].level.word,
        "x-effect": "change",
        "parameters": _places(),
        "requestBody": {"required": False, "content": {JSON: {"schema": nothing}}},
        "responses": {"201": _answer("The link.", made), **parts.failures(failures)},
    }


def _places() -> list[Json]:
    message = {"name": "message", "in": "path", "required": True, "description": "m57, or an envelope of it"}
    file = {"name": "file", "in": "path", "required": True, "description": "its place, from 1, or its sha256"}
    return [{**message, "schema": TEXT}, {**file, "schema": TEXT}]


def _answer(description: str, schema: Json) -> Json:
    return {"description": description, "content": {JSON: {"schema": schema}}}
