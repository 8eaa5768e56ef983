"""Find an adapter class by type: the built-in ones, and those of the modules in `adapters.modules`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.errors import UnknownAdapter
from ..core.plugins import load
from ..core.quoting import nearest
from .folder import FolderAdapter

BUILT_IN: dict[str, Any] = {FolderAdapter.type: FolderAdapter}


class Registry:
    """The known adapter classes, by type."""

    def __init__(self, modules: Sequence[str]) -> None:
        self.kinds = dict(BUILT_IN)
        for name in modules:
            self.kinds |= load(name, "ADAPTERS", "type", BUILT_IN, "adapters.modules")

    def kind(self, name: str) -> Any:
        """Return the adapter class of this type."""
        if name not in self.kinds:
            known = sorted(self.kinds)
            raise UnknownAdapter(name=name[:60], hint=nearest(name, known), known=", ".join(known))
        return self.kinds[name]
