"""Find a provider by name: the built-in ones, and those of the modules in `providers.modules`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core.errors import BadProvider
from ...core.plugins import load
from ...core.quoting import nearest, printable
from .command import Command
from .demo import Demo
from .webhook import Webhook

BUILT_IN: dict[str, Any] = {one.name: one for one in (Command, Webhook, Demo)}


class Providers:
    """The known provider classes, by name."""

    def __init__(self, modules: Sequence[str]) -> None:
        self.known = dict(BUILT_IN)
        for name in modules:
            self.known |= load(name, "PROVIDERS", "name", BUILT_IN, "providers.modules")

    def kind(self, name: str) -> Any:
        """Return the provider class of this name."""
        if name not in self.known:
            known = sorted(self.known)
            asked = printable("name", name[:60])
            why = f"there is no provider {asked}{nearest(name, known)}; there are {', '.join(known)}"
            raise BadProvider(why=why)
        return self.known[name]
