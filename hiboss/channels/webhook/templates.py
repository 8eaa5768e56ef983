"""Templates: a text with fields of a JSON document in it, like `{repository.name} was pushed`.

`{a.b.0}` is the field b of a, and the first of its list. `{{` and `}}` are braces. Nothing is computed: what
is in braces is a name and no code, and what it stands for is not read again. A field that is not there
stays visible as it is written.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

LONGEST = 10_000  # characters of a template
MOST_FIELDS = 200
_PART = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")
_NAME = re.compile(r"@?[^{}.\s@][^{}.]*(\.[^{}.]+)*")


def check(template: str, special: frozenset[str]) -> str:
    """Return a template that can be used; raise ValueError if not. `special`: names that begin with @."""
    if len(template) > LONGEST:
        raise ValueError(f"a template has at most {LONGEST} characters")
    fields = 0
    for found in _PART.finditer(template):
        name = found[1]
        if found[0] in ("{", "}"):
            raise ValueError(f"a single {found[0]} at character {found.start() + 1}: write {found[0] * 2}")
        if name is None:
            continue
        fields += 1
        if not _NAME.fullmatch(name):
            raise ValueError(f'"{name[:40]}" in braces names no field; write one like {{repository.name}}')
        if name.startswith("@") and name not in special:
            raise ValueError(f"there is no field {name[:40]}; there are {', '.join(sorted(special))}")
    if fields > MOST_FIELDS:
        raise ValueError(f"a template has at most {MOST_FIELDS} fields")
    return template


def fill(template: str, document: Any, special: Mapping[str, str], most: int) -> str:
    """Return the text with its fields filled in: `most` characters and a few, if it is longer."""
    found: list[str] = []
    size = 0
    for piece in _pieces(template, document, special):
        found.append(piece[: most + 1 - size])
        size += len(found[-1])
        if size > most:
            break
    return "".join(found)


def _pieces(template: str, document: Any, special: Mapping[str, str]) -> Iterator[str]:
    at = 0
    for found in _PART.finditer(template):
        yield template[at : found.start()]
        at = found.end()
        if found[1] is None:
            yield found[0][0]
        elif found[1].startswith("@"):
            yield special.get(found[1], found[0])
        else:
            yield _value(document, found[1].split("."), found[0])
    yield template[at:]


def _value(document: Any, path: list[str], written: str) -> str:
    """Return what is at a path of a document; as it is written, if there is nothing."""
    for part in path:
        if isinstance(document, dict) and part in document:
            document = document[part]
        elif isinstance(document, list) and part.isascii() and part.isdigit() and len(part) < 10:
            if int(part) >= len(document):
                return written
            document = document[int(part)]
        else:
            return written
    if isinstance(document, str):
        return document
    try:
        return json.dumps(document, ensure_ascii=False)
    except RecursionError:
        return written
