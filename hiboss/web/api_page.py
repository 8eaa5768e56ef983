"""GET /api: the API as a page to read, made once of the document that /openapi.json is.

It is plain HTML without a script, so that the policy of guard.py holds for it too.
"""

from __future__ import annotations

import asyncio
import json
import shlex
import threading
from collections.abc import Iterator
from functools import cache
from html import escape
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from ..core.settings import Settings
from . import openapi
from .door import Door
from .openapi_components import JSON, Json

PREFIX = "/api/op/"
WORDS = {"string": "text", "integer": "whole number", "number": "number", "boolean": "true or false"}
HEAD = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>hiboss: the API</title>
<link rel="stylesheet" href="/static/hiboss.css">
</head>
<body>
<main class="wide">
"""
START = """# Once: where the daemon is, and your token, in a file that only you can read.
HIBOSS={url}
(umask 077; printf 'Authorization: Bearer %s\\n' "$(cat ~/.hiboss/tokens/boss)" > header.txt)
"""
_making = threading.Lock()


@cache
def _made() -> bytes:
    return "".join(_Page(openapi.document()).pieces()).encode()


def _page() -> bytes:
    with _making:  # those who wait for it must not make it too
        return _made()


async def show(door: Door, request: Request) -> Response:
    return Response(await asyncio.to_thread(_page), media_type="text/html")


class _Page:
    def __init__(self, document: Json) -> None:
        self._document = document
        self._components = document["components"]
        self._served = [
            (method.upper(), path, one)
            for path, item in document["paths"].items()
            for method, one in item.items()
        ]

    def pieces(self) -> Iterator[str]:
        groups: dict[str, list[tuple[str, str, Json]]] = {}
        for served in self._served:
            groups.setdefault(served[2]["tags"][0], []).append(served)
        yield HEAD
        yield "<h1>The API of hiboss</h1>\n"
        yield from (f"<p>{_prose(part)}</p>\n" for part in openapi.INTRODUCTION.split("\n\n"))
        yield '<p>For programs: <a href="/openapi.json">/openapi.json</a>.</p>\n<nav><p>'
        yield " · ".join(f'<a href="#{escape(noun)}">{escape(noun)}</a>' for noun in sorted(groups))
        yield ' · <a href="#errors">errors</a></p></nav>\n<p>The examples need this first:</p>\n'
        url = f"http://127.0.0.1:{Settings().web_port}"
        yield f"<pre><code>{escape(START.format(url=url))}</code></pre>\n"
        for noun in sorted(groups):
            yield f'<section id="{escape(noun)}">\n<h2>{escape(noun)}</h2>\n'
            yield from self._routes(groups[noun])
            for method, path, one in sorted(groups[noun], key=lambda found: not found[1].startswith(PREFIX)):
                if path.startswith(PREFIX) or "x-operation" not in one:
                    yield from self._operation(method, path, one)
            yield "</section>\n"
        yield from self._meanings()
        yield "</main>\n</body>\n</html>\n"

    def _routes(self, group: list[tuple[str, str, Json]]) -> Iterator[str]:
        """Show the friendly routes of a noun, with the operation that each calls."""
        rows = [
            f"<tr><td><code>{method} {escape(path)}</code></td><td>{_link(one['x-operation'])}</td>"
            f"<td>{escape(', '.join(self._own_words(one)))}</td></tr>\n"
            for method, path, one in group
            if "x-operation" in one and not path.startswith(PREFIX)
        ]
        if rows:
            yield "<table>\n<tr><th>route</th><th>calls</th><th>parameters</th></tr>\n"
            yield from rows
            yield "</table>\n"

    def _own_words(self, one: Json) -> Iterator[str]:
        for param in one.get("parameters", ()):
            yield f"{param['name']} (header)" if param["in"] == "header" else param["name"]
        yield from self._body(one).get("properties", {})

    def _operation(self, method: str, path: str, one: Json) -> Iterator[str]:
        name = one.get("x-operation", f"{method} {path}")
        yield f'<details id="{escape(name)}">\n<summary><code>{escape(name)}</code> {_prose(one["summary"])}'
        yield "</summary>\n"
        if "x-level" in one:
            yield f"<p>Level: {one['x-level']}. Effect: {one['x-effect']}.</p>\n"
        yield f"<p><code>{method} {escape(path)}</code></p>\n"
        yield from self._params(one)
        yield from self._example(method, path, one)
        yield from self._errors(one)
        yield "</details>\n"

    def _params(self, one: Json) -> Iterator[str]:
        rows = [
            _row(param["name"], param.get("schema", {}), param["required"], param["description"], param["in"])
            for param in one.get("parameters", ())
        ]
        body = self._body(one)
        required = body.get("required", [])
        for name, schema in body.get("properties", {}).items():
            rows.append(_row(name, schema, name in required, schema.get("description", "")))
        if not rows:
            yield "<p>No parameters.</p>\n"
            return
        yield "<table>\n<tr><th>parameter</th><th>type</th><th>default</th><th>meaning</th></tr>\n"
        yield from rows
        yield "</table>\n"

    def _example(self, method: str, path: str, one: Json) -> Iterator[str]:
        words = ["curl", *(() if one.get("security") == [] else ("-H", "@header.txt"))]
        content = one.get("requestBody", {}).get("content", {}).get(JSON, {})
        shown = content.get("examples", {}).get("recorded", {}).get("value")
        if method == "POST" and shown:
            written = shlex.quote(json.dumps(shown, ensure_ascii=False))
            words += ["-H", f"'Content-Type: {JSON}'", "-d", written]
        elif method == "POST":
            words += ["-X", "POST"]
        command = f'{" ".join(words)} "$HIBOSS{path}"'
        yield f"<pre><code>{escape(command)}</code></pre>\n"
        answer = self._components["examples"].get(f"{one.get('x-operation')}.result")
        if answer is not None:
            text = json.dumps(answer["value"], indent=1, ensure_ascii=False)
            yield f"<pre><code>{escape(text)}</code></pre>\n"

    def _errors(self, one: Json) -> Iterator[str]:
        yield "<table>\n<tr><th>status</th><th>codes</th></tr>\n"
        for status, answer in one["responses"].items():
            if "$ref" in answer:
                codes = answer["$ref"].rpartition("/")[2].split("-")[1:]
                shown = " ".join(_link(f"error.{code}", code) for code in codes)
                yield f"<tr><td>{status}</td><td>{shown}</td></tr>\n"
        yield "</table>\n"

    def _meanings(self) -> Iterator[str]:
        """Show what each error says. What is in braces is a fact of the case."""
        yield '<section id="errors">\n<h2>Errors</h2>\n<dl>\n'
        for name, schema in self._components["schemas"].items():
            if name.startswith("error."):
                code = escape(name.removeprefix("error."))
                yield f'<dt id="{escape(name)}"><code>{code}</code></dt>'
                yield f"<dd>{_prose(schema['description'])}</dd>\n"
        yield "</dl>\n</section>\n"

    def _body(self, one: Json) -> Json:
        """Return the schema of the object that is the body."""
        schema: Json = one.get("requestBody", {}).get("content", {}).get(JSON, {}).get("schema", {})
        return self._components["schemas"][_named(schema)] if "$ref" in schema else schema


def _row(name: str, schema: Json, required: bool, meaning: str, place: str = "body") -> str:
    default = "<strong>required</strong>" if required else _default(schema.get("default"))
    where = "" if place == "body" else f" ({place})"
    return (
        f"<tr><td><code>{escape(name)}</code>{where}</td><td>{_type(schema)}</td><td>{default}</td>"
        f"<td>{_prose(meaning)}</td></tr>\n"
    )


def _default(value: Any) -> str:
    return "" if value in (None, "", []) else f"<code>{escape(json.dumps(value))}</code>"


def _type(schema: Json) -> str:
    """Return the type of a parameter in words."""
    if "$ref" in schema:
        return escape(_named(schema))
    if "anyOf" in schema:
        return " or ".join(_type(one) for one in schema["anyOf"] if one.get("type") != "null")
    if "enum" in schema or "const" in schema:
        words = schema.get("enum", [schema.get("const")])
        return " or ".join(f"<code>{escape(str(one))}</code>" for one in words)
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items', {}))}"
    kind = str(schema.get("type"))
    return "object" if kind == "object" else WORDS.get(kind, "anything")


def _named(schema: Json) -> str:
    return str(schema["$ref"]).rpartition("/")[2]


def _link(place: str, text: str | None = None) -> str:
    return f'<a href="#{escape(place)}"><code>{escape(text or place)}</code></a>'


def _prose(text: str) -> str:
    """Return text as HTML; what is between backticks is code."""
    parts = escape(text).split("`")
    if len(parts) % 2 == 0:  # one has no partner
        return "`".join(parts)
    return "".join(f"<code>{part}</code>" if place % 2 else part for place, part in enumerate(parts))
