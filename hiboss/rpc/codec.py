"""The wire format: lines of JSON-RPC 2.0 requests and responses. No I/O here."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import orjson

from ..core.errors import FrameTooLarge, HibossError, InternalError, InvalidRequest, ParseError

Id = str | int | float | None
_USUAL_IDS = (int, str)
_EXACT = 2.0**53  # orjson reads an integer of more than 64 bits as a float, and loses digits above this


class Request(NamedTuple):
    method: str
    params: Any
    id: Id
    notification: bool


class Malformed(NamedTuple):
    """A line or batch entry that is no request; it is answered with this error and id."""

    error: HibossError
    id: Id = None


class Batch(NamedTuple):
    calls: list[Request | Malformed]


class Framer:
    """Cuts a stream of bytes into lines. A line over the limit is skipped without being stored."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._parts: list[bytes] = []
        self._size = 0
        self._skipping = False

    @property
    def size(self) -> int:
        """How many bytes of an incomplete line are stored."""
        return 0 if self._skipping else self._size

    def feed(self, data: bytes) -> Iterator[bytes | FrameTooLarge]:
        """Return the lines that `data` completes, and an error for each line that is too long."""
        if not self._size and data.find(b"\n") == len(data) - 1 and 1 < len(data) <= self._limit:
            line = data[:-1]  # the usual case: exactly one complete line
            if not line.isspace():
                yield line
            return
        start = 0
        while (end := data.find(b"\n", start)) >= 0:
            yield from self._take(data[start:end])
            if not self._skipping:
                line = b"".join(self._parts)
                if line and not line.isspace():
                    yield line
            self._reset()
            start = end + 1
        if start < len(data):
            yield from self._take(data[start:] if start else data)

    def end(self) -> Iterator[bytes]:
        """Return the text after the last newline, when the stream ends."""
        line = b"".join(self._parts)
        if not self._skipping and line and not line.isspace():
            yield line
        self._reset()

    def _take(self, part: bytes) -> Iterator[FrameTooLarge]:
        if self._skipping or not part:
            return
        self._size += len(part)
        if self._size <= self._limit:
            self._parts.append(part)
            return
        self._parts.clear()
        self._skipping = True
        yield FrameTooLarge(limit=self._limit)

    def _reset(self) -> None:
        self._parts.clear()
        self._size = 0
        self._skipping = False


def parse(line: bytes, batch_limit: int = 1_000) -> Request | Malformed | Batch:
    """Return the request or batch in a line, or what is wrong with it."""
    try:
        document = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        return Malformed(ParseError(detail=str(error)[:200]))
    if not isinstance(document, list):
        return _request(document)
    if not document:
        return Malformed(InvalidRequest(detail="the batch is empty"))
    if len(document) > batch_limit:
        return Malformed(
            InvalidRequest(detail=f"the batch has {len(document)} requests; the most is {batch_limit}")
        )
    return Batch([_request(one) for one in document])


def _request(document: Any) -> Request | Malformed:
    if not isinstance(document, dict):
        return Malformed(InvalidRequest(detail="it is not an object"))
    id_ = document.get("id")
    method, params = document.get("method"), document.get("params")
    if type(id_) in _USUAL_IDS and type(method) is str and type(params) is dict and _is_2_0(document):
        return Request(method, params, id_, False)  # nearly always
    if isinstance(id_, bool) or not isinstance(id_, (str, int, float, type(None))):
        return Malformed(InvalidRequest(detail="id must be a string, a number or null"))
    if isinstance(id_, float) and abs(id_) > _EXACT:
        return Malformed(InvalidRequest(detail="id is a number too large to be returned unchanged"))
    if not _is_2_0(document):
        return Malformed(InvalidRequest(detail='jsonrpc must be "2.0"'), id_)
    if not isinstance(method, str):
        return Malformed(InvalidRequest(detail="method must be a string"), id_)
    if "params" in document and not isinstance(params, (dict, list)):
        return Malformed(InvalidRequest(detail="params must be an object or an array"), id_)
    return Request(method, params, id_, "id" not in document)


def _is_2_0(document: dict[str, Any]) -> bool:
    return document.get("jsonrpc") == "2.0"


def result(id_: Id, value: Any) -> bytes:
    """Return the response with a result; raises TypeError for a value that JSON cannot hold."""
    return orjson.dumps({"jsonrpc": "2.0", "result": value, "id": id_})


def failure(id_: Id, error: HibossError) -> bytes:
    """Return the response with an error."""
    body = {"code": error.rpc, "message": error.message, "data": error.payload()}
    try:
        return orjson.dumps({"jsonrpc": "2.0", "error": body, "id": id_}, default=str)
    except orjson.JSONEncodeError:  # a fact quotes half a surrogate pair, which cannot be written
        bare = InternalError(reference=error.code)
        body = {"code": error.rpc, "message": error.code, "data": bare.payload() | {"code": error.code}}
        return orjson.dumps({"jsonrpc": "2.0", "error": body, "id": id_})


def batch(responses: list[bytes]) -> bytes:
    """Return the responses as one JSON array."""
    return b"[" + b",".join(responses) + b"]"
