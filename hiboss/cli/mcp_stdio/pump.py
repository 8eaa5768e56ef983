"""Carries lines between an MCP client and the worker, in one thread, and outlives the worker.

Only whole lines are passed on: half an answer of a worker that died must not reach the client. Nothing is
kept without a bound: while one side does not read, nothing is read from the other.
"""

from __future__ import annotations

import os
import select
import time
from collections import deque
from collections.abc import Callable

from ...core.errors import FrameTooLarge, HibossError
from ..client import Answered
from .line_splitter import LineSplitter, TooLong
from .mcp_session import INTERNAL_ERROR, ClientLine, McpSession, error_answer, id_of
from .reconnect_timing import ReconnectTiming
from .worker_link import WorkerLink, may_come_back, may_start_soon

MOST_LINE = 4 * 1024 * 1024  # bytes of a line of the client: limits.frame_bytes
MOST_ANSWER = 64 * 1024 * 1024  # bytes of a line of the worker
ROOM = 4 * 1024 * 1024  # bytes that may wait for one side; then the other is not read
PART = 1 << 16
# A pipe that is ready takes this much at once. The streams stay blocking: others may share them.
PIPE_PART = 4_096
WAIT_SECONDS = 20.0  # for a request that cannot be sent; then the client hears why
LAST_SECONDS = 60.0  # for answers when the client has closed its side: over the 50 of a tool that waits
FLUSH_SECONDS = 5.0
REFUSAL_SECONDS = 0.3  # for the first request of a client that is refused


class ClientGone(Exception):
    """The client has closed its end: there is nobody to serve."""


