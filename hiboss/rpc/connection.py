"""One client's connection: requests in, answers out, in the order they were asked."""

from __future__ import annotations

import asyncio
import logging
import os
import select
import socket
import struct
import sys
from collections import deque
from collections.abc import Awaitable, Coroutine, Sequence
from typing import Any, Protocol, cast

from ..core.errors import Busy, ForeignPeer, FrameTooLarge, HibossError, InternalError
from ..core.settings import Settings
from . import codec

log = logging.getLogger(__name__)
PEER_SECONDS = 1.0  # how often to look whether one that writes no more is still there


class Dispatcher(Protocol):
    """What this door needs of the api."""

    def call(self, method: str, params: Any, token: str | None = None) -> Awaitable[Any]: ...

    def check_token(self, token: Any) -> None: ...

    def may_wait(self, method: str) -> bool: ...


class _Slot:
    """The place of one answer in the order of answers."""

    __slots__ = ("answer", "done")

    def __init__(self) -> None:
        self.answer = b""
        self.done = False


class Connection(asyncio.Protocol):
    def __init__(self, dispatcher: Dispatcher, settings: Settings, connections: set[Connection]) -> None:
        self._dispatcher = dispatcher
        self._settings = settings
        self._connections = connections  # all that are open
        self._framer = codec.Framer(settings.frame_bytes)
        self._slots: deque[_Slot] = deque()
        self._unread: deque[bytes | FrameTooLarge] = deque()
        self._tasks: set[asyncio.Task[None]] = set()
        self._patient: set[asyncio.Task[None]] = set()  # of those, the ones that wait for something to come
        self._late: list[bytes] = []  # their answers, which have no place in the order
        self._token: str | None = None
        self._running = 0
        self._room = asyncio.Event()
        self._room.set()
        self._writable = True
        self._ending = False
        self._looking = False  # whether the peer is there will be asked in a moment
        self._transport: asyncio.Transport
        self.finished: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    # --- what asyncio tells us -----------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        uid = _peer_uid(transport.get_extra_info("socket"))
        if uid is not None and uid != os.geteuid():
            self._refuse(ForeignPeer(owner=os.geteuid(), uid=uid))
        elif len(self._connections) >= self._settings.connections:
            self._refuse(Busy(what=f"{self._settings.connections} connections are open"))
        else:
            self._connections.add(self)

    def data_received(self, data: bytes) -> None:
        if not self._ending:
            self._unread.extend(self._framer.feed(data))
            self._work()

    def eof_received(self) -> bool:
        """The peer writes no more; what it asked is still answered before we hang up."""
        if not self._ending:
            self._unread.extend(self._framer.end())
            self._ending = True
            self._work()
            if self._patient and _has_gone(self._transport.get_extra_info("socket")):
                self.hang_up()
        return True

    def _look_for_peer(self) -> None:
        """One that has gone is not waited for; one that has only stopped writing still is."""
        self._looking = False
        if not self._patient or self._transport.is_closing():
            return
        if _has_gone(self._transport.get_extra_info("socket")):
            self.hang_up()
        else:
            self._look_later()

    def _look_later(self) -> None:
        """While nothing is read of it, nobody tells us that the peer has gone."""
        if self._patient and not self._looking:
            self._looking = True
            asyncio.get_running_loop().call_later(PEER_SECONDS, self._look_for_peer)

    def pause_writing(self) -> None:
        self._writable = False
        self._room.clear()

    def resume_writing(self) -> None:
        self._writable = True
        self._room.set()
        self._work()

    def connection_lost(self, exc: Exception | None) -> None:
        self._connections.discard(self)
        self._ending = True
        self._unread.clear()
        self._room.set()
        for task in list(self._patient):
            task.cancel()  # nobody is left to hear what comes
        if not self.finished.done():
            self.finished.set_result(None)

    # --- from a line to its answer -------------------------------------------------

    def _work(self) -> None:
        """Take lines while there is room, answer what is ready, and read more only when it is wanted."""
        while self._unread and self._writable and self._running < self._settings.requests_in_flight:
            self._take(self._unread.popleft())
        self._flush()
        if self._unread or not self._writable:
            self._transport.pause_reading()
            self._look_later()
        elif self._ending:
            self._look_later()
        else:
            self._transport.resume_reading()

    def _take(self, line: bytes | FrameTooLarge) -> None:
        if isinstance(line, FrameTooLarge):
            self._answer_now(codec.failure(None, line))
            return
        parsed = codec.parse(line, self._settings.batch_requests)
        if isinstance(parsed, codec.Malformed):
            self._answer_now(codec.failure(parsed.id, parsed.error))
        elif isinstance(parsed, codec.Batch):
            for call in parsed.calls:
                self._login_first(call)
            self._begin(parsed.calls, self._run_batch(parsed, self._token))
        else:
            self._login_first(parsed)
            if parsed.notification or self._dispatcher.may_wait(parsed.method):
                self._begin([parsed], self._run_aloud(parsed, self._token))
            else:  # nearly all of them, by the shortest way
                self._start(self._answer_one(parsed, self._slot(), self._token))

    def _begin(
        self, calls: Sequence[codec.Request | codec.Malformed], work: Coroutine[Any, Any, bytes]
    ) -> None:
        """What may wait has no place in the order, and ends when the peer has gone."""
        if not any(
            isinstance(call, codec.Request) and self._dispatcher.may_wait(call.method) for call in calls
        ):
            silent = all(_silent(call) for call in calls)
            self._start(work if silent else self._answer(work, self._slot()))
            return
        task = self._start(self._answer_late(work))
        self._patient.add(task)
        task.add_done_callback(self._patient.discard)

    def _slot(self) -> _Slot:
        slot = _Slot()
        self._slots.append(slot)
        return slot

    def _answer_now(self, answer: bytes) -> None:
        slot = self._slot()
        slot.answer, slot.done = answer, True

    def _start(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[None]:
        self._running += 1
        task = asyncio.get_running_loop().create_task(self._see_through(work))
        self._tasks.add(task)  # the loop itself keeps only a weak reference
        return task

    async def _see_through(self, work: Coroutine[Any, Any, Any]) -> None:
        """Run it, and go on with what waited for it: here, since a callback would cost a turn of the loop."""
        try:
            await work
        except Exception:
            log.exception("A connection failed.", extra={"action": "rpc"})
            self.hang_up()
        finally:
            self._running -= 1
            if task := asyncio.current_task():
                self._tasks.discard(task)
            self._work()

    async def _answer(self, work: Awaitable[bytes], slot: _Slot) -> None:
        slot.answer = await work
        slot.done = True

    async def _answer_one(self, request: codec.Request, slot: _Slot, token: str | None) -> None:
        slot.answer = await self._run(request, token)
        slot.done = True

    async def _answer_late(self, work: Awaitable[bytes]) -> None:
        if answer := await work:
            self._late.append(answer)

    async def _run_aloud(self, call: codec.Request, token: str | None) -> bytes:
        answer = await self._run(call, token)
        return b"" if call.notification else answer

    async def _run_batch(self, batch: codec.Batch, token: str | None) -> bytes:
        answers = await asyncio.gather(*(self._run(call, token) for call in batch.calls))
        wanted = [a for a, call in zip(answers, batch.calls, strict=True) if not _silent(call)]
        return codec.batch(wanted) if wanted else b""

    async def _run(self, call: codec.Request | codec.Malformed, token: str | None) -> bytes:
        if isinstance(call, codec.Malformed):
            return codec.failure(call.id, call.error)
        while not self._writable:  # it does not read its answers: make no more of them
            if self._transport.is_closing():
                return b""
            await self._room.wait()
        try:
            value = await self._dispatcher.call(call.method, call.params, token)
            return codec.result(call.id, value)
        except HibossError as error:
            return codec.failure(call.id, error)
        except TypeError:  # an answer that JSON cannot hold: a defect of ours, and no reason to hang up
            log.exception("The answer to %s cannot be written.", call.method, extra={"action": "rpc"})
            return codec.failure(call.id, InternalError(reference="rpc"))

    def _login_first(self, call: codec.Request | codec.Malformed) -> None:
        """The token of auth.login counts for the very next line, though its answer is still to come."""
        if not isinstance(call, codec.Request) or call.method != "auth.login":
            return
        token = call.params.get("token") if isinstance(call.params, dict) else None
        try:
            self._dispatcher.check_token(token)
        except HibossError:
            return  # the operation itself says what is wrong with it
        self._token = token

    # --- writing and hanging up ----------------------------------------------------

    def _flush(self) -> None:
        """Write the answers that are ready and whose turn it is."""
        ready = [answer + b"\n" for answer in self._late]
        self._late.clear()
        while self._slots and self._slots[0].done:
            if answer := self._slots.popleft().answer:
                ready.append(answer + b"\n")
        if ready and not self._transport.is_closing():
            self._transport.write(b"".join(ready))
        if self._ending and not self._slots and not self._unread and not self._running:
            self._transport.close()  # after what is written has gone out

    def _refuse(self, error: HibossError) -> None:
        self._ending = True
        self._transport.write(codec.failure(None, error) + b"\n")
        self._transport.close()

    def stop_reading(self) -> None:
        """No new requests; hang up once those taken are answered."""
        self._ending = True
        self._unread.clear()
        self._transport.pause_reading()
        self._flush()

    def hang_up(self) -> None:
        self._transport.abort()


def _has_gone(peer: socket.socket) -> bool:
    """Whether the other end is closed altogether, not only for writing."""
    poll = select.poll()
    poll.register(peer.fileno(), select.POLLHUP)
    return any(event & (select.POLLHUP | select.POLLERR) for _, event in poll.poll(0))


def _silent(call: codec.Request | codec.Malformed) -> bool:
    return isinstance(call, codec.Request) and call.notification


def _peer_uid(connection: socket.socket) -> int | None:
    """The uid at the other end; None where the platform does not tell."""
    if sys.platform != "linux":
        return None
    size = struct.calcsize("3i")
    _, uid, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))
    return int(uid)
