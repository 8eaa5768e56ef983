"""One client's requests and answers, whatever carries them: a unix socket or a WebSocket.

Requests are started in order, and answered in order. An operation that may wait for long is answered when
it is ready. No more requests are taken from a client that does not read its answers.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Coroutine, Iterable, Sequence
from functools import partial
from typing import Any

from ..api.operation import Done, Door
from ..core.errors import AnswerTooLarge, FrameTooLarge, HibossError, InternalError
from ..core.settings import Settings
from . import batches, codec
from .answers import Answers, PendingAnswer
from .contracts import Dispatcher, Transport
from .waiting_bytes import WaitingBytes

log = logging.getLogger(__name__)
LOGIN = "auth.login"
STARTED_AT_ONCE = 32  # requests of one client; then others have their turn
FLUSHED_AT = 64 * 1024  # bytes of answers; less is written when the requests that came with it are started


class Session:
    """Whatever carries it gives it lines, and tells when the client has read and when it is gone."""

    door: Door = "socket"

    def __init__(
        self,
        dispatcher: Dispatcher,
        settings: Settings,
        sessions: set[Session],
        waiting_bytes: WaitingBytes,
        token: str | None = None,
    ) -> None:
        self._dispatcher = dispatcher
        self._settings = settings
        self._sessions = sessions  # every open one of the server
        self._waiting_bytes = waiting_bytes  # of all of them
        self._answers = Answers()
        self._batch_bytes = 0  # of the answers in batches that are not complete
        self._lines: deque[bytes | FrameTooLarge] = deque()  # received and not yet started
        self._tasks: set[asyncio.Task[None]] = set()
        self._waiting: set[asyncio.Task[None]] = set()  # of those, the ones whose operation may wait
        self._token = token  # of requests that name none
        self._running = 0
        self._proceeding = False  # requests are being started
        self._proceed_planned = False
        self._running_bytes = 0  # of their lines: a request with a large text is in memory until it is done
        self.subscriptions: list[Any] = []  # what the client follows (routing/subscriptions.py)
        self._writing_resumed = asyncio.Event()
        self._writing_resumed.set()
        self._writable = True  # false: the peer does not read, and the transport's buffer is full
        self._stopping = False  # the daemon stops
        self._ending = False  # read no more, and close when everything is answered
        self._transport: Transport
        self.finished: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    # --- what carries it tells it ----------------------------------------------------

    def take_lines(self, lines: Iterable[bytes | FrameTooLarge]) -> None:
        """Take what the client sent, each a request or a batch."""
        if not self._ending:
            self._lines.extend(lines)
            self._proceed()

    def pause_writing(self) -> None:
        self._writable = False
        self._writing_resumed.clear()

    def resume_writing(self) -> None:
        self._writable = True
        self._flush()  # may pause again
        if self._writable:
            self._writing_resumed.set()
        self._proceed()

    def connection_lost(self, exc: Exception | None) -> None:
        self._sessions.discard(self)
        self._waiting_bytes.forget(self)
        self._ending = True
        self._lines.clear()
        self._writing_resumed.set()
        for task in list(self._waiting):
            task.cancel()  # nobody is left to answer
        for one in list(self.subscriptions):
            one.end()
        if not self.finished.done():
            self.finished.set_result(None)

    # --- what the transport knows ----------------------------------------------------

    @property
    def peer_pid(self) -> int | None:
        """The process that connected; None where that is not known."""
        return None

    @property
    def incomplete(self) -> int:
        """How many bytes of an incomplete request are in memory."""
        return 0

    @property
    def _waits(self) -> bool:
        """Whether the client waits for something that may come much later."""
        return bool(self._waiting or self.subscriptions)

    def _reads_nothing(self) -> None:
        """Called when nothing is read: what carries it may not notice that the peer goes."""

    # --- from a line to its answer -------------------------------------------------

    def _proceed(self) -> None:
        """Go on, unless that is planned: what came before must begin first."""
        if not self._proceed_planned:
            self._proceed_now()

    def _proceed_now(self) -> None:
        """Start requests while there is room, write answers that are ready, then read on or pause reading."""
        self._proceed_planned, self._proceeding = False, True
        try:
            for _ in range(STARTED_AT_ONCE):
                if not self._has_room():
                    break
                self._take(self._lines.popleft())
            else:
                self._proceed_soon()
        finally:
            self._proceeding = False
            if self._proceed_planned:  # not earlier: the tasks that were created here begin first
                asyncio.get_running_loop().call_soon(self._proceed_now)
        self._flush()
        if self._lines or not self._writable:
            self._transport.pause_reading()
        elif not self._ending:
            self._transport.resume_reading()
            return
        self._reads_nothing()

    def _has_room(self) -> bool:
        """Tell whether there is a request that may be started now."""
        limits = self._settings
        return (
            bool(self._lines)
            and self._writable
            and self._running < limits.requests_in_flight
            and self._running_bytes < limits.frame_bytes
        )

    def _proceed_soon(self) -> None:
        """Go on when others had their turn, and what was started now has begun."""
        if not self._proceed_planned:
            self._proceed_planned = True
            if not self._proceeding:
                asyncio.get_running_loop().call_soon(self._proceed_now)

    def _take(self, line: bytes | FrameTooLarge) -> None:
        """Parse one line and start what it asks for."""
        if isinstance(line, FrameTooLarge):
            self._answers.settle(self._answers.reserve(), codec.failure(None, line))
            return
        parsed = codec.parse(line, self._settings.batch_requests)
        if isinstance(parsed, codec.Request):
            if parsed.method == LOGIN:
                self._login_first(parsed)
            if parsed.notification or self._dispatcher.may_wait(parsed.method):
                self._begin([parsed], self._run_alone(parsed, self._token), len(line))
            else:  # nearly all requests
                self._start_one(parsed, len(line))
        elif isinstance(parsed, codec.Malformed):
            self._answers.settle(self._answers.reserve(), codec.failure(parsed.id, parsed.error))
        else:
            for call in parsed.calls:
                self._login_first(call)
            self._begin(parsed.calls, self._run_batch(parsed.calls, self._token), len(line))

    def _start_one(self, request: codec.Request, size: int) -> None:
        """Start a request; only what waits for more than one write gets a task (docs/route.md).

        So do those that follow it at once: requests begin in order.
        """
        self._running += 1
        self._running_bytes += size
        done = partial(self._settle_one, request, self._answers.reserve(), size)
        if self._proceed_planned:
            self._create_task(self._run_one(request, self._token, done))
        elif (waiting := self._call(request, self._token, done)) is not None:
            self._create_task(self._wait_for(waiting, done))

    def _call(self, request: codec.Request, token: str | None, done: Done) -> Coroutine[Any, Any, Any] | None:
        return self._dispatcher.start(request.method, request.params, token, self.door, self, done)

    async def _run_one(self, request: codec.Request, token: str | None, done: Done) -> None:
        if (waiting := self._call(request, token, done)) is not None:
            await self._wait_for(waiting, done)

    async def _wait_for(self, waiting: Coroutine[Any, Any, Any], done: Done) -> None:
        try:
            done(await waiting, None)
        except HibossError as error:
            done(None, error)

    def _settle_one(
        self, call: codec.Request, pending: PendingAnswer, size: int, value: Any, error: BaseException | None
    ) -> None:
        """A request is done: answer it. The answers of a group of writes are flushed together."""
        self._running -= 1
        self._running_bytes -= size
        self._answers.settle(pending, self._encoded(call, value, error))
        if self._proceeding:  # it flushes when it has started the rest
            if self._answers.size > FLUSHED_AT:
                self._flush()
        elif self._running or self._lines:
            self._proceed_soon()
        else:
            self._flush()

    def _begin(
        self,
        calls: Sequence[codec.Request | codec.Malformed],
        answering: Coroutine[Any, Any, bytes],
        size: int,
    ) -> None:
        """Start calls. If one may wait, their answer has no place in the order, and ends with the peer."""
        if not any(
            isinstance(call, codec.Request) and self._dispatcher.may_wait(call.method) for call in calls
        ):
            silent = all(batches.is_notification(call) for call in calls)
            self._start(answering if silent else self._answer(answering, self._answers.reserve()), size)
            return
        task = self._start(self._answer_unordered(answering), size)
        self._waiting.add(task)
        task.add_done_callback(self._waiting.discard)

    def _start(self, answering: Coroutine[Any, Any, Any], size: int) -> asyncio.Task[None]:
        """Start what a line of so many bytes asks for."""
        self._running += 1
        self._running_bytes += size
        return self._create_task(self._run_to_end(answering, size))

    def _create_task(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)  # the loop itself keeps only a weak reference
        task.add_done_callback(self._tasks.discard)
        self._proceed_soon()
        return task

    async def _run_to_end(self, answering: Coroutine[Any, Any, Any], size: int) -> None:
        """Run it, then proceed. A done-callback would cost one more pass of the event loop."""
        try:
            await answering
        except Exception:
            log.exception("A connection failed.", extra={"action": "rpc"})
            self.hang_up()
        finally:
            self._running -= 1
            self._running_bytes -= size
            self._proceed()

    async def _answer(self, answering: Awaitable[bytes], pending: PendingAnswer) -> None:
        self._answers.settle(pending, await answering)

    async def _answer_unordered(self, answering: Awaitable[bytes]) -> None:
        if answer := await answering:
            self._answers.add(answer)

    async def _run_alone(self, call: codec.Request, token: str | None) -> bytes:
        """Run a request that is no batch; a notification has no answer."""
        answer = await self._run(call, token)
        return b"" if call.notification else answer

    def _run_batch(self, calls: list[batches.Call], token: str | None) -> Coroutine[Any, Any, bytes]:
        limit, together = self._settings.answer_bytes, self._dispatcher.may_run_together
        answer = partial(self._run, token=token)
        return batches.run(calls, answer, together, limit, self._note_batch, self._is_read)

    async def _is_read(self) -> bool:
        """Wait while the peer does not read its answers: produce no more. False: it is gone."""
        while not self._writable and not self._transport.is_closing():
            await self._writing_resumed.wait()
        return self._writable

    def _note_batch(self, added: int) -> None:
        self._batch_bytes += added
        self._waiting_bytes.note(self, self.measure())

    async def _run(self, call: codec.Request | codec.Malformed, token: str | None) -> bytes:
        """Return the answer to one call."""
        if isinstance(call, codec.Malformed):
            return codec.failure(call.id, call.error)
        try:
            value = await self._dispatcher.call(call.method, call.params, token, door=self.door, reader=self)
        except HibossError as error:
            return codec.failure(call.id, error)
        return self._encoded(call, value, None)

    def _encoded(self, call: codec.Request, value: Any, error: BaseException | None) -> bytes:
        """Return the answer to a call."""
        try:
            if error is not None:
                raise error
            answer = codec.result(call.id, value)
            if len(answer) > self._settings.answer_bytes:
                raise AnswerTooLarge(size=len(answer), limit=self._settings.answer_bytes)
            return answer
        except HibossError as refused:
            return codec.failure(call.id, refused)
        except TypeError:  # JSON cannot hold the result: a defect of ours, and no reason to disconnect
            log.exception("The answer to %s cannot be written.", call.method, extra={"action": "rpc"})
            return codec.failure(call.id, InternalError(reference="rpc"))

    def _login_first(self, call: codec.Request | codec.Malformed) -> None:
        """Use the token of auth.login for the next line already, before the login is answered."""
        if not isinstance(call, codec.Request) or call.method != LOGIN:
            return
        token = call.params.get("token") if isinstance(call.params, dict) else None
        try:
            self._dispatcher.check_token(token)
        except HibossError:
            return  # the operation itself answers with the error
        self._token = token
        if token and self.door == "socket" and call.params.get("door") == "mcp":
            self.door = "mcp"  # for good: it needs a token for everything, and names no files of this machine

    # --- writing and disconnecting -------------------------------------------------

    def _flush(self) -> None:
        """Write the answers that are ready, in order."""
        answers = self._answers
        if answers.size and self._transport.is_closing():
            answers.clear()
        while answers.size and self._writable and (piece := answers.next_piece()) is not None:
            self._transport.write(piece)
        self._waiting_bytes.note(self, self.measure())
        if self._ending and not self._answers and not self._lines and not self._running:
            if not self.subscriptions or self._stopping:
                self._transport.close()  # it still sends what was written
        elif self.subscriptions and self.ready:
            for one in self.subscriptions:
                one.resume()

    # --- what a client follows -----------------------------------------------------

    @property
    def ready(self) -> bool:
        """Whether the client has taken the notifications that were written before."""
        return self._writable and not self._answers.size and not self._transport.is_closing()

    def notify(self, lines: bytes) -> None:
        """Write notifications, after the answers to the requests before them."""
        if self._answers:
            self._answers.settle(self._answers.reserve(), lines)
            self._flush()
        elif not self._transport.is_closing():  # the usual case
            self._transport.write(lines + b"\n")
            self._waiting_bytes.note(self, self.measure())

    def measure(self) -> int:
        """Return how many bytes wait here: answers that the peer has not read, and an incomplete request."""
        unsent = self._transport.get_write_buffer_size() + self._answers.size + self._batch_bytes
        return unsent + self.incomplete

    def refuse(self, error: HibossError) -> None:
        """Answer a new connection with an error and close it."""
        self._ending = True
        self._transport.write(codec.failure(None, error) + b"\n")
        self._transport.close()

    def stop_reading(self) -> None:
        """Take no new requests, and close when the running ones are answered."""
        self._ending = self._stopping = True
        self._lines.clear()
        self._transport.pause_reading()
        self._flush()

    def hang_up(self) -> None:
        """Disconnect at once."""
        self._answers.clear()
        self._transport.abort()
