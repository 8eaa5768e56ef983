"""Waiting for an event in a test: poll a condition with a limit, and say what was there instead when the limit is over."""

from __future__ import annotations

import ast
import asyncio
import inspect
import textwrap
import time
from collections.abc import Callable
from typing import Any

from _pytest.assertion.rewrite import rewrite_asserts

SECONDS = 30.0  # a limit for what must happen, so that a test ends; no test is about this time


def wait_until(condition: Callable[[], Any], seconds: float = SECONDS) -> Any:
    """Poll until the condition is true and return its value; fail with an explanation when it does not become true."""
    begin = time.monotonic()
    while not (value := condition()):
        waited = time.monotonic() - begin
        if waited > seconds:
            raise AssertionError(unmet(condition, value, seconds))
        time.sleep(pause(waited))
    return value


async def happens(condition: Callable[[], Any], seconds: float = SECONDS) -> Any:
    """The same in a coroutine. The limit is on the clock of the event loop, which runs also while a test has frozen the time."""
    clock = asyncio.get_running_loop().time
    begin = clock()
    while not (value := condition()):
        waited = clock() - begin
        if waited > seconds:
            raise AssertionError(unmet(condition, value, seconds))
        await asyncio.sleep(pause(waited))
    return value


def pause(waited: float) -> float:
    """Return when to look again: a look is a call or a query, and the others need the processor too."""
    return min(max(0.005, waited / 10), 0.05)


def unmet(condition: Callable[[], Any], value: Any, seconds: float) -> str:
    """Return what was awaited, and what was there instead: as pytest explains a failed assert."""
    return (
        f"waited {seconds:g} s for: {_source(condition)}\nthere was instead: {_explained(condition, value)}"
    )


def _source(condition: Callable[[], Any]) -> str:
    node = _expression(condition)
    return ast.unparse(node) if node else getattr(condition, "__qualname__", repr(condition))


def _expression(condition: Callable[[], Any]) -> ast.expr | None:
    """Return the expression of a lambda; None for any other callable."""
    code = getattr(condition, "__code__", None)
    if code is None or code.co_name != "<lambda>":
        return None
    try:
        lines, _ = inspect.findsource(code)
    except OSError:
        return None
    # The lambda may stand anywhere in a statement: the tree of the whole file knows its place.
    start = code.co_firstlineno
    for node in ast.walk(ast.parse("".join(lines))):
        if isinstance(node, ast.Lambda) and node.lineno == start and _same(node, code):
            return node.body
    return None


def _same(node: ast.Lambda, code: Any) -> bool:
    places = [place for place in code.co_positions() if place[2] is not None and place[0] is not None]
    inside = [place for place in places if (place[0], place[2]) >= (node.body.lineno, node.body.col_offset)]
    last = (node.body.end_lineno or 0, node.body.end_col_offset or 0)
    return bool(inside) and all((line or 0, column or 0) <= last for line, _, column, _ in inside)


def _explained(condition: Callable[[], Any], value: Any) -> str:
    """Evaluate the expression once more, as an assert that pytest has rewritten."""
    node = _expression(condition)
    if node is None:
        return repr(value)
    closed = dict(zip(condition.__code__.co_freevars, condition.__closure__ or (), strict=True))
    given = {name: value.default for name, value in inspect.signature(condition).parameters.items()}
    names = ", ".join([*closed, *given])
    source = f"def check({names}):\n" + textwrap.indent(f"assert ({ast.unparse(node)})", "    ")
    tree = ast.parse(source)
    rewrite_asserts(tree, source.encode())
    scope = dict(condition.__globals__)
    exec(compile(tree, "<condition>", "exec"), scope)
    try:
        scope["check"](*(cell.cell_contents for cell in closed.values()), *given.values())
    except AssertionError as error:
        return str(error).removeprefix("assert ")
    except Exception as error:  # noqa: BLE001 # the explanation must not hide the failure
        return f"{value!r}; looked at once more: {error!r}"
    return f"{value!r}; it came true after the limit"
