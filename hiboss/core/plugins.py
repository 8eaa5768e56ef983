"""Adapters and providers from Python modules that are named in the settings: load them, survive them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from .bounded_calls import is_our_cancellation
from .errors import BadSetting


def load(module: str, attribute: str, key: str, ours: dict[str, Any], setting: str) -> dict[str, Any]:
    """Return the classes that a module lists in `attribute`, by their `key`.

    `ours` are the built-in classes: a name that is already there is refused.
    """
    try:
        found = {getattr(one, key): one for one in getattr(import_module(module), attribute)}
    except Exception as error:  # foreign code: it may fail in any way
        raise BadSetting(
            where=setting,
            value=f"{module} ({type(error).__name__}: {error})"[:500],
            wants=f"modules that can be imported and have {attribute}, a list of classes",
        ) from error
    if taken := sorted(found.keys() & ours.keys()):
        wants = f"another {key} than {', '.join(taken)}, which is built in"
        raise BadSetting(where=setting, value=module, wants=wants)
    return found


@contextmanager
def no_exit() -> Iterator[None]:
    """Make an error of what code of a plugin raises to end its program or its task: it would end ours."""
    try:
        yield
    except BaseException as error:
        if isinstance(error, Exception) or is_our_cancellation(error):
            raise
        raise RuntimeError(f"it raised {type(error).__name__}") from error
