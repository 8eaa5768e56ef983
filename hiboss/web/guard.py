"""Who may connect: the Host and Origin of a request.

A page in a browser can make requests to 127.0.0.1, and a name of its own can be made to point there (DNS
rebinding). So the Host must be a name of ours, and an Origin must be our own page. A cookie is sent by the
browser unasked, whoever made the request: with one, what changes something needs an Origin too.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Sequence

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..core import errors
from ..core.errors import HibossError, NoOrigin, NotHttp, WrongHost, WrongOrigin
from . import answers
from .credentials import has_cookie
from .headers import HEADERS

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
LONGEST_SHOWN = 200  # characters of a header in an error
_HOST = re.compile(r"(?:\[([0-9A-Fa-f:.]{2,45})\]|([A-Za-z0-9._-]{1,254}))(?::[0-9]{0,5})?")
OF_THE_DOOR = (
    *(NotHttp, WrongHost, WrongOrigin, NoOrigin, errors.NoSuchPath, errors.MethodNotAllowed),
    *(errors.WrongContentType, errors.TokenInUrl, errors.KeyNotTaken, errors.BodyTooSlow),
    *(
        errors.NoSuchPart,
        errors.LoginRefused,
        errors.TooManyAttempts,
        errors.ParseError,
        errors.InvalidRequest,
    ),
)


def host_name(given: str) -> str | None:
    """Return the name in a Host header, without the port, in lower case; None: it is none."""
    found = _HOST.fullmatch(given)
    return None if found is None else (found[1] or found[2]).lower().removesuffix(".") or None


def is_loopback(name: str) -> bool:
    """Tell whether a name always means this machine."""
    if name == "localhost":
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def check_host(headers: Headers, allowed: Sequence[str], setting: str) -> None:
    """Raise unless the request was made to a name of ours."""
    given = headers.getlist("host")
    name = host_name(given[0]) if len(given) == 1 else None
    if name is None or not (is_loopback(name) or "*" in allowed or name in map(str.lower, allowed)):
        raise WrongHost(host=", ".join(given)[:LONGEST_SHOWN] or "no name", setting=setting)


def check_origin(scope: Scope, headers: Headers) -> None:
    """Raise for a request of a foreign page, and for one with a cookie that could be of a foreign page."""
    origins = headers.getlist("origin")
    if origins:
        if len(origins) > 1 or not _is_own(origins[0], headers["host"]):
            raise WrongOrigin(origin=", ".join(origins)[:LONGEST_SHOWN])
    elif has_cookie(headers) and (scope["type"] == "websocket" or scope["method"] not in SAFE_METHODS):
        raise NoOrigin()


def check_framing(headers: Headers) -> None:
    """Raise for a body with two lengths: somebody before us may have taken the other one."""
    if "transfer-encoding" in headers and "content-length" in headers:
        raise NotHttp(detail="it has both Content-Length and Transfer-Encoding")


def _is_own(origin: str, host: str) -> bool:
    """Tell whether an origin is the host that the request was made to. TLS may end before us."""
    scheme, separator, place = origin.partition("://")
    return bool(separator) and scheme in ("http", "https") and place.casefold() == host.casefold()


class Guard:
    """Lets requests through to an app that come to us and from us; answers the others, and all errors."""

    def __init__(
        self,
        app: ASGIApp,
        hosts: Callable[[], Sequence[str]],
        setting: str,
        refused: Callable[[HibossError], None],
    ) -> None:
        self._app = app
        self._hosts = hosts  # names beside those of loopback
        self._setting = setting  # the one that has them
        self._refused = refused  # counts what no operation has refused

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        begun = False

        async def send_guarded(message: Message) -> None:
            nonlocal begun
            begun = True
            if message["type"] in ("http.response.start", "websocket.http.response.start"):
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        try:
            headers = Headers(scope=scope)
            check_host(headers, self._hosts(), self._setting)
            check_origin(scope, headers)
            check_framing(headers)
            await self._app(scope, receive, send_guarded)
        except Exception as error:
            if begun:
                raise
            if isinstance(error, OF_THE_DOOR):
                self._refused(error)
            await answers.failed(error)(scope, receive, send_guarded)
