"""Files: upload them for messages to come, and download those of messages.

A file is what somebody else wrote. It is always offered as a download, in a sandbox without scripts, and the
browser must not guess what it is.
"""

from __future__ import annotations

import re
from typing import Any, BinaryIO

from starlette.requests import Request
from starlette.responses import FileResponse, MalformedRangeHeader, RangeNotSatisfiable, Response
from starlette.types import Receive, Scope, Send

from ..core.errors import InvalidParams, NoSuchPart, NoToken, TokenInUrl, TooLarge, WrongContentType
from . import answers, requests
from .credentials import token_of
from .door import Door

SANDBOX = "sandbox; default-src 'none'; frame-ancestors 'none'"
# What a browser would show as a page, run, or apply to a page: the policy of our pages trusts this server.
UNSAFE = re.compile("html|xml|xsl|script|css|wasm|multipart/")
MIME = re.compile(r"[A-Za-z0-9][A-Za-z0-9!#$&^_.+-]{0,126}/[A-Za-z0-9][A-Za-z0-9!#$&^_.+-]{0,126}")
FORM = "multipart/form-data"  # what a form of a page sends, and `curl -F`: parts with headers of their own
TICKET = "ticket"  # the word in a query


async def upload(door: Door, request: Request) -> Response:
    """Store the body as a file: POST /api/attachments?name=plan.pdf."""
    name = _word(request, "name")
    requests.with_key(request, {}, False)
    if not name:
        raise InvalidParams(
            detail="give the name of the file, and nothing else: /api/attachments?name=plan.pdf"
        )
    limit = door.settings.attachment_bytes
    told = request.headers.get("content-length", "")
    if told.isascii() and told.isdecimal() and int(told[:20]) > limit:
        raise TooLarge(what="the file", size=f"{told[:20]} bytes", limit=str(limit), advice="")
    mime = request.headers.get("content-type", "").partition(";")[0].strip()
    if mime.casefold() == FORM:
        raise WrongContentType(given=FORM, wanted="the bytes of the file (curl: --data-binary @FILE)")
    token = token_of(request.headers)
    stored = await door.calls.store_upload(token, name, mime, requests.pieces(request))
    return answers.result(stored, 201)


async def download(door: Door, request: Request) -> Response:
    """Send a file of a message, or a range of it: GET /api/attachments/m57/1."""
    given = _word(request, TICKET)
    token = token_of(request.headers)
    if given is not None:
        token = door.tickets.take(given, request.url.path)
    found = await door.calls.open_attachment(token, *_named(request))
    safe = MIME.fullmatch(found.mime) and not UNSAFE.search(found.mime)
    return _FileAnswer(
        found.file,
        media_type=found.mime if safe else "application/octet-stream",
        filename=found.name,
        headers={"content-security-policy": SANDBOX, "cache-control": "private, no-store"},
    )


async def make_ticket(door: Door, request: Request) -> Response:
    """Give a link that downloads a file once: POST /api/attachments/m57/1/ticket."""
    requests.with_key(request, {}, False)
    if await requests.json_object(request, requests.SMALL) or _word(request, "") is not None:
        raise InvalidParams(detail="a link has no parameters")
    token = token_of(request.headers)
    if token is None:
        raise NoToken()
    found = await door.calls.open_attachment(token, *_named(request))
    found.file.close()  # now it is known that there is such a file for them
    path = request.url.path.removesuffix("/ticket")
    ticket = door.tickets.create(token, path)
    return answers.result({"url": f"{path}?{TICKET}={ticket}", "expires_in": 60}, 201)


def _named(request: Request) -> tuple[str, str]:
    """Return the message and the file that a path names."""
    return request.path_params["message"], request.path_params["file"]


class _FileAnswer(FileResponse):
    """Sends a file that is open, and closes it. A Range that is none is ignored, as HTTP wants it.

    By its descriptor: the file that was checked is the one that is sent, whatever has its path now.
    """

    def __init__(self, opened: BinaryIO, **more: Any) -> None:
        super().__init__(f"/dev/fd/{opened.fileno()}", **more)
        self._opened = opened

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._opened:
            await super().__call__(scope, receive, send)

    @classmethod
    def _parse_range_header(cls, http_range: str, file_size: int) -> list[tuple[int, int]]:
        try:
            return super()._parse_range_header(http_range, file_size)
        except MalformedRangeHeader:
            return []
        except RangeNotSatisfiable:
            raise NoSuchPart(size=file_size) from None


def _word(request: Request, name: str) -> str | None:
    """Return the one word that the query of a request may have; None: it has none. Raises for others."""
    words = request.query_params.multi_items()
    if any(key in ("token", "unnamed") for key, _ in words):
        raise TokenInUrl()
    if len(words) > 1 or any(key != name for key, _ in words):
        raise InvalidParams(detail=f"the query may have {name or 'nothing'}, once")
    return words[0][1] if words else None
