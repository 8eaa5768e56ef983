"""A long story that is told once for all workers of a run of pytest: the first tells it, the others read it."""

from __future__ import annotations

import fcntl
import pickle
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest

Told = TypeVar("Told")


def told_once(factory: pytest.TempPathFactory, name: str, tell: Callable[[Path], Told]) -> Told:
    """Return what was told in a directory that all workers share; who comes meanwhile waits.

    A story that fails is told again by the next worker, in a directory of its own.
    """
    own = factory.getbasetemp()
    place = (own.parent if own.name.startswith("popen-") else own) / name
    place.mkdir(exist_ok=True)
    kept = place / "kept"
    with (place / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not kept.exists():
            told = tell(Path(tempfile.mkdtemp(prefix="", dir=place)))
            fresh = place / "fresh"
            fresh.write_bytes(pickle.dumps(told))
            fresh.rename(kept)
        found: Told = pickle.loads(kept.read_bytes())
    return found
