"""docs/reference/rpc.md, from the registry of operations."""

from __future__ import annotations

import json
from typing import Any

from pydantic import TypeAdapter

import hiboss.api.dispatch  # noqa: F401 - importing it declares every operation
from hiboss.api.discovery import SOCKET_ERRORS, examples
from hiboss.api.operation import REGISTRY, Operation
from hiboss.core import errors

from .markdown import code, page, sentence, slug, table

INTRO = """
JSON-RPC 2.0 over the unix socket `~/.hiboss/daemon.sock`, one request per line; answers come in the order
of the requests. `rpc.discover` answers with all of this as an OpenRPC document.

Parameters are given by name (or as an array, in the order below); one that is not listed is refused.
`token` may be given with every operation, or once per connection with `auth.login`. The *level* is what
the caller must at least be, `open` needing no token. Times are ISO 8601, in UTC in every answer.

The *effect* says what a call does, and so whether it can be repeated after a lost answer:

- *read*: it changes nothing (but when the caller was last seen);
- *idempotent*: a second call like the first changes nothing more;
- *change*: each call does it again (`envelope.send` with a `key` does not);
- *destructive*: it ends or removes something that no other operation brings back.

The examples are calls to one daemon, one after the other, and its answers. They leave the token out; lists
of objects are cut after two entries, lists of words after ten.
"""
WORDS = {"string": "text", "integer": "whole number", "number": "number", "boolean": "true or false"}
REFERENCE = "#/$defs/"
WIDTH = 110  # characters of JSON on one line


def make() -> str:
    shapes: dict[str, dict[str, Any]] = {}
    operations = [_operation(REGISTRY[name], shapes) for name in sorted(REGISTRY)]
    described = [f"### {name}\n\n{_fields(shapes[name])}" for name in sorted(shapes)]
    return page(
        "Operations",
        INTRO,
        f"## Errors of the socket\n\nBefore any operation is called: {_errors(SOCKET_ERRORS)} "
        "[What errors say](errors.md).",
        "## Operations",
        *operations,
        "## Shapes",
        *described,
    )


def _operation(operation: Operation, shapes: dict[str, dict[str, Any]]) -> str:
    params, result = operation.params.model_json_schema(), TypeAdapter(operation.result).json_schema()
    for name, shape in (*params.pop("$defs", {}).items(), *result.pop("$defs", {}).items()):
        assert shapes.setdefault(name, shape) == shape, f"two shapes are called {name}"
    parts = [
        f"### {operation.name}",
        f"{sentence(operation.summary)} Level: `{operation.level.word}`{_firm(operation)}. "
        f"Effect: {operation.effect}.",
        _params(params) or "Parameters: none.",
        f"Answers with:\n\n{_fields(result)}",
        *_example(operation),
    ]
    if operation.errors:
        parts.append(f"Errors: {_errors(operation.errors)}")
    general = ", ".join(code(cls.code) for cls in operation.dispatch_errors)
    parts.append(f"Errors of the dispatch: {general}.")
    return "\n\n".join(parts)


def _example(operation: Operation) -> list[str]:
    example = examples().get(operation.name)
    if example is None:
        return []
    request = {"method": operation.name, "params": example["params"]}
    return ["Example:", *(f"```json\n{_json(one)}\n```" for one in (request, example["result"]))]


def _json(value: Any, indent: int = 0) -> str:
    """Return JSON with as much on a line as stays readable."""
    line = json.dumps(value, ensure_ascii=False)
    if len(line) + indent <= WIDTH or not isinstance(value, (dict, list)):
        return line
    inside = indent + 2
    if isinstance(value, dict):
        members = [f"{json.dumps(key)}: {_json(one, inside)}" for key, one in value.items()]
    else:
        members = [_json(one, inside) for one in value]
    rows = [members[0]]
    for one in members[1:]:
        together = f"{rows[-1]}, {one}"
        if "\n" in together or len(together) + inside > WIDTH:
            rows.append(one)
        else:
            rows[-1] = together
    first, last = "{}" if isinstance(value, dict) else "[]"
    return f"{first}\n" + ",\n".join(" " * inside + row for row in rows) + f"\n{' ' * indent}{last}"


def _firm(operation: Operation) -> str:
    firm = ", whatever the policy says" if operation.fixed else ""
    firm += ", over the unix socket only" if operation.doors == ("socket",) else ""
    return firm + ("; without a daemon, for the owner of the home" if operation.offline else "")


def _params(schema: dict[str, Any]) -> str:
    required = schema.get("required", [])
    rows = [
        [
            code(name),
            _type(field),
            "**required**" if name in required else _default(field),
            _meaning(field),
        ]
        for name, field in schema.get("properties", {}).items()
    ]
    return table(("parameter", "type", "default", "meaning"), rows) if rows else ""


def _meaning(field: dict[str, Any]) -> str:
    only = " Only over the unix socket." if field.get("x-door") == "socket" else ""
    return sentence(field["description"]) + only if field.get("description") else ""


def _fields(schema: dict[str, Any]) -> str:
    if "$ref" in schema:
        return f"- {_type(schema)}"
    required = schema.get("required", [])
    rows = [
        [code(name), _type(field) + ("" if name in required else "; not always there"), _meaning(field)]
        for name, field in schema.get("properties", {}).items()
    ]
    return table(("field", "type", "meaning"), rows)


def _type(schema: dict[str, Any]) -> str:
    if "$ref" in schema:
        name = schema["$ref"].removeprefix(REFERENCE)
        if name == "JsonValue":
            return "anything"
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
