"""The operation that describes all operations as an OpenRPC document."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, TypeAdapter
from typing_extensions import TypedDict

from .. import __version__
from ..core import errors
from ..core.errors import HibossError
from .auth import Caller
from .context import Context
from .operation import REGISTRY, Level, Nothing, operation

# Answers of the socket itself, before any operation is called.
SOCKET_ERRORS = (
    errors.ParseError,
    errors.InvalidRequest,
    errors.FrameTooLarge,
    errors.BatchTooLarge,
    errors.MethodNotFound,
    errors.ForeignPeer,
    errors.Busy,
)
EXAMPLES = Path(__file__).with_name("examples.json")  # written by `python -m docs.record_examples`


class Example(TypedDict):
    """One call of an operation, without its token, and the answer."""

    params: dict[str, Any]
    result: Any


class Discovery(TypedDict):
    openrpc: Annotated[str, Field(description="the version of the OpenRPC specification")]
    info: Annotated[dict[str, str], Field(description="title and version of hiboss")]
    methods: Annotated[
        list[dict[str, Any]],
        Field(description="the operations, by name; x-level, x-effect and x-door are ours"),
    ]
    components: Annotated[
        dict[str, Any],
        Field(description="`schemas`: the types of parameters and results; `errors`: those of the socket"),
    ]


@operation("rpc.discover", level=Level.OPEN, elsewhere=Level.RESTRICTED, result=Discovery)
def discover(context: Context, caller: Caller, params: Nothing) -> Discovery:
    """Describe every operation, with everything that is declared of it, as an OpenRPC document."""
    return _document()


@cache  # making it takes 50 ms, and it never changes
def _document() -> Discovery:
    schemas: dict[str, Any] = {}
    shown = examples()
    return {
        "openrpc": "1.3.2",
        "info": {"title": "hiboss", "version": __version__},
        "methods": [_describe(name, schemas, shown.get(name)) for name in sorted(REGISTRY)],
        "components": {"schemas": schemas, "errors": {cls.code: _error(cls) for cls in SOCKET_ERRORS}},
    }


@cache
def examples() -> dict[str, Example]:
    """Return the recorded example of every operation."""
    found: dict[str, Example] = json.loads(EXAMPLES.read_text(encoding="utf-8")) if EXAMPLES.exists() else {}
    return found


def schema_of(shape: Any, schemas: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of parameters or of a result, and add the types it refers to."""
    schema = TypeAdapter(shape).json_schema(ref_template="#/components/schemas/{model}")
    for name, inner in schema.pop("$defs", {}).items():
        # Types are referred to by class name: a second class of that name would replace the first.
        assert schemas.setdefault(name, inner) == inner, f"two different types are called {name}"
    return schema


def _describe(name: str, schemas: dict[str, Any], example: Example | None) -> dict[str, Any]:
    op = REGISTRY[name]
    schema = schema_of(op.params, schemas)
    required = schema.get("required", [])
    described = {
        "name": name,
        "summary": op.summary,
        "x-level": op.level.word,
        "x-effect": op.effect,
        "x-door": list(op.doors),
        "paramStructure": "by-name",
        "params": [
            {
                "name": param,
                "required": param in required,
                "description": field.get("description", ""),
                "schema": field,
            }
            for param, field in schema.get("properties", {}).items()
        ],
        "result": {"name": "result", "schema": schema_of(op.result, schemas)},
        "errors": [_error(cls) for cls in (*op.errors, *op.dispatch_errors)],
    }
    if example is not None:
        described["examples"] = [
            {
                "name": name,
                "params": [{"name": param, "value": value} for param, value in example["params"].items()],
                "result": {"name": "result", "value": example["result"]},
            }
        ]
    return described


def _error(cls: type[HibossError]) -> dict[str, Any]:
    return {"code": cls.rpc, "message": cls.code, "data": {"text": text_of(cls)}}


def text_of(cls: type[HibossError]) -> str:
    """Return the message of an error, with the names of its facts in braces."""
    return " ".join((cls.__doc__ or "").split())
