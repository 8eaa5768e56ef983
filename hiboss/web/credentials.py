"""The token of a request: a bearer token of a program, or the two halves that a browser has.

One half is in a cookie, which the browser also sends to other ports of this machine; the other is kept by
the tab, which sends it in a header (or in the first message of a WebSocket). They are worth nothing alone.
"""

from __future__ import annotations

from starlette.datastructures import Headers

from ..api.web_logins import Login, token_of_halves
from ..core.errors import BadToken

COOKIE = "hiboss_session"
TAB_HEADER = "x-hiboss-tab"
LONGEST = 200  # characters of a half


def token_of(headers: Headers) -> str | None:
    """Return the token of a request; None: it has none. Raises BadToken for what is no bearer token."""
    if (given := headers.get("authorization")) is not None:
        scheme, _, token = given.partition(" ")
        if scheme.casefold() != "bearer" or not token.strip():
            raise BadToken()
        return token.strip()
    tab = headers.get(TAB_HEADER)
    return None if tab is None else of_browser(headers, tab)


def of_browser(headers: Headers, tab: str) -> str | None:
    """Return the token that the cookie and the value of the tab make; None: there is no cookie."""
    cookie = _cookie(headers)
    if cookie is None:
        return None
    if len(cookie) > LONGEST or len(tab) > LONGEST:
        raise BadToken()
    return token_of_halves(cookie, tab)


def has_cookie(headers: Headers) -> bool:
    return _cookie(headers) is not None


def cookie_of(login: Login, *, secure: bool) -> str:
    """Return the header that sets the cookie of a login."""
    words = [f"{COOKIE}={login.cookie}", f"Max-Age={login.seconds}", "Path=/", "HttpOnly", "SameSite=Strict"]
    return "; ".join([*words, "Secure"] if secure else words)


def no_cookie() -> str:
    """Return the header that takes the cookie away."""
    return f"{COOKIE}=; Max-Age=0; Path=/; HttpOnly; SameSite=Strict"


def _cookie(headers: Headers) -> str | None:
    """Return our cookie. Others come from other ports of this machine, and may have any form.

    One of the same name for a longer path comes before ours.
    """
    found: str | None = None
    for line in headers.getlist("cookie"):
        for one in line.split(";"):
            name, _, value = one.strip().partition("=")
            if name == COOKIE:
                found = value
    return found
