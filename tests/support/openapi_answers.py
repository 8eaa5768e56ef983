"""Tells whether an answer is one that /openapi.json describes."""

from __future__ import annotations

import json
from typing import Any

import httpx
import jsonschema_rs


class Described:
    """The answers that a document describes."""

    def __init__(self, document: dict[str, Any]) -> None:
        self._document = document
        self._validators: dict[str, Any] = {}  # by their schemas: to make one takes long

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
            whole = {**schema, "components": {"schemas": self._document["components"]["schemas"]}}
            self._validators[key] = jsonschema_rs.Draft202012Validator(whole)
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
