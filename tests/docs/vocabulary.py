"""What a page may name: commands and flags, operations, settings, errors, columns, variables, files."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import re
import tempfile
from contextlib import closing
from functools import cache
from typing import Any

from pydantic import TypeAdapter

import hiboss.api.dispatch  # noqa: F401 - importing it declares every operation
from docs.makers import cli, contracts, settings, views
from hiboss.agents.providers import registry
from hiboss.api.operation import REGISTRY
from hiboss.api.policy import RIGHTS
from hiboss.channels import registry as adapters
from hiboss.core import errors
from hiboss.core.contracts import provider
from hiboss.core.events import TOPICS
from hiboss.core.metrics import METRICS
from hiboss.core.option_models import describe
from hiboss.core.paths import Home
from hiboss.core.settings import SECTIONS, TABLE
from hiboss.mcp import tools as mcp_tools
from hiboss.store.connection import connect
from hiboss.store.migrations import migrate

from .pages import ROOT

# Commands that also take the options of a provider or an adapter as flags.
TAKERS_OF_OPTIONS: dict[str, list[Any]] = {
    "hiboss agent register": list(registry.BUILT_IN.values()),
    "hiboss agent set": list(registry.BUILT_IN.values()),
    "hiboss agent bind": list(adapters.BUILT_IN.values()),
}
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
    for words, kinds in TAKERS_OF_OPTIONS.items():
        for kind in kinds:
            found[words] |= {option.flag: list(option.choices) for option in describe(kind.Settings)}
    return found


@cache
def codes() -> set[str]:
    return {cls.code for cls in errors.tree()}


@cache
def dotted() -> set[str]:
    """Operations, rights, topics of facts, settings, MCP tools, and the turn and the run of providers."""
    turn = {f"turn.{one.name}" for one in dataclasses.fields(provider.TurnInput)}
    run = {f"run.{name}" for name in vars(provider.LiveRun) if not name.startswith("_")}
    return {*REGISTRY, *RIGHTS, *TOPICS.values(), *map(str, TABLE), *turn, *run, *mcp_tools.DOTTED}


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
    """Every name with an underscore on a page: errors, parameters, answers, settings, columns, MCP tools."""
    found = codes() | {setting.key for setting in TABLE} | {*provider.KINDS, *vars(provider.Provider)}
    for operation in REGISTRY.values():
        found |= set(operation.param_names) | _fields(TypeAdapter(operation.result).json_schema())
    for view, columns in _views().items():
        found |= {view, *columns}
    return found | set(METRICS) | set(mcp_tools.TABLE) | _of_contracts()


def _of_contracts() -> set[str]:
    """Fields, functions and parameters in the contracts of adapters and providers."""
    nodes = [one for module in contracts.MODULES for one in ast.walk(ast.parse(inspect.getsource(module)))]
    fields = {
        one.target.id for one in nodes if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name)
    }
    functions = {one.name for one in nodes if isinstance(one, contracts.Function)}
    return fields | functions | {one.arg for one in nodes if isinstance(one, ast.arg)}


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
