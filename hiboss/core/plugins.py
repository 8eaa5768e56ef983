"""Adapters and providers from Python modules that are named in the settings: load them, survive them."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from .address import NAME_LIMIT, PLUGIN_NAME
from .bounded_calls import is_our_cancellation
from .errors import BadSetting


def load(module: str, attribute: str, key: str, known: dict[str, Any], setting: str) -> dict[str, Any]:
    """Return the classes that a module lists in `attribute`, by their `key`.

    `known` are the classes so far: a name that is already there is refused.
    """
    try:
        with no_exit():
            listed = [(getattr(one, key), one) for one in getattr(import_module(module), attribute)]
            names = [_name(name, key) for name, _ in listed]
    except Exception as error:  # foreign code: it may fail in any way
        raise BadSetting(
            where=setting,
            value=f"{module} ({type(error).__name__}: {error})"[:500],
            wants=f"modules that can be imported and have {attribute}, a list of classes",
        ) from error
    taken = sorted({name for name in names if name in known or names.count(name) > 1})
    if taken:
        wants = f"a module whose classes have names of their own; there is already another {key} {taken[0]}"
        raise BadSetting(where=setting, value=module, wants=wants)
    return dict(listed)


def _name(given: object, key: str) -> str:
    """Return the name of a class, if it can be written in a command and an address."""
    if isinstance(given, str) and len(given) <= NAME_LIMIT and PLUGIN_NAME.fullmatch(given):
        return given
    raise ValueError(
        f"{key} is {given!r:.100}, but it must be lower case letters and digits, with single dashes between"
    )


def method_mistake(
    kind: type, name: str, *arguments: str, coroutine: bool = True, of_class: bool = False
) -> str:
    """Return what is wrong with a method of a plugin's class, for its author; empty if nothing is.

    It must take these arguments as they are given: by position, or by name for one that ends with `=`.
    """
    method = getattr(kind, name, None)
    shape = ", ".join(["cls" if of_class else "self", *(one.rstrip("=") for one in arguments)])
    wanted = f"{'@classmethod ' if of_class else ''}{'async ' if coroutine else ''}def {name}({shape})"
    if not callable(method):
        return f"it needs the method {name}: {wanted}"
    if coroutine and not inspect.iscoroutinefunction(inspect.unwrap(method)):
        return f"{name} must be async: {wanted}"
    given = [None for one in arguments if not one.endswith("=")]
    try:
        bound = () if inspect.ismethod(method) else (None,)  # a class method has its first argument already
        inspect.signature(method).bind(
            *bound, *given, **{one[:-1]: None for one in arguments if one.endswith("=")}
        )
    except TypeError as error:
        return f"{name} cannot be called: {error}; it must be {wanted}"
    return ""


@contextmanager
def no_exit() -> Iterator[None]:
    """Make an error of what code of a plugin raises to end its program or its task: it would end ours."""
    try:
        yield
    except BaseException as error:
        if isinstance(error, Exception) or is_our_cancellation(error):
            raise
        raise RuntimeError(f"it raised {type(error).__name__}") from error
