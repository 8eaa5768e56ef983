"""docs/reference/rpc.md, from the registry of operations."""

from __future__ import annotations

from typing import Any

from pydantic import TypeAdapter

import hiboss.api.dispatch  # noqa: F401 - importing it declares every operation
from hiboss.api.operation import REGISTRY, Operation
from hiboss.core import errors

from .markdown import code, page, sentence, slug, table

INTRO = """
JSON-RPC 2.0 over the unix socket `~/.hiboss/daemon.sock`, one request per line; answers come in the order
of the requests. `rpc.discover` answers with all of this as an OpenRPC document.

Parameters are given by name (or as an array, in the order below); one that is not listed is refused.
`token` may be given with every operation, or once per connection with `auth.login`. The *level* is what
the caller must at least be, `open` needing no token. Times are ISO 8601, in UTC in every answer.
"""
ANYWHERE = (
    errors.ParseError,
    errors.InvalidRequest,
    errors.FrameTooLarge,
    errors.MethodNotFound,
    errors.InvalidParams,
    errors.InternalError,
    errors.NoToken,
    errors.BadToken,
    errors.Forbidden,
    errors.ForeignPeer,
    errors.NotSetUp,
    errors.Busy,
    errors.StoreError,
    errors.StoreLocked,
    errors.StoreFull,
    errors.StoreDamaged,
)
WORDS = {"string": "text", "integer": "whole number", "number": "number", "boolean": "true or false"}
REFERENCE = "#/$defs/"


def make() -> str:
    shapes: dict[str, dict[str, Any]] = {}
    operations = [_operation(REGISTRY[name], shapes) for name in sorted(REGISTRY)]
    described = [f"### {name}\n\n{_fields(shapes[name])}" for name in sorted(shapes)]
    return page(
        "Operations",
        INTRO,
        f"## Errors of every operation\n\n{_errors(ANYWHERE)} [What they say](errors.md).",
        "## Operations",
        *operations,
        "## Shapes",
        *described,
    )


def _operation(operation: Operation, shapes: dict[str, dict[str, Any]]) -> str:
    result = TypeAdapter(operation.result).json_schema()
    for name, shape in result.pop("$defs", {}).items():
        assert shapes.setdefault(name, shape) == shape, f"two shapes are called {name}"
    parts = [
        f"### {operation.name}",
        f"{sentence(operation.summary)} Level: `{operation.level.word}`{_firm(operation)}.",
        _params(operation) or "Parameters: none.",
        f"Answers with:\n\n{_fields(result)}",
    ]
    if operation.errors:
        parts.append(f"Errors: {_errors(operation.errors)}")
    return "\n\n".join(parts)


def _firm(operation: Operation) -> str:
    firm = ", whatever the policy says" if operation.fixed else ""
    return firm + ("; without a daemon, for the owner of the home" if operation.offline else "")


def _params(operation: Operation) -> str:
    schema = operation.params.model_json_schema()
    required = schema.get("required", [])
    rows = [
        [
            code(name),
            _type(field),
            "**required**" if name in required else _default(field),
            sentence(field["description"]) if field.get("description") else "",
        ]
        for name, field in schema.get("properties", {}).items()
    ]
    return table(("parameter", "type", "default", "meaning"), rows) if rows else ""


def _fields(schema: dict[str, Any]) -> str:
    if "$ref" in schema:
        return f"- {_type(schema)}"
    required = schema.get("required", [])
    return "\n".join(
        f"- `{name}`: {_type(field)}{'' if name in required else '; not always there'}"
        for name, field in schema.get("properties", {}).items()
    )


def _type(schema: dict[str, Any]) -> str:
    if "$ref" in schema:
        name = schema["$ref"].removeprefix(REFERENCE)
        return f"[{name}](#{slug(name)})"
    if "anyOf" in schema:
        return " or ".join(_type(one) for one in schema["anyOf"])
    if "const" in schema or "enum" in schema:
        return " or ".join(code(one) for one in schema.get("enum", [schema.get("const")]))
    kind = schema.get("type")
    if kind == "array":
        return f"list of {_bounds(schema)}{_type(schema.get('items', {}))}"
    if kind == "object":
        inner = schema.get("additionalProperties")
        return f"object of {_type(inner)}" if isinstance(inner, dict) else "object"
    return "null" if kind == "null" else WORDS.get(str(kind), "anything")


def _bounds(schema: dict[str, Any]) -> str:
    least, most = schema.get("minItems", 0), schema.get("maxItems")
    return f"{least} to {most} × " if most is not None else ""


def _default(field: dict[str, Any]) -> str:
    if "default" not in field:
        return "empty" if field.get("type") == "array" else ""
    value = field["default"]
    if value in (None, ""):
        return "" if value is None else code("empty")
    return code(str(value).lower() if isinstance(value, bool) else value)


def _errors(classes: tuple[type[errors.HibossError], ...]) -> str:
    return ", ".join(f"`{cls.code}` ({cls.rpc})" for cls in classes) + "."
