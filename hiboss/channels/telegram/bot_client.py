"""Calls of the Bot API for one bot. The only module that imports python-telegram-bot, which takes 0.3 s.

So nothing imports this module at its top; `adapter` does it in a thread.
The library encodes the requests. The answers stay raw, because it does not know the newest fields, and
the errors are told apart here, by their HTTP status.

DANGER: every URL has the token in it, and the errors and log lines of httpx have the URL. So their loggers
are quiet, and no exception leaves this module that is chained to theirs.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Mapping
from functools import cache
from ssl import SSLContext
from typing import Any, BinaryIO

import httpx
from telegram import Bot, InputFile
from telegram.error import NetworkError, TelegramError, TimedOut
from telegram.request import HTTPXRequest

from .api_errors import ApiRefusal, CallFailed, Garbled, NoAnswer, Stalled, Unreachable

CONNECT_SECONDS = 10.0
READ_SECONDS = 20.0
UPLOAD_SECONDS = 55.0  # a post has 60 by default
CONNECTIONS = 32
READ_BYTES = 256 * 1024
# The connection was never there, so the server has got nothing. All other errors leave that open.
_NOT_CONNECTED = (
    httpx.ConnectError,
    httpx.ConnectTimeout,
    httpx.PoolTimeout,
    httpx.ProxyError,
    httpx.UnsupportedProtocol,
    httpx.InvalidURL,
)
_QUIET = {"httpx": logging.WARNING, "httpcore": logging.WARNING, "telegram": logging.CRITICAL}


class _Failed(TelegramError):
    """Carries a failure through the library."""

    def __init__(self, failure: CallFailed) -> None:
        super().__init__("failed")
        self.failure = failure


class _Requests(HTTPXRequest):
    """Tells the errors of the server apart before the library does: it forgets their status."""

    async def do_request(self, url: str, method: str, *given: Any, **named: Any) -> tuple[int, bytes]:
        code, payload = await super().do_request(url, method, *given, **named)
        if not 200 <= code <= 299:
            raise _Failed(_refusal(url.rpartition("/")[2], code, payload))
        return code, payload

    @staticmethod
    def parse_json_payload(payload: bytes) -> dict[str, Any]:
        found = _json(payload)
        if found is None or "result" not in found:
            raise _Failed(Garbled("the answer of the server is not one of the Bot API"))
        return found


class _RawBot(Bot):
    """A bot whose methods are called by name."""

    @classmethod
    def _warn(cls, *given: Any, **named: Any) -> None:
        """Say nothing: `do_api_request` warns of each method that the library has itself."""

    def _insert_defaults(self, data: dict[str, object]) -> None:
        """Leave the parameters as they are: the library expects objects of its own in an album."""


class BotClient:
    """One bot of one server of the Bot API."""

    def __init__(self, token: str, root: str) -> None:
        """Make the connections; no I/O but reading certificates. `root` is the URL without /bot."""
        for name, level in _QUIET.items():
            logging.getLogger(name).setLevel(level)
        root = root.rstrip("/")
        self._token = token
        self.host = httpx.URL(root).host
        self.answered = asyncio.Event()  # set by each call that succeeds
        self._files = f"{root}/file/bot{token}/"
        self._requests = (_requests(1), _requests(CONNECTIONS))  # polling has a connection of its own
        self._bot = _RawBot(
            token,
            base_url=f"{root}/bot",
            base_file_url=f"{root}/file/bot",
            get_updates_request=self._requests[0],
            request=self._requests[1],
        )
        timeout = httpx.Timeout(READ_SECONDS, connect=CONNECT_SECONDS)
        self._downloads = httpx.AsyncClient(timeout=timeout, verify=_certificates())

    async def call(self, method: str, *, seconds: float = READ_SECONDS, **parameters: Any) -> Any:
        """Call a method and return its result, as it came. Raises CallFailed.

        `seconds`: how long the server may take before it answers.
        """
        try:
            result = await self._bot.do_api_request(
                method, api_kwargs=parameters, read_timeout=seconds, write_timeout=UPLOAD_SECONDS
            )
        except TelegramError as error:
            failure = self._failure(error)
        else:
            self.answered.set()
            return result
        raise failure  # here it is not chained to an error that has the URL

    async def upload(self, method: str, files: Mapping[str, tuple[BinaryIO, str]], **parameters: Any) -> Any:
        """Call a method that sends files, given by field, each with its name. Raises CallFailed."""
        for field, (file, name) in files.items():
            # Not read at once, and never all of it: ten of 50 MB may be on their way.
            parameters[field] = InputFile(file, filename=name, read_file_handle=False)
        return await self.call(method, seconds=UPLOAD_SECONDS, **parameters)

    async def download(self, file_path: str, file: BinaryIO, most: int) -> bool:
        """Write a file of the server into an open one; return False if it has more than `most` bytes.

        Raises CallFailed, and OSError if it cannot be written.
        """
        try:
            async with self._downloads.stream("GET", self._files + file_path) as answer:
                if answer.status_code != 200:
                    raise ApiRefusal("a download", answer.status_code, answer.reason_phrase)
                async for block in answer.aiter_bytes(READ_BYTES):
                    most -= len(block)
                    if most < 0:
                        return False
                    await asyncio.to_thread(file.write, block)
                return True
        except httpx.ReadTimeout:
            failure: CallFailed = Stalled(f"{self.host} stopped sending it")
        except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError) as error:
            failure = Unreachable(f"{self.host} cannot be reached: {_reason(error)}")
        raise failure

    async def close(self) -> None:
        await asyncio.gather(*[one.shutdown() for one in self._requests], self._downloads.aclose())

    def _failure(self, error: TelegramError) -> CallFailed:
        if isinstance(error, _Failed):
            return error.failure
        cause = error.__cause__ or error
        if isinstance(cause, _NOT_CONNECTED):
            return Unreachable(f"{self.host} cannot be reached: {_reason(cause)}")
        if isinstance(error, TimedOut):
            return NoAnswer(f"{self.host} did not answer in time")
        if isinstance(error, NetworkError):
            return NoAnswer(f"{self.host} cannot be reached any more: {_reason(cause)}")
        return Garbled(f"a call of {self.host} failed: {type(error).__name__}")


def _requests(connections: int) -> _Requests:
    return _Requests(
        connection_pool_size=connections,
        connect_timeout=CONNECT_SECONDS,
        read_timeout=READ_SECONDS,
        write_timeout=READ_SECONDS,
        pool_timeout=CONNECT_SECONDS,
        media_write_timeout=UPLOAD_SECONDS,
        httpx_kwargs={"verify": _certificates()},
    )


@cache
def _certificates() -> SSLContext:
    """Return one for all: to read the certificates takes 20 ms and a megabyte each time."""
    return httpx.create_ssl_context()


def _reason(error: BaseException) -> str:
    """Return what went wrong, by the class alone: texts of httpx may have the URL."""
    return type(error).__name__


def _refusal(method: str, code: int, payload: bytes) -> CallFailed:
    found = _json(payload)
    if code >= 500 and found is None:
        return ApiRefusal(method, code, "the server is in trouble")
    if found is None or found.get("ok") is not False:  # of a proxy, or a login page of the network
        return Garbled(f"the server answered {code}, and not as the Bot API does")
    parameters = found.get("parameters")
    facts = parameters if isinstance(parameters, dict) else {}
    wait, new = facts.get("retry_after"), facts.get("migrate_to_chat_id")
    return ApiRefusal(
        method,
        code,
        str(found.get("description") or "no reason given"),
        retry_after=float(wait) if isinstance(wait, (int, float)) else None,
        migrated_to=None if new is None else str(new),
    )


def _json(payload: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(payload.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