class Pump:
    """Serves one client; `connect` opens a connection to a worker, `note` tells the person something."""

    def __init__(
        self, stdin: int, stdout: int, connect: Callable[[], WorkerLink], note: Callable[[str], None]
    ) -> None:
        self._stdin, self._stdout = stdin, stdout
        self._connect, self._note = connect, note
        self._session = McpSession()
        self._link: WorkerLink | None = None
        self._from_client = LineSplitter(MOST_LINE)
        self._from_worker = LineSplitter(MOST_ANSWER)
        self._to_worker: deque[ClientLine] = deque()
        self._own_lines = b""  # of the pump itself for the worker, before all others
        self._to_client: deque[memoryview] = deque()
        self._bytes_to_worker = self._bytes_to_client = 0
        self._can_write = True  # False: the worker reads no more, but may have answered
        self._closed_at: float | None = None  # when the client closed its side
        self._timing = ReconnectTiming()
        self.is_starting = True

    def run(self) -> None:
        """Carry lines until the client ends. Raises HibossError where it cannot be served."""
        try:
            while not self._is_done():
                if self._link is None and self._timing.is_due():
                    self._try_to_connect()
                self._carry()
            self._hang_up()
        except ClientGone:
            pass
        finally:
            if self._link is not None:
                self._link.connection.close()

    def check_client(self) -> None:
        """Raise ClientGone if nobody reads our output any more. Called while the daemon keeps us waiting."""
        poll = select.poll()
        poll.register(self._stdout, 0)
        if poll.poll(0):
            raise ClientGone

    # --- connecting ------------------------------------------------------------------

    def _try_to_connect(self) -> None:
        try:
            self._link = self._connect()
        except HibossError as error:
            self._not_connected(error)
            return
        if not self.is_starting:
            self._note("note: the MCP worker is there again; the session goes on")
        self.is_starting = False
        self._timing.connected()
        self._can_write = True
        self._own_lines = b"".join(self._session.opening())
        self._take_answers(self._link.received)

    def _not_connected(self, error: HibossError) -> None:
        # At its start a client is told at once that no worker starts or has room; later it is waited for.
        passing = may_start_soon(error) if self.is_starting else may_come_back(error)
        if not passing or self._timing.is_over():
            self._refuse(error)
            raise error
        if self._timing.failures == 0 and self.is_starting:
            why = error.message if isinstance(error, Answered) else "no daemon of hiboss answers yet"
            self._note(f"note: {why}; waiting for it")
        self._timing.failed()
        self._answer_waiting(error, WAIT_SECONDS)

    def _refuse(self, error: HibossError) -> None:
        """Answer all requests with an error: some clients show that to people, and nothing of what we print."""
        poll = select.poll()
        poll.register(self._stdin, select.POLLIN)
        if self._closed_at is None and poll.poll(REFUSAL_SECONDS * 1_000):
            self._read_client()
        self._answer_waiting(error, 0.0)
        self._flush()

    def _answer_waiting(self, error: HibossError, seconds: float) -> None:
        """Tell the client of each request that waited so long for a worker that it was not sent."""
        now, kept = time.monotonic(), deque[ClientLine]()
        for line in self._to_worker:
            if (request := line.request) is None or now - line.since < seconds:
                kept.append(line)
                continue
            self._bytes_to_worker -= len(line.data)
            text = f"{error.message}. This request was not sent, so it can be repeated"
            code, data = _parts_of(error)
            self._answer(error_answer(request["id"], code, text, data))
        self._to_worker = kept

    def _lost(self, why: str) -> None:
        """The worker is gone: answer for it, and keep what it has not taken for the next one."""
        assert self._link is not None
        self._link.connection.close()
        self._link, self._from_worker, self._own_lines = None, LineSplitter(MOST_ANSWER), b""
        if self._to_worker and self._to_worker[0].is_whole:
            self._note_sent(self._to_worker.popleft())
        for line in self._to_worker:
            line.sent = 0
        again, answers = self._session.note_lost()
        for data in reversed(again):
            line = ClientLine(data, time.monotonic(), again=True)
            self._to_worker.appendleft(line)
            self._bytes_to_worker += len(data)
        for answer in answers:
            self._answer(answer)
        self._timing.lost()
        if self._closed_at is None:
            self._note(f"note: {why}; asking the daemon for the MCP worker again")

    # --- carrying --------------------------------------------------------------------

    def _carry(self) -> None:
        """Wait until something can be read or written, and do that."""
        wanted = self._wanted()
        poll = select.poll()
        for stream, events in wanted.items():
            poll.register(stream, events)
        link = -1 if self._link is None else self._link.connection.fileno()
        for stream, event in poll.poll(self._patience() * 1_000):
            if stream == self._stdout:
                self._write_to_client(event)
            elif stream == self._stdin:
                self._read_client()
            elif stream == link and self._link is not None:
                if event & select.POLLOUT:
                    self._write_to_worker(self._link)
                if event & ~select.POLLOUT:
                    self._read_worker(self._link)

    def _wanted(self) -> dict[int, int]:
        """Return what is waited for on each stream; 0: only its end."""
        wanted = {self._stdout: select.POLLOUT if self._to_client else 0}
        if self._closed_at is None and self._bytes_to_worker < ROOM:
            wanted[self._stdin] = select.POLLIN
        if self._link is not None:
            reads = select.POLLIN if self._bytes_to_client < ROOM else 0
            writes = select.POLLOUT if self._can_write and self._has_for_worker() else 0
            if reads or writes:
                wanted[self._link.connection.fileno()] = reads | writes
        return wanted

    def _has_for_worker(self) -> bool:
        return bool(self._own_lines or (self._to_worker and not self._session.is_opening))

    def _patience(self) -> float:
        """Return how many seconds nothing may happen."""
        times = [1.0] if self._closed_at is not None else []
        if self._link is None:
            times.append(self._timing.pause())
        return min(times, default=3_600.0)

    # --- the client's side -----------------------------------------------------------

    def _read_client(self) -> None:
        part = _read(self._stdin)
        for line in self._from_client.feed(part):
            self._take_line(line)
        if not part:
            if (rest := self._from_client.rest()) is not None:
                self._take_line(rest if isinstance(rest, TooLong) else rest + b"\n")
            self._closed_at = time.monotonic()

    def _take_line(self, line: bytes | TooLong) -> None:
        if isinstance(line, bytes):
            self._to_worker.append(ClientLine(line, time.monotonic()))
            self._bytes_to_worker += len(line)
            return
        error = FrameTooLarge(limit=MOST_LINE)
        if (id_ := id_of(line)) is not None:
            self._answer(error_answer(id_, error.rpc, error.message, error.payload()))
        self._note(f"note: a line of {line.size} bytes was dropped: {error.message}")

    def _answer(self, line: bytes) -> None:
        self._to_client.append(memoryview(line))
        self._bytes_to_client += len(line)

    def _write_to_client(self, event: int) -> None:
        if event & (select.POLLERR | select.POLLHUP | select.POLLNVAL):
            raise ClientGone
        line = self._to_client.popleft()
        try:
            written = os.write(self._stdout, line[:PIPE_PART])
        except BrokenPipeError:
            raise ClientGone from None
        self._bytes_to_client -= written
        if written < len(line):
            self._to_client.appendleft(line[written:])

    # --- the worker's side -----------------------------------------------------------

    def _read_worker(self, link: WorkerLink) -> None:
        try:
            part = link.connection.recv(PART)
        except BlockingIOError:
            return
        except OSError:
            part = b""
        if part:
            self._take_answers(part)
        else:
            self._lost("the MCP worker is gone")

    def _take_answers(self, part: bytes) -> None:
        for line in self._from_worker.feed(part):
            if isinstance(line, TooLong):
                self._lost(f"the MCP worker sent a line of {line.size} bytes")
                return
            try:
                passes, told = self._session.note_answer(line)
            except ValueError as error:
                self._lost(str(error))
                return
            if passes:
                self._answer(line)
            self._own_lines += b"".join(told)

    def _write_to_worker(self, link: WorkerLink) -> None:
        try:
            if self._own_lines:
                self._own_lines = self._own_lines[link.connection.send(self._own_lines) :]
            elif self._to_worker:
                line = self._to_worker[0]
                line.sent += link.connection.send(memoryview(line.data)[line.sent :])
                if line.sent == len(line.data):
                    self._note_sent(self._to_worker.popleft())
        except BlockingIOError:
            pass
        except OSError:
            self._can_write = False  # what it has answered is still to be read

    def _note_sent(self, line: ClientLine) -> None:
        self._bytes_to_worker -= len(line.data)
        self._session.note_sent(line)

    # --- the end ---------------------------------------------------------------------

    def _is_done(self) -> bool:
        if self._closed_at is None or self.is_starting:
            return False
        over = time.monotonic() - self._closed_at > LAST_SECONDS
        return over or not (self._to_worker or self._to_client or self._session.awaits_answers)

    def _hang_up(self) -> None:
        """Close our side towards the worker, and pass on what still comes."""
        self._session = McpSession()  # nobody is told that the worker ends now
        if self._link is not None:
            try:
                self._link.connection.shutdown(1)
            except OSError:
                pass
        end = time.monotonic() + FLUSH_SECONDS
        while self._link is not None and time.monotonic() < end:
            self._carry()
        self._flush()

    def _flush(self) -> None:
        """Write what the client has not got yet, for a bounded time."""
        end = time.monotonic() + FLUSH_SECONDS
        poll = select.poll()
        poll.register(self._stdout, select.POLLOUT)
        while self._to_client and (left := end - time.monotonic()) > 0:
            for _, event in poll.poll(left * 1_000):
                self._write_to_client(event)


def _parts_of(error: HibossError) -> tuple[int, dict[str, object]]:
    """Return the code and the data of an error for JSON-RPC."""
    if isinstance(error, Answered):
        return int(error.rpc_code or INTERNAL_ERROR), dict(error.facts)
    return error.rpc, error.payload()


def _read(stream: int) -> bytes:
    try:
        return os.read(stream, PART)
    except OSError:  # a terminal that is gone
        return b""
