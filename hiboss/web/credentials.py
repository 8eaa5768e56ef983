"""The token of a request: a bearer token of a program, or the two halves that a browser has.

One half is in a cookie, which the browser also sends to other ports of this machine; the other is kept by
the tab, which sends it in a header (or in the first message of a WebSocket). They are worth nothing alone.

The value of a tab begins with a word that is in the name of its cookie: a browser keeps one for each daemon
of this machine, and sends all of them to each.
"""

from __future__ import annotations

import re

from starlette.datastructures import Headers

from ..api.web_logins import Login, token_of_halves
from ..core.errors import BadToken

COOKIE = "hiboss_session"  # its name begins with this
_WORD = re.compile(r"[A-Za-z0-9_-]{1,64}")  # the rest of its name
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
    if not has_cookie(headers):
        return None
    cookie = _cookies(headers).get(_name(tab) or "")
    if cookie is None or len(cookie) > LONGEST or len(tab) > LONGEST:
        raise BadToken()
    return token_of_halves(cookie, tab)


def has_cookie(headers: Headers) -> bool:
    """Tell whether there is a cookie of a login, of this daemon or another one."""
    return any(name.startswith(COOKIE) for name in _cookies(headers))


def cookie_of(login: Login, *, secure: bool) -> str:
    """Return the header that sets the cookie of a login."""
    own = f"{_name(login.tab)}={login.cookie}"
    words = [own, f"Max-Age={login.seconds}", "Path=/", "HttpOnly", "SameSite=Strict"]
    return "; ".join([*words, "Secure"] if secure else words)


def no_cookie(headers: Headers) -> str | None:
    """Return the header that takes the cookie of a tab away; None: the request is of no tab."""
    name = _name(headers.get(TAB_HEADER, ""))
    return None if name is None else f"{name}=; Max-Age=0; Path=/; HttpOnly; SameSite=Strict"


def _name(tab: str) -> str | None:
    """Return the name of the cookie that belongs to the value of a tab; None: it is no such value."""
    word, separator, _ = tab.partition(".")
    return f"{COOKIE}_{word}" if separator and _WORD.fullmatch(word) else None


def _cookies(headers: Headers) -> dict[str, str]:
    """Return the cookies by name. Others come from other ports of this machine, and may have any form.

    One of the same name for a longer path comes before ours.
    """
    found: dict[str, str] = {}
    for line in headers.getlist("cookie"):
        for one in line.split(";"):
            name, _, value = one.strip().partition("=")
            found[name] = value
    return found
