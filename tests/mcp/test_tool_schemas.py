"""The schemas of the tools are as every client takes them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from hiboss.mcp.tools import TABLE


def types_in(schema: Any) -> Iterator[Any]:
    if isinstance(schema, list):
        for one in schema:
            yield from types_in(one)
    elif isinstance(schema, dict):
        yield from (schema[name] for name in ("type",) if name in schema)
        for one in schema.values():
            yield from types_in(one)


@pytest.mark.parametrize("name", TABLE)
def test_each_value_has_one_type(name: str) -> None:
    properties = TABLE[name].schema["properties"]
    for one in properties.values():
        assert all(isinstance(kind, str) for kind in types_in(one)), one
        assert "type" in one
