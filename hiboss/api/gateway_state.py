"""How the HTTP door is doing: the door itself says it, and operations show it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal


@dataclass(slots=True)
class GatewayState:
    state: Literal["off", "starting", "listening", "retrying"] = "off"
    url: str | None = None  # where it listens, like http://127.0.0.1:9999
    hooks_url: str | None = None  # where only webhooks are served
    error: str | None = None  # why it does not listen
    connections: Callable[[], int] = lambda: 0  # how many clients are connected

    @property
    def why_not(self) -> str:
        """Why it does not listen, in words."""
        starting = "it is starting, try again in a moment"
        return self.error or (starting if self.state == "starting" else "it is switched off (web.enabled)")
