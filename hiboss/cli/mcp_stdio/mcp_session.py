"""What the pump knows of an MCP session: requests that wait for an answer, and what a new worker must be told.

Clients of the old era open a session (`initialize`) and subscribe in it; a new worker is told both again.
In the new era each request has all that it needs, and there is nothing to tell.
"""

from __future__ import annotations

import json
import re
from typing import Any

from .line_splitter import TooLong

INITIALIZE = "initialize"
INITIALIZED = "notifications/initialized"
CANCELLED = "notifications/cancelled"
SUBSCRIBE, UNSUBSCRIBE = "resources/subscribe", "resources/unsubscribe"
SET_LEVEL = "logging/setLevel"
LISTEN = "subscriptions/listen"  # it is answered when it ends
# They change nothing, or twice is the same as once: when the worker dies, they are sent to the next one.
REPEATABLE = frozenset(
    {
        INITIALIZE,
        SUBSCRIBE,
        UNSUBSCRIBE,
        SET_LEVEL,
        "ping",
        "server/discover",
        "tools/list",
        "resources/list",
        "resources/templates/list",
        "resources/read",
        "prompts/list",
        "prompts/get",
        "completion/complete",
    }
)
MOST_KEPT = 64 * 1024  # bytes of a request that is kept to be sent again
MOST_KEPT_REQUESTS = 256
OWN_ID = "hiboss-restore-"  # begins the ids of requests of the pump itself
INTERNAL_ERROR = -32603
LOST = (
    "the MCP worker or the daemon of hiboss was restarted before it answered, and it is not known whether the"
    " call took effect; look (for example with inbox or chat_read_since) before you repeat it"
)
_ID = rb'"id"\s*:\s*(-?\d{1,18}|"[^"\\]{0,200}")'
# Compiled when they are needed, which is hardly ever.
_ID_FIRST = rb'\s*\{\s*(?:"(?:jsonrpc|method)"\s*:\s*"[^"\\]{0,200}"\s*,\s*)*' + _ID + rb"\s*,"
_ID_LAST = _ID + rb'\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*\Z'
_METHOD = rb'"method"\s*:\s*"'

Message = dict[str, Any]


class ClientLine:
    """One line of the client on its way to the worker."""

    __slots__ = ("again", "data", "messages", "sent", "since")

    def __init__(self, data: bytes, since: float, *, again: bool = False) -> None:
        self.data = data
        self.messages = messages_in(data)
        self.sent = 0  # bytes
        self.since = since  # when it came
        self.again = again  # it was sent to a worker before, which died

    @property
    def is_whole(self) -> bool:
        """Whether a worker may have understood it: a part of a JSON object is no JSON."""
        return self.sent >= len(self.data.rstrip())

    @property
    def request(self) -> Message | None:
        """The request that this line is; None for all else, also for several in one line."""
        if len(self.messages) == 1 and is_request(self.messages[0]):
            return self.messages[0]
        return None


class _Request:
    """A request that the worker has. `message`: kept for the next worker; `line`: it can be sent again."""

    def __init__(self, id_: Any, method: str, message: Message | None, line: bytes | None) -> None:
        self.id, self.method, self.message, self.line = id_, method, message, line


