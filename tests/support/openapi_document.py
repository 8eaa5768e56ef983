"""/openapi.json for tests: made when the first of them asks, and not in every process that collects tests."""

from __future__ import annotations

from functools import cache
from typing import Any

from hiboss.api import dispatch  # noqa: F401 - it declares the operations
from hiboss.web import openapi
from tests.support.openapi_answers import Described


@cache
def document() -> dict[str, Any]:
    return openapi.document()


@cache
def described() -> Described:
    return Described(document())


def served() -> list[tuple[str, str, dict[str, Any]]]:
    """Return every path, each method that it takes, and how that is described."""
    return [(path, method, one) for path, item in document()["paths"].items() for method, one in item.items()]
