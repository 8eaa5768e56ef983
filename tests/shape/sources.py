"""Checkers over the text of one file: each takes a path and its source and returns what is wrong.

A problem is a line like `hiboss/routing/router.py:12: …`. `broad_excepts` and `late_imports` return
places instead, to be held against a list of the places where there is a reason for one.
"""

from __future__ import annotations

import ast
import gc
import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FILE_LINES = 500
FUNCTION_LINES = 60

OUTPUT = "hiboss/cli/output.py"
CLOCK = "hiboss/core/clock.py"
STORE = "hiboss/store/"
PACKAGE = "hiboss/"

_PRINTERS = {
    "print",
    *(f"{library}.{name}" for library in ("typer", "click") for name in ("echo", "secho", "echo_via_pager")),
    "rich.print",
}
_CLOCKS = {
    "datetime.datetime.now",
    "datetime.datetime.utcnow",
    "datetime.datetime.today",
    "datetime.date.today",
    "time.time",
    "time.time_ns",
    "time.localtime",
    "time.gmtime",
    "time.ctime",
}
_BROAD = {"Exception", "BaseException", "builtins.Exception", "builtins.BaseException"}
_IMPORTERS = {"importlib.import_module", "__import__"}
_SQL = re.compile(
    r"\bSELECT\b.+\bFROM\b|\bINSERT\s+(OR\s+\w+\s+)?INTO\b|\bREPLACE\s+INTO\b|\bUPDATE\b.+\bSET\b"
    r"|\bDELETE\s+FROM\b|\b(CREATE|DROP|ALTER)\s+(TEMP\s+|UNIQUE\s+|VIRTUAL\s+)?(TABLE|INDEX|VIEW|TRIGGER)\b"
    r"|\bPRAGMA\s+\w|\bBEGIN\s+(IMMEDIATE|EXCLUSIVE|DEFERRED)\b",
    re.DOTALL,
)
# In lower case these are English too, so only what begins like a statement counts.
_SQL_IN_LOWER_CASE = re.compile(
    r"\s*(select\s+[\w.*,\s()]+\s+from\s+\w+(\s+where\b.*)?|insert\s+into\s+\w+\s*[(]|update\s+\w+\s+set\s+\w+\s*="
    r"|delete\s+from\s+\w+\s+where\b|create\s+table\b|pragma\s+\w+)",
    re.DOTALL,
)
_SQL_CLOCK = re.compile(
    r"\b(date|time|datetime|julianday|unixepoch|strftime)\s*\(([^()]*'now'|\s*\))|\bCURRENT_(TIMESTAMP|DATE|TIME)\b",
    re.IGNORECASE,
)


