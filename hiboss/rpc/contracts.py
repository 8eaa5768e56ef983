"""What a session needs: the dispatcher that it calls, and the transport that carries its lines."""

from __future__ import annotations

from collections.abc import Awaitable, Coroutine
from typing import Any, Protocol

from ..api.operation import Done, Door


class Dispatcher(Protocol):
    """The part of the api's dispatcher that this door uses."""

    def call(
        self,
        method: str,
        params: Any,
        token: str | None = None,
        *,
        door: Door = "socket",
        reader: Any = None,
    ) -> Awaitable[Any]: ...

    def start(
        self, method: str, params: Any, token: str | None, door: Door, reader: Any, done: Done
    ) -> Coroutine[Any, Any, Any] | None: ...

    def check_token(self, token: Any) -> None: ...

    def may_wait(self, method: str) -> bool: ...

    def may_run_together(self, method: str) -> bool: ...


class Transport(Protocol):
    """What carries the lines: an asyncio transport, or what behaves like one."""

    def write(self, data: bytes | memoryview) -> None: ...

    def get_write_buffer_size(self) -> int: ...

    def is_closing(self) -> bool: ...

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...

    def close(self) -> None: ...

    def abort(self) -> None: ...
