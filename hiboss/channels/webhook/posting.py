"""One signed POST to a web server, and what its response means for the letter and its lane."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from ... import __version__
from ...core import clock
from ...core.contracts.failures import AccountError, EnvelopeError, LaneError
from ...core.quoting import shortened
from ...core.server_urls import phrase, retry_after, server_name
from ...core.webhook_signatures import signed

if TYPE_CHECKING:
    import httpx

CONNECT_SECONDS = 10.0
ANSWER_SECONDS = 30.0  # between two parts of a request or a response
READ_BYTES = 64 * 1024  # of a response; nobody needs it, but a read one keeps the connection open
READ_SECONDS = 2.0  # for that
REFUSALS = {401: "the secret", 402: "the account", 403: "the secret"}  # what to check on the server
LANE_STATUSES = {  # what every other letter would get too
    407: "a proxy wants to know who we are",
    408: "it did not get the request in time",
    425: "it is not ready yet",
    429: "it gets too many requests",
}


class Poster:
    """Posts to one address. Its connection stays open between two posts."""

    def __init__(self, url: str, key: bytes) -> None:
        self._url = url
        self._key = key
        self._server = server_name(url)
        self._client: httpx.AsyncClient | None = None

    async def post(self, delivery: str, body: bytes) -> None:
        """Post a body. `delivery` is its id, the same at every attempt. Raises LaneError or EnvelopeError."""
        if self._client is None:
            # In a thread: importing httpx and reading the certificates would block the event loop.
            self._client = await asyncio.to_thread(_new_client, self._url.startswith("https:"))
        import httpx

        headers = {
            "content-type": "application/json",
            "accept-encoding": "identity",  # a small compressed response could become a huge one
            "user-agent": f"hiboss/{__version__}",
            **signed(self._key, delivery, clock.now() // 1000, body),
        }
        try:
            async with self._client.stream("POST", self._url, content=body, headers=headers) as response:
                _check(response, self._server)
                await _read(response)
        except httpx.TimeoutException:
            raise LaneError("unreachable", f"{self._server} did not answer in time") from None
        except httpx.ConnectError as error:
            why = shortened(f"{self._server} cannot be reached: {error}", 500)
            raise LaneError("unreachable", why) from None
        except (httpx.HTTPError, httpx.InvalidURL, UnicodeError, RuntimeError):
            # RuntimeError: it was closed meanwhile, since the webhook has other settings now. Their own texts
            # are not used: they may quote the response, and so the request.
            why = f"the connection to {self._server} was lost before there was an answer"
            raise LaneError("unreachable", why) from None

    async def close(self) -> None:
        if self._client is not None:
            await self._client.aclose()


def _new_client(secure: bool) -> httpx.AsyncClient:
    import httpx

    return httpx.AsyncClient(
        verify=secure,  # reading certificates takes 20 ms, which plain HTTP does not need
        trust_env=False,  # proxy settings of the shell that started the daemon do not apply
        follow_redirects=False,
        timeout=httpx.Timeout(ANSWER_SECONDS, connect=CONNECT_SECONDS),
    )


def _check(response: httpx.Response, server: str) -> None:
    """Raise for a response that is not a success."""
    status = response.status_code
    if 200 <= status < 300:
        return
    what = f"{server} answered {status}{phrase(status)}"
    if 300 <= status < 400:
        raise LaneError("redirected", f"{what}; redirects are not followed, so set the final address")
    if status in REFUSALS:
        raise AccountError("refused", f"{what}; check {REFUSALS[status]} there")
    if 400 <= status < 500 and status not in LANE_STATUSES:
        raise EnvelopeError("rejected", what)
    later = retry_after(response.headers.get("retry-after", "")) if status in (429, 503) else None
    if status in LANE_STATUSES:
        kind = "rate_limited" if status == 429 else "server_error"
        raise LaneError(kind, f"{what}; {LANE_STATUSES[status]}", later)
    raise LaneError("server_error", what, later)


async def _read(response: httpx.Response) -> None:
    """Read what a server says; of a long or slow response only the beginning, and then it is closed.

    The status confirms the letter. If a missing end were a failure, it would be posted for ever.
    """
    import httpx

    size = 0
    with suppress(httpx.HTTPError, TimeoutError):
        async with asyncio.timeout(READ_SECONDS):
            async for part in response.aiter_raw():
                size += len(part)
                if size > READ_BYTES:
                    return
