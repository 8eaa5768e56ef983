"""Every topic of a fact is in a test that sees it come."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from hiboss.core.events import TOPICS

from . import sources

_WAITING_FOR = ("next", "hear")  # calls that return only when such a fact has come


def _seen(test: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[str]:
    """Yield the topics that a test asserts, or waits for."""
    for node in ast.walk(test):
        waits = isinstance(node, ast.Call) and getattr(node.func, "attr", None) in _WAITING_FOR
        if waits or isinstance(node, ast.Assert):
            yield from (
                one.value
                for one in ast.walk(node)
                if isinstance(one, ast.Constant) and isinstance(one.value, str)
            )


def test_every_topic_is_seen_by_a_test() -> None:
    missing = set(TOPICS.values())
    for _, text in sources.files("tests"):
        if any(topic in text for topic in missing):  # to parse them all takes seconds
            for node in ast.walk(ast.parse(text)):
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
                    missing -= set(_seen(node))
    assert missing == set()
