"""/openapi.json for tests: made when the first of them asks, and not in every process that collects tests."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import httpx
import jsonschema_rs

from hiboss.api import dispatch  # noqa: F401 - it declares the operations
from hiboss.web import openapi

DOCUMENT, DRAFT = "urn:openapi", "https://json-schema.org/draft/2020-12/schema"


class Described:
    """The answers that a document describes."""

    def __init__(self, document: dict[str, Any]) -> None:
        self._document = document
        # The document is read once, for all validators.
        self._registry = jsonschema_rs.Registry(
            [(DOCUMENT, {"$schema": DRAFT, "components": {"schemas": document["components"]["schemas"]}})]
        )
        self._validators: dict[str, Any] = {}  # by their schemas

    def resolved(self, part: dict[str, Any]) -> dict[str, Any]:
        """Return what a part refers to, or the part itself."""
        if "$ref" not in part:
            return part
        found: Any = self._document
        for word in part["$ref"].removeprefix("#/").split("/"):
            found = found[word]
        return dict(found)

    def wrong(self, schema: dict[str, Any], value: Any) -> list[str]:
        """Return what is wrong with a value."""
        key = json.dumps(schema)
        if key not in self._validators:
            whole = json.loads(key.replace('"#/components/', f'"{DOCUMENT}#/components/'))
            self._validators[key] = jsonschema_rs.Draft202012Validator(whole, registry=self._registry)
        return [one.message for one in self._validators[key].iter_errors(value)]

    def faults(self, method: str, path: str, answer: httpx.Response) -> list[str]:
        """Return what is not as described in an answer to a path of the document; nothing: it is described."""
        responses = self._document["paths"][path][method.lower()]["responses"]
        if str(answer.status_code) not in responses:
            return [f"{answer.status_code} is not described: {answer.text[:300]}"]
        content = self.resolved(responses[str(answer.status_code)])["content"]
        kind = answer.headers["content-type"]
        if kind not in content and kind.partition(";")[0] not in content:
            return [f"{answer.status_code} with {kind} is not described"]
        if kind != "application/json":
            return []
        return self.wrong(content[kind]["schema"], answer.json())


@cache
def document() -> dict[str, Any]:
    return openapi.document()


@cache
def described() -> Described:
    return Described(document())


def served() -> list[tuple[str, str, dict[str, Any]]]:
    """Return every path, each method that it takes, and how that is described."""
    return [(path, method, one) for path, item in document()["paths"].items() for method, one in item.items()]