class McpSession:
    """One session of a client, over all workers that serve it."""

    def __init__(self) -> None:
        self._open: dict[str, _Request] = {}  # sent to the worker and not answered
        self._initialize: Message | None = None
        self._initialized: bytes | None = None
        self._subscriptions: dict[str, Message] = {}
        self._level: Message | None = None
        self._own: dict[str, str] = {}  # requests of the pump itself, with their methods
        self._number = 0

    @property
    def awaits_answers(self) -> bool:
        return any(one.method != LISTEN for one in self._open.values())

    # --- what passes -----------------------------------------------------------------

    def note_sent(self, line: ClientLine) -> None:
        """A line of the client was written to the worker."""
        for message in line.messages:
            if is_request(message):
                self._note_request(message, line)
            elif message.get("method") == INITIALIZED:
                self._initialized = line.data
            elif message.get("method") == CANCELLED:
                self._open.pop(_key(_params(message).get("requestId")), None)  # nobody answers it

    def _note_request(self, message: Message, line: ClientLine) -> None:
        method = str(message["method"])
        if method == UNSUBSCRIBE:
            self._subscriptions.pop(str(_params(message).get("uri")), None)
        repeatable = method in REPEATABLE and len(line.messages) == 1 and not line.again
        kept = line.data if repeatable and self._has_room_for(line.data) else None
        told = message if method in (INITIALIZE, SUBSCRIBE, SET_LEVEL) else None
        self._open[_key(message["id"])] = _Request(message["id"], method, told, kept)

    def _has_room_for(self, data: bytes) -> bool:
        return len(data) <= MOST_KEPT and len(self._open) < MOST_KEPT_REQUESTS

    def note_answer(self, line: bytes) -> tuple[bool, list[bytes]]:
        """Read a line of the worker: whether the client gets it, and what the worker is told next.

        Raises ValueError if the worker refuses to open the session again.
        """
        passes, told = False, []
        messages = messages_in(line)
        for message in messages:
            key = _key(message.get("id")) if "method" not in message and "id" in message else ""
            if key in self._own:
                told += self._note_own(self._own.pop(key), message)
            else:
                passes = True
                if (request := self._open.pop(key, None)) is not None and "error" not in message:
                    self._note_success(request)
        return passes or not messages, told

    def _note_success(self, request: _Request) -> None:
        if request.message is None:
            return
        if request.method == INITIALIZE:
            self._initialize, self._initialized = request.message, None
            self._subscriptions, self._level = {}, None
        elif request.method == SET_LEVEL:
            self._level = request.message
        else:
            self._subscriptions[str(_params(request.message).get("uri"))] = request.message

    # --- a new worker ----------------------------------------------------------------

    def note_lost(self) -> tuple[list[bytes], list[bytes]]:
        """The worker is gone: return the lines for the next one, and those for the client."""
        self._own.clear()
        again = [one.line for one in self._open.values() if one.line is not None]
        answers = [
            error_answer(one.id, INTERNAL_ERROR, LOST, {"code": "hung_up", "method": one.method})
            for one in self._open.values()
            if one.line is None
        ]
        self._open.clear()
        return again, answers

    def opening(self) -> list[bytes]:
        """Return what a new worker is told first. If there is anything, its answer leads on (`note_answer`)."""
        return [] if self._initialize is None else [self._own_request(self._initialize)]

    @property
    def is_opening(self) -> bool:
        """Whether the new worker has not opened the session yet; nothing else is sent to it before."""
        return INITIALIZE in self._own.values()

    def _note_own(self, method: str, answer: Message) -> list[bytes]:
        if method != INITIALIZE:
            return []
        if "error" in answer:
            raise ValueError(f"the MCP worker refused to open the session again: {answer['error']}")
        told = [] if self._initialized is None else [self._initialized]
        if self._level is not None:
            told.append(self._own_request(self._level))
        return told + [self._own_request(one) for one in self._subscriptions.values()]

    def _own_request(self, message: Message) -> bytes:
        self._number += 1
        own = f"{OWN_ID}{self._number}"
        self._own[_key(own)] = str(message["method"])
        return json.dumps(message | {"id": own}).encode() + b"\n"


# --- reading and writing messages ----------------------------------------------------


def messages_in(line: bytes) -> list[Message]:
    """Return the messages of a line: one, or those of a batch. None where it has another form."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return []
    return [one for one in (found if isinstance(found, list) else [found]) if isinstance(one, dict)]


def is_request(message: Message) -> bool:
    return isinstance(message.get("method"), str) and message.get("id") is not None


def id_of(line: TooLong) -> Any:
    """Return the id of a request that was dropped, if it stands at one of its ends; else None."""
    if not (re.search(_METHOD, line.head) or re.search(_METHOD, line.tail)):
        return None  # an answer to the server, whose ids are others
    found = re.match(_ID_FIRST, line.head) or re.search(_ID_LAST, line.tail)
    return None if found is None else json.loads(found[1])


def error_answer(id_: Any, code: int, message: str, data: Message) -> bytes:
    error = {"code": code, "message": message, "data": data}
    return json.dumps({"jsonrpc": "2.0", "id": id_, "error": error}, default=str).encode() + b"\n"


def _params(message: Message) -> Message:
    params = message.get("params")
    return params if isinstance(params, dict) else {}


def _key(id_: Any) -> str:
    """Return an id as a key: 1 and "1" are two ids."""
    return json.dumps(id_)
