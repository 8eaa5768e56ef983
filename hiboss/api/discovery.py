"""The operation that describes all operations, as an OpenRPC document."""

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
    components: dict[str, Any]


@operation("rpc.discover", level=Level.OPEN, result=Discovery)
async def discover(context: Context, caller: Caller, params: Nothing) -> Discovery:
    """Every operation with its parameters, result, level and errors, as an OpenRPC document."""
    return _document()


@cache  # it takes 50 ms to make and never changes
def _document() -> Discovery:
    schemas: dict[str, Any] = {}
    return {
        "openrpc": "1.3.2",
        "info": {"title": "hiboss", "version": __version__},
        "methods": [_describe(name, schemas) for name in sorted(REGISTRY)],
        "components": {"schemas": schemas},
    }


def _schema(result: Any, schemas: dict[str, Any]) -> dict[str, Any]:
    schema = TypeAdapter(result).json_schema(ref_template="#/components/schemas/{model}")
    schemas.update(schema.pop("$defs", {}))
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
            {"code": cls.rpc, "message": cls.code, "data": {"says": " ".join((cls.__doc__ or "").split())}}
            for cls in op.errors
        ],
    }
