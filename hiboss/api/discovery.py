"""The operation that describes all operations as an OpenRPC document."""

from __future__ import annotations

from functools import cache
from typing import Any

from pydantic import TypeAdapter
from typing_extensions import TypedDict

from .. import __version__
from .auth import Caller
from .context import Context
from .operation import REGISTRY, Level, Nothing, operation


class Discovery(TypedDict):
    openrpc: str
    info: dict[str, str]
    methods: list[dict[str, Any]]
    components: dict[str, Any]  # `schemas`: the types that results are made of, by name


@operation("rpc.discover", level=Level.OPEN, result=Discovery)
def discover(context: Context, caller: Caller, params: Nothing) -> Discovery:
    """Describe every operation with its parameters, result, level and errors, as an OpenRPC document."""
    return _document()


@cache  # making it takes 50 ms, and it never changes
def _document() -> Discovery:
    schemas: dict[str, Any] = {}
    return {
        "openrpc": "1.3.2",
        "info": {"title": "hiboss", "version": __version__},
        "methods": [_describe(name, schemas) for name in sorted(REGISTRY)],
        "components": {"schemas": schemas},
    }


def _schema(result: Any, schemas: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a result, and add the types it refers to."""
    schema = TypeAdapter(result).json_schema(ref_template="#/components/schemas/{model}")
    for name, shape in schema.pop("$defs", {}).items():
        # Types are referred to by class name: a second class of that name would replace the first.
        assert schemas.setdefault(name, shape) == shape, f"two different types are called {name}"
    return schema


def _describe(name: str, schemas: dict[str, Any]) -> dict[str, Any]:
    op = REGISTRY[name]
    schema = op.params.model_json_schema()
    required = schema.get("required", [])
    return {
        "name": name,
        "summary": op.summary,
        "x-level": op.level.name.lower(),
        "paramStructure": "by-name",
        "params": [
            {"name": param, "required": param in required, "schema": field}
            for param, field in schema.get("properties", {}).items()
        ],
        "result": {"name": "result", "schema": _schema(op.result, schemas)},
        "errors": [
            {"code": cls.rpc, "message": cls.code, "data": {"text": " ".join((cls.__doc__ or "").split())}}
            for cls in op.errors
        ],
    }
