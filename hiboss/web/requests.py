"""Requests: their bodies, within limits of size and time, and the parameters of an operation in them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import orjson
from starlette.requests import ClientDisconnect, Request

from ..core.errors import (
    BodyTooSlow,
    Busy,
    FrameTooLarge,
    InvalidParams,
    InvalidRequest,
    KeyNotTaken,
    ParseError,
    WrongContentType,
)

BODY_SECONDS = 30.0  # for a whole body of JSON, and between two pieces of a file
KEY_HEADER = "idempotency-key"
SMALL = 4096  # bytes of a body that says nothing
UNPROVED_BYTES = 64 * 1024  # a larger body is only taken of somebody who has shown a token

Prove = Callable[[], None]  # raises unless the request has a good token


class Budget:
    """Bounds the bodies in memory at one time, of those who show who they are only with them."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._held = 0  # bytes

    @contextmanager
    def share(self) -> Iterator[Share]:
        """Give a request its share, until it is answered: so long its body is in memory."""
        share = Share(self)
        try:
            yield share
        finally:
            self._held -= share.held

    def take(self, size: int) -> None:
        if self._held + size > self._limit:
            raise Busy(what="too many large requests come in at the same time, try again in a moment")
        self._held += size


class Share:
    """What one request holds of a budget."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self.held = 0  # bytes

    def take(self, size: int) -> None:
        """Take more. Raises Busy."""
        self._budget.take(size)
        self.held += size


async def pieces(request: Request) -> AsyncIterator[bytes]:
    """Yield the body as it comes. Raises BodyTooSlow when nothing comes for too long."""
    stream = request.stream().__aiter__()
    while True:
        try:
            async with asyncio.timeout(BODY_SECONDS):
                piece = await anext(stream, None)
        except TimeoutError:
            raise BodyTooSlow(seconds=f"{BODY_SECONDS:g}") from None
        except ClientDisconnect:
            raise InvalidRequest(detail="the body ended before its end") from None
        if piece is None:
            return
        if piece:
            yield piece


async def body(request: Request, limit: int, prove: Prove | None = None, share: Share | None = None) -> bytes:
    """Return the whole body; raises FrameTooLarge if it is larger than the limit.

    `prove` is called before a large one is taken. `share`: of the budget for it and others together.
    """
    told = request.headers.get("content-length", "")
    size = int(told[:20]) if told.isascii() and told.isdecimal() else 0
    if size > limit:
        raise FrameTooLarge(limit=limit)
    found = bytearray()
    try:
        async with asyncio.timeout(BODY_SECONDS):
            async for piece in pieces(request):
                if share is not None:
                    share.take(len(piece))
                found += piece
                if len(found) > limit:
                    raise FrameTooLarge(limit=limit)
                if prove is not None and max(size, len(found)) > UNPROVED_BYTES:
                    prove()
                    prove = None
    except TimeoutError:
        raise BodyTooSlow(seconds=f"{BODY_SECONDS:g}") from None
    return bytes(found)


async def json_object(request: Request, limit: int, prove: Prove | None = None) -> dict[str, Any]:
    """Return the JSON object in the body; an empty body is an empty object. `prove`: see `body`."""
    content = await body(request, limit, prove)
    if not content:
        return {}
    kind = request.headers.get("content-type", "").partition(";")[0].strip().casefold()
    if kind != "application/json":
        raise WrongContentType(given=kind[:80] or "of no stated kind", wanted="application/json")
    try:
        found = orjson.loads(content)
    except orjson.JSONDecodeError as error:
        raise ParseError(detail=str(error)[:200]) from None
    if not isinstance(found, dict):
        raise InvalidRequest(detail="the body is not an object")
    return found


def with_key(request: Request, params: dict[str, Any], takes_key: bool) -> dict[str, Any]:
    """Return the parameters with the Idempotency-Key of the request as their `key`."""
    given = request.headers.getlist(KEY_HEADER)
    if not given:
        return params
    if not takes_key:
        raise KeyNotTaken(path=request.url.path[:200])
    if len(given) > 1 or params.get("key", given[0]) != given[0]:
        raise InvalidParams(detail="the Idempotency-Key and the parameter key differ; give one of them")
    return {**params, "key": given[0]}