def files(*below: str, ending: str = "py") -> list[tuple[str, str]]:
    """Path and text of every file below these directories, in a fixed order."""
    found = sorted(path for top in below for path in (ROOT / top).rglob(f"*.{ending}"))
    return [(path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")) for path in found]


# --- the checkers --------------------------------------------------------------------


Check = Callable[[str, str], list[str]]


def found(*below: str) -> dict[Check, list[str]]:
    """Return what each checker finds below these directories. Each file is read and parsed once, for all of them."""
    problems: dict[Check, list[str]] = {check: [] for check in CHECKERS}
    everything = files(*below)
    assert everything, "nothing was looked at"
    gc.disable()  # trees have no cycles, and to look for some takes a third of the time
    try:
        for path, source in everything:
            for check in CHECKERS if path.startswith(PACKAGE) else EVERYWHERE:
                problems[check] += check(path, source)
    finally:
        gc.enable()
    return problems


@lru_cache(maxsize=1)
def _tree(source: str) -> ast.Module:
    """Return a source as a tree. One is kept: those of all files take much memory."""
    return ast.parse(source)


@lru_cache(maxsize=1)
def _nodes(tree: ast.AST) -> list[ast.AST]:
    """Return every node, a parent before its children."""
    return [node for _, node in _scoped(tree)]


def long_files(path: str, source: str) -> list[str]:
    lines = len(source.splitlines())
    return [f"{path}:{lines}: the file has {lines} lines"] if lines > FILE_LINES else []


def long_functions(path: str, source: str) -> list[str]:
    return [
        f"{path}:{node.lineno}: {name} has {size} lines"
        for name, node in _functions(_tree(source))
        if (size := (node.end_lineno or node.lineno) - node.lineno + 1) > FUNCTION_LINES
    ]


def missing_docstrings(path: str, source: str) -> list[str]:
    docstring = ast.get_docstring(_tree(source))
    return [] if docstring and docstring.strip() else [f"{path}:1: the module has no docstring"]


def stray_sql(path: str, source: str) -> list[str]:
    if path.startswith(STORE):
        return []
    tree = _tree(source)
    problems = [
        f"{path}:{line}: SQL: {' '.join(text.split())[:60]}"
        for line, text in _texts(tree)
        if _SQL.search(text) or _SQL_IN_LOWER_CASE.match(text)
    ]
    for node in _nodes(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and _executes(node):
            problems.append(f"{path}:{node.lineno}: a call of .{node.func.attr}")
    return problems


def _executes(call: ast.Call) -> bool:
    verb = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    text = isinstance(call.args[0], (ast.Constant, ast.JoinedStr)) if call.args else False
    return verb in ("executemany", "executescript") or (verb == "execute" and text)


def stray_prints(path: str, source: str) -> list[str]:
    if path == OUTPUT:
        return []
    return [f"{path}:{line}: {name}" for line, name in _references(_tree(source)) if name in _PRINTERS]


def stray_clocks(path: str, source: str) -> list[str]:
    """Whoever asks for the time anywhere but in clock.py; SQLite's own clock nowhere at all."""
    tree = _tree(source)
    problems = [
        f"{path}:{line}: SQL asks for the time" for line, text in _texts(tree) if _SQL_CLOCK.search(text)
    ]
    if path != CLOCK:
        problems += [f"{path}:{line}: {name}" for line, name in _references(tree) if name in _CLOCKS]
    return problems


def sql_clocks(path: str, script: str) -> list[str]:
    """The same for a file of SQL."""
    lines = enumerate(script.splitlines(), 1)
    return [f"{path}:{n}: {text.strip()}" for n, text in lines if _SQL_CLOCK.search(text.partition("--")[0])]


def broad_excepts(path: str, source: str) -> list[str]:
    """Every place that catches everything, as `path::function`."""
    tree = _tree(source)
    names = _origins(tree)
    found = []
    for scope, node in _scoped(tree):
        if isinstance(node, ast.ExceptHandler):
            caught = node.type
        elif isinstance(node, ast.Call) and _dotted(node.func, names) == "contextlib.suppress":
            caught = ast.Tuple(elts=node.args)
        else:
            continue
        members = caught.elts if isinstance(caught, ast.Tuple) else [caught]
        if any(one is None or _dotted(one, names) in _BROAD for one in members):
            found.append(f"{path}::{scope}")
    return found


def late_imports(path: str, source: str) -> list[str]:
    """Every import inside a function, as `path::function module`."""
    tree = _tree(source)
    names = _origins(tree)
    found = []
    for scope, node in _scoped(tree):
        if not scope:
            continue
        if isinstance(node, ast.Import):
            found += [f"{path}::{scope} {alias.name}" for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            found.append(f"{path}::{scope} {'.' * node.level}{node.module or ''}")
        elif isinstance(node, ast.Call) and _dotted(node.func, names) in _IMPORTERS:
            found.append(f"{path}::{scope} {_dotted(node.func, names)}")
    return found


def stray_errors(path: str, source: str) -> list[str]:
    """Classes below ours in the error tree that are not declared in core/errors, as `path::class`."""
    if path.startswith("hiboss/core/errors/"):
        return []
    tree = _tree(source)
    ours = {name for name, origin in _origins(tree).items() if origin.split(".")[-2:-1] == ["errors"]}
    found = []
    for node in _nodes(tree):
        if isinstance(node, ast.ClassDef):
            bases = {(_dotted(base, {}) or "").split(".")[0] for base in node.bases}
            if bases & (ours | {"errors"}):
                ours.add(node.name)
                found.append(f"{path}::{node.name}")
    return found


EVERYWHERE: tuple[Check, ...] = (long_files, long_functions, missing_docstrings)
CHECKERS: tuple[Check, ...] = (
    *EVERYWHERE,
    stray_sql,
    stray_prints,
    stray_clocks,
    broad_excepts,
    late_imports,
    stray_errors,
)


# --- what they are made of -----------------------------------------------------------


def _functions(tree: ast.AST) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    for scope, node in _walk(tree, _statements):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield f"{scope}.{node.name}".lstrip("."), node


def _statements(parent: ast.AST) -> Iterator[ast.AST]:
    """The statements right within one: a third of the work where expressions do not matter."""
    for field in ("body", "orelse", "finalbody", "handlers", "cases"):
        yield from getattr(parent, field, ())


@lru_cache(maxsize=1)
def _scoped(tree: ast.AST) -> list[tuple[str, ast.AST]]:
    """Every node with the name of the function or class it stands in; '' at the module's level."""
    return list(_walk(tree, _children))


def _children(parent: ast.AST) -> Iterator[ast.AST]:
    """As ast.iter_child_nodes, without the contexts of names (load, store): no checker needs them."""
    for field in parent._fields:
        value = getattr(parent, field, None)
        if isinstance(value, list):
            yield from (one for one in value if isinstance(one, ast.AST))
        elif isinstance(value, ast.AST) and field != "ctx":
            yield value


def _walk(tree: ast.AST, children: Callable[[ast.AST], Iterator[ast.AST]]) -> Iterator[tuple[str, ast.AST]]:
    within = [("", tree)]
    while within:
        scope, parent = within.pop()
        for node in children(parent):
            yield scope, node
            named = isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
            within.append((f"{scope}.{node.name}".lstrip(".") if named else scope, node))


def _texts(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Every string of a program that is no docstring; an f-string with `?` for what is filled in."""
    passed: set[int] = set()
    for node in _nodes(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            passed.add(id(node.value))
        elif isinstance(node, ast.JoinedStr):
            parts = [part.value if isinstance(part, ast.Constant) else "?" for part in node.values]
            passed.update(id(part) for part in node.values)
            yield node.lineno, "".join(map(str, parts))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in passed:
            yield node.lineno, node.value


@lru_cache(maxsize=1)
def _origins(tree: ast.AST) -> dict[str, str]:
    """What the imported names of a file stand for: `dt` is `datetime.datetime`."""
    names: dict[str, str] = {}
    for node in _nodes(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                bound = alias.asname or alias.name.partition(".")[0]
                names[bound] = alias.name if alias.asname else bound
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                names[alias.asname or alias.name] = f"{'.' * node.level}{node.module or ''}.{alias.name}"
    return names


def _dotted(node: ast.AST | None, names: dict[str, str]) -> str | None:
    """`datetime.datetime.now` for `dt.now`; None for what is no plain name."""
    if isinstance(node, ast.Attribute):
        before = _dotted(node.value, names)
        return None if before is None else f"{before}.{node.attr}"
    return names.get(node.id, node.id) if isinstance(node, ast.Name) else None


def _references(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Every use of an imported name, and of `print`, by what it stands for."""
    names = _origins(tree)
    for node in _nodes(tree):
        name = _dotted(node, names)
        if name and (name == "print" or _root(node) in names):
            yield node.lineno, name


def _root(node: ast.AST) -> str:
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""
