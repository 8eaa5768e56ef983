"""The kinds of adapters there are: ours, and those of modules named in `adapters.modules`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.errors import UnknownAdapter
from ..core.plugins import load
from ..core.quoting import nearest
from .folder import FolderAdapter

OURS: dict[str, Any] = {FolderAdapter.type: FolderAdapter}


class Registry:
    def __init__(self, modules: Sequence[str]) -> None:
        self.kinds = dict(OURS)
        for name in modules:
            self.kinds |= load(name, "ADAPTERS", "type", OURS, "adapters.modules")

    def kind(self, name: str) -> Any:
        """The adapter class of this type."""
        if name not in self.kinds:
            known = sorted(self.kinds)
            raise UnknownAdapter(name=name[:60], hint=nearest(name, known), known=", ".join(known))
        return self.kinds[name]
