"""The providers there are: ours, and those of modules named in `providers.modules`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core.errors import BadProvider
from ...core.plugins import load
from ...core.quoting import nearest, shown
from .command import Command
from .demo import Demo
from .webhook import Webhook

OURS: dict[str, Any] = {one.name: one for one in (Command, Webhook, Demo)}


class Providers:
    def __init__(self, modules: Sequence[str]) -> None:
        self.known = dict(OURS)
        for name in modules:
            self.known |= load(name, "PROVIDERS", "name", OURS, "providers.modules")

    def kind(self, name: str) -> Any:
        """The provider class of this name."""
        if name not in self.known:
            known = sorted(self.known)
            asked = shown("name", name[:60])
            why = f"there is none called {asked}{nearest(name, known)}; there are {', '.join(known)}"
            raise BadProvider(why=why)
        return self.known[name]
