"""What a page may name: commands and flags, operations, settings, errors, columns, variables, files."""

from __future__ import annotations

import re
import tempfile
from contextlib import closing
from functools import cache
from typing import Any

from pydantic import TypeAdapter

import hiboss.api.dispatch  # noqa: F401 - importing it declares every operation
from docs.makers import cli, settings, views
from hiboss.api.operation import REGISTRY
from hiboss.api.policy import RIGHTS
from hiboss.core import errors
from hiboss.core.paths import Home
from hiboss.core.settings import SECTIONS, TABLE
from hiboss.store.connection import connect
from hiboss.store.migrations import migrate

from .pages import ROOT

_VARIABLE = re.compile(r"\bHIBOSS_[A-Z][A-Z0-9_]*\b")


@cache
def flags() -> dict[str, dict[str, list[str]]]:
    """Every command, with the flags it takes and the words that may follow each, where these are given."""
    found = {}
    for words, command, _ in cli.commands():
        names = {
            name: [str(choice) for choice in getattr(one.type, "choices", [])]
            for one in cli.options(command)
            for name in (*one.opts, *one.secondary_opts)
        }
        found[words] = names | {"--help": [], "-h": []} | {name: [] for name in cli.old_flags(command)}
    return found


@cache
def codes() -> set[str]:
    return {cls.code for cls in errors.tree()}


@cache
def dotted() -> set[str]:
    """Operations, rights of a policy, and settings."""
    return {*REGISTRY, *RIGHTS, *map(str, TABLE)}


@cache
def dotted_beginnings() -> set[str]:
    return {name.partition(".")[0] for name in REGISTRY} | set(SECTIONS)


@cache
def defaults() -> dict[str, str]:
    """Every setting's default, as a person writes it."""
    return {str(setting): settings.default(setting) for setting in TABLE}


@cache
def variables() -> set[str]:
    """Environment variables that the program really reads."""
    sources = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "hiboss").rglob("*.py"))
    return {setting.variable for setting in TABLE} | set(_VARIABLE.findall(sources))


@cache
def names() -> set[str]:
    """Every name with an underscore that a page may use: errors, parameters, answers, settings, columns."""
    found = codes() | {setting.key for setting in TABLE}
    for operation in REGISTRY.values():
        found |= set(operation.param_names) | _fields(TypeAdapter(operation.result).json_schema())
    for view, columns in _views().items():
        found |= {view, *columns}
    return found


def _fields(schema: Any) -> set[str]:
    """The names of a JSON schema's properties, at any depth."""
    if isinstance(schema, list):
        return set().union(*map(_fields, schema))
    if not isinstance(schema, dict):
        return set()
    return set(schema.get("properties", {})).union(*map(_fields, schema.values()))


def _views() -> dict[str, list[str]]:
    with tempfile.TemporaryDirectory() as directory:
        home = Home(f"{directory}/home")
        home.create()
        with closing(connect(home, wait_seconds=5)) as connection:
            migrate(connection, home)
            return views.columns(connection)
