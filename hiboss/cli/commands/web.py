"""`hiboss web`"""

from __future__ import annotations

import os
import sys
import webbrowser
from html import escape
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

from ...core import clock
from ...core.errors import WebUnavailable, WrongUsage
from ...core.paths import Home
from .. import output
from ..call import call_as
from ..client import Answered
from ..credentials import find_token
from ..gateway import settled
from ..options import As, Json, Text, Token, flag, single_command
from ..views.times import moment

app = single_command()
LINK_SECONDS = 300  # how long a link is good
# It leads to the link at once. No script: some browsers run none in files.
PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0; url={url}">
<title>hiboss</title>
</head>
<body><a href="{url}">Log in</a></body>
</html>
"""

Print = Annotated[bool, flag("--print", None, "Print the link, and open no browser.")]
User = Annotated[Text, flag("--user", "NAME", "Log this person in (boss only); by default yourself.")]
Logout = Annotated[bool, flag("--logout", None, "Log out every browser of yours.")]


@app.command()
def web(
    print_: Print = False,
    user: User = None,
    logout: Logout = False,
    token: Token = None,
    as_: As = None,
    json_: Json = False,
) -> None:
    """Open hiboss in a browser, logged in by a link that is good once, for five minutes.

    Where no browser can be opened, as over ssh, the link is printed.

    Example: hiboss web --user mia --print
    """
    if logout and (print_ or user is not None):
        detail = "--logout takes neither --print nor --user; for another person add --as NAME"
        raise WrongUsage(detail=detail, help="hiboss web --help")
    home = Home()
    found = find_token(home, token, as_)  # once: it may be read from standard input
    if logout:
        output.answer(call_as(home, "web.logout", {"all": True}, found))
        return
    link = _link(home, user, found)
    home.forget_login_pages(clock.now() / 1000 - LINK_SECONDS)
    if not print_ and _opened(home, link["url"]):
        facts = {name: link[name] for name in ("address", "expires_at", "timezone")}
        _show({"opened": True} | facts)
        output.note("A browser was opened. If it does not show hiboss: hiboss web --print")
        return
    _show(link)
    if not print_:
        port = urlsplit(link["url"]).port
        output.note(
            "No browser can be opened here: open the link in one. From another machine, first run there:"
            f" ssh -L {port}:127.0.0.1:{port} HOST"
        )


def _link(home: Home, user: str | None, token: str | None) -> Any:
    """Make a link; right after the start of the daemon, wait until there can be one."""
    try:
        return call_as(home, "web.link", {"name": user}, token)
    except Answered as error:
        if error.stable_code != WebUnavailable.code:
            raise
    settled()
    return call_as(home, "web.link", {"name": user}, token)


def _show(result: dict[str, Any]) -> None:
    if output.Mode.json:
        output.document(result)
        return
    shown = result | {"expires_at": moment(result["expires_at"], result["timezone"])}
    output.record({name: value for name, value in shown.items() if name != "timezone"})


def _opened(home: Home, url: str) -> bool:
    """Open the link in a browser of this person; False: there is none here."""
    if not _has_screen():
        return False
    page = home.keep_login_page(PAGE.format(url=escape(url)))
    if _open(Path(page).as_uri()):
        return True
    os.unlink(page)
    return False


def _has_screen() -> bool:
    """Whether a browser would be seen. Over ssh it would open on the screen of another machine."""
    if os.environ.get("SSH_CONNECTION") or os.environ.get("SSH_TTY"):
        return False
    return sys.platform == "darwin" or any(
        os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
    )


def _open(url: str) -> bool:
    try:
        return webbrowser.open(url)
    except (webbrowser.Error, OSError):
        return False
