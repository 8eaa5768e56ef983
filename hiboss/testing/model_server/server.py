"""The model server: it listens on loopback, and answers each request by the script."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Self

from .http_door import HttpDoor
from .request import Request
from .script import Queue, Step
from .state import ServerState


class ModelServer(ServerState):
    """A server of both APIs on one port, in threads of its own. Use it as a context manager."""

    def __init__(self, key: str = "") -> None:
        """With a key, only this one is right; else any is."""
        super().__init__(key)
        # Bound and never listening: it keeps the port while the server is unplugged.
        self._keeper = socket.socket()
        self._keeper.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._keeper.bind(("127.0.0.1", 0))
        self.port: int = self._keeper.getsockname()[1]
        self._door: HttpDoor | None = None

    def __enter__(self) -> Self:
        self.plug()
        return self

    def __exit__(self, *_: object) -> None:
        self.holds.close()
        self.unplug()
        self._keeper.close()

    @property
    def anthropic_url(self) -> str:
        """The value for ANTHROPIC_BASE_URL."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def openai_url(self) -> str:
        """The value for base_url of a model provider of Codex."""
        return f"http://127.0.0.1:{self.port}/v1"

    def script(self, *steps: Step) -> Queue:
        """Add steps for the next requests of turns. Return their queue; its `left` are the unused ones."""
        self.plan.common.add(*steps)
        return self.plan.common

    def when(self, matches: Callable[[Request], bool], *steps: Step) -> Queue:
        """Add a queue of its own for matching requests of turns, which is looked at before the common one."""
        return self.plan.when(matches, *steps)

    def unplug(self) -> None:
        """Take the network away: refuse connections, and close those that are open."""
        if self._door is not None:
            self._door.close()
            self._door = None

    def plug(self) -> None:
        """Listen again, on the same port."""
        if self._door is None:
            self._door = HttpDoor(self.port, self)
