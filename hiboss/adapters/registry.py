"""The kinds of adapters there are: ours, and those of modules named in `adapters.modules`."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

from ..errors import BadSetting, UnknownAdapter, nearest
from .folder import FolderAdapter

OURS: dict[str, Any] = {FolderAdapter.type: FolderAdapter}


class Registry:
    def __init__(self, modules: Sequence[str]) -> None:
        self.kinds = dict(OURS)
        for name in modules:
            self.kinds |= _load(name)

    def kind(self, name: str) -> Any:
        """The adapter class of this type."""
        if name not in self.kinds:
            known = sorted(self.kinds)
            raise UnknownAdapter(name=name[:60], hint=nearest(name, known), known=", ".join(known))
        return self.kinds[name]


def _load(module: str) -> dict[str, Any]:
    try:
        found = {adapter.type: adapter for adapter in import_module(module).ADAPTERS}
    except Exception as error:  # somebody's module: it may fail in any way
        raise BadSetting(
            where="adapters.modules",
            value=f"{module} ({type(error).__name__}: {error})"[:500],
            wants="modules that can be imported and have ADAPTERS, a list of adapter classes",
        ) from error
    if taken := sorted(found.keys() & OURS.keys()):
        wants = f"another type than {', '.join(taken)}, which is ours"
        raise BadSetting(where="adapters.modules", value=module, wants=wants)
    return found
