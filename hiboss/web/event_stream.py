"""Facts as server-sent events: GET /api/events.

It is the subscription of `event.subscribe` in another framing. A client that comes again with the id it saw
last (Last-Event-ID) goes on there. After a restart of the daemon, and for a client that was too slow, there
is a `gap`: mail is then caught up from the store; output of runs and typing are not.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from typing import Any

import orjson
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from ..api.operation import REGISTRY
from ..core.errors import HibossError
from . import answers, query
from .credentials import token_of
from .door import Door
from .event_framing import NAMES, Place, event, place_of

log = logging.getLogger(__name__)
COMMENT_SECONDS = 15.0  # between two signs of life, so that nobody on the way ends a quiet connection
SLOW_SECONDS = 30.0  # a client that takes nothing for so long is disconnected
END_SECONDS = 1.0  # for the last words to a client
RETRY_MS = 2_000  # when to connect again
QUEUED_BYTES = 256 * 1024  # above it the client is not ready: facts wait in the ring, and then there is a gap
SENT_AT_ONCE = 100  # events
COUNTED = frozenset(  # what may change how much is unread
    {
        *("envelope.arrived", "envelope.read", "envelope.acknowledged", "envelope.settled"),
        *("envelope.snoozed", "envelope.moved", "envelope.routed", "envelope.cancelled", "message.deleted"),
    }
)
TOPICS = sorted({*NAMES, *COUNTED} - {"gap", "closed"})
HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store, no-transform"),
    (b"x-accel-buffering", b"no"),
]


class EventReader:
    """Where the facts of a subscription are written to: a queue that the stream sends."""

    def __init__(self) -> None:
        self.subscriptions: list[Any] = []
        self.work = asyncio.Event()
        self._lines: deque[bytes] = deque()
        self._size = 0

    @property
    def peer_pid(self) -> int | None:
        return None

    @property
    def ready(self) -> bool:
        return self._size < QUEUED_BYTES

    def notify(self, lines: bytes) -> None:
        for line in lines.split(b"\n"):
            self._lines.append(line)
            self._size += len(line)
        self.work.set()

    def take(self) -> list[dict[str, Any]]:
        """Return the next facts; none: there is nothing now."""
        found: list[dict[str, Any]] = []
        while self._lines and len(found) < SENT_AT_ONCE:
            line = self._lines.popleft()
            self._size -= len(line)
            found.append(orjson.loads(line)["params"])
        if not self._lines:
            self.work.clear()
            for one in self.subscriptions:
                one.resume()
        return found

    def end(self) -> None:
        """Follow nothing any more."""
        for one in list(self.subscriptions):
            one.end()
        self._lines.clear()
        self._size = 0


class EventStream(Response):
    """The stream of one client. Call `open` first."""

    def __init__(self, door: Door, request: Request) -> None:
        self.background = None
        self._door = door
        self._token = token_of(request.headers)
        self._reader = EventReader()
        agent = request.query_params.get("agent")
        words = [one for one in request.query_params.multi_items() if one[0] != "agent"]
        self._params = query.params(REGISTRY["event.subscribe"], words, {})
        self._params.setdefault("topics", TOPICS)
        self._chosen = agent is not None
        if agent is not None:
            self._params["addresses"] = [agent]
        self._box = door.calls.box_of(self._token, agent)
        self._abort: Callable[[], None] = request.scope.get("state", {}).get("abort", lambda: None)
        self._place = Place(0, 0, "", 0)
        self._last = place_of(request.headers.get("last-event-id"))
        self._unread: Any = None  # as it was told last
        self._behind: Place | None = None  # where it is when mail is caught up; None: it is
        self._caught_up = 0  # the arrival number up to which mail was caught up
        self._ended = False  # the right is gone
        self._first: list[bytes] = []

    async def open(self) -> None:
        """Subscribe; raises what the api refuses."""
        self._first = [b"retry: %d\n\n" % RETRY_MS, *await self._follow(self._last)]

    def without_events(self) -> Response:
        """Return the answer to HEAD: there is nothing to follow."""
        self._reader.end()
        answer = Response()
        answer.raw_headers = list(HEADERS)
        return answer

    async def _follow(self, last: Place | None) -> list[bytes]:
        """Subscribe after a place, or from now on; return what to send first."""
        self._reader.end()
        after = {} if last is None else {"boot": last.boot, "after": last.number}
        found = await self._door.dispatcher.call(
            "event.subscribe", {**self._params, **after}, self._token, door="web", reader=self._reader
        )
        if last is not None and not found["gap"]:
            self._place = last
            return []
        now = Place(found["boot"], found["number"], found["epoch"], found["arrived"])
        told = {"box": self._box.address, **found}
        # Of another store there is nothing to catch up with.
        if last is None or last.epoch != now.epoch or "envelope.arrived" not in self._params["topics"]:
            self._place, self._behind = now, None
            return [event("open" if last is None else "gap", told, now)]
        # Until it is caught up, its place is of no start: who comes again then has a gap again.
        self._place, self._behind = Place(0, 0, now.epoch, last.arrived), now
        return [event("gap", told, self._place)]

    def _catch_up(self, now: Place) -> list[bytes]:
        """Return some of the mail that arrived in the box while nobody followed; move on."""
        pieces: list[bytes] = []
        missed = self._door.calls.missed(self._box, self._place.arrived, now.arrived)
        for fact in missed:
            self._place = self._place._replace(arrived=fact["envelopes"][-1]["arrived"])
            if self._follows_box or fact["conversation"] in self._params["conversations"]:
                pieces.append(event(NAMES[fact["topic"]], fact, self._place))
        if not missed:
            self._place, self._behind, self._caught_up = now, None, now.arrived
            pieces = [event("caught-up", {"box": self._box.address}, now), *self._count()]
        return pieces

    @property
    def _follows_box(self) -> bool:
        """Whether it follows all that comes into the box, not only some conversations."""
        named = self._params.get("addresses") or self._params.get("conversations")
        return self._chosen or not named or self._box.address in self._params.get("addresses", [])

    def _is_caught_up(self, fact: dict[str, Any]) -> bool:
        """Whether mail was told already: it was stored when it was caught up, and published after that."""
        own = [one["arrived"] for one in fact["envelopes"] if one["to"] == self._box.address]
        return bool(own) and max(own) <= self._caught_up

    # --- sending ---------------------------------------------------------------------

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        gone = asyncio.create_task(_disconnected(receive))
        stopping = asyncio.create_task(self._door.stopping.wait())
        sending = asyncio.create_task(self._send(send))
        tasks = (gone, stopping, sending)
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._reader.end()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        if gone.cancelled():
            await self._end(receive, send, None if sending.cancelled() else sending.exception())

    async def _end(self, receive: Receive, send: Send, error: BaseException | None) -> None:
        """End the response; abort the connection of a client that takes nothing."""
        if error is not None and not isinstance(error, TimeoutError):
            log.error("A stream of events failed.", exc_info=error, extra={"action": "web"})
        try:
            if error is not None:
                raise TimeoutError
            async with asyncio.timeout(END_SECONDS):
                await send({"type": "http.response.body", "body": b"", "more_body": False})
        except TimeoutError:
            self._abort()
            await _disconnected(receive)  # else the server would complain that the response has no end

    async def _send(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
        pieces = [*self._first, *self._count()]
        while True:
            if pieces:
                async with asyncio.timeout(SLOW_SECONDS):
                    await send({"type": "http.response.body", "body": b"".join(pieces), "more_body": True})
            if self._ended:
                return
            if self._behind is not None:
                pieces = self._catch_up(self._behind)
                continue
            try:
                async with asyncio.timeout(COMMENT_SECONDS):
                    await self._reader.work.wait()
            except TimeoutError:
                pieces = [b": still here\n\n"]
            else:
                pieces = await self._next()

    async def _next(self) -> list[bytes]:
        """Return the events of the facts that have come."""
        pieces: list[bytes] = []
        count = False
        for fact in self._reader.take():
            topic = fact["topic"]
            fact.pop("subscription", None)
            if topic == "gap":
                return [*pieces, *await self._follow_again()]
            self._ended = self._ended or topic == "closed"
            self._place = self._place._replace(boot=fact["boot"], number=fact["number"])
            if topic == "envelope.arrived" and fact["envelopes"]:
                last = fact["envelopes"][-1]["arrived"]
                self._place = self._place._replace(arrived=max(last, self._place.arrived))
            count = count or topic in COUNTED
            if topic in NAMES and not (topic == "envelope.arrived" and self._is_caught_up(fact)):
                pieces.append(event(NAMES[topic], fact, self._place))
        return [*pieces, *self._count()] if count else pieces

    async def _follow_again(self) -> list[bytes]:
        """Subscribe again after a gap; end where that is refused now."""
        try:
            return await self._follow(self._place._replace(boot=0))
        except HibossError as error:
            self._ended = True
            return [event("closed", {"topic": "closed", **answers.body_of(error)}, self._place)]

    def _count(self) -> list[bytes]:
        """Return an event if another number is unread than was told last."""
        now = self._door.calls.unread(self._box)
        if now == self._unread:
            return []
        self._unread = now
        told = {"box": self._box.address, "unread": now.number, "capped": now.capped}
        return [event("unread-count", told, self._place)]


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def follow(door: Door, request: Request) -> Response:
    stream = EventStream(door, request)
    await stream.open()
    return stream if request.method == "GET" else stream.without_events()
