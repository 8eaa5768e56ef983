"""Limits of what a request may ask for: the size of a page and the length of a wait."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import TypeVar

import orjson

from ..core import clock
from ..core.errors import InvalidParams
from .context import Context

LONGEST_WAIT_MS = 3_600_000
T = TypeVar("T")


def page_size(context: Context, given: int | None, name: str = "page_size") -> int:
    """Return how many records to answer with; raises InvalidParams beyond the limit."""
    limit = context.settings.page_size_limit
    if given is None:
        return context.settings.page_size
    if not 1 <= given <= limit:
        raise InvalidParams(detail=f"{name} (-n) is {given}; it can be 1 to {limit}")
    return given


def fitting(context: Context, found: Iterable[T]) -> tuple[list[T], bool]:
    """Return the first of these records, as many as fit into a page, and whether there are more.

    At least one; those after the page are not asked for.
    """
    shown: list[T] = []
    left = context.settings.page_bytes
    for one in found:
        left -= len(orjson.dumps(one))
        if shown and left < 0:
            return shown, True
        shown.append(one)
    return shown, False


def fitting_text(text: str, most_bytes: int) -> str:
    """Return a text, or as much of its beginning as has at most so many bytes in JSON."""
    left, end, step = most_bytes - 2, 0, 65_536  # 2: the quotes
    while step and end < len(text):
        size = len(orjson.dumps(text[end : end + step])) - 2
        if size <= left:
            left, end = left - size, end + step
        else:
            step //= 2
    return text[:end]


def deadline(timeout: str) -> float:
    """Return when a wait of this length ends, in seconds of the event loop's clock."""
    return asyncio.get_running_loop().time() + clock.duration(timeout, most=LONGEST_WAIT_MS) / 1000
