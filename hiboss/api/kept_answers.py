"""Answers as bytes, kept until the store changes: who looks again is answered without reading the rows again.

Only for what depends on nothing but the store and the key: not on the clock, nor on who is here now.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TypeVar, cast

import orjson

from ..store.connection import KEPT_BYTES, Connection, Reader

T = TypeVar("T")


def answer(connection: Connection, key: Hashable, make: Callable[[], T]) -> T:
    """Return what `make` returns, as the bytes of an answer, which only a door can read.

    Call it inside a read. `key` says all that `make` depends on, beside what is stored.
    """
    kept = connection.kept() if isinstance(connection, Reader) else {}
    found: T | None = kept.get(key)
    if found is None:
        data = orjson.dumps(make())
        found = cast(T, orjson.Fragment(data))
        if len(data) <= KEPT_BYTES:
            kept[key] = found
    return found
