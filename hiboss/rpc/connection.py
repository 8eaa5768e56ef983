"""A client that is connected to the unix socket: lines of bytes, from a process of the same user."""

from __future__ import annotations

import asyncio
import os
from typing import cast

from ..core.errors import Busy, ForeignPeer
from ..core.settings import Settings
from . import codec
from .contracts import Dispatcher
from .peer import has_gone, peer_pid, peer_uid
from .session import Session
from .waiting_bytes import WaitingBytes

PEER_CHECK_SECONDS = 1.0  # how often to check whether a peer that sends no more is still there


class Connection(Session, asyncio.Protocol):
    _transport: asyncio.Transport

    def __init__(
        self,
        dispatcher: Dispatcher,
        settings: Settings,
        sessions: set[Session],
        waiting_bytes: WaitingBytes,
    ) -> None:
        super().__init__(dispatcher, settings, sessions, waiting_bytes)
        self._framer = codec.Framer(settings.frame_bytes)
        self._peer_check_planned = False

    # --- called by asyncio ---------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        uid = peer_uid(transport.get_extra_info("socket"))
        if uid is not None and uid != os.geteuid():
            self.refuse(ForeignPeer(owner=os.geteuid(), uid=uid))
        elif len(self._sessions) >= self._settings.connections:
            most = self._settings.connections
            self.refuse(Busy(what=f"{most} connections are open, try again in a moment"))
        else:
            self._sessions.add(self)

    def data_received(self, data: bytes) -> None:
        self.take_lines(self._framer.feed(data))

    def eof_received(self) -> bool:
        """Answer what was asked, then close: the peer sends no more."""
        if not self._ending:
            self._lines.extend(self._framer.end())
            self._ending = True
            self._proceed()
            if self._waits and has_gone(self._transport.get_extra_info("socket")):
                self.hang_up()
        return True

    # --- the peer ------------------------------------------------------------------

    @property
    def peer_pid(self) -> int | None:
        """The process that connected; None where the platform does not tell."""
        return peer_pid(self._transport.get_extra_info("socket"))

    @property
    def incomplete(self) -> int:
        return self._framer.size

    def _check_peer(self) -> None:
        """Disconnect a peer that is gone. One that only stopped sending still gets its answers."""
        self._peer_check_planned = False
        if not self._waits or self._transport.is_closing():
            return
        if has_gone(self._transport.get_extra_info("socket")):
            self.hang_up()
        else:
            self._reads_nothing()

    def _reads_nothing(self) -> None:
        """Check the peer later: while nothing is read, asyncio does not notice that it is gone."""
        if self._waits and not self._peer_check_planned:
            self._peer_check_planned = True
            asyncio.get_running_loop().call_later(PEER_CHECK_SECONDS, self._check_peer)
