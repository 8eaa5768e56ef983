"""Answers of the HTTP door: results and errors as JSON, each error with the status of its class."""

from __future__ import annotations

import logging
import secrets
from http import HTTPStatus
from typing import Any

import orjson
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from ..core.errors import (
    HibossError,
    InternalError,
    InvalidRequest,
    MethodNotAllowed,
    NoSuchPart,
    NoSuchPath,
    NotHttp,
    TooManyAttempts,
)
from .headers import HEADERS

log = logging.getLogger(__name__)
JSON = "application/json"


def result(value: Any, status: int = 200) -> Response:
    """Return an answer with the result of an operation."""
    return Response(orjson.dumps(value), status, media_type=JSON)


def body_of(error: HibossError) -> dict[str, Any]:
    """Return an error as every door shows it."""
    return {"error": {"code": error.rpc, "message": error.message, "data": error.payload()}}


class Failure:
    """An answer with an error, over HTTP or to the handshake of a WebSocket."""

    def __init__(self, error: HibossError, *, is_last: bool = False) -> None:
        self.error = error
        self._is_last = is_last or isinstance(error, NotHttp)  # the connection is closed after it

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = dict(HEADERS)
        if self._is_last:
            headers["connection"] = "close"
        if self.error.http == 401:
            headers["www-authenticate"] = "Bearer"
        if isinstance(self.error, MethodNotAllowed):
            headers["allow"] = self.error.allowed
        if isinstance(self.error, NoSuchPart):
            headers["content-range"] = f"bytes */{self.error.size}"
        if isinstance(self.error, TooManyAttempts):
            headers["retry-after"] = str(self.error.seconds)
        answer = Response(written(self.error), self.error.http, headers, JSON)
        if scope["type"] != "websocket":
            await answer(scope, receive, send)
        elif "websocket.http.response" in scope.get("extensions", {}):
            start = {"type": "websocket.http.response.start", "status": answer.status_code}
            await send({**start, "headers": answer.raw_headers})
            await send({"type": "websocket.http.response.body", "body": answer.body})
        else:
            await send({"type": "websocket.close", "code": 1008})


def raw(error: HibossError) -> bytes:
    """Return a whole answer as it is sent, for what cannot be read and so comes to no app. It is the last."""
    body = written(error)
    reason = HTTPStatus(error.http).phrase
    headers = {"content-type": JSON, "content-length": str(len(body)), "connection": "close", **HEADERS}
    lines = [f"HTTP/1.1 {error.http} {reason}", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join([*lines, "", ""]).encode() + body


def written(error: HibossError) -> bytes:
    try:
        return orjson.dumps(body_of(error), default=str)
    except orjson.JSONEncodeError:  # a fact quotes half a surrogate pair, which cannot be written
        return orjson.dumps(
            {"error": {"code": error.rpc, "message": error.code, "data": {"code": error.code}}}
        )


def failed(error: Exception) -> Failure:
    """Return the answer to a request that failed with this. A defect of ours is logged."""
    if isinstance(error, HibossError):
        return Failure(error)
    if isinstance(error, HTTPException):
        return Failure(_translated(error))
    reference = secrets.token_hex(4)
    log.error("A request failed (%s).", reference, exc_info=error, extra={"action": "web"})
    return Failure(InternalError(reference=reference))


def _translated(error: HTTPException) -> HibossError:
    """Return our error for one of Starlette's."""
    if isinstance(error.detail, HibossError):
        return error.detail
    if error.status_code == 404:
        return NoSuchPath(path="this path")
    return InvalidRequest(detail=str(error.detail)[:200])
