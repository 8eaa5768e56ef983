"""docs/reference/contracts.md, from the contracts: their docstrings, and the comment of each field."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from types import ModuleType
from typing import NamedTuple

from hiboss.core.contracts import adapter, failures, inbound, provider

from .markdown import code, page, table

INTRO = """
What an [adapter](../adapters.md) and a [provider](../providers.md) must do, and every value that they get,
return or raise. A field without a default must be given.
"""
MODULES = (adapter, inbound, provider, failures)
Function = ast.FunctionDef | ast.AsyncFunctionDef
LEFT_OUT = {"Failure"}  # how hiboss itself stores a failure


class Field(NamedTuple):
    """One field of a class."""

    name: str
    type: str
    default: str  # as in the source; empty: it must be given
    says: str


def make() -> str:
    parts = [part for module in MODULES for part in _module(module)]
    return page("Contracts", INTRO, *parts)


def classes(module: ModuleType) -> dict[str, ast.ClassDef]:
    """The public classes of a contract, in their order."""
    body = ast.parse(inspect.getsource(module)).body
    found = {one.name: one for one in body if isinstance(one, ast.ClassDef)}
    return {name: one for name, one in found.items() if not name.startswith("_") and name not in LEFT_OUT}


def fields(module: ModuleType, cls: ast.ClassDef) -> Iterator[Field]:
    """The fields of a class, each with its comment: on its line, or else in the lines above it."""
    lines = inspect.getsource(module).splitlines()
    for one in cls.body:
        if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name):
            default = "" if one.value is None else ast.unparse(one.value)
            says = _beside(lines[(one.end_lineno or one.lineno) - 1]) or _above(lines, one.lineno - 1)
            yield Field(one.target.id, ast.unparse(one.annotation), default, says)


def _beside(line: str) -> str:
    return line.partition("  # ")[2].strip()


def _above(lines: list[str], index: int) -> str:
    """The comment that ends right above a line."""
    found: list[str] = []
    while lines[index - 1 - len(found)].strip().startswith("# "):
        found.insert(0, lines[index - 1 - len(found)].strip().removeprefix("# "))
    return " ".join(found)


def _module(module: ModuleType) -> Iterator[str]:
    yield f"## {module.__name__}\n\n{inspect.getdoc(module)}"
    for name, cls in classes(module).items():
        parts = (f"### {name}", _text(cls), _bases(cls), _fields(module, cls), _methods(cls))
        yield "\n\n".join(filter(None, parts))
    for one in ast.parse(inspect.getsource(module)).body:
        if isinstance(one, ast.FunctionDef):
            yield f"### {one.name}\n\n{code(_signature(one))}\n\n{_text(one)}"


def _fields(module: ModuleType, cls: ast.ClassDef) -> str:
    rows = [
        (code(one.name), code(one.type), code(one.default) if one.default else "", one.says)
        for one in fields(module, cls)
    ]
    return table(("field", "type", "default", "meaning"), rows) if rows else ""


def _methods(cls: ast.ClassDef) -> str:
    methods = [one for one in cls.body if isinstance(one, Function)]
    return "\n\n".join(f"{code(_signature(one, cls.name))}\n\n{_text(one)}".strip() for one in methods)


def _signature(method: Function, owner: str = "") -> str:
    """The method as one calls it: without `self`, and a property without brackets."""
    word = "async " if isinstance(method, ast.AsyncFunctionDef) else ""
    returns = f" -> {ast.unparse(method.returns)}" if method.returns else ""
    if any(ast.unparse(one) == "property" for one in method.decorator_list):
        return f"{method.name}{returns}"
    arguments = re.sub(r"^(self|cls)(, )?", "", ast.unparse(method.args)).replace("=", " = ")
    if method.name == "__init__":
        return f"{owner}({arguments})"
    name = owner.lower() if method.name == "__call__" else method.name
    return f"{word}{name}({arguments}){returns}"


def _text(node: ast.ClassDef | Function) -> str:
    return ast.get_docstring(node) or ""


def _bases(cls: ast.ClassDef) -> str:
    """What a class of errors is a special case of."""
    bases = [ast.unparse(one) for one in cls.bases]
    return f"A special case of {bases[0]}." if bases and bases[0].endswith("Error") else ""
