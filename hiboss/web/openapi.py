"""GET /openapi.json: everything that the HTTP door serves, as an OpenAPI document.

It is made of the table of operations and the table of friendly routes, once. It describes and tells no
state, so it needs no token.
"""

from __future__ import annotations

import asyncio
import threading
from functools import cache

import orjson
from starlette.requests import Request
from starlette.responses import Response

from .. import __version__
from . import openapi_operations, openapi_paths
from .answers import JSON
from .door import Door
from .openapi_components import Components, Json

INTRODUCTION = """\
The HTTP door of hiboss. Every operation can be called by its own name, `POST /api/op/NAME`, with its
parameters as a JSON object. Beside that there are routes by noun, like `GET /api/messages`; `x-operation`
says what each calls.

Send your token as `Authorization: Bearer …`, never in a URL. `x-level` is what the caller must at least be,
unless a policy says otherwise. `x-effect` says whether a call can be repeated after a lost answer: `read`
changes nothing; a second `idempotent` call changes nothing more; `change` does it again each time (a send
with an `Idempotency-Key` does not); `destructive` ends or removes something that no other operation brings
back.

Errors have a stable code in `error.data.code`; the types `error.CODE` say what each means.

A WebSocket at `/ws` takes the same operations as JSON-RPC; what follows facts (`event.subscribe`) needs it,
or `GET /api/events`.
"""
_making = threading.Lock()


def _made() -> Json:
    parts = Components()
    paths = openapi_operations.paths(parts)
    for path, item in openapi_paths.paths(parts).items():
        paths.setdefault(path, {}).update(item)
    tags = sorted({tag for item in paths.values() for one in item.values() for tag in one["tags"]})
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "hiboss",
            "version": __version__,
            "description": INTRODUCTION,
            "license": {"name": "MIT", "identifier": "MIT"},
        },
        "servers": [{"url": "/", "description": "this daemon"}],
        "security": [{"bearer": []}],
        "tags": [{"name": tag} for tag in tags],
        "paths": dict(sorted(paths.items())),
        "components": {
            "schemas": dict(sorted(parts.schemas.items())),
            "responses": dict(sorted(parts.responses.items())),
            "examples": dict(sorted(parts.examples.items())),
            "securitySchemes": {
                "bearer": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "the token of an agent, of a run, of the boss or of another person",
                }
            },
        },
    }


@cache
def _written() -> bytes:
    return orjson.dumps(_made())


def written() -> bytes:
    """Return the document as JSON. The first call takes some 300 ms: make it on another thread."""
    with _making:  # those who wait for it must not make it too
        return _written()


def document() -> Json:
    """Return the document. What is kept is its JSON, which needs a tenth of the memory."""
    found: Json = orjson.loads(written())
    return found


async def show(door: Door, request: Request) -> Response:
    return Response(await asyncio.to_thread(written), media_type=JSON)
