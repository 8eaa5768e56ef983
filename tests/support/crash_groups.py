"""Crash points of the writer that count only the groups in which a certain operation is.

A daemon also writes for itself: an adapter starts, turns are looked for, the heartbeat comes. When it does so is not
known, so the number of a pass says nothing about what was written. A test that kills a daemon at a point of the writer
(BEFORE_WRITE, IN_GROUP, AFTER_COMMIT) names the function that submits the operation:

    daemon.dies_at(AFTER_COMMIT, of=leases.claim)
    daemon.start(HIBOSS_CRASH_AT=f"{AFTER_COMMIT}:3", **groups_of(leases.claim))
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from functools import partial
from types import ModuleType
from typing import Any

Submits = Callable[..., Any] | type | ModuleType
VARIABLE = "CRASH_GROUPS_IN_TESTS"  # of forked daemons


def groups_of(*submits: Submits) -> dict[str, str]:
    """Return the variable with which a daemon counts only passes with an operation of these functions."""
    return {VARIABLE: " ".join(_path(one) for one in submits)}


def count_only(wanted: list[str]) -> None:
    """Let this process pass the crash points of its writer only in groups with an operation of these."""
    group_commit = importlib.import_module("hiboss.store.group_commit")
    commit, passed = group_commit.Writer._commit_group, group_commit.crashpoint
    counts = False  # whether the group that the writer's thread works on is one of those

    def commit_group(writer: Any, group: list[tuple[Any, Any]]) -> Any:
        nonlocal counts
        counts = any(_is_of(name, wanted) for operation, _ in group for name in _names(operation, set()))
        return commit(writer, group)

    def crashpoint(name: str) -> None:
        if counts:
            passed(name)

    group_commit.Writer._commit_group = commit_group
    group_commit.__dict__["crashpoint"] = crashpoint


def _path(one: Any) -> str:
    return one.__name__ if isinstance(one, ModuleType) else f"{one.__module__}.{one.__qualname__}"


def _is_of(name: str, wanted: list[str]) -> bool:
    return any(name == one or name.startswith(f"{one}.") for one in wanted)


def _names(operation: Any, seen: set[int]) -> Iterator[str]:
    """Return the path of a function and of all that it closes over: an operation is wrapped on its way to the writer."""
    if id(operation) in seen or not callable(operation):
        return
    seen.add(id(operation))
    if isinstance(operation, partial):
        for one in (operation.func, *operation.args, *operation.keywords.values()):
            yield from _names(one, seen)
    elif hasattr(operation, "__qualname__"):
        yield _path(operation)
        for cell in getattr(operation, "__closure__", None) or ():
            yield from _names(cell.cell_contents, seen)
