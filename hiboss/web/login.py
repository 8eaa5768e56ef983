"""A person logs in with a browser, by the code in a one-time link, and out again."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from ..core.errors import InvalidParams
from . import answers, requests
from .credentials import cookie_of, no_cookie
from .door import Door

LIMIT = 4096  # bytes of a body here


async def log_in(door: Door, request: Request) -> Response:
    """Take {"code": …}; set the cookie, and answer with the value that the tab keeps."""
    given = await requests.json_object(request, LIMIT)
    code = given.get("code")
    if not isinstance(code, str) or len(given) > 1:
        raise InvalidParams(detail="give the code of the link: code")
    login = await door.calls.log_in(code)
    answer = answers.result({"tab": login.tab, "address": login.address, "expires_in": login.seconds})
    answer.headers["set-cookie"] = cookie_of(login, secure=request.url.scheme == "https")
    return answer


async def log_out(door: Door, request: Request) -> Response:
    """Log this browser out, or with {"all": true} all of the person's."""
    answer = answers.result(
        await door.call(request, "web.logout", await requests.json_object(request, LIMIT))
    )
    if (ended := no_cookie(request.headers)) is not None:
        answer.headers["set-cookie"] = ended
    return answer
