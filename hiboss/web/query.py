"""Parameters of an operation in a query: texts become what the operation declares.

What does not fit is passed on as it is, so that the api refuses it with the error of every door.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, get_args

import orjson
from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo

from ..api.operation import REGISTRY, Operation
from ..core.errors import TokenInUrl


def params(
    operation: Operation, items: Sequence[tuple[str, str]], renamed: Mapping[str, str]
) -> dict[str, Any]:
    """Return the parameters in a query. A list is given by several values, or separated by commas."""
    found: dict[str, list[str]] = {}
    for name, value in items:
        found.setdefault(renamed.get(name, name), []).append(value)
    if "token" in found or "unnamed" in found:
        raise TokenInUrl()
    fields = _fields(operation.name)
    return {
        name: _value(fields[name], values) if name in fields else values[0] for name, values in found.items()
    }


@cache
def _fields(operation: str) -> dict[str, FieldInfo]:
    return {field.alias or name: field for name, field in REGISTRY[operation].params.model_fields.items()}


def _value(field: FieldInfo, values: list[str]) -> Any:
    kinds = _kinds(field.annotation)
    if any(_is_list(kind) for kind in kinds):
        return [part for value in values for part in value.split(",")] if len(values) == 1 else values
    if len(values) > 1:
        return values  # refused by the api
    value = values[0]
    for kind in kinds:
        if isinstance(kind, type) and issubclass(kind, BaseModel):  # a tag, like module:auth
            head, colon, tail = value.partition(":")
            return {"type": head, "value": tail} if colon else value
        if kind is dict or getattr(kind, "__origin__", None) is dict:
            return _json(value)
    if str in kinds:
        return value
    return _lax(kinds, value)


def _kinds(annotation: Any) -> tuple[Any, ...]:
    """Return the types that a parameter may have, without None."""
    inner = get_args(annotation)
    if inner and getattr(annotation, "__origin__", None) not in (list, dict):
        if hasattr(annotation, "__metadata__"):  # Annotated[…]
            return _kinds(inner[0])
        if all(isinstance(one, str) for one in inner):  # Literal[…]
            return (str,)
        return tuple(kind for one in inner for kind in _kinds(one) if kind is not type(None))
    return (annotation,)


def _is_list(kind: Any) -> bool:
    return kind is list or getattr(kind, "__origin__", None) is list


def _lax(kinds: tuple[Any, ...], value: str) -> Any:
    for kind in kinds:
        try:
            return TypeAdapter(kind).validate_python(value, strict=False)
        except ValidationError:
            continue
    return value


def _json(value: str) -> Any:
    try:
        return orjson.loads(value)
    except orjson.JSONDecodeError:
        return value
